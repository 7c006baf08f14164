// Sizes of the linear attention kernels and how a thread's scratch is cut. A head's state has rows of p
// values, padded to whole vectors.
#pragma once

#include <span>

#include "backend/cpu/attention_sizes.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {

struct LinearSizes {
  int64_t tokens, key_heads, heads, n, p, padded, decays, chunk;
  float scale;
  bool delta;

  LinearSizes(const Attrs& attrs, const Shape& q, const Shape& v, const Shape& decay)
      : tokens(q[0]),
        key_heads(q[1]),
        heads(v[1]),
        n(q[2]),
        p(v[2]),
        padded(round_up(v[2], 16)),
        decays(decay[2]),
        chunk(attrs.integer("chunk")),
        scale(static_cast<float>(attrs.real("scale"))),
        delta(attrs.flag("delta")) {}

  int64_t group() const { return heads / key_heads; }
  int64_t state() const { return n * padded; }
};

inline LinearSizes linear_sizes(const OpSite& site) {
  return {site.attrs, site.inputs[0].shape, site.inputs[2].shape, site.inputs[3].shape};
}
inline LinearSizes linear_sizes(const KernelCall& call) {
  return {*call.attrs, call.inputs[0].type.shape, call.inputs[2].type.shape, call.inputs[3].type.shape};
}

// Rows of one token.
struct LinearRows {
  LinearRows(const LinearSizes& s, ScratchCutter& cutter)
      : q(cutter.take(s.n)),
        k(cutter.take(s.n)),
        v(cutter.take(s.padded)),
        decay(cutter.take(s.decays)),
        update(cutter.take(s.padded)),
        out(cutter.take(s.padded)) {}
  float *q, *k, *v, *decay, *update, *out;
};

// The scratch of one thread going forward.
struct LinearScratch {
  LinearScratch(const LinearSizes& s, std::byte* base)
      : cutter(base), rows(s, cutter), state(cutter.take(s.state())) {}
  ScratchCutter cutter;
  LinearRows rows;
  float* state;
};

// The scratch of one thread going backward, for one key head at a time.
struct LinearGradScratch {
  LinearGradScratch(const LinearSizes& s, std::byte* base)
      : cutter(base),
        rows(s, cutter),
        states(cutter.take((s.chunk + 1) * s.state())),
        d_states(cutter.take(s.group() * s.state())),
        dq(cutter.take(s.chunk * s.n)),
        dk(cutter.take(s.chunk * s.n)),
        dout(cutter.take(s.padded)),
        du(cutter.take(s.padded)),
        d_decay(cutter.take(s.n)) {}
  ScratchCutter cutter;
  LinearRows rows;
  float* states;    // before a chunk's first token, then after each
  float* d_states;  // by head of the group
  float *dq, *dk;   // of a chunk, summed over the group
  float *dout, *du, *d_decay;
};

inline bool serves_linear_attention(const OpSite& site, const DeviceFacts& facts) {
  return facts.kind == DeviceKind::cpu && is_vector_dtype(site.inputs[0].dtype);
}

}  // namespace tenon
