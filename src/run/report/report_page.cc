#include "run/report/report_page.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string_view>

#include "base/json.h"
#include "io/folder.h"
#include "io/json_file.h"
#include "io/write_file.h"
#include "run/report/page_files.h"
#include "run/train/run_paths.h"

namespace tenon {
namespace {

constexpr int64_t kMostPoints = 3000;  // of a curve; longer ones are thinned

// JSON has no word for NaN and infinity; the page leaves a gap.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

// Means of `every` values in a row.
Json thinned(const std::vector<RecordStep>& steps, int64_t every, double RecordStep::*field) {
  Json out = Json::array();
  const auto count = static_cast<int64_t>(steps.size());
  for (int64_t begin = 0; begin < count; begin += every) {
    const int64_t end = std::min(count, begin + every);
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += steps[static_cast<size_t>(i)].*field;
    out.push_back(number(sum / static_cast<double>(end - begin)));
  }
  return out;
}

Json steps_json(const std::vector<RecordStep>& steps) {
  const auto count = static_cast<int64_t>(steps.size());
  const int64_t every = std::max<int64_t>(1, (count + kMostPoints - 1) / kMostPoints);
  Json numbers = Json::array();
  for (int64_t i = 0; i < count; i += every) numbers.push_back(steps[static_cast<size_t>(i)].step);
  return {{"every", every},
          {"step", numbers},
          {"loss", thinned(steps, every, &RecordStep::loss)},
          {"learning_rate", thinned(steps, every, &RecordStep::learning_rate)},
          {"gradient_norm", thinned(steps, every, &RecordStep::gradient_norm)},
          {"clipped_gradient_norm", thinned(steps, every, &RecordStep::clipped_gradient_norm)},
          {"tokens_per_second", thinned(steps, every, &RecordStep::tokens_per_second)}};
}

Json evals_json(const std::vector<RecordEval>& evals) {
  Json steps = Json::array(), losses = Json::array();
  for (const RecordEval& eval : evals) {
    steps.push_back(eval.step);
    losses.push_back(number(eval.loss));
  }
  return {{"step", steps}, {"loss", losses}};
}

Json run_json(const ReportRun& run) {
  const RecordHeader& header = run.record.header;
  Json notes = Json::array(), resumes = Json::array();
  for (const RecordNote& note : run.record.notes)
    notes.push_back({{"step", note.step}, {"action", note.action}, {"message", note.message}});
  for (const RecordResume& event : run.record.resumes)
    resumes.push_back({{"step", event.step}, {"reason", event.reason}, {"checkpoint", event.checkpoint}});
  const auto started = static_cast<std::time_t>(header.started_unix_seconds);
  Json json = {{"name", run.name},
               {"state", run.summary.state},
               {"started", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(started))},
               {"build", header.build},
               {"device", header.device},
               {"threads", header.threads},
               {"trained_tokens", run.summary.trained_tokens},
               {"tokens_per_second", number(run.summary.tokens_per_second)},
               {"seconds", run.summary.seconds},
               {"best_eval_step", run.summary.best_eval_step},
               {"best_eval_loss", number(run.summary.best_eval_loss.value_or(NAN))},
               {"planned_bytes", header.planned_bytes},
               {"observed_peak_bytes", run.record.end ? run.record.end->observed_peak_bytes : 0},
               {"error", run.record.end ? run.record.end->error : ""},
               {"recipe", run.record.recipe()},
               {"notes", notes},
               {"resumes", resumes},
               {"steps", steps_json(run.record.steps)},
               {"evals", evals_json(run.record.evals)}};
  json["facts"] = Json::parse_or_null(run.facts);
  if (!json["facts"].is_object()) json["facts"] = Json::object();
  return json;
}

// "<" could end the element that holds the data; JSON may write it as an escape.
std::string data_text(std::span<const ReportRun> runs) {
  Json list = Json::array();
  for (const ReportRun& run : runs) list.push_back(run_json(run));
  const std::string json = Json{{"runs", list}}.dump();
  std::string out;
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace

Result<ReportRun> read_report_run(const std::string& run) {
  const std::string record = run_record_path(run);
  if (!is_file(record))
    return not_found("there is no run in this folder", run, "Name a folder that `tenon train --out` made.");
  ReportRun out;
  out.name = run;
  ASSIGN_OR_RETURN(out.record, read_record(record));
  out.summary = summarise(out.record, !out.record.end && FolderLock::is_held(run));
  const std::string facts = run_facts_path(run);
  if (!is_file(facts)) return out;
  ASSIGN_OR_RETURN(out.facts, read_file(facts));
  RETURN_IF_ERROR(parse_json(out.facts, facts));
  return out;
}

std::string report_html(std::span<const ReportRun> runs) {
  constexpr std::string_view kStyle = "{{style}}", kScript = "{{script}}", kData = "{{data}}";
  const std::string_view page = kReportPage;
  const size_t style = page.find(kStyle), data = page.find(kData), script = page.find(kScript);
  CHECK(style < data && data < script && script != page.npos, "the page has its three places, in order");
  std::string out(page.substr(0, style));
  out += kReportStyle;
  out += page.substr(style + kStyle.size(), data - style - kStyle.size());
  out += data_text(runs);
  out += page.substr(data + kData.size(), script - data - kData.size());
  out += kReportCharts;
  out += kReportScript;
  out += page.substr(script + kScript.size());
  return out;
}

Status write_run_report(const std::string& run) {
  ASSIGN_OR_RETURN(ReportRun report, read_report_run(run));
  return write_file_atomic(run_report_path(run), report_html({&report, 1}));
}

}  // namespace tenon
