#include "ops/cache_write.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {
    {"cache", Elements::floating, 4}, {"rows", Elements::floating, 3}, {"slots", Elements::i32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Type &cache = site.inputs[0], &rows = site.inputs[1];
  RETURN_IF_ERROR(expect(site, cache.dtype == rows.dtype, "cache and rows differ in dtype"));
  RETURN_IF_ERROR(expect_extent(site, "the number of heads of rows", rows.shape[1], cache.shape[2]));
  RETURN_IF_ERROR(expect_extent(site, "the innermost extent of rows", rows.shape[2], cache.shape[3]));
  RETURN_IF_ERROR(expect_extent(site, "the number of slots", site.inputs[2].shape[0], rows.shape[0]));
  return std::vector<Type>{cache};
}

std::vector<Alias> aliases(const OpSite&) {
  return {Alias{0, 0, AliasKind::must}};
}

Cost cost(const OpSite& site) {
  const int64_t bytes = site.inputs[1].bytes();
  return Cost{.flops = 0, .bytes_read = bytes + site.inputs[2].bytes(), .bytes_written = bytes};
}

void reference(const ReferenceCall& call) {
  const Shape &cache = call.inputs[0].type.shape, &rows = call.inputs[1].type.shape;
  const int64_t width = rows[1] * rows[2], capacity = cache[0] * cache[1];
  std::copy_n(call.inputs[0].data, call.outputs[0].type.elements(), call.outputs[0].data);
  for (int64_t t = 0; t < rows[0]; ++t) {
    const auto slot = static_cast<int64_t>(call.inputs[2].data[t]);
    if (slot < 0) continue;
    CHECK(slot < capacity, "a slot is outside the cache");
    std::copy_n(call.inputs[1].data + t * width, width, call.outputs[0].data + slot * width);
  }
}

}  // namespace

const OpDef& cache_write_op() {
  static constexpr OpDef def{
      .name = "cache_write", .infer = infer, .aliases = aliases, .cost = cost, .reference = reference};
  return def;
}

ValueId cache_write(Builder& builder, ValueId cache, ValueId rows, ValueId slots) {
  return builder.emit_one(cache_write_op(), {cache, rows, slots});
}

}  // namespace tenon
