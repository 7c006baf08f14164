// What a set of preferences holds: pairs of a chosen and a rejected answer, or answers with a label. For
// looking at; no loss learns from them yet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/dataset.h"

namespace tenon {

struct PreferenceExample {
  std::string where;  // "path:line"
  bool label = true;
  RenderedExample chosen;
  RenderedExample rejected;  // empty for a labelled row
};

struct PreferenceReport {
  std::string path;
  RowFormat format = RowFormat::preference_pair;
  int64_t rows = 0;
  int64_t scanned_rows = 0;
  int64_t max_tokens = 0;

  int64_t labelled_good = 0, labelled_bad = 0;
  int64_t same_answers = 0;   // pairs whose answers are the same
  int64_t empty_answers = 0;  // rows
  int64_t too_long = 0;       // rows with an answer whose text has more than max_tokens tokens
  int64_t chosen_tokens = 0;  // of the answers alone; of labelled rows: all of them
  int64_t rejected_tokens = 0;
  int64_t chosen_longer = 0;  // pairs whose chosen answer has more tokens
  int64_t chosen_shorter = 0;
  std::vector<PreferenceExample> examples;
};

// Reads the first `max_rows` rows. The rows must all be of one preference format. Errors: as load_row.
Result<PreferenceReport> report_preferences(const Dataset& dataset, const RowSettings& settings,
                                            int64_t max_rows, int64_t examples);

// For people.
std::string preference_text(const PreferenceReport& report);

}  // namespace tenon
