// Mixtures of experts with ways of their own: PhiMoE (sparse mixer), JetMoe (experts of attention), DBRX and
// Aria (other layouts of the weights), LongCat Flash (two sublayers and a shortcut), MiniMax-01 (lightning
// attention), Beam (residuals that weigh depth).
#include <cmath>

#include "models/experts.h"
#include "models/family.h"
#include "models/latent.h"
#include "models/rope.h"

namespace tenon {
namespace {

// Amplitudes of longrope for short and for long sequences, in place of the one that lengths imply.
void set_amplitude(ConfigReader& config, ModelSpec& spec) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!config.is_object(key)) continue;
    auto rope = config.object(key);
    if (!rope->has("short_mscale")) continue;
    const double amplitude = rope->number("short_mscale");
    rope->require(rope->number("long_mscale") == amplitude, "long_mscale", "must be short_mscale");
    if (const Status status = rope->status(); !status.ok()) config.fail(status.error());
    for (RopeSpec& each : spec.ropes) each.amplitude = amplitude;
  }
}

Result<ModelSpec> read_phimoe(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm = NormKind::layer;
  traits.norm_bias = true;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  config.ignore("input_jitter_noise");
  ModelSpec spec = read_decoder(config, traits);
  set_windows(spec, read_windows(config));
  set_amplitude(config, spec);
  spec.head.bias = config.flag_or("lm_head_bias", false);
  if (spec.head.bias) spec.stored = head_with_bias(spec);
  MoeSpec moe;
  moe.scores = RouterScores::sparse_mixer;
  moe.router_is_linear = true;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.slack = 2 * config.number_or("router_jitter_noise", 0.01);
  config.require(moe.top_k.k == 2, "num_experts_per_tok", "must be 2");
  const ExpertSizes sizes{config.positive("num_local_experts"), config.positive("intermediate_size")};
  const ExpertNames names{.file = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    set_experts(spec, i, moe, names, sizes);
    LinearSpec& router = std::get<MoeSpec>(spec.blocks[i].feed_forward).router;
    auto stored = spec.stored.extract(router.path + ".weight");
    router.path = layer_path(traits, i) + ".mlp.router";
    stored.key() = router.path + ".weight";
    spec.stored.insert(std::move(stored));
  }
  return spec;
}

Result<ModelSpec> read_jetmoe(ConfigReader& config) {
  config.alias("head_dim", "kv_channels");
  DecoderTraits traits;
  traits.activation_key = "activation_function";
  traits.tied = true;
  ModelSpec spec = read_decoder(config, traits);
  config.ignore("aux_loss_coef");
  MoeSpec moe;
  moe.scores = RouterScores::softmax_of_chosen;
  moe.experts = config.positive("num_local_experts");
  moe.top_k.k = config.positive("num_experts_per_tok");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    const std::string path = layer_path(traits, i), attention = path + ".self_attention";
    AttentionExpertsSpec a;
    const AttentionSpec plain = attention_of(spec.blocks[i]);
    a.kv_heads = plain.kv_heads;
    a.head_dim = plain.head_dim;
    a.attend = plain.attend;
    a.rope = plain.rope;
    config.require(plain.heads == a.kv_heads * moe.top_k.k, "num_attention_heads",
                   "must be num_key_value_heads * num_experts_per_tok");
    a.kv = {attention + ".kv_proj", spec.hidden, 2 * a.kv_heads * a.head_dim};
    const auto named = [&](const std::string& at) {
      MoeSpec experts = moe;
      experts.router = {at + ".router.layer", spec.hidden, moe.experts};
      experts.router_is_linear = true;
      experts.up_name = at + ".input_linear.weight";
      experts.down_name = at + ".output_linear.weight";
      experts.output_bias = at + ".bias";
      return experts;
    };
    a.experts = named(attention + ".experts");
    MoeSpec mlp = named(path + ".mlp");
    mlp.intermediate = config.positive("intermediate_size");
    mlp.inner.activation = mlp_of(spec.blocks[i]).activation;
    // Norms of blocks have transformers' default here, whatever the model's is.
    spec.blocks[i].mixer_norm.eps = spec.blocks[i].feed_forward_norm.eps = 1e-6;
    spec.blocks[i].mixer = std::move(a);
    spec.blocks[i].feed_forward = std::move(mlp);
  }
  return spec;
}

// A block of a stacked weight: expert e's `rows` x `columns`, beginning at row `at` of its own, from a
// tensor.
StoredBlock expert_block(std::string tensor, int64_t row, int64_t rows, int64_t columns, int64_t from_row,
                         bool transposed) {
  StoredBlock block;
  block.tensor = std::move(tensor);
  block.row = row;
  block.rows = rows;
  block.columns = columns;
  block.from_row = from_row;
  block.transposed = transposed;
  return block;
}

