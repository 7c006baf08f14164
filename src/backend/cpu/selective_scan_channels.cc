// selective_scan, its cached form and its gradient: channels over threads, a channel's state in vectors,
// tokens one after another, so that a sequence gives the same bits packed, alone or token by token. The
// gradient shares b and c among the channels of a group, so a thread takes whole groups there.
#include "backend/cpu/attention_sizes.h"
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/selective_scan_channels.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/convert-inl.h"
#include "backend/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

struct Scan {
  const KernelCall& call;
  int64_t tokens, channels, n, groups, padded;

  explicit Scan(const KernelCall& kernel)
      : call(kernel),
        tokens(kernel.inputs[0].type.shape[0]),
        channels(kernel.inputs[0].type.shape[1]),
        n(kernel.inputs[2].type.shape[1]),
        groups(kernel.inputs[3].type.shape[1]),
        padded(round_up(n, 16)) {}

  float x(int64_t t, int64_t channel) const {
    float value;
    widen_row(call.inputs[0].type.dtype, call.inputs[0].data, t * channels + channel, 1, &value);
    return value;
  }
  float dt(int64_t t, int64_t channel) const { return input_as<float>(call, 1)[t * channels + channel]; }
  // a, or a token's b or c, padded with zeros.
  void read_a(int64_t channel, float* out) const {
    std::fill_n(out, padded, 0.0f);
    std::copy_n(input_as<float>(call, 2) + channel * n, n, out);
  }
  void read_group(size_t input, int64_t t, int64_t channel, float* out) const {
    std::fill_n(out, padded, 0.0f);
    const int64_t row = t * groups + channel / (channels / groups);
    widen_row(call.inputs[input].type.dtype, call.inputs[input].data, row * n, n, out);
  }
  void write(const TensorView& out, int64_t at, float value) const {
    round_row(out.type.dtype, &value, 1, out.data + at * *dtype_bytes(out.type.dtype, 1));
  }

  void advance(const float* a, const float* b, float step, float input, float* state) const {
    const VF dt_v = hn::Set(DF(), step), in = hn::Set(DF(), step * input);
    for (int64_t i = 0; i < padded; i += kLanes) {
      const VF decay = exp_of(hn::Mul(dt_v, load(a + i)));
      store(hn::MulAdd(decay, load(state + i), hn::Mul(in, load(b + i))), state + i);
    }
  }
  float read_out(const float* c, const float* state) const {
    VF sum = hn::Zero(DF());
    for (int64_t i = 0; i < padded; i += kLanes) sum = hn::MulAdd(load(c + i), load(state + i), sum);
    return sum_of(sum);
  }
};

constexpr int64_t kMostState = 256;

void scan_packed(const KernelCall& call) {
  const Scan s(call);
  const int64_t chunk = call.attrs->integer("chunk");
  const int32_t* begin = input_as<int32_t>(call, 5);
  float* states = output_as<float>(call, 1);
  call.threads->parallel_for(s.channels, 1, [&](Range range) {
    HWY_ALIGN float a[kMostState], b[kMostState], c[kMostState], state[kMostState];
    for (int64_t channel = range.begin; channel < range.end; ++channel) {
      s.read_a(channel, a);
      std::fill_n(state, s.padded, 0.0f);
      for (int64_t t = 0; t < s.tokens; ++t) {
        if (t % chunk == 0) std::copy_n(state, s.n, states + (t / chunk * s.channels + channel) * s.n);
        if (begin[t] == t) std::fill_n(state, s.padded, 0.0f);
        s.read_group(3, t, channel, b);
        s.read_group(4, t, channel, c);
        s.advance(a, b, s.dt(t, channel), s.x(t, channel), state);
        s.write(call.outputs[0], t * s.channels + channel, s.read_out(c, state));
      }
    }
  });
}

