#include "ops/embedding_grad.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"dy", Elements::floating, 2}, {"ids", Elements::i32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Shape& dy = site.inputs[0].shape;
  RETURN_IF_ERROR(expect_extent(site, "the number of ids", site.inputs[1].shape[0], dy[0]));
  const int64_t vocab = site.attrs.integer("vocab");
  RETURN_IF_ERROR(expect(site, vocab > 0, "vocab is not positive"));
  return std::vector<Type>{Type{DType::f32, Shape{vocab, dy[1]}}};
}

Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = site.inputs[0].elements();
  return cost;
}

void reference(const ReferenceCall& call) {
  const int64_t vocab = call.outputs[0].type.shape[0], hidden = call.outputs[0].type.shape[1];
  const int64_t tokens = call.inputs[1].type.shape[0];
  std::fill_n(call.outputs[0].data, vocab * hidden, 0.0);
  for (int64_t t = 0; t < tokens; ++t) {
    const auto id = static_cast<int64_t>(call.inputs[1].data[t]);
    CHECK(id >= 0 && id < vocab, "an id is outside the table");
    for (int64_t i = 0; i < hidden; ++i) {
      call.outputs[0].data[id * hidden + i] += call.inputs[0].data[t * hidden + i];
    }
  }
}

}  // namespace

const OpDef& embedding_grad_op() {
  static constexpr OpDef def{.name = "embedding_grad", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

ValueId embedding_grad(Builder& builder, ValueId dy, ValueId ids, int64_t vocab) {
  return builder.emit_one(embedding_grad_op(), {dy, ids}, {{"vocab", vocab}});
}

}  // namespace tenon
