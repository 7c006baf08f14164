// tenon runs: lists run folders, shows one, compares two. Reads records only.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/facts.h"
#include "cli/terminal.h"
#include "io/folder.h"
#include "record/compare_records.h"
#include "record/run_record.h"
#include "record/run_summary.h"
#include "run/train/run_paths.h"

namespace tenon {
namespace {

struct RunsArguments {
  std::string action;
  StringList paths;
  bool json = false;
};

struct FoundRun {
  std::string path;
  RunRecord record;
  RunSummary summary;
};

Result<FoundRun> open_run(const std::string& path) {
  const std::string record_path = run_record_path(path);
  if (!is_file(record_path))
    return not_found("there is no run in this folder", path, "Name a folder that `tenon train --out` made.");
  ASSIGN_OR_RETURN(RunRecord record, read_record(record_path));
  const RunSummary summary = summarise(record, FolderLock::is_held(path));
  return FoundRun{path, std::move(record), summary};
}

std::string loss_text(std::optional<double> loss) {
  return loss ? fmt::format("{:.4f}", *loss) : "–";
}

Json loss_json(std::optional<double> loss) {
  return loss ? Json(*loss) : Json();
}

Json summary_json(const FoundRun& run) {
  const RunSummary& s = run.summary;
  return {{"run", run.path},
          {"state", s.state},
          {"steps", s.steps},
          {"first_loss", s.first_loss},
          {"last_loss", s.last_loss},
          {"last_eval_loss", loss_json(s.last_eval_loss)},
          {"best_eval_loss", loss_json(s.best_eval_loss)},
          {"tokens_per_second", s.tokens_per_second},
          {"seconds", s.seconds},
          {"started_unix_seconds", run.record.header.started_unix_seconds}};
}

// Runs in the folders, or the folders themselves where they are runs. Folders without a run are passed over;
// so are damaged ones among others, which are named.
Result<std::vector<FoundRun>> find_runs(const StringList& folders) {
  std::vector<FoundRun> runs;
  for (const std::string& folder : folders) {
    if (is_file(run_record_path(folder))) {
      ASSIGN_OR_RETURN(runs.emplace_back(), open_run(folder));
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> names, list_folder(folder));
    for (const std::string& name : names) {
      const std::string path = folder == "." ? name : join_path(folder, name);
      if (!is_file(run_record_path(path))) continue;
      Result<FoundRun> run = open_run(path);
      if (run.ok())
        runs.push_back(std::move(*run));
      else
        fmt::print(stderr, "warning: {}\n", run.error().text());
    }
  }
  return runs;
}

Status list_runs(const RunsArguments& a) {
  ASSIGN_OR_RETURN(const std::vector<FoundRun> runs, find_runs(a.paths.empty() ? StringList{"."} : a.paths));
  if (a.json) {
    for (const FoundRun& run : runs) fmt::print("{}\n", summary_json(run).dump());
    return {};
  }
  constexpr auto kRight = Table::Align::right;
  Table table({{"run"},
               {"state"},
               {"steps", kRight},
               {"loss", kRight},
               {"eval loss", kRight},
               {"tokens/s", kRight},
               {"time", kRight},
               {"rank", kRight},
               {"lr", kRight},
               {"data"}});
  for (const FoundRun& run : runs) {
    const RunSummary& s = run.summary;
    table.add_row({run.path, s.state, grouped_digits(s.steps), loss_text(s.last_loss),
                   loss_text(s.last_eval_loss), fmt::format("{:.0f}", s.tokens_per_second),
                   human_duration(s.seconds), recipe_setting(run.record, "rank"),
                   recipe_setting(run.record, "lr"), recipe_setting(run.record, "data")});
  }
  if (runs.empty())
    fmt::print("no runs here\n");
  else
    fmt::print("{}", table.text());
  return {};
}

std::string start_text(int64_t unix_seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

Json run_facts(const FoundRun& run) {
  const RecordHeader& header = run.record.header;
  const RunSummary& s = run.summary;
  Json facts = {{"run", run.path},
                {"state", s.state},
                {"started", start_text(header.started_unix_seconds)},
                {"build", header.build},
                {"device", fmt::format("{}, {} {}", header.device, header.threads,
                                       header.threads == 1 ? "thread" : "threads")},
                {"steps", s.steps},
                {"trained_tokens", s.trained_tokens},
                {"first_loss", s.first_loss},
                {"last_loss", s.last_loss},
                {"last_eval_loss", loss_json(s.last_eval_loss)},
                {"best_eval_loss", loss_json(s.best_eval_loss)},
                {"best_eval_step", s.best_eval_step},
                {"tokens_per_second", s.tokens_per_second},
                {"time", human_duration(s.seconds)},
                {"planned_bytes", header.planned_bytes},
                {"plan_hash", header.plan_hash}};
  if (run.record.end) {
    facts["observed_peak_bytes"] = run.record.end->observed_peak_bytes;
    if (!run.record.end->error.empty()) facts["error"] = run.record.end->error;
  }
  Json digests = Json::array();
  for (const auto& [what, digest] : header.digests) digests.push_back({{"file", what}, {"digest", digest}});
  facts["digests"] = digests;
  Json resumes = Json::array();
  for (const RecordResume& event : run.record.resumes) {
    resumes.push_back({{"step", event.step},
                       {"reason", event.reason},
                       {"checkpoint", event.checkpoint.empty() ? "none" : event.checkpoint}});
  }
  if (!resumes.empty()) facts["resumptions"] = resumes;
  Json notes = Json::array();
  for (const RecordNote& note : run.record.notes)
    notes.push_back({{"step", note.step}, {"action", note.action}, {"message", note.message}});
  if (!notes.empty()) facts["health"] = notes;
  return facts;
}

Status show_run(const RunsArguments& a) {
  ASSIGN_OR_RETURN(const FoundRun run, open_run(a.paths[0]));
  const Json facts = run_facts(run);
  if (a.json) {
    fmt::print("{}", facts_json(facts));
    return {};
  }
  fmt::print("{}\nrecipe\n", facts_text(facts));
  std::string recipe = run.record.recipe();
  for (size_t at = 0; at != recipe.npos && at < recipe.size(); at = recipe.find('\n', at)) {
    if (recipe[at] == '\n' && ++at == recipe.size()) break;
    recipe.insert(at, "  ");
  }
  fmt::print("{}", recipe);
  return {};
}

Json differences_json(const std::vector<RecordDifference>& differences, const FoundRun& left,
                      const FoundRun& right) {
  Json out = Json::object();
  for (const RecordDifference& each : differences)
    out[each.field] = {{left.path, each.left}, {right.path, each.right}};
  return out;
}

Status compare_runs(const RunsArguments& a) {
  ASSIGN_OR_RETURN(const FoundRun left, open_run(a.paths[0]));
  ASSIGN_OR_RETURN(const FoundRun right, open_run(a.paths[1]));
  const RecordComparison comparison = compare_records(left.record, right.record);
  if (a.json) {
    const auto step_json = [](std::optional<int64_t> step) { return step ? Json(*step) : Json(); };
    const Json out = {{"settings", differences_json(comparison.settings, left, right)},
                      {"results", differences_json(comparison.results, left, right)},
                      {"first_loss_step", step_json(comparison.first_loss_step)},
                      {"first_other_step", step_json(comparison.first_other_step)},
                      {"same_results", comparison.same_results()}};
    fmt::print("{}", facts_json(out));
    return {};
  }
  Table table({{"what differs"}, {left.path}, {right.path}});
  for (const auto* differences : {&comparison.settings, &comparison.results}) {
    for (const RecordDifference& each : *differences) table.add_row({each.field, each.left, each.right});
  }
  const RunSummary &l = left.summary, &r = right.summary;
  if (!comparison.same_results()) {
    table.add_row({"last loss", loss_text(l.last_loss), loss_text(r.last_loss)});
    table.add_row({"last eval loss", loss_text(l.last_eval_loss), loss_text(r.last_eval_loss)});
  }
  if (!comparison.same_results() || !comparison.settings.empty()) fmt::print("{}", table.text());
  if (comparison.first_loss_step) fmt::print("losses differ from step {} on\n", *comparison.first_loss_step);
  if (comparison.first_other_step)
    fmt::print("learning rate, tokens or gradient norms differ from step {} on\n",
               *comparison.first_other_step);
  if (comparison.same_results()) fmt::print("the results are the same, bit for bit\n");
  return {};
}

Status run_runs(const RunsArguments& a) {
  const auto takes = [&](size_t count) -> Status {
    if (a.paths.size() == count) return {};
    return bad_argument(fmt::format("takes {}", count == 1 ? "one run folder" : "two run folders"),
                        "runs " + a.action, "See 'tenon runs --help'.");
  };
  if (a.action == "list") return list_runs(a);
  if (a.action == "show") {
    RETURN_IF_ERROR(takes(1));
    return show_run(a);
  }
  if (a.action == "compare") {
    RETURN_IF_ERROR(takes(2));
    return compare_runs(a);
  }
  return bad_argument(fmt::format("'{}' is not one of list, show, compare", a.action), "runs",
                      "See 'tenon runs --help'.");
}

}  // namespace

Command runs_command() {
  const auto a = std::make_shared<RunsArguments>();
  Command command;
  command.name = "runs";
  command.summary = "List run folders, show one, or compare two";
  command.details =
      "list takes folders that hold runs (default: this one); show takes one run; compare takes two and "
      "shows which settings and files differ, and from which step on the results do.";
  command.example =
      "tenon runs list\n"
      "tenon runs show RUN\n"
      "tenon runs compare A B";
  command.positionals = {{"ACTION", &a->action, "list, show or compare"},
                         {"PATH", &a->paths, "Run folders", false}};
  command.options = {{"json", &a->json, "Print JSON"}};
  command.run = [a] { return run_runs(*a); };
  return command;
}

}  // namespace tenon