void scan_cached(const KernelCall& call) {
  const Scan s(call);
  const int32_t *streams = input_as<int32_t>(call, 6), *positions = input_as<int32_t>(call, 7);
  float* states = output_as<float>(call, 1);
  call.threads->parallel_for(s.channels, 1, [&](Range range) {
    HWY_ALIGN float a[kMostState], b[kMostState], c[kMostState], state[kMostState];
    for (int64_t channel = range.begin; channel < range.end; ++channel) {
      s.read_a(channel, a);
      for (int64_t t = 0; t < s.tokens; ++t) {
        if (streams[t] < 0) {
          s.write(call.outputs[0], t * s.channels + channel, 0);
          continue;
        }
        float* kept = states + (streams[t] * s.channels + channel) * s.n;
        std::fill_n(state, s.padded, 0.0f);
        if (positions[t] != 0) std::copy_n(kept, s.n, state);
        s.read_group(3, t, channel, b);
        s.read_group(4, t, channel, c);
        s.advance(a, b, s.dt(t, channel), s.x(t, channel), state);
        std::copy_n(state, s.n, kept);
        s.write(call.outputs[0], t * s.channels + channel, s.read_out(c, state));
      }
    }
  });
}

// One thread's scratch of the gradient.
struct GradScratch {
  GradScratch(int64_t tokens, int64_t chunk, int64_t padded, std::byte* base) : cutter(base) {
    states = cutter.take((chunk + 1) * padded);
    db = cutter.take(tokens * padded);
    dc = cutter.take(tokens * padded);
    a = cutter.take(padded);
    b = cutter.take(padded);
    c = cutter.take(padded);
    d_state = cutter.take(padded);
    da = cutter.take(padded);
  }
  ScratchCutter cutter;
  float *states, *db, *dc, *a, *b, *c, *d_state, *da;
};

// Token t of a channel, backward; `before` is null where the token begins a sequence.
void token_backward(const Scan& s, int64_t t, int64_t channel, const GradScratch& w, const float* before,
                    const float* after) {
  s.read_group(3, t, channel, w.b);
  s.read_group(4, t, channel, w.c);
  float dout = 0;
  widen_row(s.call.inputs[7].type.dtype, s.call.inputs[7].data, t * s.channels + channel, 1, &dout);
  const float x = s.x(t, channel), dt = s.dt(t, channel);
  const VF dout_v = hn::Set(DF(), dout), dt_v = hn::Set(DF(), dt), x_v = hn::Set(DF(), x);
  const VF in = hn::Set(DF(), dt * x);
  float *db = w.db + t * s.padded, *dc = w.dc + t * s.padded;
  VF dx = hn::Zero(DF()), ddt = dx;
  for (int64_t i = 0; i < s.padded; i += kLanes) {
    const VF d = hn::MulAdd(dout_v, load(w.c + i), load(w.d_state + i)), b = load(w.b + i), a = load(w.a + i);
    store(hn::MulAdd(dout_v, load(after + i), load(dc + i)), dc + i);
    store(hn::MulAdd(d, in, load(db + i)), db + i);
    dx = hn::MulAdd(d, hn::Mul(dt_v, b), dx);
    ddt = hn::MulAdd(d, hn::Mul(x_v, b), ddt);
    if (before == nullptr) {
      store(hn::Zero(DF()), w.d_state + i);
      continue;
    }
    const VF decay = exp_of(hn::Mul(dt_v, a)), kept = hn::Mul(decay, load(before + i));
    ddt = hn::MulAdd(d, hn::Mul(a, kept), ddt);
    store(hn::MulAdd(d, hn::Mul(dt_v, kept), load(w.da + i)), w.da + i);
    store(hn::Mul(d, decay), w.d_state + i);
  }
  s.write(s.call.outputs[0], t * s.channels + channel, sum_of(dx));
  output_as<float>(s.call, 1)[t * s.channels + channel] = sum_of(ddt);
}

