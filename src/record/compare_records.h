// How two runs differ: in what decided them, and from which step on in what they computed. Times and observed
// memory are left out, since they differ between any two runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/run_record.h"

namespace tenon {

struct RecordDifference {
  std::string field;  // "device", "digests.base", "rank" (a setting)
  std::string left;
  std::string right;
  bool operator==(const RecordDifference&) const = default;
};

struct RecordComparison {
  std::vector<RecordDifference> settings;  // of the headers
  std::vector<RecordDifference>
      results;  // number of steps and evaluations, first evaluation that differs, end
  std::optional<int64_t> first_loss_step;   // where losses first differ in bits, among steps that both have
  std::optional<int64_t> first_other_step;  // where learning rate, tokens or gradient norms first do

  // Whether the second run computed what the first did, bit for bit.
  bool same_results() const { return results.empty() && !first_loss_step && !first_other_step; }
};

RecordComparison compare_records(const RunRecord& left, const RunRecord& right);
std::string comparison_text(const RecordComparison& comparison);

}  // namespace tenon
