#include "models/decoder.h"

#include <fmt/format.h>

#include <cmath>

#include "models/rope.h"

namespace tenon {
namespace {

struct Sizes {
  int64_t hidden, heads, kv_heads, head_dim, intermediate;
  double eps;
  Activation activation;
};

std::string join(const std::string& path, const std::string& name) {
  return path + "." + name;
}

NormSpec norm(const DecoderTraits& traits, const Sizes& s, std::string path) {
  NormSpec spec{traits.norm, std::move(path), s.hidden, s.eps, traits.norm_offset};
  spec.weight = traits.norm_weight;
  spec.bias = traits.norm_bias;
  return spec;
}

NormSpec norm_in(const DecoderTraits& traits, const Sizes& s, const std::string& block,
                 const std::string& name) {
  return name.empty() ? NormSpec{} : norm(traits, s, join(block, name));
}

AttentionSpec read_attention(const Sizes& s, const DecoderTraits& traits, const std::string& block) {
  const DecoderNames& names = traits.names;
  const std::string path = names.attention.empty() ? block : join(block, names.attention);
  AttentionSpec a;
  a.heads = s.heads;
  a.kv_heads = s.kv_heads;
  a.head_dim = a.v_head_dim = s.head_dim;
  const int64_t width = s.heads * s.head_dim, kv_width = s.kv_heads * s.head_dim;
  a.q = {join(path, names.q), s.hidden, width, traits.q_bias};
  a.k = {join(path, names.k), s.hidden, kv_width, traits.k_bias};
  a.v = {join(path, names.v), s.hidden, kv_width, traits.v_bias};
  a.o = {join(path, names.o), width, s.hidden, traits.o_bias};
  if (!names.qkv.empty()) fuse_qkv(a, join(path, names.qkv), 1);
  if (traits.qk_norm != QkNorm::none) {
    const bool wide = traits.qk_norm == QkNorm::width;
    a.q_norm = rms_norm_spec(join(path, names.q_norm), wide ? width : s.head_dim, s.eps, traits.norm_offset);
    a.k_norm =
        rms_norm_spec(join(path, names.k_norm), wide ? kv_width : s.head_dim, s.eps, traits.norm_offset);
  }
  a.rope = traits.rope ? 0 : -1;
  a.attend.scale = 1.0 / std::sqrt(static_cast<double>(s.head_dim));
  return a;
}

MlpSpec read_mlp(const Sizes& s, const DecoderTraits& traits, const std::string& block) {
  const DecoderNames& names = traits.names;
  const std::string path = names.mlp.empty() ? block : join(block, names.mlp);
  MlpSpec mlp;
  mlp.activation = s.activation;
  if (!names.gate_up.empty()) {
    mlp.gate_up = {join(path, names.gate_up), s.hidden, 2 * s.intermediate, traits.mlp_bias};
  } else {
    if (traits.gated) mlp.gate = {join(path, names.gate), s.hidden, s.intermediate, traits.mlp_bias};
    mlp.up = {join(path, names.up), s.hidden, s.intermediate, traits.mlp_bias};
  }
  mlp.down = {join(path, names.down), s.intermediate, s.hidden, traits.mlp_down_bias};
  return mlp;
}

Sizes read_sizes(ConfigReader& config, const DecoderTraits& traits) {
  Sizes s;
  s.hidden = config.positive("hidden_size");
  s.heads = config.positive("num_attention_heads");
  s.kv_heads = config.positive_or("num_key_value_heads", s.heads);
  config.require(traits.head_dim > 0 || config.has("head_dim") || s.hidden % s.heads == 0, "hidden_size",
                 "is not a multiple of num_attention_heads, and there is no head_dim");
  s.head_dim = config.positive_or("head_dim", traits.head_dim > 0 ? traits.head_dim : s.hidden / s.heads);
  s.intermediate = traits.intermediate > 0 ? config.positive_or("intermediate_size", traits.intermediate)
                                           : config.positive("intermediate_size");
  s.eps = traits.eps > 0 ? config.number_or(traits.eps_key, traits.eps) : config.number(traits.eps_key);
  config.require(s.heads % s.kv_heads == 0, "num_key_value_heads", "must divide num_attention_heads");
  config.require(s.eps > 0, traits.eps_key, "must be positive");
  s.activation = read_activation(config, traits.activation_key, traits.activation);
  return s;
}

}  // namespace

NormSpec rms_norm_spec(std::string path, int64_t width, double eps, double offset) {
  return NormSpec{NormKind::rms, std::move(path), width, eps, offset};
}

std::string layer_path(const DecoderTraits& traits, size_t layer) {
  return fmt::format("{}.{}", traits.names.layers, layer);
}

AttentionSpec& attention_of(BlockSpec& block) {
  return std::get<AttentionSpec>(block.mixer);
}

MlpSpec& mlp_of(BlockSpec& block) {
  return std::get<MlpSpec>(block.feed_forward);
}

void fuse_qkv(AttentionSpec& a, std::string path, int64_t groups, std::string order) {
  a.qkv = {std::move(path), a.q.in, a.q.out + a.k.out + a.v.out, a.q.bias};
  a.qkv_groups = groups;
  a.qkv_order = std::move(order);
}

std::map<std::string, std::vector<StoredBlock>> head_with_bias(const ModelSpec& spec) {
  StoredBlock weight, bias;
  weight.tensor = spec.head.path + ".weight";
  weight.rows = bias.rows = spec.vocab;
  weight.columns = bias.column = spec.head.in;
  bias.tensor = spec.head.path + ".bias";
  bias.columns = 1;
  return {{weight.tensor, {weight, bias}}};
}

Activation read_activation(ConfigReader& config, std::string_view key, std::string_view otherwise) {
  const std::string name = config.text_or(key, otherwise);
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::gelu_tanh;
  if (name == "relu") return Activation::relu;
  if (name == "relu2") return Activation::relu2;
  if (name == "quick_gelu") return Activation::quick_gelu;
  if (name == "xielu") return Activation::xielu;
  config.fail(
      unsupported(fmt::format("the activation '{}' is not supported", name), config.subject(),
                  "Supported: silu, gelu, gelu_new, gelu_pytorch_tanh, relu, relu2, quick_gelu, xielu."));
  return Activation::silu;
}

ModelSpec read_decoder(ConfigReader& config, const DecoderTraits& traits) {
  const Sizes s = read_sizes(config, traits);
  const int64_t layers = config.positive("num_hidden_layers");
  ModelSpec spec;
  spec.vocab = config.positive("vocab_size");
  spec.hidden = s.hidden;
  spec.max_positions = config.positive_or("max_position_embeddings", 0);
  spec.embedding_path = traits.names.embedding;
  spec.tied = config.flag_or("tie_word_embeddings", traits.tied);
  if (traits.rope) {
    spec.ropes.push_back(read_rope(config, {s.head_dim, traits.rotary, spec.max_positions}));
    spec.ropes[0].interleaved = traits.interleaved;
  }
  config.require(layers <= 10000, "num_hidden_layers", "is implausibly large");
  if (!config.status().ok()) return spec;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string path = layer_path(traits, static_cast<size_t>(layer));
    const DecoderNames& names = traits.names;
    BlockSpec block;
    block.mixer_norm = norm_in(traits, s, path, names.mixer_norm);
    block.mixer_post_norm = norm_in(traits, s, path, names.mixer_post_norm);
    block.mixer = read_attention(s, traits, path);
    block.feed_forward_norm = norm_in(traits, s, path, names.feed_forward_norm);
    block.feed_forward_post_norm = norm_in(traits, s, path, names.feed_forward_post_norm);
    block.feed_forward = read_mlp(s, traits, path);
    block.parallel = traits.parallel;
    spec.blocks.push_back(std::move(block));
  }
  spec.final_norm = norm(traits, s, traits.names.final_norm);
  spec.head = {traits.names.head, s.hidden, spec.vocab, false};
  return spec;
}