Result<ModelSpec> read_dbrx(ConfigReader& config) {
  for (const auto& [key, name] : {std::pair{"hidden_size", "d_model"},
                                  {"num_attention_heads", "n_heads"},
                                  {"num_hidden_layers", "n_layers"},
                                  {"max_position_embeddings", "max_seq_len"}}) {
    config.alias(key, name);
  }
  auto attention = config.object("attn_config"), ffn = config.object("ffn_config");
  if (!attention || !ffn) return bad_file("attn_config or ffn_config is missing", config.subject());
  DecoderTraits traits;
  traits.names.embedding = "transformer.wte";
  traits.names.layers = "transformer.blocks";
  traits.names.final_norm = "transformer.norm_f";
  traits.names.attention = "norm_attn_norm.attn";
  traits.names.qkv = "Wqkv";
  traits.names.o = "out_proj";
  traits.names.mixer_norm = "norm_attn_norm.norm_1";
  traits.names.feed_forward_norm = "norm_attn_norm.norm_2";
  traits.norm = NormKind::layer;
  traits.eps = 1e-5;
  traits.intermediate = 1;
  config.suppose("num_key_value_heads", attention->positive_or("kv_n_heads", 1));
  ModelSpec spec = read_decoder(config, traits);
  if (spec.blocks.empty()) return spec;
  if (!config.has("rope_parameters")) {
    spec.ropes[0] =
        plain_rope(attention->number_or("rope_theta", 10000), attention_of(spec.blocks[0]).head_dim);
  }
  MoeSpec moe;
  moe.top_k.k = ffn->positive("moe_top_k");
  const double power = ffn->number_or("moe_normalize_expert_weights", 0);
  ffn->require(power == 0 || power == 1, "moe_normalize_expert_weights", "must be 1 or absent");
  moe.renormalise = power == 1;
  moe.experts = ffn->positive("moe_num_experts");
  if (auto activation = ffn->object("ffn_act_fn"))
    ffn->require(activation->text_or("name", "silu") == "silu", "ffn_act_fn", "must be silu");
  for (const char* key : {"moe_loss_weight", "moe_jitter_eps", "hidden_size"}) ffn->ignore(key);
  attention->ignore("rope_theta");
  moe.intermediate = ffn->positive("ffn_hidden_size");
  const double clip = attention->number_or("clip_qkv", 0);
  for (const ConfigReader* part : {&*attention, &*ffn}) {
    if (const Status status = part->status(); !status.ok()) return status.error();
  }
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    attention_of(spec.blocks[i]).qkv_clip = clip;
    const std::string path = layer_path(traits, i) + ".ffn", mlp = path + ".experts.mlp.";
    moe.router = {path + ".router.layer", spec.hidden, moe.experts};
    moe.router_is_linear = true;
    moe.up_name = mlp + "gate_up_proj";
    moe.down_name = mlp + "w2";
    const int64_t width = moe.intermediate;
    for (int64_t e = 0; e < moe.experts; ++e) {
      auto& up = spec.stored[moe.up_name];
      up.push_back(expert_block(mlp + "w1", 2 * e * width, width, spec.hidden, e * width, false));
      up.push_back(expert_block(mlp + "v1", (2 * e + 1) * width, width, spec.hidden, e * width, false));
      spec.stored[moe.down_name].push_back(
          expert_block(mlp + "w2", e * spec.hidden, spec.hidden, width, e * width, true));
    }
    spec.blocks[i].feed_forward = moe;
  }
  return spec;
}

Result<ModelSpec> read_aria(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  ModelSpec spec = read_decoder(config, traits);
  config.require(!config.flag_or("mlp_bias", false), "mlp_bias", "is not supported");
  MoeSpec moe;
  moe.scores = RouterScores::softmax_of_chosen;
  moe.top_k.k = config.positive("moe_topk");
  const int64_t width = config.positive("intermediate_size"), hidden = spec.hidden;
  const ExpertSizes sizes{config.positive("moe_num_experts"), width,
                          width * config.positive("moe_num_shared_experts")};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    set_experts(spec, i, moe, {.router = "router", .stacked = true}, sizes);
    const MoeSpec& set = std::get<MoeSpec>(spec.blocks[i].feed_forward);
    const std::string path = layer_path(traits, i) + ".mlp.experts.";
    for (int64_t e = 0; e < sizes.experts; ++e) {
      spec.stored[set.up_name].push_back(
          expert_block(path + "fc1.weight", 2 * e * width, 2 * width, hidden, e * hidden, true));
      spec.stored[set.down_name].push_back(
          expert_block(path + "fc2.weight", e * hidden, hidden, width, e * width, true));
    }
  }
  return spec;
}

