// What a block reads its input from and how its output joins that, as plain data: the residual stream,
// several of them, streams kept beside the blocks, and states of earlier blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/layer_spec.h"
#include "ops/sinkhorn.h"

namespace tenon {

// How a layer's output joins the residual stream: skip * x + branch * y, or where there is a rate,
// x + |rate| * (y - x).
struct ResidualSpec {
  double skip = 1;
  double branch = 1;
  bool from_normed = false;  // x is what went into the layer, after its norm
  // Weights [hidden] that x and y are multiplied with, and what is added to each before; empty: none.
  std::string skip_weight, skip_bias;
  std::string branch_weight, branch_bias;
  ChannelScaleSpec rate;
};

// Alternating updates (AltUp, Baykal et al. 2023) around a block: several streams are predicted from each
// other, the block runs on the active one, and all are corrected by what it changed. Beside attention, a
// low-rank layer (Laurel).
struct AltUpSpec {
  NormSpec router_norm;
  LinearSpec router;         // hidden to streams; tanh
  LinearSpec prediction;     // streams to streams^2
  LinearSpec correction;     // streams to streams
  std::string output_scale;  // weight [hidden] of the active stream before the per-layer input; empty: none
  LinearSpec laurel_down, laurel_up;
  NormSpec laurel_norm;
};

// Hyper-connections (Zhu et al. 2024; with Sinkhorn, Xie et al. 2025) around a layer: of the streams side by
// side, normed, `mix` gives weights by stream. The layer reads the sum of the streams with weights
// sigmoid(w * scale[0] + base) + before_eps; its output is added to each, times after_scale * sigmoid(w *
// scale[1] + base) + after_eps. With `among` the streams are first mixed by a matrix that Sinkhorn's
// iterations make of w * scale[2] + base, [from, to].
struct HyperConnectionSpec {
  NormSpec norm;
  LinearSpec mix;
  std::string base, scale;
  double before_eps = 0, after_eps = 0, after_scale = 1;
  std::optional<SinkhornOptions> among;
};

// Streams read element by element: the layer reads the mean over streams of
// sigmoid(up(silu(down(x) / n))) * x, x being the streams side by side, normed by stream; its output is added
// to each, times 2 * sigmoid(inject(x) / n).
struct GatedStreamsSpec {
  NormSpec norm;
  LinearSpec down, up, inject;
};

using StreamsSpec = std::variant<std::monostate, HyperConnectionSpec, GatedStreamsSpec>;

// A stream that is kept beside the blocks. Where `enter` is not -1 a block begins from norm(x) plus that
// stream; where `leave` is not -1 its output, normed, becomes that stream, without a gradient where
// `detached`.
struct KeptStreamSpec {
  int32_t enter = -1, leave = -1;
  NormSpec enter_norm, leave_norm;
  bool detached = false;
};

// What comes from the same layer in the pass before over a loop: (1 - tanh(forget(d))) * x + tanh(gain(d)) *
// m, where d = down(x and m normed, side by side), m being what a query reads of that pass's states.
struct MessageSpec {
  LinearSpec down, forget, gain;
};

// A block that reads its input from all before it (attention residuals): softmax of a learned query times
// each of the states at which groups of blocks began, and the present one, all normed, weighs those. The
// present state is what the blocks of the group have added up.
struct DepthSpec {
  std::string mixer_query;  // weight [hidden], or [3, hidden] for q, k and v; empty: the present state
  int64_t mixer_queries = 1;
  NormSpec k_norm, v_norm;  // of inputs of k and v, where they are not the mixer's
  std::string feed_forward_query;
  bool begins_group = false;
  // The first block of a loop's first pass, or of a later one, which begins from the same states.
  bool begins_loop = false, repeats_loop = false;
  std::string message_query;          // weight [4, hidden]
  std::vector<MessageSpec> messages;  // to q, k, v and the feed-forward; empty: none
};

}  // namespace tenon
