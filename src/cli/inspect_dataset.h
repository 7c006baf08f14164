// What a data set holds, with a model's tokenizer or without. Used by `tenon inspect`.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/option.h"
#include "text/dataset_report.h"

namespace tenon {

struct DatasetQuestion {
  std::string path;           // sources, as --data takes them
  StringList columns;         // "key=column"
  std::string eval_data;      // to look for in the rows; empty: none
  std::string model;          // whose tokenizer and template; empty counts rows only
  std::string chat_template;  // file; empty is the model's own
  std::string train_on = "answers";
  std::string too_long = "cut";
  int64_t max_tokens = 2048;
  int64_t max_rows = 0;  // rows to read; 0 is all
  int64_t examples = 3;
};

// Rows, format and size of each file, without a tokenizer.
Result<Json> dataset_facts(const DatasetQuestion& question);

// What would be trained on, or of preferences what they hold: as JSON, or as a page with the trained text
// between the marks.
Result<Json> dataset_report_facts(const DatasetQuestion& question);
Result<std::string> dataset_report_text(const DatasetQuestion& question, const TrainedMarks& marks);

}  // namespace tenon
