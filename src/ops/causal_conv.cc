#include "ops/causal_conv.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {
    {"x", Elements::floating, 2}, {"w", Elements::floating, 2}, {"sequence_begin", Elements::i32, 1}};
constexpr InputRule kCachedInputs[] = {{"x", Elements::floating, 2},
                                       {"w", Elements::floating, 2},
                                       {"state", Elements::floating, 3},
                                       {"stream", Elements::i32, 1},
                                       {"positions", Elements::i32, 1}};
constexpr InputRule kGradInputInputs[] = {
    {"dy", Elements::floating, 2}, {"w", Elements::floating, 2}, {"sequence_begin", Elements::i32, 1}};
constexpr InputRule kGradWeightInputs[] = {
    {"x", Elements::floating, 2}, {"dy", Elements::floating, 2}, {"sequence_begin", Elements::i32, 1}};

Status check_taps(const OpSite& site, int64_t taps) {
  RETURN_IF_ERROR(expect(site, taps > 0, "there are no taps"));
  return expect(site, site.attrs.integer("dilation") > 0, "dilation must be positive");
}

InferredTypes infer_packed(const OpSite& site, std::span<const InputRule> rules) {
  RETURN_IF_ERROR(check_inputs(site, rules));
  const Shape &x = site.inputs[0].shape, &w = site.inputs[1].shape;
  RETURN_IF_ERROR(expect_extent(site, "the number of channels of w", w[0], x[1]));
  RETURN_IF_ERROR(expect_extent(site, "the length of sequence_begin", site.inputs[2].shape[0], x[0]));
  RETURN_IF_ERROR(check_taps(site, w[1]));
  return std::vector<Type>{site.inputs[0]};
}

InferredTypes infer(const OpSite& site) {
  return infer_packed(site, kInputs);
}

InferredTypes infer_grad_input(const OpSite& site) {
  return infer_packed(site, kGradInputInputs);
}

InferredTypes infer_grad_weight(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kGradWeightInputs));
  const Shape& x = site.inputs[0].shape;
  const int64_t taps = site.attrs.integer("taps");
  RETURN_IF_ERROR(expect(site, site.inputs[1].shape == x, "x and dy differ in shape"));
  RETURN_IF_ERROR(expect_extent(site, "the length of sequence_begin", site.inputs[2].shape[0], x[0]));
  RETURN_IF_ERROR(check_taps(site, taps));
  return std::vector<Type>{Type{DType::f32, Shape{x[1], taps}}};
}

InferredTypes infer_cached(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kCachedInputs));
  const Shape &x = site.inputs[0].shape, &w = site.inputs[1].shape, &state = site.inputs[2].shape;
  RETURN_IF_ERROR(expect_extent(site, "the number of channels of w", w[0], x[1]));
  RETURN_IF_ERROR(expect(site, site.inputs[2].dtype == site.inputs[0].dtype, "state and x differ in dtype"));
  RETURN_IF_ERROR(
      expect_extent(site, "the rows of a state", state[1], (w[1] - 1) * site.attrs.integer("dilation")));
  RETURN_IF_ERROR(expect_extent(site, "the number of channels of state", state[2], x[1]));
  for (int i : {3, 4}) {
    RETURN_IF_ERROR(expect_extent(site, "the length of stream or positions",
                                  site.inputs[static_cast<size_t>(i)].shape[0], x[0]));
  }
  RETURN_IF_ERROR(check_taps(site, w[1] - 1));
  return std::vector<Type>{site.inputs[0], site.inputs[2]};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  const auto& in = site.op.inputs;
  const ValueId dy = site.output_gradients[0];
  const int64_t dilation = site.op.attrs.integer("dilation");
  std::vector<ValueId> gradients(3);
  if (site.needed[0]) gradients[0] = causal_conv_grad_input(site.builder, dy, in[1], in[2], dilation);
  if (site.needed[1]) {
    const int64_t taps = site.builder.shape(in[1])[1];
    gradients[1] =
        cast_to(site.builder, causal_conv_grad_weight(site.builder, in[0], dy, in[2], taps, dilation),
                site.builder.dtype(in[1]));
  }
  return gradients;
}

int64_t taps_of(const OpSite& site) {
  return site.attrs.has("taps") ? site.attrs.integer("taps") : site.inputs[1].shape[1];
}

Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = 2 * site.inputs[0].elements() * taps_of(site);
  return cost;
}

// Calls f(t, j, s) for every tap j of every token t that reads a token s of the same sequence.
template <typename F>
void for_taps(const ReferenceTensor& begin, int64_t taps, int64_t dilation, F f) {
  for (int64_t t = 0; t < begin.type.elements(); ++t) {
    for (int64_t j = 0; j < taps; ++j) {
      const int64_t s = t - (taps - 1 - j) * dilation;
      if (s >= static_cast<int64_t>(begin.data[t])) f(t, j, s);
    }
  }
}

