#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "ops/linear_attention_rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"q", Elements::floating, 3},         {"k", Elements::floating, 3},
                                 {"v", Elements::floating, 3},         {"log_decay", Elements::f32, 3},
                                 {"sequence_begin", Elements::i32, 1}, {"states", Elements::f32, 4},
                                 {"dout", Elements::floating, 3},      {"beta", Elements::f32, 2}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, std::span(kInputs).first(site.inputs.size() == 8 ? 8 : 7)));
  RETURN_IF_ERROR(check_linear_attention(site, 7));
  const LinearAttentionSizes s(site.inputs);
  const Shape states{ceil_div(s.tokens, site.attrs.integer("chunk")), s.heads, s.n, s.p};
  RETURN_IF_ERROR(expect(site, site.inputs[5].shape == states, "states does not fit q and v"));
  RETURN_IF_ERROR(expect(site, site.inputs[6] == site.inputs[2], "dout is not of v's type"));
  std::vector<Type> out = {site.inputs[0], site.inputs[1], site.inputs[2], site.inputs[3]};
  if (site.inputs.size() == 8) out.push_back(site.inputs[7]);
  return out;
}

Cost cost(const OpSite& site) {
  const LinearAttentionSizes s(site.inputs);
  Cost cost = streaming_cost(site, 0);
  cost.flops = s.tokens * s.heads * s.n * s.p * (site.attrs.flag("delta") ? 22 : 16);
  return cost;
}

// The backward pass of one head. States of a chunk's tokens are computed again from the one before it.
struct HeadGradient {
  const ReferenceCall& call;
  LinearAttentionSizes s;
  LinearAttentionOptions options;
  const ReferenceTensor* beta;
  int64_t h;
  std::vector<double> states, decayed;  // of the tokens of a chunk, [n, p] each
  std::vector<double> d_state;          // of the state after the token at hand

  bool begins(int64_t t) const { return static_cast<int64_t>(call.inputs[4].data[t]) == t; }

  void recompute(int64_t first, int64_t end) {
    const int64_t size = s.n * s.p;
    const double* before = call.inputs[5].data + (first / options.chunk * s.heads + h) * size;
    std::vector<double> state(before, before + size);
    for (int64_t t = first; t < end; ++t) {
      if (begins(t)) std::fill(state.begin(), state.end(), 0.0);
      double* kept = decayed.data() + (t - first) * size;
      advance(s, options.delta, linear_attention_step(call, s, beta, t, h), state.data(), kept);
      std::copy(state.begin(), state.end(), states.data() + (t - first) * size);
    }
  }

  void add_token(int64_t t, const double* state, const double* before) {
    const LinearAttentionStep step = linear_attention_step(call, s, beta, t, h);
    const int64_t head = t * s.heads + h, key = (t * s.key_heads + s.key_head(h)) * s.n;
    const double* dout = call.inputs[6].data + head * s.p;
    double *dq = call.outputs[0].data + key, *dk = call.outputs[1].data + key;
    double* dv = call.outputs[2].data + head * s.p;
    for (int64_t i = 0; i < s.n; ++i) {
      for (int64_t j = 0; j < s.p; ++j) {
        dq[i] += options.scale * state[i * s.p + j] * dout[j];
        d_state[static_cast<size_t>(i * s.p + j)] += options.scale * step.q[i] * dout[j];
      }
    }
    for (int64_t j = 0; j < s.p; ++j) {
      double known = 0, du = 0;
      for (int64_t i = 0; i < s.n; ++i) {
        if (options.delta) known += step.k[i] * before[i * s.p + j];
        du += step.k[i] * d_state[static_cast<size_t>(i * s.p + j)];
      }
      const double miss = step.v[j] - known;
      dv[j] = step.beta * du;
      if (beta) call.outputs[4].data[head] += du * miss;
      for (int64_t i = 0; i < s.n; ++i) {
        double& d = d_state[static_cast<size_t>(i * s.p + j)];
        dk[i] += d * step.beta * miss;
        if (!options.delta) continue;
        dk[i] -= before[i * s.p + j] * dv[j];
        d -= step.k[i] * dv[j];
      }
    }
    for (int64_t i = 0; i < s.n; ++i) {
      const int64_t at = s.decays == 1 ? 0 : i;
      const double a = std::exp(step.log_decay[at]);
      for (int64_t j = 0; j < s.p; ++j) {
        double& d = d_state[static_cast<size_t>(i * s.p + j)];
        call.outputs[3].data[head * s.decays + at] += d * before[i * s.p + j];
        d = begins(t) ? 0 : a * d;
      }
    }
  }

  void run() {
    const int64_t size = s.n * s.p;
    states.assign(static_cast<size_t>(options.chunk * size), 0.0);
    decayed = states;
    d_state.assign(static_cast<size_t>(size), 0.0);
    for (int64_t chunk = ceil_div(s.tokens, options.chunk); chunk-- > 0;) {
      const int64_t first = chunk * options.chunk, end = std::min(s.tokens, first + options.chunk);
      recompute(first, end);
      for (int64_t t = end; t-- > first;)
        add_token(t, states.data() + (t - first) * size, decayed.data() + (t - first) * size);
    }
  }
};

void reference(const ReferenceCall& call) {
  const Type types[] = {call.inputs[0].type, call.inputs[1].type, call.inputs[2].type, call.inputs[3].type};
  const LinearAttentionSizes s(types);
  for (const ReferenceTensor& output : call.outputs) std::fill_n(output.data, output.type.elements(), 0.0);
  for (int64_t h = 0; h < s.heads; ++h) {
    HeadGradient head{call,
                      s,
                      linear_attention_options(call.attrs),
                      call.inputs.size() == 8 ? &call.inputs[7] : nullptr,
                      h,
                      {},
                      {},
                      {}};
    head.run();
  }
}

}  // namespace

const OpDef& linear_attention_grad_op() {
  static constexpr OpDef def{
      .name = "linear_attention_grad", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

std::vector<ValueId> linear_attention_grad(Builder& builder, const LinearAttentionInputs& inputs,
                                           ValueId sequence_begin, ValueId states, ValueId dout,
                                           const LinearAttentionOptions& options) {
  std::vector<ValueId> all = {inputs.q, inputs.k, inputs.v, inputs.log_decay, sequence_begin, states, dout};
  if (inputs.beta.valid()) all.push_back(inputs.beta);
  return builder.emit(linear_attention_grad_op(), std::move(all), linear_attention_attrs(options));
}

}  // namespace tenon
