#include "text/packing.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace tenon {

int64_t TokenizedExample::trained_tokens() const {
  if (labels.empty()) return 0;
  return static_cast<int64_t>(labels.size()) - 1 - std::count(labels.begin() + 1, labels.end(), kUntrained);
}

MicroBatch empty_batch(int32_t tokens_per_step) {
  CHECK(tokens_per_step >= 1);
  const size_t slots = static_cast<size_t>(tokens_per_step);
  MicroBatch batch;
  batch.ids.assign(slots, 0);
  batch.positions.assign(slots, 0);
  batch.sequence_begin.resize(slots);
  std::iota(batch.sequence_begin.begin(), batch.sequence_begin.end(), 0);
  batch.labels.assign(slots, kUntrained);
  return batch;
}

bool append_example(MicroBatch& batch, const TokenizedExample& example, int64_t row) {
  CHECK(example.ids.size() == example.labels.size());
  const int64_t tokens = static_cast<int64_t>(example.ids.size());
  if (batch.used_tokens + tokens > static_cast<int64_t>(batch.ids.size())) return false;
  const int32_t begin = static_cast<int32_t>(batch.used_tokens);
  PackedRow packed{row, begin, static_cast<int32_t>(tokens), 0};
  for (int32_t t = 0; t < packed.tokens; ++t) {
    const int32_t slot = begin + t;
    batch.ids[slot] = example.ids[t];
    batch.positions[slot] = t;
    batch.sequence_begin[slot] = begin;
    const int32_t label = t + 1 < packed.tokens ? example.labels[t + 1] : kUntrained;
    batch.labels[slot] = label;
    packed.trained_tokens += label != kUntrained;
  }
  batch.used_tokens += tokens;
  batch.trained_tokens += packed.trained_tokens;
  batch.rows.push_back(packed);
  return true;
}

}  // namespace tenon
