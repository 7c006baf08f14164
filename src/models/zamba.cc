// Zamba 1 and 2: Mamba layers, some of which first add the output of a transformer layer over the stream and
// the embedding, whose weights they share.
#include <cmath>

#include "models/decoder.h"
#include "models/family.h"
#include "models/mamba2.h"
#include "models/rope.h"

namespace tenon {
namespace {

// Which layers have the shared transformer.
std::vector<bool> hybrid_layers(ConfigReader& config, size_t layers) {
  std::vector<bool> hybrid(layers, false);
  const std::vector<std::string> kinds = config.texts_or_empty("layers_block_type");
  config.require(kinds.size() == layers, "layers_block_type", "must have one entry a layer");
  if (kinds.size() != layers) return hybrid;
  for (size_t i = 0; i < layers; ++i) hybrid[i] = kinds[i] == "hybrid";
  return hybrid;
}

DecoderTraits zamba_traits() {
  DecoderTraits traits;
  traits.names.final_norm = "model.final_layernorm";
  traits.names.feed_forward_norm = "";
  traits.activation = "gelu";
  traits.rope = false;
  traits.tied = true;
  return traits;
}

// Attention over twice the width, whose output has the width.
AttentionSpec shared_attention(ConfigReader& config, const ModelSpec& spec, const std::string& path) {
  AttentionSpec a;
  const int64_t in = 2 * spec.hidden;
  a.heads = config.positive("num_attention_heads");
  a.kv_heads = config.positive_or("num_key_value_heads", a.heads);
  a.head_dim = a.v_head_dim = config.positive_or("attention_head_dim", in / a.heads);
  a.q = {path + ".q_proj", in, a.heads * a.head_dim};
  a.k = {path + ".k_proj", in, a.kv_heads * a.head_dim};
  a.v = {path + ".v_proj", in, a.kv_heads * a.head_dim};
  a.o = {path + ".o_proj", a.heads * a.head_dim, spec.hidden};
  a.attend.scale = 1 / std::sqrt(static_cast<double>(a.head_dim) / 2);
  return a;
}

SharedLayerSpec shared_layer(ConfigReader& config, const ModelSpec& spec, const std::string& path) {
  SharedLayerSpec shared;
  const double eps = spec.final_norm.eps;
  shared.mixer_norm = rms_norm_spec(path + ".input_layernorm", 2 * spec.hidden, eps);
  shared.feed_forward_norm = rms_norm_spec(path + ".pre_ff_layernorm", spec.hidden, eps);
  shared.attention = shared_attention(config, spec, path + ".self_attn");
  return shared;
}

// Names the projections of a shared layer after the layer `own` that uses it, as adapters do; their weights
// are those of `shared`.
void name_as_used(SharedLayerSpec& layer, const std::string& shared, const std::string& own) {
  if (shared == own) return;
  AttentionSpec& a = layer.attention;
  MlpSpec& mlp = layer.mlp;
  for (LinearSpec* linear : {&a.q, &a.k, &a.v, &a.o, &mlp.gate, &mlp.up, &mlp.gate_up, &mlp.down}) {
    if (!linear->present()) continue;
    linear->weight_path = linear->path;
    linear->path.replace(0, shared.size(), own);
  }
}

MambaSpec scan_of_heads(ConfigReader& config, ModelSpec& spec, const std::string& path) {
  MambaSpec m;
  m.channels = config.positive_or("mamba_expand", 2) * spec.hidden;
  m.state = config.positive("mamba_d_state");
  m.dt_rank = config.is_text("mamba_dt_rank") ? (spec.hidden + 15) / 16 : config.positive("mamba_dt_rank");
  m.heads = config.positive("n_mamba_heads");
  m.interleaved = true;
  const bool bias = config.flag_or("mamba_proj_bias", false);
  const int64_t width = m.channels / m.heads, made = m.dt_rank + 2 * m.state;
  m.in = {path + ".in_proj", spec.hidden, 2 * m.channels, bias};
  m.out = {path + ".out_proj", m.channels, spec.hidden, bias};
  m.conv = {path + ".conv1d", m.channels, config.positive("mamba_d_conv"),
            config.flag_or("mamba_conv_bias", true)};
  m.x = {path + ".x_proj", width, made};
  m.dt = {path + ".dt_proj", m.dt_rank, width, true};
  m.a_log = path + ".A_log";
  m.d = path + ".D";
  StoredBlock all;
  all.tensor = m.a_log;
  all.rows = m.channels;
  all.columns = m.state;
  spec.stored[m.a_log] = {all};
  for (int64_t h = 0; h < m.heads; ++h) {
    const std::string head = "." + std::to_string(h);
    StoredBlock x, dt, bias_row, d;
    x.tensor = path + ".x_proj_weight";
    x.rows = made, x.columns = width, x.from_row = h * made;
    dt.tensor = path + ".dt_proj_weight";
    dt.rows = width, dt.columns = m.dt_rank, dt.from_row = h * width;
    bias_row.tensor = path + ".dt_proj_bias";
    bias_row.rows = width, bias_row.columns = 1, bias_row.from_row = h, bias_row.transposed = true;
    d = bias_row;
    d.tensor = m.d;
    d.row = h * width;
    spec.stored[m.x.path + head + ".weight"] = {x};
    spec.stored[m.dt.path + head + ".weight"] = {dt};
    spec.stored[m.dt.path + head + ".bias"] = {bias_row};
    spec.stored[m.d].push_back(d);
  }
  return m;
}

Result<ModelSpec> read_zamba(ConfigReader& config) {
  const DecoderTraits traits = zamba_traits();
  check_mamba2_keys(config, "hidden_mamba_act");
  for (const char* key :
       {"attention_hidden_size", "attn_layer_offset", "attn_layer_period", "use_associative_scan"}) {
    config.ignore(key);
  }
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<bool> hybrid = hybrid_layers(config, spec.blocks.size());
  if (!config.status().ok()) return spec;
  const MlpSpec mlp = mlp_of(spec.blocks[0]);
  std::string first;  // the layer whose file has the shared weights
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    const std::string path = layer_path(traits, i), own = hybrid[i] ? path + ".mamba_decoder" : path;
    block.feed_forward = {};
    block.mixer_norm.path = own + ".input_layernorm";
    block.mixer = scan_of_heads(config, spec, own + ".mamba");
    if (!hybrid[i]) continue;
    if (first.empty()) first = path;
    const std::string shared = first + ".shared_transf";
    block.shared = shared_layer(config, spec, shared);
    block.shared->mlp = mlp;
    block.shared->mlp.gate.path = shared + ".feed_forward.gate_proj";
    block.shared->mlp.up.path = shared + ".feed_forward.up_proj";
    block.shared->mlp.down.path = shared + ".feed_forward.down_proj";
    block.shared->projection = {path + ".linear", spec.hidden, spec.hidden};
    name_as_used(*block.shared, shared, path + ".shared_transf");
  }
  return spec;
}

// Two matrices of Zamba 2 whose product one use of a shared layer adds to a projection.
void add_low_rank(LinearSpec& linear, const std::string& list, size_t use, int64_t rank) {
  const std::string path = list + "." + std::to_string(use);
  linear.low_rank = {{path + ".0", linear.in, rank}, {path + ".1", rank, linear.out}};
}

Result<ModelSpec> read_zamba2(ConfigReader& config) {
  DecoderTraits traits = zamba_traits();
  check_mamba2_keys(config, "hidden_mamba_act");
  for (const char* key :
       {"attention_hidden_size", "hybrid_layer_ids", "kv_channels", "num_query_groups", "use_long_context",
        "ffn_hidden_size", "state_size", "rope_theta", "mamba_ngroups"}) {
    config.ignore(key);
  }
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<bool> hybrid = hybrid_layers(config, spec.blocks.size());
  const int64_t rank = config.positive_or("adapter_rank", 128);
  const size_t shared_count = static_cast<size_t>(config.positive_or("num_mem_blocks", 1));
  const bool adapted = config.flag_or("use_shared_attention_adapter", false);
  if (!config.status().ok()) return spec;
  if (config.flag_or("use_mem_rope", false)) {
    const int64_t dim = shared_attention(config, spec, "").head_dim;
    spec.ropes.push_back(read_rope(config, {.head_dim = dim, .max_positions = spec.max_positions}));
  }
  const Mamba2Keys keys{"n_mamba_heads", "mamba_headdim", "mamba_ngroups",   "mamba_d_state",
                        "mamba_d_conv",  "use_conv_bias", "add_bias_linear", "time_step_min"};
  const MlpSpec mlp = mlp_of(spec.blocks[0]);
  const bool bias = config.flag_or("add_bias_linear", false);
  std::vector<std::string> owners;  // the layers whose file has the shared weights
  size_t use = 0;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    const std::string path = layer_path(traits, i), own = hybrid[i] ? path + ".mamba_decoder" : path;
    block.feed_forward = {};
    block.mixer_norm.path = own + ".input_layernorm";
    block.mixer = read_mamba2_layer(config, keys, own + ".mamba", spec.hidden, 1e-5);
    if (!hybrid[i]) continue;
    if (owners.size() < shared_count) owners.push_back(path);
    const std::string shared = owners[use % owners.size()] + ".shared_transformer";
    block.shared = shared_layer(config, spec, shared);
    SharedLayerSpec& s = *block.shared;
    s.attention.rope = spec.ropes.empty() ? -1 : 0;
    s.mlp = mlp;
    s.mlp.gate = s.mlp.up = {};
    s.mlp.gate_up = {shared + ".feed_forward.gate_up_proj", spec.hidden, 2 * mlp.down.in, bias};
    s.mlp.down = {shared + ".feed_forward.down_proj", mlp.down.in, spec.hidden, bias};
    s.projection = {path + ".linear", spec.hidden, spec.hidden};
    add_low_rank(s.mlp.gate_up, shared + ".feed_forward.gate_up_proj_adapter_list", use, rank);
    if (adapted) {
      add_low_rank(s.attention.q, shared + ".self_attn.linear_q_adapter_list", use, rank);
      add_low_rank(s.attention.k, shared + ".self_attn.linear_k_adapter_list", use, rank);
      add_low_rank(s.attention.v, shared + ".self_attn.linear_v_adapter_list", use, rank);
    }
    name_as_used(s, shared, path + ".shared_transformer");
    ++use;
  }
  return spec;
}

constexpr Family kFamilies[] = {
    {"zamba", {"zamba"}, {}, read_zamba},
    {"zamba2", {"zamba2"}, {}, read_zamba2},
};

}  // namespace

std::span<const Family> zamba_families() {
  return kFamilies;
}

}  // namespace tenon