void channel_backward(const Scan& s, int64_t channel, const GradScratch& w) {
  const int64_t chunk = s.call.attrs->integer("chunk");
  const int32_t* begin = input_as<int32_t>(s.call, 5);
  s.read_a(channel, w.a);
  std::fill_n(w.d_state, s.padded, 0.0f);
  std::fill_n(w.da, s.padded, 0.0f);
  for (int64_t k = ceil_div(s.tokens, chunk); k-- > 0;) {
    const int64_t first = k * chunk, end = std::min(s.tokens, first + chunk);
    std::fill_n(w.states, s.padded, 0.0f);
    std::copy_n(input_as<float>(s.call, 6) + (k * s.channels + channel) * s.n, s.n, w.states);
    for (int64_t t = first; t < end; ++t) {
      float* state = w.states + (t - first + 1) * s.padded;
      if (begin[t] == t)
        std::fill_n(state, s.padded, 0.0f);
      else
        std::copy_n(state - s.padded, s.padded, state);
      s.read_group(3, t, channel, w.b);
      s.advance(w.a, w.b, s.dt(t, channel), s.x(t, channel), state);
    }
    for (int64_t t = end; t-- > first;) {
      const float* before = w.states + (t - first) * s.padded;
      token_backward(s, t, channel, w, begin[t] == t ? nullptr : before, before + s.padded);
    }
  }
  std::copy_n(w.da, s.n, output_as<float>(s.call, 2) + channel * s.n);
}

void scan_grad(const KernelCall& call) {
  const Scan s(call);
  const int64_t bytes = GradScratch(s.tokens, call.attrs->integer("chunk"), s.padded, nullptr).cutter.used();
  const int64_t threads = call.threads->size(), width = s.channels / s.groups;
  call.threads->parallel_for(threads, 1, [&](Range range) {
    for (int64_t part = range.begin; part < range.end; ++part) {
      const GradScratch w(s.tokens, call.attrs->integer("chunk"), s.padded,
                          call.workspace.data() + part * bytes);
      for (int64_t g = part; g < s.groups; g += threads) {
        std::fill_n(w.db, s.tokens * s.padded, 0.0f);
        std::fill_n(w.dc, s.tokens * s.padded, 0.0f);
        for (int64_t channel = g * width; channel < (g + 1) * width; ++channel)
          channel_backward(s, channel, w);
        for (int64_t t = 0; t < s.tokens; ++t) {
          for (size_t output : {3, 4}) {
            const TensorView& out = call.outputs[output];
            const float* values = (output == 3 ? w.db : w.dc) + t * s.padded;
            round_row(out.type.dtype, values, s.n,
                      out.data + (t * s.groups + g) * s.n * *dtype_bytes(out.type.dtype, 1));
          }
        }
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(scan_packed);
HWY_EXPORT(scan_cached);
HWY_EXPORT(scan_grad);

bool serves(const OpSite& site, const DeviceFacts& facts) {
  return serves_vector_dtypes(site, facts) && site.inputs[2].shape[1] <= 256;
}

int64_t grad_workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const int64_t padded = round_up(site.inputs[2].shape[1], 16), chunk = site.attrs.integer("chunk");
  ScratchCutter cutter;
  cutter.take((chunk + 1) * padded);
  for (int i = 0; i < 2; ++i) cutter.take(site.inputs[0].shape[0] * padded);
  for (int i = 0; i < 5; ++i) cutter.take(padded);
  return cutter.used() * facts.threads;
}

}  // namespace

const KernelDef& selective_scan_channels_kernel() {
  static constexpr KernelDef def{.op = "selective_scan",
                                 .name = "selective_scan_channels",
                                 .serves = serves,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(scan_packed)(call);
                                 }};
  return def;
}

const KernelDef& selective_scan_cached_channels_kernel() {
  static constexpr KernelDef def{.op = "selective_scan_cached",
                                 .name = "selective_scan_cached_channels",
                                 .serves = serves,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(scan_cached)(call);
                                 }};
  return def;
}

const KernelDef& selective_scan_grad_channels_kernel() {
  static constexpr KernelDef def{.op = "selective_scan_grad",
                                 .name = "selective_scan_grad_channels",
                                 .serves = serves,
                                 .workspace_bytes = grad_workspace_bytes,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(scan_grad)(call);
                                 }};
  return def;
}

}  // namespace tenon
#endif
