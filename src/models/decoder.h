// The decoder that most families are: blocks of attention and an MLP, each with norms, around one residual
// stream. A family fills in DecoderTraits with what differs from Llama and may edit the blocks that come out.
#pragma once

#include <string>

#include "models/config_reader.h"
#include "models/model_spec.h"

namespace tenon {

// Module names, as transformers has them. Blocks are `layers`.<index>; an empty name: there is none.
struct DecoderNames {
  std::string embedding = "model.embed_tokens";
  std::string layers = "model.layers";
  std::string final_norm = "model.norm";
  std::string head = "lm_head";
  std::string attention = "self_attn";
  std::string q = "q_proj", k = "k_proj", v = "v_proj", o = "o_proj", qkv;
  std::string q_norm = "q_norm", k_norm = "k_norm";
  std::string mlp = "mlp";
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj", gate_up;
  std::string mixer_norm = "input_layernorm", mixer_post_norm;
  std::string feed_forward_norm = "post_attention_layernorm", feed_forward_post_norm;
};

enum class QkNorm : uint8_t { none, head, width };

struct DecoderTraits {
  DecoderNames names;
  bool q_bias = false, k_bias = false, v_bias = false;
  bool o_bias = false;
  bool mlp_bias = false, mlp_down_bias = false;
  void set_qkv_bias(bool bias) { q_bias = k_bias = v_bias = bias; }
  void set_mlp_bias(bool bias) { mlp_bias = mlp_down_bias = bias; }

  NormKind norm = NormKind::rms;
  std::string eps_key = "rms_norm_eps";
  double eps = 0;  // where the key is absent; 0: it must be there
  double norm_offset = 0;
  bool norm_weight = true;
  bool norm_bias = false;
  QkNorm qk_norm = QkNorm::none;

  std::string activation_key = "hidden_act";
  std::string activation = "silu";  // where the key is absent
  bool gated = true;
  bool parallel = false;
  int64_t head_dim = 0;  // where the key is absent; 0: hidden_size / num_attention_heads
  double rotary = 1;     // part of a head that is rotated, where the configuration does not say
  bool rope = true;
  bool interleaved = false;
  bool tied = false;         // where the key is absent
  int64_t intermediate = 0;  // where the key is absent
};

// Reads sizes, norms, rope and head from the usual keys (hidden_size, num_hidden_layers, num_attention_heads,
// ...). Contradictory sizes are reported through config.fail(). Every layer has rope 0, and no window.
ModelSpec read_decoder(ConfigReader& config, const DecoderTraits& traits);

// The window of each layer from `sliding_window`, `layer_types` or, in older files, `max_window_layers`;
// zeros where `use_sliding_window` is false.
std::vector<int64_t> read_windows(ConfigReader& config);
void set_windows(ModelSpec& spec, const std::vector<int64_t>& windows);
// Whether each layer is of a kind, by `layer_types`; empty where there are none.
std::vector<bool> layers_of_kind(ConfigReader& config, std::string_view kind);

// Kinds by transformers' names ("silu", "gelu_new", ...); unknown ones are reported.
Activation read_activation(ConfigReader& config, std::string_view key, std::string_view otherwise);

NormSpec rms_norm_spec(std::string path, int64_t width, double eps, double offset = 0);
std::string layer_path(const DecoderTraits& traits, size_t layer);
AttentionSpec& attention_of(BlockSpec& block);
MlpSpec& mlp_of(BlockSpec& block);

// Where the head's weight and bias are stored, as one weight with a column more.
std::map<std::string, std::vector<StoredBlock>> head_with_bias(const ModelSpec& spec);

// One projection `path` in place of q, k and v: groups and order as in AttentionSpec.
void fuse_qkv(AttentionSpec& attention, std::string path, int64_t groups, std::string order = "qkv");

}  // namespace tenon
