// Mamba, Falcon Mamba, and Jamba's mixture of Mamba, attention and experts.
#include "models/experts.h"
#include "models/family.h"

namespace tenon {
namespace {

void ignore_scan_keys(ConfigReader& config) {
  for (const char* key :
       {"expand", "mamba_expand", "time_step_min", "time_step_max", "time_step_floor",
        "time_step_init_scheme", "time_step_scale", "rescale_prenorm_residual", "residual_in_fp32",
        "use_mambapy", "use_mamba_kernels", "use_associative_scan", "num_logits_to_keep"}) {
    config.ignore(key);
  }
}

struct ScanSizes {
  int64_t channels, state, rank, taps;
  bool conv_bias, bias;
};

MambaSpec scan_layer(const std::string& path, int64_t hidden, const ScanSizes& s) {
  MambaSpec m;
  m.channels = s.channels;
  m.state = s.state;
  m.dt_rank = s.rank;
  m.in = {path + ".in_proj", hidden, 2 * s.channels, s.bias};
  m.conv = {path + ".conv1d", s.channels, s.taps, s.conv_bias};
  m.x = {path + ".x_proj", s.channels, s.rank + 2 * s.state};
  m.dt = {path + ".dt_proj", s.rank, s.channels, true};
  m.out = {path + ".out_proj", s.channels, hidden, s.bias};
  m.a_log = path + ".A_log";
  m.d = path + ".D";
  return m;
}

int64_t time_step_rank(ConfigReader& config, const char* key, int64_t hidden) {
  return config.is_text(key) ? (hidden + 15) / 16 : config.positive(key);
}

Result<ModelSpec> read_mamba(ConfigReader& config) {
  DecoderTraits traits;
  traits.names.embedding = "backbone.embeddings";
  traits.names.layers = "backbone.layers";
  traits.names.final_norm = "backbone.norm_f";
  traits.names.mixer_norm = "norm";
  traits.names.feed_forward_norm = "";
  traits.eps_key = "layer_norm_epsilon";
  traits.rope = false;
  traits.tied = true;
  config.suppose("num_attention_heads", 1);
  ignore_scan_keys(config);
  ModelSpec spec = read_decoder(config, traits);
  const ScanSizes sizes{config.positive("intermediate_size"),
                        config.positive("state_size"),
                        time_step_rank(config, "time_step_rank", spec.hidden),
                        config.positive("conv_kernel"),
                        config.flag_or("use_conv_bias", true),
                        config.flag_or("use_bias", false)};
  // Falcon Mamba norms the time steps, B and C, without weights.
  const double eps = config.number_or("mixer_rms_eps", 0);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    MambaSpec m = scan_layer(layer_path(traits, i) + ".mixer", spec.hidden, sizes);
    if (eps > 0) {
      m.dt_norm = rms_norm_spec("", sizes.rank, eps);
      m.dt_norm.weight = false;
      m.b_norm = m.c_norm = m.dt_norm;
      m.b_norm.width = m.c_norm.width = sizes.state;
    }
    spec.blocks[i].mixer = std::move(m);
    spec.blocks[i].feed_forward = {};
  }
  return spec;
}

// Whether a layer is one of those that `prefix`_offset and `prefix`_period choose.
bool is_chosen(ConfigReader& config, const std::string& prefix, size_t layer) {
  const int64_t period = config.positive(prefix + "_period"), offset = config.integer(prefix + "_offset");
  return static_cast<int64_t>(layer) % period == offset;
}

Result<ModelSpec> read_jamba(ConfigReader& config) {
  DecoderTraits traits;
  traits.names.final_norm = "model.final_layernorm";
  traits.names.mlp = "feed_forward";
  traits.names.feed_forward_norm = "pre_ff_layernorm";
  traits.rope = false;
  ignore_scan_keys(config);
  ModelSpec spec = read_decoder(config, traits);
  const ScanSizes sizes{config.positive_or("mamba_expand", 2) * spec.hidden,
                        config.positive("mamba_d_state"),
                        time_step_rank(config, "mamba_dt_rank", spec.hidden),
                        config.positive("mamba_d_conv"),
                        config.flag_or("mamba_conv_bias", true),
                        config.flag_or("mamba_proj_bias", false)};
  MoeSpec moe;
  moe.top_k.k = config.positive("num_experts_per_tok");
  const ExpertSizes experts{config.positive("num_experts"), config.positive("intermediate_size")};
  const ExpertNames names{.module = "feed_forward", .file = "feed_forward", .router = "router"};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    const std::string path = layer_path(traits, i) + ".mamba";
    if (experts.experts > 1 && is_chosen(config, "expert_layer", i))
      set_experts(spec, i, moe, names, experts);
    if (is_chosen(config, "attn_layer", i)) continue;
    MambaSpec m = scan_layer(path, spec.hidden, sizes);
    m.dt_norm = rms_norm_spec(path + ".dt_layernorm", sizes.rank, spec.final_norm.eps);
    m.b_norm = rms_norm_spec(path + ".b_layernorm", sizes.state, spec.final_norm.eps);
    m.c_norm = rms_norm_spec(path + ".c_layernorm", sizes.state, spec.final_norm.eps);
    spec.blocks[i].mixer = std::move(m);
  }
  return spec;
}

constexpr std::array kMambaGguf = {GgufLayout{"mamba"}};
constexpr std::array kJambaGguf = {GgufLayout{"jamba"}};
constexpr Family kFamilies[] = {
    {"mamba", {"mamba", "falcon_mamba"}, kMambaGguf, read_mamba},
    {"jamba", {"jamba"}, kJambaGguf, read_jamba},
};

}  // namespace

std::span<const Family> mamba_families() {
  return kFamilies;
}

}  // namespace tenon