void reference(const ReferenceCall& call) {
  const int64_t channels = call.inputs[0].type.shape[1], taps = call.inputs[1].type.shape[1];
  const double *x = call.inputs[0].data, *w = call.inputs[1].data;
  double* out = call.outputs[0].data;
  std::fill_n(out, call.outputs[0].type.elements(), 0.0);
  for_taps(call.inputs[2], taps, call.attrs.integer("dilation"), [&](int64_t t, int64_t j, int64_t s) {
    for (int64_t c = 0; c < channels; ++c) out[t * channels + c] += w[c * taps + j] * x[s * channels + c];
  });
}

void reference_grad_input(const ReferenceCall& call) {
  const int64_t channels = call.inputs[0].type.shape[1], taps = call.inputs[1].type.shape[1];
  const double *dy = call.inputs[0].data, *w = call.inputs[1].data;
  double* dx = call.outputs[0].data;
  std::fill_n(dx, call.outputs[0].type.elements(), 0.0);
  for_taps(call.inputs[2], taps, call.attrs.integer("dilation"), [&](int64_t t, int64_t j, int64_t s) {
    for (int64_t c = 0; c < channels; ++c) dx[s * channels + c] += w[c * taps + j] * dy[t * channels + c];
  });
}

void reference_grad_weight(const ReferenceCall& call) {
  const int64_t channels = call.inputs[0].type.shape[1], taps = call.attrs.integer("taps");
  const double *x = call.inputs[0].data, *dy = call.inputs[1].data;
  double* dw = call.outputs[0].data;
  std::fill_n(dw, call.outputs[0].type.elements(), 0.0);
  for_taps(call.inputs[2], taps, call.attrs.integer("dilation"), [&](int64_t t, int64_t j, int64_t s) {
    for (int64_t c = 0; c < channels; ++c) dw[c * taps + j] += x[s * channels + c] * dy[t * channels + c];
  });
}

void reference_cached(const ReferenceCall& call) {
  const int64_t channels = call.inputs[0].type.shape[1], taps = call.inputs[1].type.shape[1];
  const int64_t dilation = call.attrs.integer("dilation"), rows = call.inputs[2].type.shape[1];
  const double* w = call.inputs[1].data;
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  std::copy_n(call.inputs[2].data, call.inputs[2].type.elements(), call.outputs[1].data);
  for (int64_t t = 0; t < call.inputs[0].type.shape[0]; ++t) {
    const auto stream = static_cast<int64_t>(call.inputs[3].data[t]);
    if (stream < 0) continue;
    const auto position = static_cast<int64_t>(call.inputs[4].data[t]);
    const double* x = call.inputs[0].data + t * channels;
    double* state = call.outputs[1].data + stream * rows * channels;
    for (int64_t j = 0; j < taps; ++j) {
      const int64_t at = position - (taps - 1 - j) * dilation;
      if (at < 0) continue;
      const double* from = at == position ? x : state + at % rows * channels;
      for (int64_t c = 0; c < channels; ++c)
        call.outputs[0].data[t * channels + c] += w[c * taps + j] * from[c];
    }
    std::copy_n(x, channels, state + position % rows * channels);
  }
}

std::vector<Alias> alias_state(const OpSite&) {
  return {Alias{1, 2, AliasKind::must}};
}

}  // namespace

const OpDef& causal_conv_op() {
  static constexpr OpDef def{
      .name = "causal_conv", .infer = infer, .gradient = gradient, .cost = cost, .reference = reference};
  return def;
}

const OpDef& causal_conv_cached_op() {
  static constexpr OpDef def{.name = "causal_conv_cached",
                             .infer = infer_cached,
                             .aliases = alias_state,
                             .cost = cost,
                             .reference = reference_cached};
  return def;
}

const OpDef& causal_conv_grad_input_op() {
  static constexpr OpDef def{.name = "causal_conv_grad_input",
                             .infer = infer_grad_input,
                             .cost = cost,
                             .reference = reference_grad_input};
  return def;
}

const OpDef& causal_conv_grad_weight_op() {
  static constexpr OpDef def{.name = "causal_conv_grad_weight",
                             .infer = infer_grad_weight,
                             .cost = cost,
                             .reference = reference_grad_weight};
  return def;
}

ValueId causal_conv(Builder& builder, ValueId x, ValueId w, ValueId sequence_begin, int64_t dilation) {
  return builder.emit_one(causal_conv_op(), {x, w, sequence_begin}, {{"dilation", dilation}});
}

ValueId causal_conv_cached(Builder& builder, ValueId x, ValueId w, const StreamInputs& streams,
                           int64_t dilation) {
  return builder.emit(causal_conv_cached_op(), {x, w, streams.state, streams.stream, streams.positions},
                      {{"dilation", dilation}})[0];
}

ValueId causal_conv_grad_input(Builder& builder, ValueId dy, ValueId w, ValueId sequence_begin,
                               int64_t dilation) {
  return builder.emit_one(causal_conv_grad_input_op(), {dy, w, sequence_begin}, {{"dilation", dilation}});
}

ValueId causal_conv_grad_weight(Builder& builder, ValueId x, ValueId dy, ValueId sequence_begin, int64_t taps,
                                int64_t dilation) {
  return builder.emit_one(causal_conv_grad_weight_op(), {x, dy, sequence_begin},
                          {{"taps", taps}, {"dilation", dilation}});
}

}  // namespace tenon
