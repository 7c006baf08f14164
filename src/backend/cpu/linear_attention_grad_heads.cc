// linear_attention_grad: key heads over threads. States of a chunk's tokens are computed again from the one
// before it, then its tokens walked backward.
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/linear_attention_grad_heads.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/linear_attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

struct KeyHead {
  const KernelCall& call;
  LinearSizes s;
  const TensorView* beta;
  LinearGradScratch scratch;
  int64_t key_head;

  bool begins(int64_t t) const { return input_as<int32_t>(call, 4)[t] == t; }

  void recompute(int64_t h, int64_t first, int64_t end) const {
    load_state(s, input_as<float>(call, 5) + (first / s.chunk * s.heads + h) * s.n * s.p, scratch.states);
    for (int64_t t = first; t < end; ++t) {
      const float* before = scratch.states + (t - first) * s.state();
      float* state = scratch.states + (t - first + 1) * s.state();
      if (begins(t))
        clear_row(state, s.state());
      else
        std::memcpy(state, before, static_cast<size_t>(s.state()) * 4);
      const LinearToken token = read_token(s, call.inputs, beta, t, h, scratch.rows);
      decay_and_miss(s, token, state, scratch.rows.update);
      update_and_read(s, token, scratch.rows.update, state, scratch.rows.out);
    }
  }

  // Adds what the output of token t gives to the state's gradient, dq, du and, into rows.update, what the
  // state knew of v.
  void add_output(const LinearToken& token, const float* before, const float* after, float* d_state,
                  float* dq) const {
    clear_row(scratch.du, s.padded);
    clear_row(scratch.rows.update, s.padded);
    for (int64_t i = 0; i < s.n; ++i) {
      float* d = d_state + i * s.padded;
      add_row(d, scratch.dout, s.scale * token.q[i], s.padded);
      dq[i] += s.scale * dot_rows(after + i * s.padded, scratch.dout, s.padded);
      add_row(scratch.du, d, token.k[i], s.padded);
      if (s.delta && before != nullptr) {
        add_row(scratch.rows.update, before + i * s.padded, token.k[i] * token.decay[i * token.decay_step],
                s.padded);
      }
    }
  }

  // Carries the gradient over token t's update and decay; `before` is null where the token begins a sequence.
  void add_update(const LinearToken& token, const float* before, const float* miss, float* d_state,
                  float* dk) const {
    for (int64_t i = 0; i < s.n; ++i) {
      float* d = d_state + i * s.padded;
      const float a = token.decay[i * token.decay_step];
      const float* old = before == nullptr ? nullptr : before + i * s.padded;
      dk[i] += token.beta * dot_rows(d, miss, s.padded);
      if (s.delta) {
        if (old != nullptr) dk[i] -= a * token.beta * dot_rows(old, scratch.du, s.padded);
        add_row(d, scratch.du, -token.k[i] * token.beta, s.padded);
      }
      const float of_decay = old == nullptr ? 0 : a * dot_rows(d, old, s.padded);
      scratch.d_decay[i * token.decay_step] =
          (token.decay_step == 0 && i > 0 ? scratch.d_decay[0] : 0) + of_decay;
      const VF kept = hn::Set(DF(), old == nullptr ? 0 : a);
      for (int64_t j = 0; j < s.padded; j += kLanes) store(hn::Mul(load(d + j), kept), d + j);
    }
  }

  void token_backward(int64_t h, int64_t t, int64_t first) const {
    const int64_t head = t * s.heads + h;
    const LinearToken token = read_token(s, call.inputs, beta, t, h, scratch.rows);
    const float* before = begins(t) ? nullptr : scratch.states + (t - first) * s.state();
    const float* after = scratch.states + (t - first + 1) * s.state();
    float* d_state = scratch.d_states + h % s.group() * s.state();
    float *dq = scratch.dq + (t - first) * s.n, *dk = scratch.dk + (t - first) * s.n;
    const TensorView& dout = call.inputs[6];
    clear_row(scratch.dout, s.padded);
    widen_row(dout.type.dtype, dout.data, head * s.p, s.p, scratch.dout);
    add_output(token, before, after, d_state, dq);
    float* miss = scratch.rows.out;
    for (int64_t j = 0; j < s.padded; ++j) miss[j] = token.v[j] - scratch.rows.update[j];
    if (beta) output_as<float>(call, 4)[head] = dot_rows(scratch.du, miss, s.padded);
    add_update(token, before, miss, d_state, dk);
    for (int64_t j = 0; j < s.padded; ++j) scratch.dout[j] = token.beta * scratch.du[j];
    const TensorView& dv = call.outputs[2];
    const int64_t element_bytes = *dtype_bytes(dv.type.dtype, 1);
    round_row(dv.type.dtype, scratch.dout, s.p, dv.data + head * s.p * element_bytes);
    std::memcpy(output_as<float>(call, 3) + head * s.decays, scratch.d_decay,
                static_cast<size_t>(s.decays) * 4);
  }

  void save_keys(int64_t first, int64_t end) const {
    for (int64_t t = first; t < end; ++t) {
      const int64_t at = (t * s.key_heads + key_head) * s.n;
      for (size_t output : {0, 1}) {
        const TensorView& out = call.outputs[output];
        const float* values = (output == 0 ? scratch.dq : scratch.dk) + (t - first) * s.n;
        round_row(out.type.dtype, values, s.n, out.data + at * *dtype_bytes(out.type.dtype, 1));
      }
    }
  }

  void run() const {
    clear_row(scratch.d_states, s.group() * s.state());
    for (int64_t chunk = ceil_div(s.tokens, s.chunk); chunk-- > 0;) {
      const int64_t first = chunk * s.chunk, end = std::min(s.tokens, first + s.chunk);
      clear_row(scratch.dq, s.chunk * s.n);
      clear_row(scratch.dk, s.chunk * s.n);
      for (int64_t h = key_head * s.group(); h < (key_head + 1) * s.group(); ++h) {
        recompute(h, first, end);
        for (int64_t t = end; t-- > first;) token_backward(h, t, first);
      }
      save_keys(first, end);
    }
  }
};

void run_key_heads(const KernelCall& call) {
  const LinearSizes s = linear_sizes(call);
  const TensorView* beta = call.inputs.size() == 8 ? &call.inputs[7] : nullptr;
  const int64_t bytes = LinearGradScratch(s, nullptr).cutter.used();
  const int threads = call.threads->size();
  call.threads->parallel_for(threads, 1, [&](Range range) {
    for (int64_t part = range.begin; part < range.end; ++part) {
      for (int64_t h = part; h < s.key_heads; h += threads)
        KeyHead{call, s, beta, LinearGradScratch(s, call.workspace.data() + part * bytes), h}.run();
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(run_key_heads);

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  return LinearGradScratch(linear_sizes(site), nullptr).cutter.used() * facts.threads;
}

}  // namespace

const KernelDef& linear_attention_grad_heads_kernel() {
  static constexpr KernelDef def{.op = "linear_attention_grad",
                                 .name = "linear_attention_grad_heads",
                                 .serves = serves_linear_attention,
                                 .workspace_bytes = workspace_bytes,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(run_key_heads)(call);
                                 }};
  return def;
}

}  // namespace tenon
#endif
