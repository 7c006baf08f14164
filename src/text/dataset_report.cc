#include "text/dataset_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "text/overlap.h"
#include "text/row_checks.h"

namespace tenon {
namespace {

constexpr size_t kSeenExamples = 5;

// What one thread found, and the first row that could not be read.
struct Tally {
  DataReport report;
  std::vector<uint64_t> digests;  // of the words of each row
  int64_t first_trouble_row = -1;
  EvalOverlap::Found found;
  std::optional<Error> error;
};

struct Scan {
  const Dataset& dataset;
  const StreamSettings& settings;
  const ReportOptions& options;
  const EvalOverlap& eval;
  std::vector<int64_t> sample;  // rows to read; empty: all
};

void check_words(int64_t row, const LoadedRow& loaded, const Scan& scan, Tally& tally) {
  const RowTrouble trouble = check_row(loaded.conversation);
  DataReport& report = tally.report;
  report.empty_answers += trouble.empty_answer;
  report.roles_out_of_order += trouble.roles;
  report.carriage_returns += trouble.carriage_return;
  report.byte_order_marks += trouble.byte_order_mark;
  report.mojibake += trouble.mojibake;
  report.replacements += trouble.replacement;
  report.controls += trouble.control;
  if (tally.first_trouble_row < 0 && (trouble.empty_answer || trouble.roles || trouble.encoding())) {
    tally.first_trouble_row = row;
  }
  const std::string words = words_of(loaded.conversation);
  tally.digests.push_back(hash_bytes(words));
  if (scan.eval.rows() > 0) scan.eval.look(words, row, tally.found);
}

// Trained spans whose last trained token is an ordinary one: such an answer does not teach where to stop.
int64_t spans_without_end(const TokenizedExample& example, const Tokenizer& tokenizer) {
  int64_t found = 0;
  for (size_t t = 0; t < example.labels.size(); ++t) {
    const bool is_last = t + 1 == example.labels.size() || example.labels[t + 1] == kUntrained;
    if (example.labels[t] != kUntrained && is_last) found += !tokenizer.is_special(example.labels[t]);
  }
  return found;
}

void count_special(const TokenizedExample& example, const SpecialTokens& special, DataReport& report) {
  size_t begins = 0;
  while (begins < 2 && begins < example.ids.size() && example.ids[begins] == special.bos) ++begins;
  ++report.begin_tokens[begins];
  for (size_t t = 1; t < example.labels.size(); ++t) {
    report.end_tokens_trained += std::count(special.eos.begin(), special.eos.end(), example.labels[t]);
  }
}

void count_row(int64_t row, LoadedRow loaded, const Scan& scan, DataReport& report) {
  const Tokenizer& tokenizer = *scan.settings.rows.tokens.tokenizer;
  const TokenizedRow& tokens = loaded.tokens;
  ++report.scanned_rows;
  ++report.length_histogram[std::min<size_t>(std::bit_width(static_cast<uint64_t>(tokens.full_tokens)),
                                             report.length_histogram.size() - 1)];
  if (tokens.full_tokens > report.longest_tokens) {
    report.longest_tokens = tokens.full_tokens;
    report.longest_row = row;
  }
  const int64_t trained = tokens.example.trained_tokens();
  if (tokens.skipped || trained == 0) {
    ++(tokens.skipped ? report.skipped : report.untrainable);
    return;
  }
  ++report.usable;
  report.cut += tokens.cut;
  report.tokens += static_cast<int64_t>(tokens.example.ids.size());
  report.trained_tokens += trained;
  count_special(tokens.example, tokenizer.special(), report);
  if (!tokens.cut) report.answers_without_end += spans_without_end(tokens.example, tokenizer);
  const RenderedExample& rendered = loaded.rendered;
  report.answers += rendered.answers;
  report.answers_rewritten += rendered.answers_rewritten;
  report.prompt_differs += rendered.prompt_differs;
  report.reasonings += rendered.reasonings;
  report.reasonings_rendered += rendered.reasonings_rendered;
  ++report.mask_sources[static_cast<size_t>(rendered.mask)];
  if (std::ssize(report.examples) < scan.options.examples) {
    report.examples.push_back(
        {row, {}, std::move(loaded.rendered), tokens.trained, tokens.full_tokens, trained});
  }
}

void merge(DataReport& into, DataReport from, int64_t examples) {
  for (int64_t DataReport::*count : {&DataReport::part_rows,
                                     &DataReport::scanned_rows,
                                     &DataReport::usable,
                                     &DataReport::cut,
                                     &DataReport::skipped,
                                     &DataReport::untrainable,
                                     &DataReport::tokens,
                                     &DataReport::trained_tokens,
                                     &DataReport::end_tokens_trained,
                                     &DataReport::answers,
                                     &DataReport::answers_rewritten,
                                     &DataReport::answers_without_end,
                                     &DataReport::prompt_differs,
                                     &DataReport::reasonings,
                                     &DataReport::reasonings_rendered,
                                     &DataReport::empty_answers,
                                     &DataReport::roles_out_of_order,
                                     &DataReport::carriage_returns,
                                     &DataReport::byte_order_marks,
                                     &DataReport::mojibake,
                                     &DataReport::replacements,
                                     &DataReport::controls}) {
    into.*count += from.*count;
  }
  const auto add = [](auto& to, const auto& more) {
    std::transform(to.begin(), to.end(), more.begin(), to.begin(), std::plus<>());
  };
  add(into.length_histogram, from.length_histogram);
  add(into.begin_tokens, from.begin_tokens);
  add(into.mask_sources, from.mask_sources);
  if (from.longest_tokens > into.longest_tokens) {
    into.longest_tokens = from.longest_tokens;
    into.longest_row = from.longest_row;
  }
  for (ReportExample& example : from.examples)
    if (std::ssize(into.examples) < examples) into.examples.push_back(std::move(example));
}

void tally_rows(const Scan& scan, Range range, Tally& tally) {
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t row = scan.sample.empty() ? i : scan.sample[static_cast<size_t>(i)];
    if (!in_data_part(scan.settings, row)) continue;
    Result<LoadedRow> loaded = load_row(scan.dataset, row, scan.settings.rows);
    if (!loaded.ok()) {
      tally.error = std::move(loaded).error();
      return;
    }
    check_words(row, *loaded, scan, tally);
    count_row(row, std::move(*loaded), scan, tally.report);
  }
}

Result<EvalOverlap> read_eval(const Dataset* eval) {
  EvalOverlap overlap;
  for (int64_t row = 0; eval && row < eval->rows(); ++row) {
    ASSIGN_OR_RETURN(const Conversation conversation, eval->conversation(row));
    overlap.add(words_of(conversation));
  }
  return overlap;
}

int64_t count_duplicates(std::vector<Tally>& tallies) {
  std::vector<uint64_t> digests;
  for (Tally& tally : tallies) digests.insert(digests.end(), tally.digests.begin(), tally.digests.end());
  std::sort(digests.begin(), digests.end());
  return digests.end() - std::unique(digests.begin(), digests.end());
}

void add_seen_rows(const Scan& scan, std::vector<Tally>& tallies, DataReport& report) {
  if (!scan.options.eval) return;
  EvalOverlap::Found found;
  for (const Tally& tally : tallies) EvalOverlap::merge(found, tally.found);
  report.eval_rows = scan.eval.rows();
  for (size_t row = 0; row < found.seen.size(); ++row) {
    const EvalOverlap::Seen& seen = found.seen[row];
    if (seen.train_row < 0) continue;
    if (++report.eval_rows_seen > static_cast<int64_t>(kSeenExamples)) continue;
    report.seen_rows.push_back({scan.options.eval->where(static_cast<int64_t>(row)),
                                scan.dataset.where(seen.train_row), seen.share});
  }
}

// The first `max_rows` rows of the part in the first epoch's order; empty where the part has no more than
// that.
std::vector<int64_t> choose_sample(int64_t rows, int64_t part_rows, const StreamSettings& settings,
                                   int64_t max_rows) {
  std::vector<int64_t> sample;
  if (part_rows <= max_rows) return sample;
  const Permutation order(settings.seed, 0, rows);
  for (int64_t i = 0; i < rows && static_cast<int64_t>(sample.size()) < max_rows; ++i) {
    const int64_t row = settings.shuffle ? order(i) : i;
    if (in_data_part(settings, row)) sample.push_back(row);
  }
  return sample;
}

std::string percent(int64_t part, int64_t whole) {
  return whole == 0 ? "-"
                    : fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string histogram_text(const DataReport& report) {
  std::string out;
  for (size_t b = 0; b < report.length_histogram.size(); ++b) {
    if (report.length_histogram[b] == 0) continue;
    const int64_t low = b == 0 ? 0 : int64_t{1} << (b - 1);
    const int64_t high = b == 0 ? 0 : (int64_t{1} << b) - 1;
    out += fmt::format("  {:>7} to {:<7} tokens  {:>9} rows\n", low, high, report.length_histogram[b]);
  }
  return out;
}

std::string warnings_text(const DataReport& report) {
  std::string out;
  const auto warn = [&](int64_t count, std::string_view text) {
    if (count > 0) out += fmt::format("  warning: {} {}\n", count, text);
  };
  warn(report.cut,
       "rows are cut at the limit; what is cut off is not learned, nor where such an answer ends");
  warn(report.skipped, "rows are longer than the limit and are left out");
  warn(report.untrainable, "rows have no token to train on and are left out");
  warn(report.answers_rewritten, "earlier answers are not trained on: the template rewrites earlier turns");
  warn(report.answers_without_end,
       "answers do not end in a special token: the model is not taught to stop there");
  warn(report.prompt_differs,
       "rows whose prompt a server would end in another way than the training text does");
  warn(report.reasonings - report.reasonings_rendered, "messages whose reasoning the template drops");
  warn(report.empty_answers, "rows have an answer without words");
  warn(report.roles_out_of_order,
       "rows whose messages do not take turns as in a chat that ends with an answer");
  warn(report.mojibake, "rows hold text that was decoded wrongly, such as \"Ã©\" for \"é\"");
  warn(report.replacements, "rows hold U+FFFD: characters were lost earlier");
  warn(report.byte_order_marks, "rows hold a byte order mark");
  warn(report.carriage_returns, "rows end lines with a carriage return");
  warn(report.controls, "rows hold control characters");
  if (!report.first_trouble_where.empty())
    out += fmt::format("    the first such row: {}\n", report.first_trouble_where);
  warn(report.duplicates, "rows have the words of an earlier row");
  warn(report.eval_rows_seen,
       fmt::format("of {} evaluation rows stand in the training data", report.eval_rows));
  for (const SeenRow& seen : report.seen_rows) {
    out += fmt::format("    {} in {} ({:.0f} %)\n", seen.eval_where, seen.train_where, 100 * seen.share);
  }
  warn(report.begin_tokens[2], "rows begin with more than one begin-of-sequence token");
  return out;
}

std::string example_text(const ReportExample& example, const TrainedMarks& marks) {
  const std::string_view text = example.rendered.text;
  std::string marked;
  size_t at = 0;
  for (const TextSpan& span : example.trained) {
    const auto begin = static_cast<size_t>(span.begin);
    const auto end = static_cast<size_t>(span.end);
    marked += fmt::format("{}{}{}{}", text.substr(at, begin - at), marks.begin,
                          text.substr(begin, end - begin), marks.end);
    at = end;
  }
  marked += text.substr(at);
  return fmt::format("example, {} ({} tokens, {} trained; trained text {}like this{}):\n{}\n", example.where,
                     example.tokens, example.trained_tokens, marks.begin, marks.end, marked);
}

}  // namespace

Result<DataReport> report_dataset(const Dataset& dataset, const StreamSettings& settings, int64_t max_rows,
                                  ThreadPool* threads) {
  return report_dataset(dataset, settings, ReportOptions{.max_rows = max_rows}, threads);
}

Result<DataReport> report_dataset(const Dataset& dataset, const StreamSettings& settings,
                                  const ReportOptions& options, ThreadPool* threads) {
  RETURN_IF_ERROR(check_trainable(dataset));
  const int64_t rows = dataset.rows();
  int64_t part_rows = 0;
  for (int64_t row = 0; row < rows; ++row) part_rows += in_data_part(settings, row);
  ASSIGN_OR_RETURN(const EvalOverlap eval, read_eval(options.eval));
  const Scan scan{dataset, settings, options, eval,
                  choose_sample(rows, part_rows, settings, options.max_rows)};
  const int64_t count = scan.sample.empty() ? rows : std::ssize(scan.sample);

  std::vector<Tally> tallies(threads ? static_cast<size_t>(threads->size()) : 1);
  const auto work = [&](int thread) {
    tally_rows(scan, split_range(count, static_cast<int>(tallies.size()), thread),
               tallies[static_cast<size_t>(thread)]);
  };
  if (threads) {
    threads->run(work);
  } else {
    work(0);
  }

  DataReport report;
  report.path = dataset.name();
  report.kind = dataset.file(0).kind();
  report.format = dataset.format(0);
  report.rows = rows;
  report.part_rows = part_rows;
  report.max_tokens = settings.rows.tokens.max_tokens;
  if (dataset.mixture().weighted()) {
    report.sources = dataset.mixture().sources();
    report.source_names = dataset.source_names();
  }
  report.duplicates = count_duplicates(tallies);
  add_seen_rows(scan, tallies, report);
  for (Tally& tally : tallies) {
    if (tally.error) return std::move(*tally.error);
    if (report.first_trouble_where.empty() && tally.first_trouble_row >= 0)
      report.first_trouble_where = dataset.where(tally.first_trouble_row);
    merge(report, std::move(tally.report), options.examples);
  }
  if (report.longest_row >= 0) report.longest_where = dataset.where(report.longest_row);
  for (ReportExample& example : report.examples) example.where = dataset.where(example.row);
  if (report.usable == 0) {
    return bad_file(
        fmt::format("none of {} rows has a token to train on ({} too long, {} without an answer inside "
                    "the limit of {} tokens)",
                    report.scanned_rows, report.skipped, report.untrainable, settings.rows.tokens.max_tokens),
        report.path, "Raise the limit of tokens, or look at how the rows are written.");
  }
  return report;
}

std::string report_text(const DataReport& report, const TrainedMarks& marks) {
  std::string out = fmt::format("{}: {}, {} rows of format '{}'; {} in this part, {} read\n", report.path,
                                file_kind_name(report.kind), report.rows, row_format_name(report.format),
                                report.part_rows, report.scanned_rows);
  out += fmt::format(
      "  usable {} rows, {} tokens, {} trained ({}); longest {} tokens at {}; limit {} tokens\n",
      report.usable, report.tokens, report.trained_tokens, percent(report.trained_tokens, report.tokens),
      report.longest_tokens, report.longest_where, report.max_tokens);
  for (size_t i = 0; i < report.sources.size(); ++i) {
    out += fmt::format("  {}: {} rows, {} an epoch (weight {})\n", report.source_names[i],
                       report.sources[i].rows, report.sources[i].epoch_rows, *report.sources[i].weight);
  }
  for (size_t m = 0; m < report.mask_sources.size(); ++m) {
    if (report.mask_sources[m] == 0) continue;
    out += fmt::format("  {} rows: trained text known by {}\n", report.mask_sources[m],
                       mask_source_name(static_cast<MaskSource>(m)));
  }
  out += fmt::format(
      "  begin-of-sequence tokens at the start: none in {} rows, one in {}, more in {}; trained end tokens "
      "{}\n",
      report.begin_tokens[0], report.begin_tokens[1], report.begin_tokens[2], report.end_tokens_trained);
  out += histogram_text(report) + warnings_text(report);
  for (const ReportExample& example : report.examples) out += example_text(example, marks);
  return out;
}

}  // namespace tenon
