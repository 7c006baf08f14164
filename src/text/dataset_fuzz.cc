// Any bytes as a data file: opening and reading every row must end in rows or errors, never in a crash. The
// first byte picks the file kind. Renders nothing.
#include <cstddef>
#include <cstdint>
#include <string>

#include "text/dataset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr const char* kNames[] = {"rows.jsonl", "rows.csv", "rows.tsv", "rows.txt"};
  const char* name = kNames[data[0] % 4];
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto dataset = tenon::Dataset::from_bytes(std::move(bytes), name);
  if (!dataset.ok()) return 0;
  for (int64_t row = 0; row < dataset->rows(); ++row) {
    const auto conversation = dataset->conversation(row);
    if (!conversation.ok()) dataset->where(row);
  }
  return 0;
}
