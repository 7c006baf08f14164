#include "ops/running_max.h"

#include <algorithm>

#include "ops/needed_gradients.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {
    {"decay", Elements::f32, 2}, {"value", Elements::f32, 2}, {"sequence_begin", Elements::i32, 1}};
constexpr InputRule kCachedInputs[] = {{"decay", Elements::f32, 2},
                                       {"value", Elements::f32, 2},
                                       {"state", Elements::f32, 2},
                                       {"stream", Elements::i32, 1},
                                       {"positions", Elements::i32, 1}};
constexpr InputRule kGradInputs[] = {
    {"out", Elements::f32, 3}, {"dout", Elements::f32, 3}, {"sequence_begin", Elements::i32, 1}};

Type out_type(const Shape& decay) {
  return {DType::f32, Shape{decay[0], 2, decay[1]}};
}

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Shape& decay = site.inputs[0].shape;
  RETURN_IF_ERROR(expect(site, decay == site.inputs[1].shape, "decay and value differ in shape"));
  RETURN_IF_ERROR(expect_extent(site, "the length of sequence_begin", site.inputs[2].shape[0], decay[0]));
  return std::vector<Type>{out_type(decay)};
}

InferredTypes infer_cached(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kCachedInputs));
  const Shape &decay = site.inputs[0].shape, &state = site.inputs[2].shape;
  RETURN_IF_ERROR(expect(site, decay == site.inputs[1].shape, "decay and value differ in shape"));
  RETURN_IF_ERROR(expect_extent(site, "the number of columns of state", state[1], decay[1]));
  RETURN_IF_ERROR(expect_extent(site, "the length of stream", site.inputs[3].shape[0], decay[0]));
  RETURN_IF_ERROR(expect_extent(site, "the length of positions", site.inputs[4].shape[0], decay[0]));
  return std::vector<Type>{out_type(decay), site.inputs[2]};
}

InferredTypes infer_grad(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kGradInputs));
  const Shape& out = site.inputs[0].shape;
  RETURN_IF_ERROR(expect(site, out == site.inputs[1].shape, "out and dout differ in shape"));
  RETURN_IF_ERROR(expect_extent(site, "the middle extent of out", out[1], 2));
  RETURN_IF_ERROR(expect_extent(site, "the length of sequence_begin", site.inputs[2].shape[0], out[0]));
  return std::vector<Type>(2, Type{DType::f32, Shape{out[0], out[2]}});
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!any_needed(site)) return needed_gradients(site, {});
  const auto found =
      running_max_grad(site.builder, site.op.outputs[0], site.output_gradients[0], site.op.inputs[2]);
  return needed_gradients(site, found);
}

Cost cost(const OpSite& site) {
  return streaming_cost(site, 1);
}

// Writes a token's out [2, n] and moves m [n] past it.
void take_token(const ReferenceCall& call, int64_t t, double* m) {
  const int64_t n = call.inputs[0].type.shape[1];
  double* out = call.outputs[0].data + t * 2 * n;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = m[i] + call.inputs[0].data[t * n + i];
    m[i] = out[n + i] = std::max(out[i], call.inputs[1].data[t * n + i]);
  }
}

void reference(const ReferenceCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0], n = call.inputs[0].type.shape[1];
  std::vector<double> m(static_cast<size_t>(n));
  for (int64_t t = 0; t < tokens; ++t) {
    if (static_cast<int64_t>(call.inputs[2].data[t]) == t) std::fill(m.begin(), m.end(), 0.0);
    take_token(call, t, m.data());
  }
}

void reference_cached(const ReferenceCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0], n = call.inputs[0].type.shape[1];
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  std::copy_n(call.inputs[2].data, call.inputs[2].type.elements(), call.outputs[1].data);
  for (int64_t t = 0; t < tokens; ++t) {
    const auto stream = static_cast<int64_t>(call.inputs[3].data[t]);
    if (stream < 0) continue;
    double* m = call.outputs[1].data + stream * n;
    if (call.inputs[4].data[t] == 0) std::fill_n(m, n, 0.0);
    take_token(call, t, m);
  }
}

void reference_grad(const ReferenceCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0], n = call.inputs[0].type.shape[2];
  std::vector<double> later(static_cast<size_t>(n));  // of m, from the tokens after
  for (int64_t t = tokens; t-- > 0;) {
    const double *out = call.inputs[0].data + t * 2 * n, *dout = call.inputs[1].data + t * 2 * n;
    const bool begins = static_cast<int64_t>(call.inputs[2].data[t]) == t;
    for (int64_t i = 0; i < n; ++i) {
      double& of_m = later[static_cast<size_t>(i)];
      const double total = dout[n + i] + of_m;
      const bool from_value = out[n + i] > out[i];
      call.outputs[1].data[t * n + i] = from_value ? total : 0;
      const double of_carried = dout[i] + (from_value ? 0 : total);
      call.outputs[0].data[t * n + i] = of_carried;
      of_m = begins ? 0 : of_carried;
    }
  }
}

}  // namespace

const OpDef& running_max_op() {
  static constexpr OpDef def{
      .name = "running_max", .infer = infer, .gradient = gradient, .cost = cost, .reference = reference};
  return def;
}

const OpDef& running_max_cached_op() {
  static constexpr OpDef def{.name = "running_max_cached",
                             .infer = infer_cached,
                             .aliases =
                                 [](const OpSite&) {
                                   return std::vector<Alias>{Alias{1, 2, AliasKind::must}};
                                 },
                             .cost = cost,
                             .reference = reference_cached};
  return def;
}

const OpDef& running_max_grad_op() {
  static constexpr OpDef def{
      .name = "running_max_grad", .infer = infer_grad, .cost = cost, .reference = reference_grad};
  return def;
}

ValueId running_max(Builder& builder, ValueId decay, ValueId value, ValueId sequence_begin) {
  return builder.emit_one(running_max_op(), {decay, value, sequence_begin});
}

ValueId running_max_cached(Builder& builder, ValueId decay, ValueId value, const StreamInputs& streams) {
  return builder.emit(running_max_cached_op(),
                      {decay, value, streams.state, streams.stream, streams.positions})[0];
}

std::vector<ValueId> running_max_grad(Builder& builder, ValueId out, ValueId dout, ValueId sequence_begin) {
  return builder.emit(running_max_grad_op(), {out, dout, sequence_begin});
}

}  // namespace tenon
