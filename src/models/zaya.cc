// Zaya: attention with convolved queries and keys, experts chosen by an MLP that carries its state from layer
// to layer and may choose none, and scales and shifts where layers join the stream.
#include <cmath>

#include "models/experts.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

ConvolvedAttentionSpec convolved(ConfigReader& config, const ModelSpec& spec, const AttentionSpec& plain,
                                 const std::string& path) {
  ConvolvedAttentionSpec a;
  a.heads = plain.heads;
  a.kv_heads = plain.kv_heads;
  a.head_dim = plain.head_dim;
  const std::string qkv = path + ".qkv_proj";
  const int64_t q = a.heads * a.head_dim, k = a.kv_heads * a.head_dim;
  a.q = {qkv + ".q_proj", spec.hidden, q};
  a.k = {qkv + ".k_proj", spec.hidden, k};
  a.v = {qkv + ".v_proj_current", spec.hidden, k / 2};
  a.v_late = {qkv + ".v_proj_delayed", spec.hidden, k / 2};
  a.o = {path + ".o_proj", q, spec.hidden};
  a.conv = {qkv + ".conv_qk_depthwise", q + k, config.positive_or("cca_time0", 2), true};
  a.mix_path = qkv + ".conv_qk_grouped";
  a.mix_taps = config.positive_or("cca_time1", 2);
  a.key_scale = path + ".qk_norm.temp";
  a.attend = plain.attend;
  config.require(k % 2 == 0, "num_key_value_heads", "times head_dim must be even");
  return a;
}

ResidualSpec scaled_residual(const std::string& path) {
  ResidualSpec out;
  out.skip_weight = path + ".residual_scale";
  out.skip_bias = path + ".residual_bias";
  out.branch_weight = path + ".hidden_states_scale";
  out.branch_bias = path + ".hidden_states_bias";
  return out;
}

RouterMlpSpec router_mlp(const ModelSpec& spec, int64_t width, int64_t choices, const std::string& path,
                         bool first) {
  RouterMlpSpec out;
  out.down = {path + ".down_proj", spec.hidden, width, true};
  if (!first) out.carry = path + ".router_states_scale";
  const std::string mlp = path + ".router_mlp";
  out.norm = rms_norm_spec(mlp + ".norm", width, spec.final_norm.eps);
  out.inner = {{mlp + ".fc1", width, width, true}, {mlp + ".fc2", width, width, true}};
  out.out = {mlp + ".out_proj", width, choices};
  return out;
}

Result<ModelSpec> read_zaya(ConfigReader& config) {
  DecoderTraits traits;
  traits.tied = true;
  traits.rotary = 0.5;
  traits.intermediate = 1;  // no layer is dense
  config.require(!config.flag_or("attention_bias", false), "attention_bias", "must be false");
  config.require(!config.flag_or("lm_head_bias", false), "lm_head_bias", "must be false");
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<bool> sliding = layers_of_kind(config, "hybrid_sliding");
  const int64_t window = config.positive_or("sliding_window", 4096);
  const int64_t width = config.positive("router_hidden_size");
  MoeSpec moe;
  moe.top_k.k = config.positive_or("num_experts_per_tok", 1);
  moe.skip_choice = true;
  ExpertSizes sizes{config.positive("num_experts"), config.positive("moe_intermediate_size")};
  const ExpertNames names{.selection_bias = "gate.balancing_biases", .stacked = true};
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  const int64_t head_dim = attention_of(spec.blocks[0]).head_dim;
  const auto rope_of = [&](std::string_view layer_type) {
    return read_rope(
        config,
        {.head_dim = head_dim, .rotary = 0.5, .max_positions = spec.max_positions, .layer_type = layer_type});
  };
  spec.ropes = {rope_of("hybrid"), rope_of("hybrid_sliding")};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    const std::string layer = layer_path(traits, i);
    const bool local = i < sliding.size() && sliding[i];
    ConvolvedAttentionSpec a = convolved(config, spec, attention_of(block), layer + ".self_attn");
    a.rope = local ? 1 : 0;
    a.attend.window = local ? window : 0;
    block.mixer = std::move(a);
    set_experts(spec, i, moe, names, sizes);
    auto& experts = std::get<MoeSpec>(block.feed_forward);
    experts.router_mlp = router_mlp(spec, width, sizes.experts + 1, layer + ".mlp.gate", i == 0);
    store_whole(spec, experts.selection_bias, experts.selection_bias, sizes.experts + 1, 1);
    spec.stored.erase(experts.router.path + ".weight");
    experts.router = {};
    block.mixer_residual = scaled_residual(layer + ".post_attention_residual_scale");
    block.feed_forward_residual = scaled_residual(layer + ".post_mlp_residual_scale");
  }
  spec.embedding_shift = "model.input_hidden_states_bias";
  spec.embedding_weight = "model.input_hidden_states_scale";
  return spec;
}

constexpr Family kFamilies[] = {
    {"zaya", {"zaya"}, {}, read_zaya},
};

}  // namespace

std::span<const Family> zaya_families() {
  return kFamilies;
}

}  // namespace tenon
