#include "ops/linear_attention.h"

#include <algorithm>

#include "base/checked_math.h"
#include "ops/linear_attention_rules.h"
#include "ops/needed_gradients.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"q", Elements::floating, 3},         {"k", Elements::floating, 3},
                                 {"v", Elements::floating, 3},         {"log_decay", Elements::f32, 3},
                                 {"sequence_begin", Elements::i32, 1}, {"beta", Elements::f32, 2}};
constexpr InputRule kCachedInputs[] = {{"q", Elements::floating, 3},    {"k", Elements::floating, 3},
                                       {"v", Elements::floating, 3},    {"log_decay", Elements::f32, 3},
                                       {"state", Elements::f32, 4},     {"stream", Elements::i32, 1},
                                       {"positions", Elements::i32, 1}, {"beta", Elements::f32, 2}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, std::span(kInputs).first(site.inputs.size() == 6 ? 6 : 5)));
  RETURN_IF_ERROR(check_linear_attention(site, 5));
  const LinearAttentionSizes s(site.inputs);
  RETURN_IF_ERROR(expect_extent(site, "the length of sequence_begin", site.inputs[4].shape[0], s.tokens));
  const int64_t chunks = ceil_div(s.tokens, site.attrs.integer("chunk"));
  return std::vector<Type>{site.inputs[2], Type{DType::f32, Shape{chunks, s.heads, s.n, s.p}}};
}

InferredTypes infer_cached(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, std::span(kCachedInputs).first(site.inputs.size() == 8 ? 8 : 7)));
  RETURN_IF_ERROR(check_linear_attention(site, 7));
  const LinearAttentionSizes s(site.inputs);
  const Shape& state = site.inputs[4].shape;
  RETURN_IF_ERROR(expect(site, state == Shape{state[0], s.heads, s.n, s.p}, "state does not fit q and v"));
  RETURN_IF_ERROR(expect_extent(site, "the length of stream", site.inputs[5].shape[0], s.tokens));
  RETURN_IF_ERROR(expect_extent(site, "the length of positions", site.inputs[6].shape[0], s.tokens));
  return std::vector<Type>{site.inputs[2], site.inputs[4]};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  const auto& in = site.op.inputs;
  if (!any_needed(site)) return needed_gradients(site, {});
  const bool beta = in.size() == 6;
  const LinearAttentionInputs inputs{in[0], in[1], in[2], in[3], beta ? in[5] : ValueId{}};
  const auto found = linear_attention_grad(site.builder, inputs, in[4], site.op.outputs[1],
                                           site.output_gradients[0], linear_attention_options(site.op.attrs));
  std::vector<ValueId> gradients = needed_gradients(site, std::span(found).first(4));
  if (beta && site.needed[5]) gradients[5] = found[4];
  return gradients;
}

Cost cost(const OpSite& site) {
  const LinearAttentionSizes s(site.inputs);
  Cost cost = streaming_cost(site, 0);
  cost.flops = s.tokens * s.heads * s.n * s.p * (site.attrs.flag("delta") ? 7 : 5);
  return cost;
}

void reference(const ReferenceCall& call) {
  const LinearAttentionOptions options = linear_attention_options(call.attrs);
  const Type types[] = {call.inputs[0].type, call.inputs[1].type, call.inputs[2].type, call.inputs[3].type};
  const LinearAttentionSizes s(types);
  const ReferenceTensor* beta = call.inputs.size() == 6 ? &call.inputs[5] : nullptr;
  for (int64_t h = 0; h < s.heads; ++h) {
    std::vector<double> state(static_cast<size_t>(s.n * s.p), 0.0);
    for (int64_t t = 0; t < s.tokens; ++t) {
      if (t % options.chunk == 0) {
        std::copy(state.begin(), state.end(),
                  call.outputs[1].data + (t / options.chunk * s.heads + h) * s.n * s.p);
      }
      if (static_cast<int64_t>(call.inputs[4].data[t]) == t) std::fill(state.begin(), state.end(), 0.0);
      const LinearAttentionStep step = linear_attention_step(call, s, beta, t, h);
      advance(s, options.delta, step, state.data(), nullptr);
      read_out(s, options.scale, step.q, state.data(), call.outputs[0].data + (t * s.heads + h) * s.p);
    }
  }
}

void reference_cached(const ReferenceCall& call) {
  const LinearAttentionOptions options = linear_attention_options(call.attrs);
  const Type types[] = {call.inputs[0].type, call.inputs[1].type, call.inputs[2].type, call.inputs[3].type};
  const LinearAttentionSizes s(types);
  const ReferenceTensor* beta = call.inputs.size() == 8 ? &call.inputs[7] : nullptr;
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  std::copy_n(call.inputs[4].data, call.inputs[4].type.elements(), call.outputs[1].data);
  for (int64_t t = 0; t < s.tokens; ++t) {
    const auto stream = static_cast<int64_t>(call.inputs[5].data[t]);
    if (stream < 0) continue;
    for (int64_t h = 0; h < s.heads; ++h) {
      double* state = call.outputs[1].data + (stream * s.heads + h) * s.n * s.p;
      if (call.inputs[6].data[t] == 0) std::fill_n(state, s.n * s.p, 0.0);
      const LinearAttentionStep step = linear_attention_step(call, s, beta, t, h);
      advance(s, options.delta, step, state, nullptr);
      read_out(s, options.scale, step.q, state, call.outputs[0].data + (t * s.heads + h) * s.p);
    }
  }
}

}  // namespace

const OpDef& linear_attention_op() {
  static constexpr OpDef def{
      .name = "linear_attention", .infer = infer, .gradient = gradient, .cost = cost, .reference = reference};
  return def;
}

const OpDef& linear_attention_cached_op() {
  static constexpr OpDef def{.name = "linear_attention_cached",
                             .infer = infer_cached,
                             .aliases =
                                 [](const OpSite&) {
                                   return std::vector<Alias>{Alias{1, 4, AliasKind::must}};
                                 },
                             .cost = cost,
                             .reference = reference_cached};
  return def;
}

ValueId linear_attention(Builder& builder, const LinearAttentionInputs& inputs, ValueId sequence_begin,
                         const LinearAttentionOptions& options) {
  std::vector<ValueId> all = {inputs.q, inputs.k, inputs.v, inputs.log_decay, sequence_begin};
  if (inputs.beta.valid()) all.push_back(inputs.beta);
  return builder.emit(linear_attention_op(), std::move(all), linear_attention_attrs(options))[0];
}

ValueId linear_attention_cached(Builder& builder, const LinearAttentionInputs& inputs,
                                const StreamInputs& streams, const LinearAttentionOptions& options) {
  std::vector<ValueId> all = {inputs.q,      inputs.k,       inputs.v,         inputs.log_decay,
                              streams.state, streams.stream, streams.positions};
  if (inputs.beta.valid()) all.push_back(inputs.beta);
  return builder.emit(linear_attention_cached_op(), std::move(all), linear_attention_attrs(options))[0];
}

}  // namespace tenon
