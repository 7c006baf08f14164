#include "cli/inspect_dataset.h"

#include <ctime>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/threads.h"
#include "run/model_text.h"
#include "text/dataset.h"
#include "text/preference_report.h"

namespace tenon {
namespace {

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
  for (const TextSpan& span : example.trained) spans.push_back({span.begin, span.end});
  return {{"where", example.where},
          {"tokens", example.tokens},
          {"trained_tokens", example.trained_tokens},
          {"text", example.rendered.text},
          {"trained_byte_ranges", spans}};
}

// All that the rows of a question go through.
struct Opened {
  Dataset dataset;
  std::optional<Dataset> eval;
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;

  RowSettings rows(const DatasetQuestion& question) const {
    RowSettings rows;
    rows.render.chat_template = chat_template ? &*chat_template : nullptr;
    rows.render.tokenizer = &tokenizer;
    rows.render.train_on = train_on_from_name(question.train_on).value_or(TrainOn::answers);
    rows.render.options.clock_unix_seconds = static_cast<int64_t>(std::time(nullptr));
    rows.tokens.tokenizer = &tokenizer;
    rows.tokens.max_tokens = static_cast<int32_t>(question.max_tokens);
    rows.tokens.too_long = too_long_from_name(question.too_long).value_or(TooLong::cut);
    return rows;
  }
  bool holds_preferences() const { return dataset.first_preference_row() >= 0; }
};

Result<Opened> open_question(const DatasetQuestion& question) {
  ASSIGN_OR_RETURN(ColumnNames columns, column_names(question.columns));
  ASSIGN_OR_RETURN(Dataset dataset, Dataset::open(question.path, columns));
  std::optional<Dataset> eval;
  if (!question.eval_data.empty()) {
    ASSIGN_OR_RETURN(eval, Dataset::open(question.eval_data, columns));
  }
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::from_file(question.model));
  std::optional<ChatTemplate> chat_template;
  if (dataset.has_chat() || !question.chat_template.empty() || !tokenizer.special().chat_templates.empty()) {
    ASSIGN_OR_RETURN(chat_template,
                     choose_chat_template(tokenizer, question.model, question.chat_template, false));
  }
  return Opened{std::move(dataset), std::move(eval), std::move(tokenizer), std::move(chat_template)};
}

Result<DataReport> report_of(const Opened& opened, const DatasetQuestion& question) {
  StreamSettings settings;
  settings.rows = opened.rows(question);
  settings.tokens_per_step = settings.rows.tokens.max_tokens;
  ThreadPool threads(available_threads());
  ReportOptions options;
  if (question.max_rows > 0) options.max_rows = question.max_rows;
  options.examples = question.examples;
  options.eval = opened.eval ? &*opened.eval : nullptr;
  return report_dataset(opened.dataset, settings, options, &threads);
}

Result<PreferenceReport> preferences_of(const Opened& opened, const DatasetQuestion& question) {
  const int64_t rows = question.max_rows > 0 ? question.max_rows : opened.dataset.rows();
  return report_preferences(opened.dataset, opened.rows(question), rows, question.examples);
}

Json preference_facts(const PreferenceReport& report) {
  Json examples = Json::array();
  for (const PreferenceExample& example : report.examples) {
    examples.push_back({{"where", example.where},
                        {"label", example.label},
                        {"chosen", example.chosen.text},
                        {"rejected", example.rejected.text}});
  }
  return {{"path", report.path},
          {"row_format", row_format_name(report.format)},
          {"rows", report.rows},
          {"scanned_rows", report.scanned_rows},
          {"labelled_good", report.labelled_good},
          {"labelled_bad", report.labelled_bad},
          {"chosen_tokens", report.chosen_tokens},
          {"rejected_tokens", report.rejected_tokens},
          {"chosen_longer", report.chosen_longer},
          {"chosen_shorter", report.chosen_shorter},
          {"same_answers", report.same_answers},
          {"empty_answers", report.empty_answers},
          {"too_long_rows", report.too_long},
          {"trainable", false},
          {"examples", examples}};
}

Json seen_facts(const DataReport& report) {
  Json rows = Json::array();
  for (const SeenRow& seen : report.seen_rows)
    rows.push_back({{"eval", seen.eval_where}, {"train", seen.train_where}, {"share", seen.share}});
  return rows;
}

Json source_facts(const DataReport& report) {
  Json sources = Json::array();
  for (size_t i = 0; i < report.sources.size(); ++i) {
    sources.push_back({{"name", report.source_names[i]},
                       {"rows", report.sources[i].rows},
                       {"rows_an_epoch", report.sources[i].epoch_rows},
                       {"weight", *report.sources[i].weight}});
  }
  return sources;
}

Json report_facts(const DataReport& report) {
  Json examples = Json::array();
  for (const ReportExample& example : report.examples) examples.push_back(example_facts(example));
  return {
      {"path", report.path},
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
      {"duplicate_rows", report.duplicates},
      {"rows_with_empty_answer", report.empty_answers},
      {"rows_with_roles_out_of_order", report.roles_out_of_order},
      {"rows_with_mojibake", report.mojibake},
      {"rows_with_replacement_characters", report.replacements},
      {"rows_with_byte_order_mark", report.byte_order_marks},
      {"rows_with_carriage_return", report.carriage_returns},
      {"rows_with_control_characters", report.controls},
      {"first_trouble_where", report.first_trouble_where.empty() ? Json() : Json(report.first_trouble_where)},
      {"sources", source_facts(report)},
      {"eval_rows", report.eval_rows},
      {"eval_rows_seen", report.eval_rows_seen},
      {"eval_rows_seen_examples", seen_facts(report)},
      {"examples", examples}};
}

}  // namespace

Result<Json> dataset_facts(const DatasetQuestion& question) {
  ASSIGN_OR_RETURN(ColumnNames columns, column_names(question.columns));
  ASSIGN_OR_RETURN(const Dataset dataset, Dataset::open(question.path, std::move(columns)));
  Json facts = {{"path", question.path}};
  if (dataset.files() == 1) facts["kind"] = file_kind_name(dataset.file(0).kind());
  facts["row_format"] = row_format_name(dataset.format(0));
  facts["rows"] = dataset.rows();
  facts["text_bytes"] = dataset.size_bytes();
  if (dataset.files() == 1) return facts;
  int64_t row = 0;
  for (size_t i = 0; i < dataset.files(); ++i) {
    const DatasetFile& file = dataset.file(i);
    facts["files"].push_back({{"path", file.path()},
                              {"kind", file_kind_name(file.kind())},
                              {"row_format", row_format_name(dataset.format(row))},
                              {"rows", file.rows()},
                              {"text_bytes", file.size_bytes()}});
    row += file.rows();
  }
  return facts;
}

Result<Json> dataset_report_facts(const DatasetQuestion& question) {
  ASSIGN_OR_RETURN(const Opened opened, open_question(question));
  if (opened.holds_preferences()) {
    ASSIGN_OR_RETURN(const PreferenceReport report, preferences_of(opened, question));
    return preference_facts(report);
  }
  ASSIGN_OR_RETURN(const DataReport report, report_of(opened, question));
  return report_facts(report);
}

Result<std::string> dataset_report_text(const DatasetQuestion& question, const TrainedMarks& marks) {
  ASSIGN_OR_RETURN(const Opened opened, open_question(question));
  if (opened.holds_preferences()) {
    ASSIGN_OR_RETURN(const PreferenceReport report, preferences_of(opened, question));
    return preference_text(report);
  }
  ASSIGN_OR_RETURN(const DataReport report, report_of(opened, question));
  return report_text(report, marks);
}

}  // namespace tenon
