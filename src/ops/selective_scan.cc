#include "ops/selective_scan.h"

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "ops/needed_gradients.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x", Elements::floating, 2}, {"dt", Elements::f32, 2},
                                 {"a", Elements::f32, 2},      {"b", Elements::floating, 3},
                                 {"c", Elements::floating, 3}, {"sequence_begin", Elements::i32, 1},
                                 {"states", Elements::f32, 3}, {"dout", Elements::floating, 2}};
constexpr InputRule kCachedInputs[] = {{"x", Elements::floating, 2}, {"dt", Elements::f32, 2},
                                       {"a", Elements::f32, 2},      {"b", Elements::floating, 3},
                                       {"c", Elements::floating, 3}, {"state", Elements::f32, 3},
                                       {"stream", Elements::i32, 1}, {"positions", Elements::i32, 1}};

struct Sizes {
  int64_t tokens, channels, n, groups;

  explicit Sizes(const OpSite& site)
      : Sizes(site.inputs[0].shape, site.inputs[2].shape, site.inputs[3].shape) {}
  explicit Sizes(const ReferenceCall& call)
      : Sizes(call.inputs[0].type.shape, call.inputs[2].type.shape, call.inputs[3].type.shape) {}
  Sizes(const Shape& x, const Shape& a, const Shape& b)
      : tokens(x[0]), channels(x[1]), n(a[1]), groups(b[1]) {}

  int64_t group_row(int64_t t, int64_t channel) const {
    return (t * groups + channel / (channels / groups)) * n;
  }
};

Status check_operands(const OpSite& site) {
  const Type &x = site.inputs[0], &b = site.inputs[3];
  const Sizes s(site);
  RETURN_IF_ERROR(expect(site, site.inputs[1].shape == x.shape, "x and dt differ in shape"));
  RETURN_IF_ERROR(expect_extent(site, "the number of channels of a", site.inputs[2].shape[0], s.channels));
  RETURN_IF_ERROR(expect(site, b == site.inputs[4], "b and c differ in type"));
  RETURN_IF_ERROR(expect(site, b.dtype == x.dtype, "x and b differ in dtype"));
  RETURN_IF_ERROR(expect(site, s.groups > 0 && b.shape == (Shape{s.tokens, s.groups, s.n}),
                         "b is not [tokens, groups, N]"));
  return expect(site, s.channels % s.groups == 0, "channels is not a multiple of groups");
}

Shape states_shape(const OpSite& site) {
  const Sizes s(site);
  return Shape{ceil_div(s.tokens, site.attrs.integer("chunk")), s.channels, s.n};
}

Status check_packed(const OpSite& site) {
  RETURN_IF_ERROR(check_operands(site));
  RETURN_IF_ERROR(expect(site, site.attrs.integer("chunk") > 0, "chunk must be positive"));
  return expect_extent(site, "the length of sequence_begin", site.inputs[5].shape[0], Sizes(site).tokens);
}

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, std::span(kInputs).first(6)));
  RETURN_IF_ERROR(check_packed(site));
  return std::vector<Type>{site.inputs[0], Type{DType::f32, states_shape(site)}};
}

InferredTypes infer_grad(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(check_packed(site));
  RETURN_IF_ERROR(expect(site, site.inputs[6].shape == states_shape(site), "states does not fit x and a"));
  RETURN_IF_ERROR(expect(site, site.inputs[7] == site.inputs[0], "dout is not of x's type"));
  return std::vector<Type>(site.inputs.begin(), site.inputs.begin() + 5);
}

InferredTypes infer_cached(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kCachedInputs));
  RETURN_IF_ERROR(check_operands(site));
  const Sizes s(site);
  const Shape& state = site.inputs[5].shape;
  RETURN_IF_ERROR(expect(site, state == (Shape{state[0], s.channels, s.n}), "state does not fit x and a"));
  RETURN_IF_ERROR(expect_extent(site, "the length of stream", site.inputs[6].shape[0], s.tokens));
  RETURN_IF_ERROR(expect_extent(site, "the length of positions", site.inputs[7].shape[0], s.tokens));
  return std::vector<Type>{site.inputs[0], site.inputs[5]};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  const auto& in = site.op.inputs;
  if (!any_needed(site)) return needed_gradients(site, {});
  const auto found =
      selective_scan_grad(site.builder, {in[0], in[1], in[2], in[3], in[4]}, in[5], site.op.outputs[1],
                          site.output_gradients[0], site.op.attrs.integer("chunk"));
  return needed_gradients(site, found);
}

template <int64_t kFlops>
Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = site.inputs[0].elements() * site.inputs[2].shape[1] * kFlops;
  return cost;
}

// Moves a channel's state [n] one token on.
void advance(const ReferenceCall& call, const Sizes& s, int64_t t, int64_t channel, double* state) {
  const double x = call.inputs[0].data[t * s.channels + channel];
  const double dt = call.inputs[1].data[t * s.channels + channel];
  const double* a = call.inputs[2].data + channel * s.n;
  const double* b = call.inputs[3].data + s.group_row(t, channel);
  for (int64_t i = 0; i < s.n; ++i) state[i] = std::exp(dt * a[i]) * state[i] + dt * x * b[i];
}

double read_out(const ReferenceCall& call, const Sizes& s, int64_t t, int64_t channel, const double* state) {
  const double* c = call.inputs[4].data + s.group_row(t, channel);
  double total = 0;
  for (int64_t i = 0; i < s.n; ++i) total += state[i] * c[i];
  return total;
}

bool begins(const ReferenceCall& call, int64_t t) {
  return static_cast<int64_t>(call.inputs[5].data[t]) == t;
}