std::vector<bool> layers_of_kind(ConfigReader& config, std::string_view kind) {
  std::vector<bool> out;
  for (const std::string& type : config.texts_or_empty("layer_types")) out.push_back(type == kind);
  const size_t layers = static_cast<size_t>(config.positive("num_hidden_layers"));
  config.require(out.empty() || out.size() == layers, "layer_types", "must have one entry a layer");
  if (out.size() != layers) out.clear();
  return out;
}

std::vector<int64_t> read_windows(ConfigReader& config) {
  const size_t layers = static_cast<size_t>(std::min<int64_t>(config.positive("num_hidden_layers"), 10000));
  std::vector<int64_t> windows(layers, 0);
  const bool used = config.flag_or("use_sliding_window", true);
  const size_t first =
      static_cast<size_t>(config.has("max_window_layers") ? config.integer("max_window_layers") : 0);
  const std::vector<bool> sliding = layers_of_kind(config, "sliding_attention");
  if (!config.has("sliding_window") || !used) return windows;
  const int64_t window = config.positive("sliding_window");
  for (size_t layer = 0; layer < layers; ++layer) {
    if (sliding.empty() ? layer >= first : sliding[layer]) windows[layer] = window;
  }
  return windows;
}

void set_windows(ModelSpec& spec, const std::vector<int64_t>& windows) {
  for (size_t i = 0; i < spec.blocks.size() && i < windows.size(); ++i) {
    if (auto* a = std::get_if<AttentionSpec>(&spec.blocks[i].mixer)) a->attend.window = windows[i];
    if (auto* a = std::get_if<LatentAttentionSpec>(&spec.blocks[i].mixer)) a->attend.window = windows[i];
  }
}

}  // namespace tenon
