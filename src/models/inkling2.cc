// Inkling 2: layers read their inputs from all states before them; queries, keys and relative positions are
// cut to a length, full layers weigh the taps of their convolutions by token, and each token has its own
// sinks. In Inkling 2 Loop, some layers run several times and hear what the pass before had to say.
#include <fmt/format.h>

#include <cmath>

#include "models/decoder.h"
#include "models/family.h"
#include "models/relative.h"

namespace tenon {
namespace {

std::string path_of(int64_t layer) {
  return fmt::format("model.layers.{}", layer);
}

NormSpec clip_spec(std::string path, int64_t heads, int64_t width, double limit) {
  NormSpec norm{NormKind::clip, std::move(path), width};
  norm.weight = !norm.path.empty();
  norm.heads = norm.weight ? heads : 0;
  norm.limit = limit;
  return norm;
}

struct Sizes {
  int64_t hidden, taps;
  double eps, qk_limit, relative_limit;
};

ResidualConvSpec key_value_conv(const Sizes& s, const RelativeAttentionSpec& a, bool by_token,
                                const std::string& path) {
  const int64_t width = a.kv_heads * a.head_dim;
  const double taps = static_cast<double>(s.taps);
  if (!by_token) return residual_conv(path + ".conv1d", width, s.taps, 1 / std::sqrt(taps + 1));
  ResidualConvSpec conv = residual_conv(path, width, s.taps, 1 / std::sqrt(2 * taps + 1));
  conv.by_token = {path + ".weight_proj", s.hidden, a.kv_heads * s.taps};
  conv.heads = a.kv_heads;
  return conv;
}

RelativeAttentionSpec attention(ConfigReader& config, const Sizes& s, bool sliding, const std::string& path) {
  RelativeAttentionSpec a = read_relative_attention(config, sliding);
  const int64_t width = a.heads * a.head_dim, kv_width = a.kv_heads * a.head_dim;
  a.q = {path + ".q_proj.linear", s.hidden, width};
  a.k = {path + ".k_proj.linear", s.hidden, kv_width};
  a.v = {path + ".v_proj.linear", s.hidden, kv_width};
  a.o = {path + ".o_proj.linear", width, s.hidden};
  a.gate = {path + ".o_proj.gate_proj", s.hidden, width};
  a.sinks = {path + ".sink_proj", s.hidden, a.heads};
  const std::string relative = path + ".relative_position_bias";
  a.r = {relative + ".linear", s.hidden, a.heads * a.states};
  a.r_norm = clip_spec(relative + ".norm", a.heads, a.states, s.relative_limit);
  a.profiles = relative + ".proj";
  a.k_conv = key_value_conv(s, a, !sliding, path + ".k_proj.sconv");
  a.v_conv = key_value_conv(s, a, !sliding, path + ".v_proj.sconv");
  a.q_norm = clip_spec(path + ".q_proj.norm", a.heads, a.head_dim, s.qk_limit);
  a.k_norm = clip_spec({}, a.kv_heads, a.head_dim, s.qk_limit);
  a.v_norm = rms_norm_spec(path + ".v_proj.norm", a.head_dim, s.eps);
  a.v_norm.weight = false;
  a.attend.scale = 1 / std::sqrt(static_cast<double>(a.head_dim));
  return a;
}

// Gate and up of an expert are stored row by row in turn.
void store_experts(ModelSpec& spec, const MoeSpec& moe, int64_t layer) {
  const int64_t width = moe.intermediate;
  std::vector<StoredBlock>& blocks = spec.stored[moe.up_name];
  for (int64_t part = 0; part < 2 * moe.experts; ++part) {
    StoredBlock block;
    block.tensor = fmt::format("model.llm.layers.{}.mlp.experts.w13_weight", layer);
    block.row = part * width;
    block.rows = width;
    block.columns = spec.hidden;
    block.from_row = part / 2 * 2 * width + part % 2;
    block.stride = 2;
    blocks.push_back(block);
  }
}

MoeSpec read_experts(ConfigReader& config) {
  MoeSpec moe;
  moe.scores = RouterScores::sigmoid;
  config.require(config.text_or("scoring_func", "sigmoid") == "sigmoid", "scoring_func", "must be sigmoid");
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.renormalise = true;
  moe.renormalise_eps = 1e-20;
  moe.scale = config.number_or("route_scale", 8);
  moe.experts = config.positive("n_routed_experts");
  moe.intermediate = config.positive("moe_intermediate_size");
  moe.inner.gate_softcap = config.number_or("mlp_gate_softcap", 4);
  moe.inner.up_softcap = config.number_or("mlp_up_softcap", 25);
  config.require(moe.inner.gate_softcap > 0 && moe.inner.up_softcap > 0, "mlp_gate_softcap",
                 "and mlp_up_softcap must be positive");
  return moe;
}

DepthSpec read_depth(const std::string& path, int64_t layer, bool sliding, const Sizes& s) {
  DepthSpec depth;
  if (layer > 0) depth.mixer_query = path + ".attention_input.query";
  depth.mixer_queries = sliding ? 1 : 3;
  depth.feed_forward_query = path + ".mlp_input.query";
  if (sliding) return depth;
  depth.k_norm = rms_norm_spec(path + ".k_input_layernorm", s.hidden, s.eps);
  depth.v_norm = rms_norm_spec(path + ".v_input_layernorm", s.hidden, s.eps);
  return depth;
}

// From transformers' names, which adapters have, to those of published files.
void set_names(ModelSpec& spec, int64_t layers) {
  spec.renames = {{"model.", "model.llm."},
                  {"lm_head.", "model.llm.unembed."},
                  {"embed_tokens.embed_norm.", "embed_norm."},
                  {"embed_tokens.", "embed."},
                  {".mlp.gate.e_score_correction_bias", ".mlp.gate.bias"},
                  {".mlp.experts.down_proj", ".mlp.experts.w2_weight"},
                  {".self_attn.", ".attn."},
                  {".relative_position_bias.linear.", ".wr_du."},
                  {".relative_position_bias.norm.weight", ".rel_l2_clip.scale"},
                  {".relative_position_bias.", ".rel_logits_proj."},
                  {".q_proj.norm.weight", ".q_l2_clip.scale"},
                  {".q_proj.linear.", ".wq_du."},
                  {".k_proj.linear.", ".wk_dv."},
                  {".v_proj.linear.", ".wv_dv."},
                  {".k_proj.sconv.", ".k_sconv."},
                  {".v_proj.sconv.", ".v_sconv."},
                  {".o_proj.linear.", ".wo_ud."},
                  {".o_proj.gate_proj.", ".gate_attn."},
                  {".sink_proj.", ".attn_sink_proj."},
                  {".post_attention_convolution.", ".attn_sconv."},
                  {".post_mlp_convolution.", ".mlp_sconv."},
                  {".conv1d.weight", ".weight"},
                  {".static_weight", ".static_w"},
                  {".weight_proj.weight", ".weight_proj"},
                  {".post_attention_layernorm.", ".mlp_norm."},
                  {".input_layernorm.", ".attn_norm."},
                  {"_input_layernorm.", "_input_norm."},
                  {"_message_gate.down_proj.weight", "_message_gate.down_weight"},
                  {"_message_gate.message_gate_proj.weight", "_message_gate.gain_weight"},
                  {"_message_gate.forget_gate_proj.weight", "_message_gate.forget_weight"},
                  {".q_message_gate.", ".controllers.attn."},
                  {".k_message_gate.", ".controllers.k."},
                  {".v_message_gate.", ".controllers.v."},
                  {".mlp_message_gate.", ".controllers.mlp."},
                  {"final_input.query", "attn_res.output_query"}};
  for (int64_t i = 0; i < layers; ++i) {
    spec.renames.emplace_back(fmt::format("layers.{}.attention_input.query", i),
                              fmt::format("attn_res.attn_queries.{}", i - 1));
    spec.renames.emplace_back(fmt::format("layers.{}.mlp_input.query", i),
                              fmt::format("attn_res.mlp_queries.{}", i));
  }
}

Result<ModelSpec> read_inkling2(ConfigReader& config) {
  DecoderTraits traits;
  traits.rope = false;
  for (const auto& [key, name] : {std::pair{"conv_kernel_size", "sconv_kernel_size"},
                                  {"moe_intermediate_size", "intermediate_size"},
                                  {"route_scale", "routed_scaling_factor"}}) {
    if (!config.has(key) && config.has(name)) config.alias(key, name);
  }
  config.alias("intermediate_size",
               config.has("moe_intermediate_size") ? "moe_intermediate_size" : "intermediate_size");
  config.ignore("number_of_conv_states");
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<bool> sliding = read_sliding_layers(config, 6);
  const int64_t group = config.positive_or("n_layers_per_attn_res_block", 6);
  const Sizes s{spec.hidden, read_taps(config), spec.final_norm.eps,
                config.number_or("qk_l2_clip_threshold", 22.627416997969522),
                config.number_or("rel_l2_clip_threshold", 8)};
  const MoeSpec experts = read_experts(config);
  spec.logit_softcap = config.number_or("final_logit_softcapping", 30);
  if (!config.status().ok()) return spec;
  const double conv_scale = 1 / std::sqrt(static_cast<double>(s.taps) + 1);
  for (int64_t i = 0; i < static_cast<int64_t>(spec.blocks.size()); ++i) {
    BlockSpec& block = spec.blocks[static_cast<size_t>(i)];
    const std::string path = path_of(i);
    const bool slides = sliding[static_cast<size_t>(i)];
    block.mixer = attention(config, s, slides, path + ".self_attn");
    block.mixer_conv =
        residual_conv(path + ".post_attention_convolution.conv1d", s.hidden, s.taps, conv_scale);
    block.feed_forward_conv =
        residual_conv(path + ".post_mlp_convolution.conv1d", s.hidden, s.taps, conv_scale);
    block.depth = read_depth(path, i, slides, s);
    block.depth->begins_group = i % group == 0;
    if (!slides) block.mixer_norm.path = path + ".q_input_layernorm";
    MoeSpec moe = experts;
    moe.router = {path + ".mlp.gate", s.hidden, moe.experts};
    moe.selection_bias = moe.router.path + ".e_score_correction_bias";
    moe.up_name = path + ".mlp.experts.gate_up_proj";
    moe.down_name = path + ".mlp.experts.down_proj";
    store_experts(spec, moe, i);
    block.feed_forward = std::move(moe);
  }
  spec.ignored = {"model.visual."};
  spec.depth_query = "model.final_input.query";
  spec.embedding_norm = rms_norm_spec("model.embed_tokens.embed_norm", s.hidden, s.eps);
  set_names(spec, static_cast<int64_t>(spec.blocks.size()));
  set_unpadded_vocabulary(config, spec, "model.llm.embed.weight", "model.llm.unembed.weight");
  return spec;
}

// Messages to layer `at` of a loop. The file has the queries of q and the feed-forward of all layers in one
// tensor, those of k and v in another.
void set_messages(ModelSpec& spec, BlockSpec& block, int64_t layer, int64_t at, int64_t rank) {
  DepthSpec& depth = *block.depth;
  depth.message_query = fmt::format("model.message_input.query.{}", at);
  for (const char* part : {"q", "k", "v", "mlp"}) {
    const std::string path = fmt::format("{}.{}_message_gate", path_of(layer), part);
    depth.messages.push_back({{path + ".down_proj", 2 * spec.hidden, rank},
                              {path + ".forget_gate_proj", rank, spec.hidden},
                              {path + ".message_gate_proj", rank, spec.hidden}});
  }
  std::vector<StoredBlock>& rows = spec.stored[depth.message_query];
  rows.clear();
  for (int64_t query = 0; query < 4; ++query) {
    const bool of_key_or_value = query == 1 || query == 2;
    StoredBlock row;
    row.tensor = fmt::format("model.llm.middle_cycle_cross_pass_{}queries", of_key_or_value ? "kv_" : "");
    row.row = query;
    row.rows = 1;
    row.columns = spec.hidden;
    row.from_row = 2 * at + (query >= 2 ? 1 : 0);
    rows.push_back(row);
  }
}

Result<ModelSpec> read_inkling2_loop(ConfigReader& config) {
  std::optional<ConfigReader> nested = config.object("loop_config");
  const auto size = [&](const char* key, const char* nested_key, int64_t otherwise) {
    if (nested && nested->has(nested_key)) return nested->positive(nested_key);
    return config.positive_or(key, otherwise);
  };
  const int64_t begin = size("loop_layer_index_start", "core_start", 6);
  const int64_t end = size("loop_layer_index_end", "core_end", 18);
  const int64_t passes = size("loop_num_passes", "num_passes", 3);
  const int64_t rank = size("loop_gate_rank", "gate_rank", 64);
  if (nested && !nested->status().ok()) config.fail(nested->status().error());
  ASSIGN_OR_RETURN(ModelSpec spec, read_inkling2(config));
  const int64_t layers = static_cast<int64_t>(spec.blocks.size());
  const int64_t group = config.positive_or("n_layers_per_attn_res_block", 6);
  config.require(begin < end && end <= layers, "loop_layer_index_end",
                 "and loop_layer_index_start name layers that are not there");
  config.require(begin % group == 0 && end % group == 0, "loop_layer_index_start",
                 "and loop_layer_index_end must be multiples of n_layers_per_attn_res_block");
  config.require(passes <= 100, "loop_num_passes", "is implausibly large");
  if (!config.status().ok()) return spec;
  const auto at = [&](int64_t layer) { return spec.blocks.begin() + layer; };
  std::vector<BlockSpec> blocks(at(0), at(begin));
  for (int64_t pass = 0; pass < passes; ++pass) {
    for (int64_t layer = begin; layer < end; ++layer) {
      BlockSpec block = *at(layer);
      block.depth->begins_loop = pass == 0 && layer == begin;
      block.depth->repeats_loop = pass > 0 && layer == begin;
      if (pass > 0) set_messages(spec, block, layer, layer - begin, rank);
      blocks.push_back(std::move(block));
    }
  }
  blocks.insert(blocks.end(), at(end), spec.blocks.end());
  spec.blocks = std::move(blocks);
  return spec;
}

constexpr Family kFamilies[] = {
    {"inkling2", {"inkling2_text"}, {}, read_inkling2},
    {"inkling2_loop", {"inkling2_loop_text"}, {}, read_inkling2_loop},
};

}  // namespace

std::span<const Family> inkling2_families() {
  return kFamilies;
}

}  // namespace tenon