void reference(const ReferenceCall& call) {
  const Sizes s(call);
  const int64_t chunk = call.attrs.integer("chunk");
  for (int64_t channel = 0; channel < s.channels; ++channel) {
    std::vector<double> state(static_cast<size_t>(s.n), 0.0);
    for (int64_t t = 0; t < s.tokens; ++t) {
      if (t % chunk == 0) {
        std::copy(state.begin(), state.end(),
                  call.outputs[1].data + (t / chunk * s.channels + channel) * s.n);
      }
      if (begins(call, t)) std::fill(state.begin(), state.end(), 0.0);
      advance(call, s, t, channel, state.data());
      call.outputs[0].data[t * s.channels + channel] = read_out(call, s, t, channel, state.data());
    }
  }
}

void reference_cached(const ReferenceCall& call) {
  const Sizes s(call);
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  std::copy_n(call.inputs[5].data, call.inputs[5].type.elements(), call.outputs[1].data);
  for (int64_t t = 0; t < s.tokens; ++t) {
    const auto stream = static_cast<int64_t>(call.inputs[6].data[t]);
    if (stream < 0) continue;
    for (int64_t channel = 0; channel < s.channels; ++channel) {
      double* state = call.outputs[1].data + (stream * s.channels + channel) * s.n;
      if (call.inputs[7].data[t] == 0) std::fill_n(state, s.n, 0.0);
      advance(call, s, t, channel, state);
      call.outputs[0].data[t * s.channels + channel] = read_out(call, s, t, channel, state);
    }
  }
}

// Adds what token t of a channel gives; d_state is the gradient of the state after it, then before it.
void add_gradients(const ReferenceCall& call, const Sizes& s, int64_t t, int64_t channel,
                   const double* before, const double* after, double* d_state) {
  const int64_t at = t * s.channels + channel, row = s.group_row(t, channel);
  const double x = call.inputs[0].data[at], dt = call.inputs[1].data[at], dout = call.inputs[7].data[at];
  const double* a = call.inputs[2].data + channel * s.n;
  for (int64_t i = 0; i < s.n; ++i) {
    d_state[i] += dout * call.inputs[4].data[row + i];
    call.outputs[4].data[row + i] += dout * after[i];
    const double d = d_state[i], b = call.inputs[3].data[row + i], decay = std::exp(dt * a[i]);
    call.outputs[0].data[at] += d * dt * b;
    call.outputs[1].data[at] += d * (x * b + a[i] * decay * before[i]);
    call.outputs[2].data[channel * s.n + i] += d * dt * decay * before[i];
    call.outputs[3].data[row + i] += d * dt * x;
    d_state[i] = begins(call, t) ? 0 : d * decay;
  }
}

void reference_grad(const ReferenceCall& call) {
  const Sizes s(call);
  const int64_t chunk = call.attrs.integer("chunk");
  for (const ReferenceTensor& output : call.outputs) std::fill_n(output.data, output.type.elements(), 0.0);
  std::vector<double> states(static_cast<size_t>((chunk + 1) * s.n));
  for (int64_t channel = 0; channel < s.channels; ++channel) {
    std::vector<double> d_state(static_cast<size_t>(s.n), 0.0);
    for (int64_t c = ceil_div(s.tokens, chunk); c-- > 0;) {
      const int64_t first = c * chunk, end = std::min(s.tokens, first + chunk);
      std::copy_n(call.inputs[6].data + (c * s.channels + channel) * s.n, s.n, states.data());
      const std::vector<double> zero(static_cast<size_t>(s.n), 0.0);
      for (int64_t t = first; t < end; ++t) {
        double* before = states.data() + (t - first) * s.n;
        std::copy_n(begins(call, t) ? zero.data() : before, s.n, before + s.n);
        advance(call, s, t, channel, before + s.n);
      }
      for (int64_t t = end; t-- > first;) {
        const double* before = states.data() + (t - first) * s.n;
        add_gradients(call, s, t, channel, begins(call, t) ? zero.data() : before, before + s.n,
                      d_state.data());
      }
    }
  }
}

}  // namespace

const OpDef& selective_scan_op() {
  static constexpr OpDef def{.name = "selective_scan",
                             .infer = infer,
                             .gradient = gradient,
                             .cost = cost<7>,
                             .reference = reference};
  return def;
}

const OpDef& selective_scan_cached_op() {
  static constexpr OpDef def{.name = "selective_scan_cached",
                             .infer = infer_cached,
                             .aliases =
                                 [](const OpSite&) {
                                   return std::vector<Alias>{Alias{1, 5, AliasKind::must}};
                                 },
                             .cost = cost<7>,
                             .reference = reference_cached};
  return def;
}

const OpDef& selective_scan_grad_op() {
  static constexpr OpDef def{
      .name = "selective_scan_grad", .infer = infer_grad, .cost = cost<24>, .reference = reference_grad};
  return def;
}

ValueId selective_scan(Builder& builder, const SelectiveScanInputs& in, ValueId sequence_begin,
                       int64_t chunk) {
  return builder.emit(selective_scan_op(), {in.x, in.dt, in.a, in.b, in.c, sequence_begin},
                      {{"chunk", chunk}})[0];
}

ValueId selective_scan_cached(Builder& builder, const SelectiveScanInputs& in, const StreamInputs& streams) {
  return builder.emit(selective_scan_cached_op(),
                      {in.x, in.dt, in.a, in.b, in.c, streams.state, streams.stream, streams.positions})[0];
}

std::vector<ValueId> selective_scan_grad(Builder& builder, const SelectiveScanInputs& in,
                                         ValueId sequence_begin, ValueId states, ValueId dout,
                                         int64_t chunk) {
  return builder.emit(selective_scan_grad_op(), {in.x, in.dt, in.a, in.b, in.c, sequence_begin, states, dout},
                      {{"chunk", chunk}});
}

}  // namespace tenon
