// Builds the feed-forward layers of a forward Program: MLPs and experts.
#include "models/layers.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/columns.h"
#include "ops/detach.h"
#include "ops/embedding.h"
#include "ops/fill.h"
#include "ops/grouped_matmul.h"
#include "ops/matmul.h"
#include "ops/mul.h"
#include "ops/normalise.h"
#include "ops/reshape.h"
#include "ops/routing.h"
#include "ops/scale.h"
#include "ops/silu.h"
#include "ops/swiglu.h"

namespace tenon {
namespace {

using Context = ForwardContext;

// xIELU (Huang 2024): alpha_p x^2 + beta x for x > 0, alpha_n (expm1(min(x, eps)) - x) + beta x otherwise,
// the alphas softplus of weights; beta is fixed.
ValueId xielu(Context& c, const std::string& path, ValueId x) {
  const auto alpha = [&](const char* name) {
    return activation(c.b, weight_vector(c, path + name, Shape{1}), ActivationKind::softplus);
  };
  const ValueId stored_beta = weight_vector(c, path + ".beta", Shape{});
  const ValueId beta = detach(c.b, reshape(c.b, stored_beta, Shape{1}));
  const ValueId above = times_scalar(c, activation(c.b, x, ActivationKind::relu2), alpha(".alpha_p"));
  const ValueId below = times_scalar(c, activation(c.b, x, ActivationKind::negative_exp, -1e-6),
                                     add(c.b, alpha(".alpha_n"), beta));
  return add(c.b, add(c.b, above, below), times_scalar(c, x, beta));
}

}  // namespace

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
      return xielu(c, spec.activation_path, x);
  }
  CHECK(false, "an activation that is not built");
}

namespace {

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
    case RouterScores::sparse_mixer:
      return logits;
  }
  CHECK(false, "unknown scores");
}

// The weight of each of two experts: a softmax over those near the best of what is left.
ValueId sparse_mixer(Context& c, ValueId logits, ValueId experts, double slack) {
  std::vector<ValueId> weights;
  for (int64_t i = 0; i < c.b.shape(experts)[1]; ++i) {
    const ValueId near = normalise(c.b, near_best(c.b, logits, experts, i, slack), NormaliseKind::softmax);
    weights.push_back(slice_columns(c.b, gather_columns(c.b, near, experts), i, 1));
  }
  return concat_columns(c.b, weights);
}

// The experts of each token's id.
ValueId experts_of_ids(Context& c, const MoeSpec& moe) {
  return lookup_ids(c.b, weight_vector(c, moe.expert_table, Shape{c.spec.vocab, moe.top_k.k}), c.ids);
}

}  // namespace

namespace {

// Scores of a router of several layers, f32, which leaves its state for the next one.
ValueId mlp_logits(Context& c, const RouterMlpSpec& r, ValueId x) {
  x = apply(c, r.down, x);
  if (!r.carry.empty() && c.router.valid())
    x = add(c.b, x, mul_row(c.b, c.router, weight_vector(c, r.carry, Shape{r.down.out})));
  c.router = x;
  x = apply(c, r.norm, x);
  for (const LinearSpec& layer : r.inner) x = activation(c.b, apply(c, layer, x), ActivationKind::gelu);
  return as_f32(c, apply(c, r.out, x));
}

ValueId linear_logits(Context& c, const MoeSpec& moe, ValueId x) {
  const LinearSpec& r = moe.router;
  const ValueId weight = weight_matrix(c, r.path + r.weight_name, Shape{r.out, r.in});
  const ValueId bias = r.bias ? weight_vector(c, r.path + ".bias", Shape{r.out}) : ValueId{};
  c.b.set_name(r.path);
  return times(c, matmul(c.b, x, weight, {.trans_b = true, .out_dtype = DType::f32, .addend = bias}),
               r.scale);
}

// The bias to select, in which a choice to skip has -1 whatever is stored.
ValueId selection_bias(Context& c, const MoeSpec& moe) {
  const int64_t choices = moe.experts + moe.identity_experts + (moe.skip_choice ? 1 : 0);
  const ValueId stored = weight_vector(c, moe.selection_bias, Shape{choices});
  if (!moe.skip_choice) return stored;
  std::vector<float> kept(static_cast<size_t>(choices), 1), skip(static_cast<size_t>(choices), 0);
  kept.back() = 0;
  skip.back() = -1;
  const ValueId mask = c.b.add_constant("choices_kept", Shape{choices}, kept);
  return add(c.b, mul(c.b, stored, mask), c.b.add_constant("choice_to_skip", Shape{choices}, skip));
}

}  // namespace

