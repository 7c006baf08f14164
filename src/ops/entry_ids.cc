#include "ops/entry_ids.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kPlaces[] = {{"positions", Elements::i32, 1}, {"sequence_begin", Elements::i32, 1}};
constexpr InputRule kEntries = {"entries", Elements::i32, 2};

// Tokens of the site, whose places begin with input `first`.
Result<int64_t> check_places(const OpSite& site, size_t first) {
  std::vector<InputRule> rules;
  if (first > 0) rules.push_back(kEntries);
  rules.push_back(kPlaces[0]);
  if (site.inputs.size() > first + 1) rules.push_back(kPlaces[1]);
  RETURN_IF_ERROR(check_inputs(site, rules));
  const int64_t tokens = site.inputs[first].shape[0];
  for (const Type& input : site.inputs)
    RETURN_IF_ERROR(expect_extent(site, "the number of tokens of an input", input.shape[0], tokens));
  return tokens;
}

InferredTypes ids_of_width(const OpSite& site, int64_t tokens, int64_t width) {
  RETURN_IF_ERROR(expect(site, width > 0, "there is nothing to name"));
  return std::vector<Type>{Type{DType::i32, Shape{tokens, width}}};
}

InferredTypes infer_block(const OpSite& site) {
  ASSIGN_OR_RETURN(const int64_t tokens, check_places(site, 1));
  const int64_t stride = site.attrs.integer("stride");
  RETURN_IF_ERROR(expect(site, stride > 0, "stride must be positive"));
  return ids_of_width(site, tokens, site.inputs[0].shape[1] * stride + stride - 1);
}

InferredTypes infer_window(const OpSite& site) {
  ASSIGN_OR_RETURN(const int64_t tokens, check_places(site, 1));
  RETURN_IF_ERROR(expect(site, site.attrs.integer("window") > 0, "window must be positive"));
  return ids_of_width(site, tokens, site.attrs.integer("window") + site.inputs[0].shape[1]);
}

InferredTypes infer_every(const OpSite& site) {
  ASSIGN_OR_RETURN(const int64_t tokens, check_places(site, 0));
  RETURN_IF_ERROR(expect(site, site.attrs.integer("stride") > 0, "stride must be positive"));
  return ids_of_width(site, tokens, site.attrs.integer("n"));
}

InferredTypes infer_shift(const OpSite& site) {
  constexpr InputRule kIds[] = {{"ids", Elements::i32}};
  RETURN_IF_ERROR(check_inputs(site, kIds));
  return std::vector<Type>{site.inputs[0]};
}

// Token t's place: the first id of its sequence, and its own position there.
struct Place {
  int64_t begin, position;
  Place(const ReferenceCall& call, size_t first, int64_t t)
      : begin(call.inputs.size() > first + 1 ? static_cast<int64_t>(call.inputs[first + 1].data[t]) : 0),
        position(static_cast<int64_t>(call.inputs[first].data[t])) {}
};

// Writes a row of ids, -1 after the last.
class IdRow {
 public:
  IdRow(const ReferenceTensor& ids, int64_t t)
      : next_(ids.data + t * ids.type.shape[1]), end_(next_ + ids.type.shape[1]) {
    std::fill(next_, end_, -1.0);
  }
  void add(int64_t id) {
    if (next_ != end_) *next_++ = static_cast<double>(id);
  }

 private:
  double *next_, *end_;
};

template <typename F>
void for_entries(const ReferenceTensor& entries, int64_t t, F use) {
  const int64_t n = entries.type.shape[1];
  for (int64_t i = t * n; i < (t + 1) * n; ++i) {
    if (entries.data[i] >= 0) use(static_cast<int64_t>(entries.data[i]));
  }
}

void reference_block(const ReferenceCall& call) {
  const int64_t stride = call.attrs.integer("stride");
  for (int64_t t = 0; t < call.outputs[0].type.shape[0]; ++t) {
    const Place place(call, 1, t);
    IdRow row(call.outputs[0], t);
    for_entries(call.inputs[0], t, [&](int64_t entry) {
      for (int64_t id = entry - stride + 1; id <= entry; ++id) row.add(id);
    });
    for (int64_t p = (place.position + 1) / stride * stride; p <= place.position; ++p)
      row.add(place.begin + p);
  }
}

void reference_window(const ReferenceCall& call) {
  for (int64_t t = 0; t < call.outputs[0].type.shape[0]; ++t) {
    const Place place(call, 1, t);
    IdRow row(call.outputs[0], t);
    const int64_t first = place.position - call.attrs.integer("window") + 1;
    for (int64_t p = std::max<int64_t>(0, first); p <= place.position; ++p) row.add(2 * (place.begin + p));
    for_entries(call.inputs[0], t, [&](int64_t entry) { row.add(2 * entry + 1); });
  }
}

void reference_every(const ReferenceCall& call) {
  const int64_t stride = call.attrs.integer("stride");
  for (int64_t t = 0; t < call.outputs[0].type.shape[0]; ++t) {
    const Place place(call, 0, t);
    IdRow row(call.outputs[0], t);
    for (int64_t p = stride - 1; p <= place.position; p += stride) row.add(place.begin + p);
  }
}

void reference_shift(const ReferenceCall& call) {
  const double shift = static_cast<double>(call.attrs.integer("shift"));
  for (int64_t i = 0; i < call.outputs[0].type.elements(); ++i)
    call.outputs[0].data[i] = std::max(0.0, call.inputs[0].data[i] + shift);
}

constexpr auto kMoves = [](const OpSite& site) { return streaming_cost(site, 0); };

std::vector<ValueId> with_places(std::vector<ValueId> inputs, const TokenPlaces& places) {
  inputs.push_back(places.positions);
  if (places.sequence_begin.valid()) inputs.push_back(places.sequence_begin);
  return inputs;
}

}  // namespace

const OpDef& block_ids_op() {
  static constexpr OpDef def{
      .name = "block_ids", .infer = infer_block, .cost = kMoves, .reference = reference_block};
  return def;
}

const OpDef& window_entry_ids_op() {
  static constexpr OpDef def{
      .name = "window_entry_ids", .infer = infer_window, .cost = kMoves, .reference = reference_window};
  return def;
}

const OpDef& every_entry_op() {
  static constexpr OpDef def{
      .name = "every_entry", .infer = infer_every, .cost = kMoves, .reference = reference_every};
  return def;
}

const OpDef& shift_ids_op() {
  static constexpr OpDef def{
      .name = "shift_ids", .infer = infer_shift, .cost = kMoves, .reference = reference_shift};
  return def;
}

ValueId block_ids(Builder& builder, ValueId entries, const TokenPlaces& places, int64_t stride) {
  return builder.emit_one(block_ids_op(), with_places({entries}, places), {{"stride", stride}});
}

ValueId window_entry_ids(Builder& builder, ValueId entries, const TokenPlaces& places, int64_t window) {
  return builder.emit_one(window_entry_ids_op(), with_places({entries}, places), {{"window", window}});
}

ValueId every_entry(Builder& builder, const TokenPlaces& places, int64_t n, int64_t stride) {
  return builder.emit_one(every_entry_op(), with_places({}, places), {{"n", n}, {"stride", stride}});
}

ValueId shift_ids(Builder& builder, ValueId ids, int64_t shift) {
  return builder.emit_one(shift_ids_op(), {ids}, {{"shift", shift}});
}

}  // namespace tenon
