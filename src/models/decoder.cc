#include "models/decoder.h"

#include <fmt/format.h>

#include <cmath>

#include "models/rope.h"

namespace tenon {
namespace {

struct Sizes {
  int64_t hidden, heads, kv_heads, head_dim, intermediate;
  double eps;
};

NormSpec rms(std::string path, int64_t width, double eps) {
  return NormSpec{NormKind::rms, std::move(path), width, eps, 0};
}

AttentionSpec read_attention(const Sizes& s, const DecoderTraits& traits, const std::string& block,
                             size_t layer) {
  const std::string path = block + ".self_attn";
  AttentionSpec a;
  a.heads = s.heads;
  a.kv_heads = s.kv_heads;
  a.head_dim = s.head_dim;
  a.q = {path + ".q_proj", s.hidden, s.heads * s.head_dim, traits.qkv_bias};
  a.k = {path + ".k_proj", s.hidden, s.kv_heads * s.head_dim, traits.qkv_bias};
  a.v = {path + ".v_proj", s.hidden, s.kv_heads * s.head_dim, traits.qkv_bias};
  a.o = {path + ".o_proj", s.heads * s.head_dim, s.hidden, traits.o_bias};
  if (traits.qk_norm) {
    a.q_norm = rms(path + ".q_norm", s.head_dim, s.eps);
    a.k_norm = rms(path + ".k_norm", s.head_dim, s.eps);
  }
  a.rope = 0;
  a.scale = 1.0 / std::sqrt(static_cast<double>(s.head_dim));
  a.window = traits.windows.empty() ? 0 : traits.windows[layer];
  return a;
}

Sizes read_sizes(ConfigReader& config) {
  Sizes s;
  s.hidden = config.positive("hidden_size");
  s.heads = config.positive("num_attention_heads");
  s.kv_heads = config.positive_or("num_key_value_heads", s.heads);
  config.require(config.has("head_dim") || s.hidden % s.heads == 0, "hidden_size",
                 "is not a multiple of num_attention_heads, and there is no head_dim");
  s.head_dim = config.positive_or("head_dim", s.hidden / s.heads);
  s.intermediate = config.positive("intermediate_size");
  s.eps = config.number("rms_norm_eps");
  config.require(s.heads % s.kv_heads == 0, "num_key_value_heads", "must divide num_attention_heads");
  config.require(s.eps > 0, "rms_norm_eps", "must be positive");
  const std::string activation = config.text_or("hidden_act", "silu");
  if (activation != "silu") {
    config.fail(unsupported(fmt::format("the activation '{}' is not supported here", activation),
                            config.subject(), "This architecture is known with silu."));
  }
  return s;
}

}  // namespace

ModelSpec read_decoder(ConfigReader& config, const DecoderTraits& traits) {
  const Sizes s = read_sizes(config);
  const int64_t layers = config.positive("num_hidden_layers");
  ModelSpec spec;
  spec.vocab = config.positive("vocab_size");
  spec.hidden = s.hidden;
  spec.max_positions = config.positive_or("max_position_embeddings", 0);
  spec.embedding_path = "model.embed_tokens";
  spec.tied = config.flag_or("tie_word_embeddings", false);
  spec.ropes.push_back(read_rope(config, s.head_dim));
  config.require(layers <= 10000, "num_hidden_layers", "is implausibly large");
  if (!config.status().ok()) return spec;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string path = fmt::format("model.layers.{}", layer);
    BlockSpec block;
    block.mixer_norm = rms(path + ".input_layernorm", s.hidden, s.eps);
    block.mixer = read_attention(s, traits, path, static_cast<size_t>(layer));
    block.feed_forward_norm = rms(path + ".post_attention_layernorm", s.hidden, s.eps);
    block.feed_forward = GatedMlpSpec{{path + ".mlp.gate_proj", s.hidden, s.intermediate, traits.mlp_bias},
                                      {path + ".mlp.up_proj", s.hidden, s.intermediate, traits.mlp_bias},
                                      {path + ".mlp.down_proj", s.intermediate, s.hidden, traits.mlp_bias}};
    spec.blocks.push_back(std::move(block));
  }
  spec.final_norm = rms("model.norm", s.hidden, s.eps);
  spec.head = {"lm_head", s.hidden, spec.vocab, false};
  return spec;
}

std::vector<int64_t> read_windows(ConfigReader& config) {
  const size_t layers = static_cast<size_t>(std::min<int64_t>(config.positive("num_hidden_layers"), 10000));
  std::vector<int64_t> windows(layers, 0);
  if (!config.has("sliding_window") || !config.flag_or("use_sliding_window", true)) return windows;
  const int64_t window = config.positive("sliding_window");
  const std::vector<std::string> kinds = config.texts_or_empty("layer_types");
  config.require(kinds.empty() || kinds.size() == layers, "layer_types", "must have one entry a layer");
  const size_t first =
      static_cast<size_t>(config.has("max_window_layers") ? config.integer("max_window_layers") : 0);
  for (size_t layer = 0; layer < layers; ++layer) {
    const bool sliding = kinds.size() == layers ? kinds[layer] == "sliding_attention" : layer >= first;
    if (sliding) windows[layer] = window;
  }
  return windows;
}

}  // namespace tenon
