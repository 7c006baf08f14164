#include "text/preference_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/row_checks.h"

namespace tenon {
namespace {

struct Answer {
  RenderedExample rendered;
  int64_t tokens = 0;  // of the answer
  bool cut = false;
};

Result<Answer> load_answer(const Conversation& conversation, const RowSettings& settings) {
  RowSettings last = settings;
  last.render.train_on = TrainOn::last;
  last.tokens.too_long = TooLong::cut;
  Answer answer;
  ASSIGN_OR_RETURN(answer.rendered, render_conversation(conversation, last.render));
  ASSIGN_OR_RETURN(const TokenizedRow tokens, tokenize_example(answer.rendered, last.tokens));
  answer.tokens = tokens.example.trained_tokens();
  answer.cut = tokens.cut;
  return answer;
}

std::string answer_text(const RenderedExample& rendered) {
  std::string text;
  for (const TextSpan& span : rendered.trained) {
    text += std::string_view(rendered.text)
                .substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
  }
  return text;
}

// Counts a row; `example` receives its answers.
Status count_row(const Preference& row, const RowSettings& settings, PreferenceReport& report,
                 PreferenceExample& example) {
  example.label = row.label;
  ASSIGN_OR_RETURN(Answer chosen, load_answer(row.chosen, settings));
  bool cut = chosen.cut, empty = check_row(row.chosen).empty_answer;
  report.chosen_tokens += chosen.tokens;
  if (row.is_pair) {
    ASSIGN_OR_RETURN(Answer rejected, load_answer(row.rejected, settings));
    report.rejected_tokens += rejected.tokens;
    report.chosen_longer += chosen.tokens > rejected.tokens;
    report.chosen_shorter += chosen.tokens < rejected.tokens;
    report.same_answers += chosen.rendered.text == rejected.rendered.text;
    cut |= rejected.cut;
    empty |= check_row(row.rejected).empty_answer;
    example.rejected = std::move(rejected.rendered);
  } else {
    ++(row.label ? report.labelled_good : report.labelled_bad);
  }
  report.too_long += cut;
  report.empty_answers += empty;
  example.chosen = std::move(chosen.rendered);
  return {};
}

}  // namespace

Result<PreferenceReport> report_preferences(const Dataset& dataset, const RowSettings& settings,
                                            int64_t max_rows, int64_t examples) {
  PreferenceReport report;
  report.path = dataset.name();
  report.format = dataset.format(0);
  report.rows = dataset.rows();
  report.scanned_rows = std::min(report.rows, max_rows);
  report.max_tokens = settings.tokens.max_tokens;
  for (int64_t row = 0; row < report.scanned_rows; ++row) {
    ASSIGN_OR_RETURN(const Preference preference, dataset.preference(row));
    PreferenceExample example;
    Status status = count_row(preference, settings, report, example);
    if (!status.ok()) return std::move(status).error().within(dataset.where(row));
    if (row >= examples) continue;
    example.where = dataset.where(row);
    report.examples.push_back(std::move(example));
  }
  return report;
}

std::string preference_text(const PreferenceReport& report) {
  std::string out = fmt::format("{}: {} rows of format '{}', {} read\n", report.path, report.rows,
                                row_format_name(report.format), report.scanned_rows);
  const bool pairs = report.format == RowFormat::preference_pair;
  const double rows = static_cast<double>(std::max<int64_t>(report.scanned_rows, 1));
  if (pairs) {
    out += fmt::format(
        "  mean answer: chosen {:.0f} tokens, rejected {:.0f}; chosen is longer in {} rows, shorter in "
        "{}\n",
        static_cast<double>(report.chosen_tokens) / rows, static_cast<double>(report.rejected_tokens) / rows,
        report.chosen_longer, report.chosen_shorter);
  } else {
    out += fmt::format("  {} answers are labelled good, {} bad; mean answer {:.0f} tokens\n",
                       report.labelled_good, report.labelled_bad,
                       static_cast<double>(report.chosen_tokens) / rows);
  }
  const auto warn = [&](int64_t count, std::string_view text) {
    if (count > 0) out += fmt::format("  warning: {} {}\n", count, text);
  };
  warn(report.same_answers, "pairs have the same answer twice");
  warn(report.empty_answers, "rows have an answer without words");
  warn(report.too_long, fmt::format("rows are longer than the limit of {} tokens", report.max_tokens));
  out += "  these rows cannot be trained on yet: no loss here learns from preferences\n";
  for (const PreferenceExample& example : report.examples) {
    const std::string_view name = pairs ? "chosen" : example.label ? "good" : "bad";
    out += fmt::format("example, {}:\n{}: {}\n", example.where, name, answer_text(example.chosen));
    if (pairs) out += fmt::format("rejected: {}\n", answer_text(example.rejected));
  }
  return out;
}

}  // namespace tenon