void move_path(std::string& path, std::string_view from, const std::string& to) {
  const size_t at = path.find(from);
  if (at != std::string::npos) path.replace(at, from.size(), to);
}

// One of a LongCat layer's two sublayers, from a block of latent attention and a dense MLP.
BlockSpec longcat_sublayer(BlockSpec block, int half) {
  const std::string index = "." + std::to_string(half);
  auto& a = std::get<LatentAttentionSpec>(block.mixer);
  for (std::string* path : {&a.q_a.path, &a.q_b.path, &a.kv_a.path, &a.kv_b.path, &a.o.path, &a.q_a_norm.path,
                            &a.kv_a_norm.path}) {
    move_path(*path, "self_attn", "self_attn" + index);
  }
  MlpSpec& mlp = mlp_of(block);
  for (std::string* path : {&mlp.gate.path, &mlp.up.path, &mlp.down.path})
    move_path(*path, ".mlp.", ".mlps" + index + ".");
  block.mixer_norm.path += index;
  block.feed_forward_norm.path += index;
  return block;
}

Result<ModelSpec> read_longcat(ConfigReader& config) {
  config.alias("num_hidden_layers", "num_layers");
  config.alias("intermediate_size", "ffn_hidden_size");
  for (const char* key : {"zero_expert_type", "mla_scale_q_lora", "mla_scale_kv_lora", "attention_method"})
    config.ignore(key);
  config.require(!config.flag_or("router_bias", false), "router_bias", "is not supported");
  ModelSpec spec = read_latent_decoder(config, true);
  MoeSpec moe;
  moe.top_k.k = config.positive("moe_topk");
  moe.router_is_linear = true;
  moe.scale = config.number_or("routed_scaling_factor", 1);
  moe.identity_experts = config.has("zero_expert_num") ? config.integer("zero_expert_num") : 0;
  const ExpertSizes sizes{config.positive("n_routed_experts"), config.positive("expert_ffn_hidden_size")};
  const int64_t all = sizes.experts + moe.identity_experts;
  const ExpertNames names{.router = "router.classifier", .selection_bias = "router.e_score_correction_bias"};
  if (!config.status().ok()) return spec;
  std::vector<BlockSpec> halves;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    auto& a = std::get<LatentAttentionSpec>(block.mixer);
    const double width = static_cast<double>(spec.hidden);
    a.q_latent_scale = std::sqrt(width / static_cast<double>(a.q_b.in));
    a.kv_latent_scale = std::sqrt(width / static_cast<double>(a.kv_b.in));
    BlockSpec first = longcat_sublayer(block, 0);
    halves.push_back(first);
    halves.push_back(longcat_sublayer(block, 1));
    set_experts(spec, i, moe, names, sizes);
    MoeSpec set = std::get<MoeSpec>(block.feed_forward);
    set.router.out = all;
    spec.stored[set.router.path + ".weight"][0].rows = spec.stored[set.selection_bias][0].rows = all;
    for (int64_t e = sizes.experts; e < all; ++e) {
      const std::string expert = "model.layers." + std::to_string(i) + ".mlp.experts." + std::to_string(e);
      auto& up = spec.stored[set.up_name];
      up.push_back(expert_block(expert + ".gate_proj.weight", 2 * e * sizes.intermediate, sizes.intermediate,
                                spec.hidden, 0, false));
      up.push_back(expert_block(expert + ".up_proj.weight", (2 * e + 1) * sizes.intermediate,
                                sizes.intermediate, spec.hidden, 0, false));
    }
    halves[2 * i].shortcut = std::move(set);
    halves[2 * i].shortcut_blocks = 1;
  }
  spec.blocks = std::move(halves);
  spec.ignored.emplace_back("model.mtp.");
  return spec;
}

// Decays of lightning attention: a geometric series over heads, slower in later layers.
std::vector<float> lightning_decays(int64_t heads, size_t layer, size_t layers) {
  std::vector<float> decays;
  const double base = 1 / std::pow(2, 8 / static_cast<double>(heads));
  const double factor = 1 - static_cast<double>(layer) / (static_cast<double>(layers) - 1 + 1e-5) + 1e-5;
  for (int64_t h = 1; h <= heads; ++h)
    decays.push_back(static_cast<float>(-std::pow(base, static_cast<double>(h)) * factor));
  return decays;
}

