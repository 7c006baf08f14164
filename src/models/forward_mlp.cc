// Builds the feed-forward layers of a forward Program: MLPs and experts.
#include "models/layers.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/columns.h"
#include "ops/embedding.h"
#include "ops/grouped_matmul.h"
#include "ops/matmul.h"
#include "ops/mul.h"
#include "ops/normalise.h"
#include "ops/reshape.h"
#include "ops/silu.h"
#include "ops/swiglu.h"

namespace tenon {
namespace {

using Context = ForwardContext;

ValueId activated(Context& c, const MlpSpec& spec, ValueId x) {
  if (spec.swish > 0) return activation(c.b, x, ActivationKind::swish, spec.swish);
  switch (spec.activation) {
    case Activation::silu:
      return silu(c.b, x);
    case Activation::gelu:
      return activation(c.b, x, ActivationKind::gelu);
    case Activation::gelu_tanh:
      return activation(c.b, x, ActivationKind::gelu_tanh);
    case Activation::relu:
      return activation(c.b, x, ActivationKind::relu);
    case Activation::relu2:
      return activation(c.b, x, ActivationKind::relu2);
    case Activation::quick_gelu:
      return activation(c.b, x, ActivationKind::swish, 1.702);
    case Activation::xielu:
      break;
  }
  CHECK(false, "an activation that is not built");
}

// Routing weights f32 [tokens, k] and the experts [tokens, k] that they belong to.
struct Routes {
  ValueId weights, experts;
};

ValueId router_scores(Context& c, RouterScores kind, ValueId logits) {
  switch (kind) {
    case RouterScores::softmax:
      return normalise(c.b, logits, NormaliseKind::softmax);
    case RouterScores::sigmoid:
      return activation(c.b, logits, ActivationKind::sigmoid);
    case RouterScores::sqrt_softplus:
      return activation(c.b, logits, ActivationKind::sqrt_softplus);
    case RouterScores::softmax_of_chosen:
    case RouterScores::sigmoid_of_chosen:
      return logits;
  }
  CHECK(false, "unknown scores");
}

Routes route(Context& c, const MoeSpec& moe, ValueId x) {
  const LinearSpec& r = moe.router;
  const ValueId weight = weight_matrix(c, r.path + r.weight_name, Shape{r.out, r.in});
  const ValueId bias = r.bias ? weight_vector(c, r.path + ".bias", Shape{r.out}) : ValueId{};
  c.b.set_name(r.path);
  const ValueId logits = matmul(c.b, x, weight, {.trans_b = true, .out_dtype = DType::f32, .addend = bias});
  const ValueId scores = router_scores(c, moe.scores, logits);
  ValueId choice = moe.bias_on_logits ? logits : scores;
  if (!moe.selection_bias.empty()) {
    choice = add_row(c.b, choice, weight_vector(c, moe.selection_bias, Shape{moe.experts}));
  }
  Routes routes;
  routes.experts = top_k(c.b, choice, moe.top_k);
  routes.weights = gather_columns(c.b, scores, routes.experts);
  if (moe.scores == RouterScores::softmax_of_chosen)
    routes.weights = normalise(c.b, routes.weights, NormaliseKind::softmax);
  if (moe.scores == RouterScores::sigmoid_of_chosen)
    routes.weights = activation(c.b, routes.weights, ActivationKind::sigmoid);
  if (moe.renormalise)
    routes.weights = normalise(c.b, routes.weights, NormaliseKind::sum, moe.renormalise_eps);
  routes.weights = times(c, routes.weights, moe.scale);
  return routes;
}

ValueId expert_bias(Context& c, const std::string& name, ValueId group, int64_t experts, ValueId y) {
  if (name.empty()) return y;
  const int64_t width = c.b.shape(y)[1];
  const ValueId table = c.b.add_static(Role::weight, name, {c.options.weight_dtype, Shape{experts, width}});
  return add(c.b, y, embedding(c.b, table, group, c.b.dtype(y)));
}

// Rows [tokens * k, hidden] through their experts.
ValueId apply_experts(Context& c, const MoeSpec& moe, ValueId rows, ValueId group) {
  const int64_t hidden = c.b.shape(rows)[1], width = moe.gated ? 2 * moe.intermediate : moe.intermediate;
  const ValueId up_weight = weight_matrix(c, moe.up_name, Shape{moe.experts, width, hidden});
  c.b.set_name(moe.up_name);
  ValueId up = grouped_matmul(c.b, rows, up_weight, group);
  up = expert_bias(c, moe.up_bias, group, moe.experts, up);
  ValueId gate;
  if (moe.gated) {
    gate = slice_columns(c.b, up, 0, moe.intermediate);
    up = slice_columns(c.b, up, moe.intermediate, moe.intermediate);
  }
  const ValueId inner = activate(c, moe.inner, gate, up);
  const ValueId down_weight = weight_matrix(c, moe.down_name, Shape{moe.experts, hidden, moe.intermediate});
  c.b.set_name(moe.down_name);
  return expert_bias(c, moe.down_bias, group, moe.experts, grouped_matmul(c.b, inner, down_weight, group));
}

ValueId apply_moe(Context& c, const MoeSpec& moe, ValueId x) {
  const int64_t tokens = c.tokens(), hidden = c.b.shape(x)[1], k = moe.top_k.k;
  const Routes routes = route(c, moe, x);
  const ValueId group = reshape(c.b, routes.experts, Shape{tokens * k});
  ValueId rows = reshape(c.b, repeat_columns(c.b, x, k), Shape{tokens * k, hidden});
  if (moe.scale_inputs) rows = mul_column(c.b, rows, routes.weights);
  ValueId y = apply_experts(c, moe, rows, group);
  if (!moe.scale_inputs) y = mul_column(c.b, y, routes.weights);
  ValueId out = fold_columns(c.b, reshape(c.b, y, Shape{tokens, k * hidden}), k);
  if (!moe.output_bias.empty()) out = add_row(c.b, out, weight_vector(c, moe.output_bias, Shape{hidden}));
  out = apply(c, moe.routed_norm, out);
  if (!moe.shared) return out;
  ValueId shared = apply_mlp(c, *moe.shared, x);
  if (moe.shared_gate.present()) {
    const ValueId gate = activation(c.b, apply(c, moe.shared_gate, x), ActivationKind::sigmoid);
    shared = mul_column(c.b, shared, gate);
  }
  return times(c, add(c.b, out, shared), moe.sum_scale);
}

struct ApplyFeedForward {
  Context& c;
  ValueId x;
  ValueId operator()(const std::monostate&) const { CHECK(false, "a block without a feed-forward"); }
  ValueId operator()(const MlpSpec& mlp) const { return apply_mlp(c, mlp, x); }
  ValueId operator()(const MoeSpec& moe) const { return apply_moe(c, moe, x); }
};

}  // namespace

ValueId activate(ForwardContext& c, const MlpSpec& spec, ValueId gate, ValueId up) {
  if (!gate.valid()) return activated(c, spec, up);
  if (spec.limit > 0) {
    gate = activation(c.b, gate, ActivationKind::clamp, -1e30, spec.limit);
    up = activation(c.b, up, ActivationKind::clamp, -spec.limit, spec.limit);
  }
  const bool plain = spec.activation == Activation::silu && spec.swish == 0 && spec.up_offset == 0;
  if (plain) return swiglu(c.b, gate, up);
  const ValueId open = activated(c, spec, gate);
  const ValueId product = mul(c.b, open, up);
  return spec.up_offset == 0 ? product : add(c.b, product, times(c, open, spec.up_offset));
}

ValueId apply_mlp(ForwardContext& c, const MlpSpec& mlp, ValueId x) {
  ValueId gate, up;
  if (mlp.gate_up.present()) {
    const ValueId both = apply(c, mlp.gate_up, x);
    const int64_t width = mlp.gate_up.out / 2;
    gate = slice_columns(c.b, both, 0, width);
    up = slice_columns(c.b, both, width, width);
  } else {
    if (mlp.gate.present()) gate = apply(c, mlp.gate, x);
    up = apply(c, mlp.up, x);
  }
  c.b.set_name(mlp.down.path + " input");
  return apply(c, mlp.down, apply(c, mlp.inner_norm, activate(c, mlp, gate, up)));
}

ValueId apply_feed_forward(ForwardContext& c, const FeedForwardSpec& spec, ValueId x) {
  return std::visit(ApplyFeedForward{c, x}, spec);
}

}  // namespace tenon