Routes route(Context& c, const MoeSpec& moe, ValueId x) {
  x = apply(c, moe.router_norm, x);
  const ValueId logits = moe.router_mlp ? mlp_logits(c, *moe.router_mlp, x) : linear_logits(c, moe, x);
  const ValueId scores = router_scores(c, moe.scores, logits);
  const ValueId routed = moe.shared_choices > 0 ? slice_columns(c.b, scores, 0, moe.experts) : scores;
  ValueId choice = moe.bias_on_logits ? logits : routed;
  if (!moe.selection_bias.empty()) choice = add_row(c.b, choice, selection_bias(c, moe));
  Routes routes;
  routes.experts = moe.expert_table.empty() ? top_k(c.b, choice, moe.top_k) : experts_of_ids(c, moe);
  routes.weights = gather_columns(c.b, routed, routes.experts);
  if (moe.shared_choices > 0) {
    const ValueId shared = slice_columns(c.b, scores, moe.experts, moe.shared_choices);
    routes.weights = concat_columns(c.b, {routes.weights, shared});
  }
  if (moe.scores == RouterScores::softmax_of_chosen)
    routes.weights = normalise(c.b, routes.weights, NormaliseKind::softmax);
  if (moe.scores == RouterScores::sigmoid_of_chosen)
    routes.weights = activation(c.b, routes.weights, ActivationKind::sigmoid);
  if (moe.renormalise)
    routes.weights = normalise(c.b, routes.weights, NormaliseKind::sum, moe.renormalise_eps);
  if (moe.scores == RouterScores::sparse_mixer)
    routes.weights = sparse_mixer(c, logits, routes.experts, moe.slack);
  routes.weights = times(c, routes.weights, moe.scale);
  if (!moe.weight_scale.empty())
    routes.weights = times_scalar(c, routes.weights, weight_vector(c, moe.weight_scale, Shape{1}));
  if (moe.shared_choices > 0) {
    routes.shared = slice_columns(c.b, routes.weights, moe.top_k.k, moe.shared_choices);
    routes.weights = slice_columns(c.b, routes.weights, 0, moe.top_k.k);
  }
  if (!moe.expert_scale.empty()) {
    const ValueId table =
        reshape(c.b, weight_vector(c, moe.expert_scale, Shape{moe.experts}), Shape{moe.experts, 1});
    const Shape shape = c.b.shape(routes.experts);
    const ValueId chosen = reshape(c.b, routes.experts, Shape{shape.elements()});
    const ValueId scales = embedding(c.b, table, chosen, DType::f32);
    routes.weights = mul(c.b, routes.weights, reshape(c.b, scales, shape));
  }
  return routes;
}

