// What a run is about to be trained on, said before it starts: one pass over the rows (all, or a sample) that
// counts what will become of them, and what is suspicious in them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "text/dataset_stream.h"

namespace tenon {

struct ReportExample {
  int64_t row = 0;
  std::string where;  // "path:line"
  RenderedExample rendered;
  std::vector<TextSpan> trained;  // see TokenizedRow
  int64_t tokens = 0;
  int64_t trained_tokens = 0;
};

// An evaluation row that training holds, nearly or word for word (see EvalOverlap).
struct SeenRow {
  std::string eval_where, train_where;  // "path:line"
  double share = 0;
};

struct DataReport {
  std::string path;
  FileKind kind = FileKind::jsonl;
  RowFormat format = RowFormat::text;
  int64_t rows = 0;          // in the file
  int64_t part_rows = 0;     // of those, in the part asked for
  int64_t max_tokens = 0;    // the limit of a row
  int64_t scanned_rows = 0;  // of those, read for this report

  // Of the scanned rows.
  int64_t usable = 0;
  int64_t cut = 0;          // usable ones that were cut
  int64_t skipped = 0;      // too long
  int64_t untrainable = 0;  // no trained token
  int64_t tokens = 0;       // of usable rows
  int64_t trained_tokens = 0;
  int64_t longest_tokens = 0;  // before cutting, of all scanned rows
  int64_t longest_row = -1;
  std::string longest_where;  // "path:line"
  // [0] counts empty rows, [b] rows of 2^(b-1) to 2^b - 1 tokens before cutting.
  std::array<int64_t, 33> length_histogram{};
  std::array<int64_t, 3> begin_tokens{};  // usable rows that start with 0, 1, 2 or more begin tokens
  int64_t end_tokens_trained = 0;         // end tokens that are trained on
  int64_t answers = 0;
  int64_t answers_rewritten = 0;    // see RenderedExample
  int64_t answers_without_end = 0;  // trained spans, not cut, whose last trained token is not special
  int64_t prompt_differs = 0;       // rows
  int64_t reasonings = 0;           // messages with reasoning
  int64_t reasonings_rendered = 0;
  std::array<int64_t, 4> mask_sources{};  // usable rows, by MaskSource
  std::vector<ReportExample> examples;    // the first usable rows

  // Of the scanned rows, see RowTrouble.
  int64_t duplicates = 0;  // rows with the words of an earlier one
  int64_t empty_answers = 0;
  int64_t roles_out_of_order = 0;
  int64_t carriage_returns = 0;
  int64_t byte_order_marks = 0;
  int64_t mojibake = 0;
  int64_t replacements = 0;
  int64_t controls = 0;
  std::string first_trouble_where;  // the first row with one of these but duplicates; empty: none

  std::vector<MixtureSource> sources;  // where they are mixed by weight
  std::vector<std::string> source_names;

  int64_t eval_rows = 0;           // compared with; 0: none
  int64_t eval_rows_seen = 0;      // of those, in training
  std::vector<SeenRow> seen_rows;  // the first of them
};

struct ReportOptions {
  int64_t max_rows = DataStream::kNoLimit;
  int64_t examples = 3;
  const Dataset* eval = nullptr;  // to look for in the scanned rows; may be null
};

// Reads the rows of settings.part: all of them where there are at most `max_rows`, else max_rows chosen by
// the seed. Each row counts once, whatever its weight. Besides the counts, 8 bytes a scanned row are kept to
// find duplicates. Errors: those of load_row, of the first row that has one; bad_file where none of the rows
// has a token to train on.
Result<DataReport> report_dataset(const Dataset& dataset, const StreamSettings& settings,
                                  const ReportOptions& options, ThreadPool* threads = nullptr);
Result<DataReport> report_dataset(const Dataset& dataset, const StreamSettings& settings,
                                  int64_t max_rows = DataStream::kNoLimit, ThreadPool* threads = nullptr);

// What stands around trained text.
struct TrainedMarks {
  std::string_view begin = "«";
  std::string_view end = "»";
};

// For people: counts, warnings and the examples, their trained bytes set between the marks.
std::string report_text(const DataReport& report, const TrainedMarks& marks = {});

}  // namespace tenon
