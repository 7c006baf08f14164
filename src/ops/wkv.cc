#include "ops/wkv.h"

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "ops/needed_gradients.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"k", Elements::floating, 2},         {"v", Elements::floating, 2},
                                 {"decay", Elements::f32, 1},          {"bonus", Elements::f32, 1},
                                 {"sequence_begin", Elements::i32, 1}, {"states", Elements::f32, 3},
                                 {"dout", Elements::floating, 2}};
constexpr InputRule kCachedInputs[] = {{"k", Elements::floating, 2},   {"v", Elements::floating, 2},
                                       {"decay", Elements::f32, 1},    {"bonus", Elements::f32, 1},
                                       {"state", Elements::f32, 3},    {"stream", Elements::i32, 1},
                                       {"positions", Elements::i32, 1}};

Status check_operands(const OpSite& site) {
  const Type& k = site.inputs[0];
  RETURN_IF_ERROR(expect(site, k == site.inputs[1], "k and v differ in type"));
  RETURN_IF_ERROR(expect_extent(site, "the length of decay", site.inputs[2].shape[0], k.shape[1]));
  return expect_extent(site, "the length of bonus", site.inputs[3].shape[0], k.shape[1]);
}

Shape states_shape(const OpSite& site) {
  const Shape& k = site.inputs[0].shape;
  return Shape{ceil_div(k[0], site.attrs.integer("chunk")), kWkvState, k[1]};
}

Status check_packed(const OpSite& site) {
  RETURN_IF_ERROR(check_operands(site));
  RETURN_IF_ERROR(expect(site, site.attrs.integer("chunk") > 0, "chunk must be positive"));
  return expect_extent(site, "the length of sequence_begin", site.inputs[4].shape[0],
                       site.inputs[0].shape[0]);
}

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, std::span(kInputs).first(5)));
  RETURN_IF_ERROR(check_packed(site));
  return std::vector<Type>{site.inputs[1], Type{DType::f32, states_shape(site)}};
}

InferredTypes infer_grad(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(check_packed(site));
  RETURN_IF_ERROR(expect(site, site.inputs[5].shape == states_shape(site), "states does not fit k"));
  RETURN_IF_ERROR(expect(site, site.inputs[6] == site.inputs[1], "dout is not of v's type"));
  return std::vector<Type>(site.inputs.begin(), site.inputs.begin() + 4);
}

InferredTypes infer_cached(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kCachedInputs));
  RETURN_IF_ERROR(check_operands(site));
  const Shape &k = site.inputs[0].shape, &state = site.inputs[4].shape;
  RETURN_IF_ERROR(expect(site, state == (Shape{state[0], kWkvState, k[1]}), "state does not fit k"));
  RETURN_IF_ERROR(expect_extent(site, "the length of stream", site.inputs[5].shape[0], k[0]));
  RETURN_IF_ERROR(expect_extent(site, "the length of positions", site.inputs[6].shape[0], k[0]));
  return std::vector<Type>{site.inputs[1], site.inputs[4]};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  const auto& in = site.op.inputs;
  if (!any_needed(site)) return needed_gradients(site, {});
  const auto found = wkv_grad(site.builder, {in[0], in[1], in[2], in[3]}, in[4], site.op.outputs[1],
                              site.output_gradients[0], site.op.attrs.integer("chunk"));
  return needed_gradients(site, found);
}

template <int64_t kFlops>
Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = site.inputs[0].elements() * kFlops;
  return cost;
}

// Both sums of a channel, times e^-largest.
struct State {
  double numerator = 0, denominator = 0, largest = 0;

  static State read(const double* from, int64_t channels) {
    return {from[0], from[channels], from[2 * channels]};
  }
  void write(double* to, int64_t channels) const {
    to[0] = numerator;
    to[channels] = denominator;
    to[2 * channels] = largest;
  }
  bool empty() const { return denominator == 0; }
};

// What the sums weigh, those before and the token's own, where its exponent is `own` and theirs `before`.
struct Weights {
  double before, own, largest;

  Weights(const State& state, double decay, double own_exponent)
      : largest(state.empty() ? own_exponent : std::max(state.largest + decay, own_exponent)) {
    before = state.empty() ? 0 : std::exp(state.largest + decay - largest);
    own = std::exp(own_exponent - largest);
  }
};

struct Channel {
  double decay, bonus;
};

Channel channel_of(const ReferenceCall& call, int64_t channel) {
  return {call.inputs[2].data[channel], call.inputs[3].data[channel]};
}

double read_out(const Channel& c, double k, double v, const State& state) {
  const Weights w(state, 0, k + c.bonus);
  return (w.before * state.numerator + w.own * v) / (w.before * state.denominator + w.own);
}

State advanced(const Channel& c, double k, double v, const State& state) {
  const Weights w(state, c.decay, k);
  return {w.before * state.numerator + w.own * v, w.before * state.denominator + w.own, w.largest};
}

bool begins(const ReferenceCall& call, int64_t t) {
  return static_cast<int64_t>(call.inputs[4].data[t]) == t;
}

void reference(const ReferenceCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0], channels = call.inputs[0].type.shape[1];
  const int64_t chunk = call.attrs.integer("chunk");
  for (int64_t c = 0; c < channels; ++c) {
    const Channel channel = channel_of(call, c);
    State state;
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t at = t * channels + c;
      const double k = call.inputs[0].data[at], v = call.inputs[1].data[at];
      if (t % chunk == 0) state.write(call.outputs[1].data + t / chunk * kWkvState * channels + c, channels);
      if (begins(call, t)) state = {};
      call.outputs[0].data[at] = read_out(channel, k, v, state);
      state = advanced(channel, k, v, state);
    }
  }
}

