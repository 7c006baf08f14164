// A model as plain data: sizes and a list of blocks. Reading a checkpoint's configuration gives one; building
// a Program walks it. It knows no file and no device, and nothing that reads it asks which family it came
// from.
//
// Paths are module names as transformers and PEFT use them ("model.layers.0.self_attn.q_proj"); a module's
// parameters are path + ".weight" and ".bias". Where a file calls them otherwise, models/weight_map.h
// translates.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tenon {

struct LinearSpec {
  std::string path;
  int64_t in = 0;
  int64_t out = 0;
  bool bias = false;
};

enum class NormKind : uint8_t { none, rms };

struct NormSpec {
  NormKind kind = NormKind::none;
  std::string path;
  int64_t width = 0;
  double eps = 0;
  double weight_offset = 0;  // 1 where weights are stored zero-centred
};

// Rotary embedding: the first 2 * inv_freq.size() elements of a head are rotated.
struct RopeSpec {
  std::vector<float> inv_freq;
  double amplitude = 1;
  bool interleaved = false;

  bool operator==(const RopeSpec&) const = default;
};

// Softmax attention with grouped keys and values.
struct AttentionSpec {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  LinearSpec q, k, v, o;
  NormSpec q_norm, k_norm;  // over head_dim, before rope
  int32_t rope = -1;        // index into ModelSpec::ropes, or -1
  double scale = 0;
  int64_t window = 0;  // keys that a query sees, itself included; 0: all
  double softcap = 0;
};

enum class Activation : uint8_t { silu };

// down(activation(gate(x)) * up(x)).
struct GatedMlpSpec {
  LinearSpec gate, up, down;
  Activation activation = Activation::silu;
};

using MixerSpec = std::variant<AttentionSpec>;
using FeedForwardSpec = std::variant<GatedMlpSpec>;

// x += mixer(mixer_norm(x)); x += feed_forward(feed_forward_norm(x)).
struct BlockSpec {
  NormSpec mixer_norm;
  MixerSpec mixer;
  NormSpec feed_forward_norm;
  FeedForwardSpec feed_forward;
};

struct ModelSpec {
  std::string family;        // as in family_list.inc; for people and records
  std::string architecture;  // as the file names it ("LlamaForCausalLM", "llama")
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t max_positions = 0;
  std::string embedding_path;
  std::vector<RopeSpec> ropes;
  std::vector<BlockSpec> blocks;
  NormSpec final_norm;
  LinearSpec head;
  bool tied = false;  // the head's weight is the embedding table
};

}  // namespace tenon
