// linear_attention and linear_attention_cached: heads over threads, tokens one after another, so that a
// sequence gives the same bits packed, alone or token by token.
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/linear_attention_heads.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/linear_attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

struct Heads {
  const KernelCall& call;
  LinearSizes s;
  const TensorView* beta;

  void step(int64_t t, int64_t h, const LinearScratch& scratch) const {
    const LinearToken token = read_token(s, call.inputs, beta, t, h, scratch.rows);
    decay_and_miss(s, token, scratch.state, scratch.rows.update);
    update_and_read(s, token, scratch.rows.update, scratch.state, scratch.rows.out);
    const TensorView& out = call.outputs[0];
    const int64_t row_bytes = *dtype_bytes(out.type.dtype, s.p);
    round_row(out.type.dtype, scratch.rows.out, s.p, out.data + (t * s.heads + h) * row_bytes);
  }

  void packed(int64_t h, const LinearScratch& scratch) const {
    const int32_t* begin = input_as<int32_t>(call, 4);
    float* states = output_as<float>(call, 1);
    clear_row(scratch.state, s.state());
    for (int64_t t = 0; t < s.tokens; ++t) {
      if (t % s.chunk == 0) save_state(s, scratch.state, states + (t / s.chunk * s.heads + h) * s.n * s.p);
      if (begin[t] == t) clear_row(scratch.state, s.state());
      step(t, h, scratch);
    }
  }

  void cached(int64_t h, const LinearScratch& scratch) const {
    const int32_t *streams = input_as<int32_t>(call, 5), *positions = input_as<int32_t>(call, 6);
    const TensorView& out = call.outputs[0];
    const int64_t row_bytes = *dtype_bytes(out.type.dtype, s.p);
    int32_t held = -1;  // the stream whose state is in scratch
    const auto state_of = [&](int32_t stream) {
      return output_as<float>(call, 1) + (stream * s.heads + h) * s.n * s.p;
    };
    for (int64_t t = 0; t < s.tokens; ++t) {
      if (streams[t] < 0) {
        std::memset(out.data + (t * s.heads + h) * row_bytes, 0, static_cast<size_t>(row_bytes));
        continue;
      }
      if (streams[t] != held) {
        if (held >= 0) save_state(s, scratch.state, state_of(held));
        held = streams[t];
        load_state(s, state_of(held), scratch.state);
      }
      if (positions[t] == 0) clear_row(scratch.state, s.state());
      step(t, h, scratch);
    }
    if (held >= 0) save_state(s, scratch.state, state_of(held));
  }
};

void run_heads(const KernelCall& call, bool is_cached) {
  const size_t plain = is_cached ? 7 : 5;
  const Heads heads{call, linear_sizes(call), call.inputs.size() > plain ? &call.inputs[plain] : nullptr};
  const int64_t bytes = LinearScratch(heads.s, nullptr).cutter.used();
  const int threads = call.threads->size();
  call.threads->parallel_for(threads, 1, [&](Range range) {
    for (int64_t part = range.begin; part < range.end; ++part) {
      const LinearScratch scratch(heads.s, call.workspace.data() + part * bytes);
      for (int64_t h = part; h < heads.s.heads; h += threads)
        is_cached ? heads.cached(h, scratch) : heads.packed(h, scratch);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(run_heads);

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  return LinearScratch(linear_sizes(site), nullptr).cutter.used() * facts.threads;
}

}  // namespace

const KernelDef& linear_attention_heads_kernel() {
  static constexpr KernelDef def{.op = "linear_attention",
                                 .name = "linear_attention_heads",
                                 .serves = serves_linear_attention,
                                 .workspace_bytes = workspace_bytes,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(run_heads)(call, false);
                                 }};
  return def;
}

const KernelDef& linear_attention_cached_heads_kernel() {
  static constexpr KernelDef def{.op = "linear_attention_cached",
                                 .name = "linear_attention_cached_heads",
                                 .serves = serves_linear_attention,
                                 .workspace_bytes = workspace_bytes,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(run_heads)(call, true);
                                 }};
  return def;
}

}  // namespace tenon
#endif
