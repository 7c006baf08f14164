// Dory: states of length 1 (nGPT, Loshchilov et al. 2024), whose layers lead a learned part of the way to
// their output, and a middle section that runs several times, each time beginning from what the first section
// gave.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/decoder.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

// Published configurations count attention and MLP as a layer each.
struct Sections {
  int64_t layers = 0, before = 0, looped = 0, after = 0, loops = 0;
  std::vector<bool> sliding;
};

Sections read_sections(ConfigReader& config) {
  Sections s;
  const std::vector<std::string> types = config.texts_or_empty("layer_types");
  const bool pairs = std::ranges::find(types, "mlp") != types.end();
  const int64_t unit = pairs ? 2 : 1;
  s.layers = config.positive("num_hidden_layers") / unit;
  s.before = config.positive_or("n_input_layers", 8) / unit;
  s.after = config.positive_or("n_output_layers", 8) / unit;
  s.looped = config.positive_or("n_recurrent_layers", unit * (s.layers - s.before - s.after)) / unit;
  s.loops = config.positive_or("n_recurrent_loops", 2);
  config.require(s.before > 0 && s.looped > 0 && s.after > 0 && s.before + s.looped + s.after == s.layers,
                 "n_recurrent_layers", "and the layers before and after do not add up to num_hidden_layers");
  config.require(s.loops <= 100 && s.layers <= 10000, "n_recurrent_loops", "is implausibly large");
  config.require(types.empty() || static_cast<int64_t>(types.size()) == s.layers * unit, "layer_types",
                 "must have one entry a layer");
  if (!config.status().ok()) return s;
  for (int64_t i = 0; i < s.layers; ++i) {
    const size_t at = static_cast<size_t>(i * unit);
    const std::string type =
        types.empty() ? (i % 4 == 3 ? "full_attention" : "sliding_attention") : types[at];
    config.require(type == "full_attention" || type == "sliding_attention", "layer_types",
                   "has a kind that is not known: " + type);
    s.sliding.push_back(type == "sliding_attention");
  }
  return s;
}

// Factors by channel are stored as multiples of initializer_range.
void set_factors(ConfigReader& config, ModelSpec& spec) {
  const double unit = config.number_or("initializer_range", 0.0177);
  const double rate = config.number_or("ngpt_alpha_init", 0.05) / unit;
  config.require(unit > 0, "initializer_range", "must be positive");
  const double hidden = static_cast<double>(spec.hidden);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    const std::string path = fmt::format("model.layers.{}", i);
    AttentionSpec& a = attention_of(block);
    a.q_channels = {path + ".self_attn.sqk", std::sqrt(static_cast<double>(a.head_dim)) / unit, true};
    a.gate = {path + ".self_attn.gate_proj", spec.hidden, a.q.out};
    a.gate.channels = {path + ".self_attn.s_gate", std::pow(hidden, 0.25) / unit, true};
    a.gate_kind = GateKind::sigmoid;
    MlpSpec& mlp = mlp_of(block);
    mlp.gate.channels = {path + ".mlp.suv_gate", std::sqrt(hidden)};
    mlp.up.channels = {path + ".mlp.suv_up", std::sqrt(hidden)};
    block.mixer_residual.rate = {path + ".lambda_1", rate};
    block.feed_forward_residual.rate = {path + ".lambda_2", rate};
    block.mixer_residual.from_normed = block.feed_forward_residual.from_normed = true;
  }
  spec.head.channels = {"lm_head.logit_scale", 1 / unit};
}

NormSpec to_unit_length(int64_t width) {
  NormSpec norm{NormKind::l2, {}, width, 1e-6};
  norm.weight = false;
  return norm;
}

void set_norms(ModelSpec& spec) {
  const NormSpec whole = to_unit_length(spec.hidden);
  for (BlockSpec& block : spec.blocks) {
    AttentionSpec& a = attention_of(block);
    MlpSpec& mlp = mlp_of(block);
    for (NormSpec* norm :
         {&block.mixer_norm, &block.mixer_post_norm, &block.feed_forward_norm, &block.feed_forward_post_norm})
      *norm = whole;
    a.q_norm = a.k_norm = to_unit_length(a.head_dim);
    a.out_norm = to_unit_length(a.o.in);
    mlp.inner_norm = to_unit_length(mlp.down.in);
  }
  spec.final_norm = whole;
}

// The middle section several times over: from what came before, plus what the first section gave.
void repeat_middle(ModelSpec& spec, const Sections& s) {
  const auto at = [&](int64_t layer) { return spec.blocks.begin() + layer; };
  std::vector<BlockSpec> blocks(at(0), at(s.before));
  blocks.back().kept.leave = 0;
  blocks.back().kept.leave_norm = spec.final_norm;
  for (int64_t loop = 0; loop < s.loops; ++loop) {
    const size_t first = blocks.size();
    blocks.insert(blocks.end(), at(s.before), at(s.before + s.looped));
    blocks[first].kept.enter = 0;
    if (loop > 0) blocks[first].kept.enter_norm = spec.final_norm;
  }
  blocks.insert(blocks.end(), at(s.before + s.looped), spec.blocks.end());
  spec.blocks = std::move(blocks);
  spec.kept_streams = {""};
}

// transformers writes its own names under `backbone`; published files have attention and MLP as a layer each.
void set_names(ModelSpec& spec, int64_t layers) {
  spec.renames = {{"model.", "backbone."},
                  {".embed_tokens.", ".embeddings."},
                  {".self_attn.gate_proj.", ".self_attn.g_proj."}};
  spec.other_renames = spec.renames;
  for (int64_t i = layers - 1; i >= 0; --i) {
    const auto rename = [&](const char* from, int64_t layer, const char* to) {
      spec.other_renames.emplace_back(fmt::format("layers.{}.{}", i, from),
                                      fmt::format("layers.{}.{}", layer, to));
    };
    rename("self_attn.", 2 * i, "mixer.");
    rename("mlp.", 2 * i + 1, "mixer.");
    rename("lambda_1", 2 * i, "attn_alpha");
    rename("lambda_2", 2 * i + 1, "mlp_alpha");
  }
}

Result<ModelSpec> read_dory(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  traits.eps = 1e-6;
  traits.norm_weight = false;
  config.require(config.text_or("recurrent_kv_cache_mode", "per_loop") == "per_loop",
                 "recurrent_kv_cache_mode",
                 "must be per_loop: keys of the last loop alone are not what a model was trained with");
  const Sections sections = read_sections(config);
  ModelSpec spec = read_decoder(config, traits);
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  spec.blocks.resize(static_cast<size_t>(sections.layers));
  const int64_t head_dim = attention_of(spec.blocks[0]).head_dim,
                window = config.positive_or("sliding_window", 1024);
  const auto rope_of = [&](std::string_view layer_type, double theta) {
    if (!config.has("rope_parameters")) return plain_rope(theta, head_dim);
    return read_rope(config,
                     {.head_dim = head_dim, .max_positions = spec.max_positions, .layer_type = layer_type});
  };
  spec.ropes = {rope_of("full_attention", 1e7), rope_of("sliding_attention", 1e4)};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.rope = sections.sliding[i] ? 1 : 0;
    a.attend.window = sections.sliding[i] ? window : 0;
  }
  set_norms(spec);
  set_factors(config, spec);
  repeat_middle(spec, sections);
  set_names(spec, sections.layers);
  return spec;
}

constexpr Family kFamilies[] = {
    {"dory", {"dory"}, {}, read_dory},
};

}  // namespace

std::span<const Family> dory_families() {
  return kFamilies;
}

}  // namespace tenon
