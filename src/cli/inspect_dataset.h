// What a data set holds, with a model's tokenizer or without. Used by `tenon inspect`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"
#include "text/dataset_report.h"

namespace tenon {

struct DatasetQuestion {
  std::string path;
  std::string model;          // whose tokenizer and template; empty counts rows only
  std::string chat_template;  // file; empty is the model's own
  std::string train_on = "answers";
  std::string too_long = "cut";
  int64_t max_tokens = 2048;
  int64_t max_rows = 0;  // rows to read; 0 is all
};

// Rows, format and size, without a tokenizer.
Result<nlohmann::ordered_json> dataset_facts(const std::string& path);

// What would be trained on.
Result<DataReport> dataset_report(const DatasetQuestion& question);
nlohmann::ordered_json report_facts(const DataReport& report);

}  // namespace tenon