void reference_cached(const ReferenceCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0], channels = call.inputs[0].type.shape[1];
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  std::copy_n(call.inputs[4].data, call.inputs[4].type.elements(), call.outputs[1].data);
  for (int64_t t = 0; t < tokens; ++t) {
    const auto stream = static_cast<int64_t>(call.inputs[5].data[t]);
    if (stream < 0) continue;
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t at = t * channels + c;
      const Channel channel = channel_of(call, c);
      const double k = call.inputs[0].data[at], v = call.inputs[1].data[at];
      double* kept = call.outputs[1].data + stream * kWkvState * channels + c;
      const State state = call.inputs[6].data[t] == 0 ? State{} : State::read(kept, channels);
      call.outputs[0].data[at] = read_out(channel, k, v, state);
      advanced(channel, k, v, state).write(kept, channels);
    }
  }
}

// Gradients of both scaled sums of a state. Its largest exponent is a number like any other that scales them:
// no output depends on it, so that it has no gradient.
struct StateGradient {
  double numerator = 0, denominator = 0;
};

// Adds what token t of a channel gives; d is the gradient of the state after it, then before it.
void add_gradients(const ReferenceCall& call, int64_t t, int64_t c, const State& before, StateGradient& d) {
  const int64_t at = t * call.inputs[0].type.shape[1] + c;
  const Channel channel = channel_of(call, c);
  const double k = call.inputs[0].data[at], v = call.inputs[1].data[at], dout = call.inputs[6].data[at];
  const Weights read(before, 0, k + channel.bonus), kept(before, channel.decay, k);
  const double denominator = read.before * before.denominator + read.own;
  const double out = (read.before * before.numerator + read.own * v) / denominator;
  const double d_numerator = dout / denominator, d_denominator = -out * d_numerator;
  const double d_read = read.own * (d_numerator * v + d_denominator);
  call.outputs[0].data[at] = kept.own * (d.numerator * v + d.denominator) + d_read;
  call.outputs[1].data[at] = kept.own * d.numerator + read.own * d_numerator;
  call.outputs[2].data[c] +=
      kept.before * (d.numerator * before.numerator + d.denominator * before.denominator);
  call.outputs[3].data[c] += d_read;
  d.numerator = kept.before * d.numerator + read.before * d_numerator;
  d.denominator = kept.before * d.denominator + read.before * d_denominator;
  if (begins(call, t)) d = {};
}

void reference_grad(const ReferenceCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0], channels = call.inputs[0].type.shape[1];
  const int64_t chunk = call.attrs.integer("chunk");
  for (const ReferenceTensor& output : call.outputs) std::fill_n(output.data, output.type.elements(), 0.0);
  std::vector<State> states(static_cast<size_t>(chunk));
  for (int64_t c = 0; c < channels; ++c) {
    const Channel channel = channel_of(call, c);
    StateGradient d;
    for (int64_t n = ceil_div(tokens, chunk); n-- > 0;) {
      const int64_t first = n * chunk, end = std::min(tokens, first + chunk);
      State state = State::read(call.inputs[5].data + n * kWkvState * channels + c, channels);
      for (int64_t t = first; t < end; ++t) {
        if (begins(call, t)) state = {};
        states[static_cast<size_t>(t - first)] = state;
        const int64_t at = t * channels + c;
        state = advanced(channel, call.inputs[0].data[at], call.inputs[1].data[at], state);
      }
      for (int64_t t = end; t-- > first;)
        add_gradients(call, t, c, states[static_cast<size_t>(t - first)], d);
    }
  }
}

}  // namespace

const OpDef& wkv_op() {
  static constexpr OpDef def{
      .name = "wkv", .infer = infer, .gradient = gradient, .cost = cost<20>, .reference = reference};
  return def;
}

const OpDef& wkv_cached_op() {
  static constexpr OpDef def{.name = "wkv_cached",
                             .infer = infer_cached,
                             .aliases =
                                 [](const OpSite&) {
                                   return std::vector<Alias>{Alias{1, 4, AliasKind::must}};
                                 },
                             .cost = cost<20>,
                             .reference = reference_cached};
  return def;
}

const OpDef& wkv_grad_op() {
  static constexpr OpDef def{
      .name = "wkv_grad", .infer = infer_grad, .cost = cost<60>, .reference = reference_grad};
  return def;
}

ValueId wkv(Builder& builder, const WkvInputs& in, ValueId sequence_begin, int64_t chunk) {
  return builder.emit(wkv_op(), {in.k, in.v, in.decay, in.bonus, sequence_begin}, {{"chunk", chunk}})[0];
}

ValueId wkv_cached(Builder& builder, const WkvInputs& in, const StreamInputs& streams) {
  return builder.emit(wkv_cached_op(),
                      {in.k, in.v, in.decay, in.bonus, streams.state, streams.stream, streams.positions})[0];
}

std::vector<ValueId> wkv_grad(Builder& builder, const WkvInputs& in, ValueId sequence_begin, ValueId states,
                              ValueId dout, int64_t chunk) {
  return builder.emit(wkv_grad_op(), {in.k, in.v, in.decay, in.bonus, sequence_begin, states, dout},
                      {{"chunk", chunk}});
}

}  // namespace tenon
