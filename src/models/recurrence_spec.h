// Mixers that carry a state along the sequence, as plain data: short convolutions, delta rules, state spaces,
// recurrent units, RWKV-4 and mLSTM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layer_spec.h"

namespace tenon {

// Gated short convolution (LFM2): in gives b, c and x side by side; out(c * conv(b * x)).
struct ShortConvSpec {
  LinearSpec in, out;
  ConvSpec conv;
};

// How a decay of a state is made from its projection x: -exp(A) * softplus(x + dt_bias), or
// bound * sigmoid(exp(A) * (x + dt_bias)) where bound is not 0. A is by head.
struct DecaySpec {
  std::string a_log, dt_bias;
  double bound = 0;
};

// Gated delta rule (Yang et al. 2024; by channel: Kimi delta attention): q, k and v through one short
// convolution and SiLU, q and k of unit length. All projections side by side in qkvz and ba, by key head (q,
// k, v, gate; beta, decay), where those are present.
struct DeltaSpec {
  int64_t key_heads = 0, heads = 0, key_dim = 0, value_dim = 0;
  LinearSpec qkvz, ba;
  LinearSpec qkv, q, k, v;
  ConvSpec conv;
  LinearSpec beta;
  double beta_scale = 1;
  LinearSpec decay_a, decay;  // decay_a: present where the projection is low-rank
  DecaySpec decay_kind;
  bool by_channel = false;
  LinearSpec gate_a, gate;  // likewise
  GatedNormSpec norm;
  LinearSpec out;
};

// Mamba-2 (Dao and Gu 2024): in gives the gate, x, B, C and the time steps side by side.
struct Mamba2Spec {
  int64_t heads = 0, head_dim = 0, groups = 0, state = 0;
  LinearSpec in, out;
  std::vector<float> in_scales;  // of the five parts; empty: none
  ConvSpec conv;
  std::string a_log, d, dt_bias;
  double dt_min = 0;  // of the time steps
  GatedNormSpec norm;

  int64_t width() const { return heads * head_dim; }
};

// Attention through a state with a fixed decay by head (lightning attention, Qin et al. 2024): SiLU of q, k
// and v, side by side by head; norm over the width, gate by element.
struct FixedDecaySpec {
  int64_t heads = 0, head_dim = 0;
  LinearSpec qkv, gate, out;
  std::vector<float> log_decays;  // by head
  NormSpec norm;
};

// Real-gated linear recurrent unit (De et al. 2024): in_x through a convolution and the recurrence, times
// activation(in_y). Gates are block-diagonal, one block a head: weights path + ".input_gate_weight" [heads,
// width, width] and so on.
struct RecurrentUnitSpec {
  int64_t heads = 0, width = 0;  // of all heads
  LinearSpec in_x, in_y, out;
  ConvSpec conv;
  std::string path;
  Activation activation = Activation::gelu_tanh;
};

// Mamba (Gu and Dao 2023): in gives x and the gate side by side; x_proj gives time steps, B and C. With
// several heads, each has its own x_proj and dt_proj ("path.<head>.weight").
struct MambaSpec {
  int64_t channels = 0, state = 0, dt_rank = 0, heads = 1;
  LinearSpec in, x, dt, out;
  bool interleaved = false;  // x and gate of a channel side by side
  ConvSpec conv;
  std::string a_log, d;
  NormSpec dt_norm, b_norm, c_norm;
};

// Time mixing of RWKV-4 (Peng et al. 2023): its layers read x mixed with the token before, x * mix + before *
// (1 - mix), by channel and projection (weights path + ".time_mix_key" [1, 1, hidden] and so on);
// out(sigmoid(receptance) * wkv(key, value)), with weights path + ".time_decay" and ".time_first" [channels].
struct TimeMixSpec {
  std::string path;
  LinearSpec key, value, receptance, out;
};

// mLSTM (Beck et al. 2024): attention through a state with exponential gates, e^in_gate and sigmoid of
// forget_gate, both soft-capped first. Of a head, with m the largest exponent in the state
// (ops/running_max.h) and n the sum of its gated keys, the output is S^T q / (max(|n . q|, 1) + eps * e^m),
// normed; out reads it times sigmoid(out_gate).
struct MatrixMemorySpec {
  int64_t heads = 0, key_dim = 0, value_dim = 0;
  LinearSpec q, k, v, in_gate, forget_gate, out_gate, out;
  double gate_cap = 0, eps = 0;
  NormSpec norm;
};

}  // namespace tenon
