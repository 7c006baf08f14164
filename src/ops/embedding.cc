#include "ops/embedding.h"

#include <algorithm>

#include "ops/embedding_grad.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"table", Elements::number, 2}, {"ids", Elements::i32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const DType dtype = site.attrs.dtype("dtype");
  RETURN_IF_ERROR(expect(site, dtype_info(dtype).is_float, "dtype is not a plain floating-point one"));
  return std::vector<Type>{Type{dtype, Shape{site.inputs[1].shape[0], site.inputs[0].shape[1]}}};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}, ValueId{}};
  const int64_t vocab = site.builder.shape(site.op.inputs[0])[0];
  return {embedding_grad(site.builder, site.output_gradients[0], site.op.inputs[1], vocab), ValueId{}};
}

Cost cost(const OpSite& site) {
  return Cost{
      .flops = 0,
      .bytes_read = bytes_of(site.inputs[0].dtype, site.outputs[0].elements()) + site.inputs[1].bytes(),
      .bytes_written = site.outputs[0].bytes()};
}

void reference(const ReferenceCall& call) {
  const int64_t vocab = call.inputs[0].type.shape[0], hidden = call.inputs[0].type.shape[1];
  const int64_t tokens = call.inputs[1].type.shape[0];
  for (int64_t t = 0; t < tokens; ++t) {
    const auto id = static_cast<int64_t>(call.inputs[1].data[t]);
    CHECK(id >= 0 && id < vocab, "an id is outside the table");
    std::copy_n(call.inputs[0].data + id * hidden, hidden, call.outputs[0].data + t * hidden);
  }
}

}  // namespace

const OpDef& embedding_op() {
  static constexpr OpDef def{
      .name = "embedding", .infer = infer, .gradient = gradient, .cost = cost, .reference = reference};
  return def;
}

ValueId embedding(Builder& builder, ValueId table, ValueId ids, DType dtype) {
  return builder.emit_one(embedding_op(), {table, ids}, {{"dtype", dtype}});
}

}  // namespace tenon