Result<ModelSpec> read_minimax(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, {});
  config.ignore("block_size");
  set_windows(spec, read_windows(config));
  MoeSpec moe;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.renormalise = true;
  const ExpertSizes sizes{config.positive("num_local_experts"), config.positive("intermediate_size")};
  const ExpertNames names{.file = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"};
  const std::vector<bool> linear = layers_of_kind(config, "linear_attention");
  config.require(linear.size() == spec.blocks.size(), "layer_types", "must have one entry a layer");
  if (!config.status().ok()) return spec;
  const auto residual = [&](const std::string& kind) {
    return ResidualSpec{config.number_or(kind + "_alpha_factor", 1),
                        config.number_or(kind + "_beta_factor", 1), true};
  };
  const ResidualSpec linear_joint = residual("linear_attn"), full = residual("full_attn"),
                     mlp = residual("mlp");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    block.feed_forward_residual = mlp;
    block.mixer_residual = linear[i] ? linear_joint : full;
    set_experts(spec, i, moe, names, sizes);
    if (!linear[i]) continue;
    const std::string path = "model.layers." + std::to_string(i) + ".self_attn";
    const AttentionSpec a = attention_of(block);
    FixedDecaySpec lightning;
    lightning.heads = a.heads;
    lightning.head_dim = a.head_dim;
    lightning.qkv = {path + ".qkv_proj", spec.hidden, 3 * a.q.out};
    lightning.gate = {path + ".output_gate", spec.hidden, a.q.out};
    lightning.out = {path + ".out_proj", a.q.out, spec.hidden};
    lightning.norm = rms_norm_spec(path + ".norm", a.q.out, 1e-6);
    lightning.log_decays = lightning_decays(a.heads, i, spec.blocks.size());
    block.mixer = std::move(lightning);
  }
  // Tables of decays, which follow from the configuration.
  for (const char* name : {".diagonal_decay", ".key_decay", ".query_decay", ".slope_rate"})
    spec.ignored.emplace_back(name);
  return spec;
}

// Beam: x = sqrt((n - 1) / n) x + y / sqrt(n), n counting the layers' outputs from 2 on; no rope on full
// layers, whose queries grow with their position.
Result<ModelSpec> read_beam(ConfigReader& config) {
  DecoderTraits traits;
  traits.qk_norm = QkNorm::head;
  traits.names.mixer_post_norm = "post_attention_layernorm";
  traits.names.feed_forward_norm = "pre_feedforward_layernorm";
  traits.names.feed_forward_post_norm = "post_feedforward_layernorm";
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.rope = false;
  ModelSpec spec = read_decoder(config, traits);
  if (spec.blocks.empty()) return spec;
  spec.ropes = {read_rope(config, {.head_dim = attention_of(spec.blocks[0]).head_dim,
                                   .max_positions = spec.max_positions,
                                   .layer_type = "sliding_attention"})};
  const std::vector<int64_t> windows = read_windows(config);
  set_windows(spec, windows);
  spec.logit_softcap = config.number_or("final_logit_softcapping", 0);
  const MoeSpec moe = read_deepseek_router(config);
  const ExpertSizes sizes{config.positive("num_experts"), config.positive("moe_intermediate_size")};
  const std::vector<bool> dense = dense_mlp_layers(config, spec.blocks.size());
  const auto joint = [](size_t n) {
    const double count = static_cast<double>(n);
    return ResidualSpec{std::sqrt((count - 1) / count), 1 / std::sqrt(count)};
  };
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    AttentionSpec& a = attention_of(block);
    const std::string path = layer_path(traits, i) + ".self_attn";
    a.rope = windows[i] > 0 ? 0 : -1;
    if (windows[i] == 0)
      a.q_scale = PositionScale{.beta = 0.1, .offset = 1, .shift = 1, .period = 2048, .power = true};
    a.gate = {path + ".gate_proj", spec.hidden, a.o.in};
    a.gate_bias = path + ".gate_bias";
    a.gate_kind = GateKind::sigmoid;
    block.mixer_residual = joint(2 * (i + 1));
    block.feed_forward_residual = joint(2 * (i + 1) + 1);
    if (!dense[i]) set_experts(spec, i, moe, {.selection_bias = "gate.e_score_correction_bias"}, sizes);
  }
  return spec;
}

constexpr std::array kPhimoeGguf = {GgufLayout{"phimoe"}};
constexpr std::array kDbrxGguf = {GgufLayout{"dbrx"}};

constexpr Family kFamilies[] = {
    {"phimoe", {"phimoe"}, kPhimoeGguf, read_phimoe},
    {"jetmoe", {"jetmoe"}, {}, read_jetmoe},
    {"dbrx", {"dbrx"}, kDbrxGguf, read_dbrx},
    {"aria", {"aria_text"}, {}, read_aria},
    {"longcat_flash", {"longcat_flash"}, {}, read_longcat},
    {"minimax", {"minimax"}, {}, read_minimax},
    {"beam", {"beam"}, {}, read_beam},
};

}  // namespace

std::span<const Family> moe_kinds_families() {
  return kFamilies;
}

}  // namespace tenon
