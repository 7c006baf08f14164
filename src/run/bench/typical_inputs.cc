#include "run/bench/typical_inputs.h"

#include <algorithm>
#include <string_view>

#include "models/cache_layout.h"
#include "models/forward.h"

namespace tenon {
namespace {

constexpr int64_t kIdStride = 7919;  // a prime: neighbours have rows far apart

bool is_input(std::string_view name, std::string_view input) {
  name = name.substr(0, name.find(".ring_"));
  return name.ends_with(input);
}

// The fewest entries, along the first `dimensions` dimensions, of the statics of that role which an op reads
// beside `input`; at least 1.
int64_t fewest_beside(const Program& program, ValueId input, Role role, int dimensions) {
  int64_t fewest = 0;
  for (const Op& op : program.ops) {
    if (std::ranges::find(op.inputs, input) == op.inputs.end()) continue;
    for (ValueId id : op.inputs) {
      const Value& value = program.value(id);
      if (value.role != role || value.type.shape.rank() < dimensions) continue;
      int64_t entries = 1;
      for (int i = 0; i < dimensions; ++i) entries *= value.type.shape[i];
      fewest = fewest == 0 ? entries : std::min(fewest, entries);
    }
  }
  return std::max<int64_t>(fewest, 1);
}

template <typename F>
std::vector<int32_t> filled(const Value& value, F&& entry) {
  std::vector<int32_t> out(static_cast<size_t>(value.type.elements()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int32_t>(entry(static_cast<int64_t>(i)));
  return out;
}

}  // namespace

std::vector<int32_t> typical_input(const Program& program, ValueId input, int64_t sequence_tokens,
                                   int64_t first_position) {
  const Value& value = program.value(input);
  if (value.role != Role::input || value.type.dtype != DType::i32) return {};
  const auto is = [&](std::string_view name) { return is_input(value.name, name); };
  if (is(kSequenceBeginInput)) return filled(value, [&](int64_t i) { return i - i % sequence_tokens; });
  if (is(kPositionsInput))
    return filled(value, [&](int64_t i) { return first_position + i % sequence_tokens; });
  if (is(kIdsInput)) {
    const int64_t vocab = fewest_beside(program, input, Role::weight, 1);
    return filled(value, [&](int64_t i) { return i * kIdStride % vocab; });
  }
  if (is(kSlotsInput)) {
    const int64_t slots = fewest_beside(program, input, Role::cache, 2);
    return filled(value, [&](int64_t i) { return (first_position + i) % slots; });
  }
  if (is(kPageTableInput)) {
    const int64_t pages = fewest_beside(program, input, Role::cache, 1);
    return filled(value, [&](int64_t i) { return i % pages; });
  }
  return {};
}

}  // namespace tenon
