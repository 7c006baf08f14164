// The layers that mixers and feed-forwards are put together from, as plain data: linear layers, norms, rotary
// embeddings, convolutions. Paths and names of weights are as model_spec.h says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

// A learned factor for each channel: factor * weight, or the square of that.
struct ChannelScaleSpec {
  std::string weight;  // name, [channels]; empty: none
  double factor = 1;
  bool squared = false;
};

struct LinearSpec {
  std::string path;
  int64_t in = 0;
  int64_t out = 0;
  bool bias = false;
  std::string weight_name = ".weight";  // after the path
  double scale = 1;                     // of what comes out
  std::vector<LinearSpec> low_rank;     // two more, one after the other, whose output is added; empty: none
  std::string weight_path;              // of the module whose weight and bias these are; empty: its own
  ChannelScaleSpec channels;            // of what comes out

  bool present() const { return out > 0; }
};

// clip: x, times its weight, cut to the length `limit`.
enum class NormKind : uint8_t { none, rms, layer, l2, clip };

struct NormSpec {
  NormKind kind = NormKind::none;
  std::string path;
  int64_t width = 0;
  double eps = 0;
  double weight_offset = 0;  // 1 where weights are stored zero-centred
  bool weight = true;
  bool bias = false;
  int64_t heads = 0;   // > 0: each head has its own weights, [heads, width]
  int64_t groups = 1;  // equal parts of the width that are normed apart
  // Two more, where there are any: y, what the norm gives, times sigmoid(gate[1](silu(gate[0](y)))).
  std::vector<LinearSpec> gate;
  double limit = 0;
};

// A norm of x gated by another value: norm(x) * f(gate), or norm(x * f(gate)). `group` values are normed
// together; the weight is [width], repeated where the rows are wider.
struct GatedNormSpec {
  std::string path;  // empty: no norm, x * f(gate)
  int64_t width = 0;
  int64_t group = 0;
  double eps = 0;
  bool sigmoid = false;  // f; otherwise SiLU
  bool gate_first = false;
};

// Rotary embedding: the first 2 * inv_freq.size() elements of a head are rotated. Where long_inv_freq is
// given, it serves sequences longer than long_from tokens.
struct RopeSpec {
  std::vector<float> inv_freq;
  double amplitude = 1;
  bool interleaved = false;
  std::vector<float> long_inv_freq;
  int64_t long_from = 0;
  // Dynamic NTK (theta grows with the length beyond long_from); 0: not dynamic.
  double dynamic_factor = 0;
  double theta = 0;

  bool operator==(const RopeSpec&) const = default;
};

// Depthwise causal convolution along the sequence: weight [channels, 1, taps].
struct ConvSpec {
  std::string path;
  int64_t channels = 0;
  int64_t taps = 0;
  bool bias = false;
};

// (convolution of x, plus x) * scale. Where `by_token` is present, the weights of a channel are those of the
// weight conv.path + ".static_weight" [taps, channels] plus those that by_token gives for its head,
// [heads, taps], both by distance.
struct ResidualConvSpec {
  ConvSpec conv;
  double scale = 1;
  LinearSpec by_token;
  int64_t heads = 1;
};

enum class Activation : uint8_t { silu, gelu, gelu_tanh, relu, relu2, quick_gelu, xielu };

}  // namespace tenon
