#include "cli/inspect_dataset.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/threads.h"
#include "run/model_text.h"
#include "text/dataset.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

Json histogram_facts(const DataReport& report) {
  Json bins = Json::array();
  for (size_t b = 0; b < report.length_histogram.size(); ++b) {
    if (report.length_histogram[b] == 0) continue;
    const int64_t from = b == 0 ? 0 : int64_t{1} << (b - 1);
    const int64_t to = b == 0 ? 0 : (int64_t{1} << b) - 1;
    bins.push_back({{"from_tokens", from}, {"to_tokens", to}, {"rows", report.length_histogram[b]}});
  }
  return bins;
}

Json example_facts(const ReportExample& example) {
  Json spans = Json::array();
  for (const TextSpan& span : example.rendered.trained) spans.push_back({span.begin, span.end});
  return {{"where", example.where},
          {"tokens", example.tokens},
          {"trained_tokens", example.trained_tokens},
          {"text", example.rendered.text},
          {"trained_byte_ranges", spans}};
}

}  // namespace

Result<Json> dataset_facts(const std::string& path) {
  ASSIGN_OR_RETURN(const Dataset dataset, Dataset::open(path));
  return Json{{"path", path},
              {"kind", file_kind_name(dataset.file().kind())},
              {"row_format", row_format_name(dataset.format())},
              {"rows", dataset.rows()},
              {"text_bytes", dataset.file().size_bytes()}};
}

Result<DataReport> dataset_report(const DatasetQuestion& question) {
  ASSIGN_OR_RETURN(const Dataset dataset, Dataset::open(question.path));
  ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::from_file(question.model));
  const bool chat = dataset.format() != RowFormat::text && dataset.format() != RowFormat::prompt_completion;
  std::optional<ChatTemplate> chat_template;
  if (chat || !question.chat_template.empty() || !tokenizer.special().chat_templates.empty()) {
    ASSIGN_OR_RETURN(chat_template,
                     choose_chat_template(tokenizer, question.model, question.chat_template, false));
  }
  StreamSettings settings;
  settings.rows.render.chat_template = chat_template ? &*chat_template : nullptr;
  settings.rows.render.tokenizer = &tokenizer;
  settings.rows.render.train_on = train_on_from_name(question.train_on).value_or(TrainOn::answers);
  settings.rows.tokens.tokenizer = &tokenizer;
  settings.rows.tokens.max_tokens = static_cast<int32_t>(question.max_tokens);
  settings.rows.tokens.too_long = too_long_from_name(question.too_long).value_or(TooLong::cut);
  settings.tokens_per_step = settings.rows.tokens.max_tokens;
  ThreadPool threads(available_threads());
  return report_dataset(dataset, settings, question.max_rows > 0 ? question.max_rows : DataStream::kNoLimit,
                        &threads);
}

Json report_facts(const DataReport& report) {
  Json examples = Json::array();
  for (const ReportExample& example : report.examples) examples.push_back(example_facts(example));
  return {{"path", report.path},
          {"kind", file_kind_name(report.kind)},
          {"row_format", row_format_name(report.format)},
          {"rows", report.rows},
          {"scanned_rows", report.scanned_rows},
          {"usable_rows", report.usable},
          {"cut_rows", report.cut},
          {"skipped_rows", report.skipped},
          {"rows_without_trained_token", report.untrainable},
          {"tokens", report.tokens},
          {"trained_tokens", report.trained_tokens},
          {"longest_tokens", report.longest_tokens},
          {"longest_where", report.longest_where},
          {"length_histogram", histogram_facts(report)},
          {"rows_by_begin_tokens", report.begin_tokens},
          {"end_tokens_trained", report.end_tokens_trained},
          {"answers", report.answers},
          {"answers_rewritten", report.answers_rewritten},
          {"answers_without_end", report.answers_without_end},
          {"prompt_differs", report.prompt_differs},
          {"reasonings", report.reasonings},
          {"reasonings_rendered", report.reasonings_rendered},
          {"examples", examples}};
}

}  // namespace tenon
