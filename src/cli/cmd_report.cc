// tenon report: writes the report page of a run again, or one page that overlays several.
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "io/write_file.h"
#include "run/report/report_page.h"
#include "run/train/run_paths.h"

namespace tenon {
namespace {

struct ReportArguments {
  StringList runs;
  std::string out;
};

Status run_report(const ReportArguments& a) {
  std::vector<ReportRun> runs;
  for (const std::string& run : a.runs) {
    ASSIGN_OR_RETURN(runs.emplace_back(), read_report_run(run));
  }
  const std::string out = !a.out.empty()     ? a.out
                          : runs.size() == 1 ? run_report_path(a.runs[0])
                                             : "report.html";
  RETURN_IF_ERROR(write_file_atomic(out, report_html(runs)));
  fmt::print("{}\n", out);
  return {};
}

}  // namespace

Command report_command() {
  const auto a = std::make_shared<ReportArguments>();
  Command command;
  command.name = "report";
  command.summary = "Write the report page of a run, or one page that overlays several";
  command.details =
      "The page is one HTML file that needs no network. `tenon train` writes it into the run folder when the "
      "run ends; this writes it again, also while the run is going on.";
  command.example =
      "tenon report RUN\n"
      "tenon report A B C --out compared.html";
  command.positionals = {{"RUN", &a->runs, "Run folders"}};
  command.options = {{"out", &a->out,
                      "File to write; the default is report.html in the run folder, or here for several runs",
                      "FILE"}};
  command.run = [a] { return run_report(*a); };
  return command;
}

}  // namespace tenon
