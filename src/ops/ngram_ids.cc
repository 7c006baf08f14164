#include "ops/ngram_ids.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"ids", Elements::i32, 1}, {"sequence_begin", Elements::i32, 1}};
constexpr InputRule kCachedInputs[] = {{"ids", Elements::i32, 1},
                                       {"state", Elements::i32, 2},
                                       {"stream", Elements::i32, 1},
                                       {"positions", Elements::i32, 1}};

Result<Type> rows_type(const OpSite& site) {
  const auto& sizes = site.attrs.integers("sizes");
  const auto orders = static_cast<int64_t>(site.attrs.integers("multipliers").size()) - 1;
  RETURN_IF_ERROR(expect(site, orders > 0, "there are no n-grams"));
  RETURN_IF_ERROR(expect_extent(site, "the number of sizes", static_cast<int64_t>(sizes.size()),
                                orders * site.attrs.integer("heads")));
  RETURN_IF_ERROR(expect(site, std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n > 0; }),
                         "a size is not positive"));
  return Type{DType::i32, Shape{site.inputs[0].shape[0], static_cast<int64_t>(sizes.size())}};
}

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(expect_equal_types(site));
  ASSIGN_OR_RETURN(const Type rows, rows_type(site));
  return std::vector<Type>{rows};
}

InferredTypes infer_cached(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kCachedInputs));
  ASSIGN_OR_RETURN(const Type rows, rows_type(site));
  RETURN_IF_ERROR(expect_extent(site, "the length of a state", site.inputs[1].shape[1],
                                static_cast<int64_t>(site.attrs.integers("multipliers").size()) - 1));
  for (size_t i : {size_t{2}, size_t{3}})
    RETURN_IF_ERROR(
        expect_extent(site, "the length of stream or positions", site.inputs[i].shape[0], rows.shape[0]));
  return std::vector<Type>{rows, site.inputs[1]};
}

constexpr auto kMoves = [](const OpSite& site) { return streaming_cost(site, 4); };

// The rows of one token; token(s) is the one s before it, where there is one up to `known`.
template <typename F>
void hash(const Attrs& attrs, int64_t known, F token, double* rows) {
  const std::vector<int64_t>&multipliers = attrs.integers("multipliers"), &sizes = attrs.integers("sizes");
  const int64_t end = attrs.integer("end"), heads = attrs.integer("heads");
  uint64_t mixed = static_cast<uint64_t>(token(0)) * static_cast<uint64_t>(multipliers[0]);
  bool ended = false;
  int64_t first_row = 0;
  size_t head = 0;
  for (int64_t s = 1; s < static_cast<int64_t>(multipliers.size()); ++s) {
    ended = ended || s > known || token(s) == end;
    const int64_t id = ended ? end : token(s);
    mixed ^= static_cast<uint64_t>(id) * static_cast<uint64_t>(multipliers[static_cast<size_t>(s)]);
    for (int64_t h = 0; h < heads; ++h, ++head) {
      rows[head] =
          static_cast<double>(first_row + static_cast<int64_t>(mixed % static_cast<uint64_t>(sizes[head])));
      first_row += sizes[head];
    }
  }
}

void reference(const ReferenceCall& call) {
  const int64_t width = call.outputs[0].type.shape[1];
  for (int64_t t = 0; t < call.inputs[0].type.shape[0]; ++t) {
    const double* id = call.inputs[0].data + t;
    hash(
        call.attrs, t - static_cast<int64_t>(call.inputs[1].data[t]),
        [&](int64_t s) { return static_cast<int64_t>(id[-s]); }, call.outputs[0].data + t * width);
  }
}

void reference_cached(const ReferenceCall& call) {
  const int64_t width = call.outputs[0].type.shape[1], length = call.inputs[1].type.shape[1];
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  std::copy_n(call.inputs[1].data, call.inputs[1].type.elements(), call.outputs[1].data);
  for (int64_t t = 0; t < call.inputs[0].type.shape[0]; ++t) {
    const auto stream = static_cast<int64_t>(call.inputs[2].data[t]);
    if (stream < 0) continue;
    const auto position = static_cast<int64_t>(call.inputs[3].data[t]);
    double* state = call.outputs[1].data + stream * length;
    const auto token = [&](int64_t s) {
      return static_cast<int64_t>(s == 0 ? call.inputs[0].data[t] : state[(position - s) % length]);
    };
    hash(call.attrs, position, token, call.outputs[0].data + t * width);
    state[position % length] = call.inputs[0].data[t];
  }
}

std::vector<Alias> alias_state(const OpSite&) {
  return {Alias{1, 1, AliasKind::must}};
}

Attrs attrs_of(const NgramOptions& options) {
  return {{"multipliers", options.multipliers},
          {"sizes", options.sizes},
          {"heads", options.heads},
          {"end", options.end}};
}

}  // namespace

const OpDef& ngram_ids_op() {
  static constexpr OpDef def{.name = "ngram_ids", .infer = infer, .cost = kMoves, .reference = reference};
  return def;
}

const OpDef& ngram_ids_cached_op() {
  static constexpr OpDef def{.name = "ngram_ids_cached",
                             .infer = infer_cached,
                             .aliases = alias_state,
                             .cost = kMoves,
                             .reference = reference_cached};
  return def;
}

ValueId ngram_ids(Builder& builder, ValueId ids, ValueId sequence_begin, const NgramOptions& options) {
  return builder.emit_one(ngram_ids_op(), {ids, sequence_begin}, attrs_of(options));
}

ValueId ngram_ids_cached(Builder& builder, ValueId ids, const StreamInputs& streams,
                         const NgramOptions& options) {
  return builder.emit(ngram_ids_cached_op(), {ids, streams.state, streams.stream, streams.positions},
                      attrs_of(options))[0];
}

}  // namespace tenon