namespace {

ValueId expert_bias(Context& c, const std::string& name, ValueId group, int64_t experts, ValueId y) {
  if (name.empty()) return y;
  const int64_t width = c.b.shape(y)[1];
  const ValueId table = c.b.add_static(Role::weight, name, {c.options.weight_dtype, Shape{experts, width}});
  return add(c.b, y, embedding(c.b, table, group, c.b.dtype(y)));
}

// Rows [tokens * k, hidden] through their experts.
ValueId apply_experts(Context& c, const MoeSpec& moe, ValueId rows, ValueId group) {
  const int64_t hidden = c.b.shape(rows)[1], width = moe.gated ? 2 * moe.intermediate : moe.intermediate;
  // The reference keeps (unused) rows of identity experts here; adapters count them.
  const int64_t stacked = moe.experts + moe.identity_experts;
  const ValueId up_weight = weight_matrix(c, moe.up_name, Shape{stacked, width, hidden});
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

// The sum of the weights of each token's identity experts, times x.
ValueId apply_identity_experts(Context& c, const MoeSpec& moe, const Routes& routes, ValueId x) {
  const int64_t all = moe.experts + moe.identity_experts;
  std::vector<float> is_identity(static_cast<size_t>(all), 0);
  for (int64_t e = moe.experts; e < all; ++e) is_identity[static_cast<size_t>(e)] = 1;
  const ValueId table = c.b.add_constant("identity_experts", Shape{all, 1}, is_identity);
  const Shape shape = c.b.shape(routes.weights);
  const ValueId mask =
      embedding(c.b, table, reshape(c.b, routes.experts, Shape{shape.elements()}), DType::f32);
  const ValueId kept = mul(c.b, routes.weights, reshape(c.b, mask, shape));
  return mul_column(c.b, x, fold_columns(c.b, kept, shape[1]));
}

}  // namespace

ValueId apply_moe(Context& c, const MoeSpec& moe, ValueId x, ValueId router_x) {
  const int64_t tokens = c.tokens(), hidden = c.b.shape(x)[1], k = moe.top_k.k;
  const Routes routes = route(c, moe, router_x);
  ValueId group = reshape(c.b, routes.experts, Shape{tokens * k});
  if (moe.identity_experts > 0 || moe.skip_choice) group = limit_ids(c.b, group, moe.experts);
  ValueId rows = reshape(c.b, repeat_columns(c.b, x, k), Shape{tokens * k, hidden});
  if (moe.scale_inputs) rows = mul_column(c.b, rows, routes.weights);
  ValueId y = apply_experts(c, moe, rows, group);
  if (!moe.scale_inputs) y = mul_column(c.b, y, routes.weights);
  ValueId out = fold_columns(c.b, reshape(c.b, y, Shape{tokens, k * hidden}), k);
  if (moe.identity_experts > 0) out = add(c.b, out, apply_identity_experts(c, moe, routes, x));
  if (!moe.output_bias.empty()) out = add_row(c.b, out, weight_vector(c, moe.output_bias, Shape{hidden}));
  out = apply(c, moe.routed_norm, out);
  if (!moe.shared) return out;
  ValueId shared = apply_mlp(c, *moe.shared, x, routes.shared);
  if (moe.shared_gate.present()) {
    const ValueId gate = activation(c.b, apply(c, moe.shared_gate, x), ActivationKind::sigmoid);
    shared = mul_column(c.b, shared, gate);
  }
  return times(c, add(c.b, out, shared), moe.sum_scale);
}

namespace {

struct ApplyFeedForward {
  Context& c;
  int32_t layer;
  ValueId x;
  ValueId operator()(const std::monostate&) const { CHECK(false, "a block without a feed-forward"); }
  ValueId operator()(const MlpSpec& mlp) const { return apply_mlp(c, mlp, x); }
  ValueId operator()(const MoeSpec& moe) const { return apply_moe(c, moe, x, x); }
  ValueId operator()(const ChannelMixSpec& mix) const { return apply_channel_mix(c, mix, layer, x); }
};

}  // namespace

namespace {

// relu(x - mean(x) - deviations * std(x)) by row (Gaussian top-k of Gemma 3n).
ValueId above_cutoff(Context& c, ValueId x, double deviations) {
  const Shape shape = c.b.shape(x);
  const double n = static_cast<double>(shape[1]);
  const ValueId one = c.b.add_constant("one", Shape{1}, {1.0f});
  ValueId ones = fill(c.b, one, shape);
  if (c.b.dtype(x) != DType::f32) ones = cast(c.b, ones, c.b.dtype(x));
  const Shape column{shape[0], 1};
  const ValueId mean = scale(c.b, row_dot(c.b, x, ones, DType::f32, column), 1 / n);
  const ValueId squares = scale(c.b, row_dot(c.b, x, x, DType::f32, column), 1 / n);
  const ValueId variance = add(c.b, squares, scale(c.b, mul(c.b, mean, mean), -1));
  ValueId cutoff = add(c.b, mean, scale(c.b, activation(c.b, variance, ActivationKind::sqrt), deviations));
  if (c.b.dtype(x) != DType::f32) cutoff = cast(c.b, cutoff, c.b.dtype(x));
  const ValueId below = scale(c.b, repeat_columns(c.b, cutoff, shape[1]), -1);
  return activation(c.b, add(c.b, x, below), ActivationKind::relu);
}

}  // namespace

ValueId activate(ForwardContext& c, const MlpSpec& spec, ValueId gate, ValueId up) {
  if (!gate.valid()) return activated(c, spec, up);
  if (spec.limit > 0) {
    gate = activation(c.b, gate, ActivationKind::clamp, -1e30, spec.limit);
    up = activation(c.b, up, ActivationKind::clamp, -spec.limit, spec.limit);
  }
  if (spec.gate_softcap > 0) {
    const ValueId open = activation(c.b, gate, ActivationKind::sigmoid);
    gate = mul(c.b, activation(c.b, gate, ActivationKind::softcap, spec.gate_softcap), open);
    return mul(c.b, gate, activation(c.b, up, ActivationKind::softcap, spec.up_softcap));
  }
  if (spec.gate_cutoff > 0) gate = above_cutoff(c, gate, spec.gate_cutoff);
  const bool plain = spec.activation == Activation::silu && spec.swish == 0 && spec.up_offset == 0;
  if (plain) return swiglu(c.b, gate, up);
  const ValueId open = activated(c, spec, gate);
  const ValueId product = mul(c.b, open, up);
  return spec.up_offset == 0 ? product : add(c.b, product, times(c, open, spec.up_offset));
}

ValueId apply_mlp(ForwardContext& c, const MlpSpec& mlp, ValueId x, ValueId part_weights) {
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
  ValueId inner = activate(c, mlp, gate, up);
  if (part_weights.valid()) {
    const Shape shape = c.b.shape(inner), parts = c.b.shape(part_weights);
    const ValueId by_part = reshape(c.b, inner, Shape{shape[0], parts[1], shape[1] / parts[1]});
    inner = reshape(c.b, mul_column(c.b, by_part, part_weights), shape);
  }
  const ValueId y = apply(c, mlp.down, apply(c, mlp.inner_norm, inner));
  return mlp.output_scale.empty() ? y : times_scalar(c, y, weight_vector(c, mlp.output_scale, Shape{1}));
}

ValueId apply_feed_forward(ForwardContext& c, const FeedForwardSpec& spec, int32_t layer, ValueId x) {
  return std::visit(ApplyFeedForward{c, layer, x}, spec);
}

}  // namespace tenon
