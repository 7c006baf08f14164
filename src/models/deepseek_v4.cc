// DeepSeek-V4: one shared key that is its own value, compressed entries beside a window, grouped output
// projection, hyper-connections, experts of the first layers by token id.
#include <algorithm>
#include <cmath>

#include "models/experts.h"
#include "models/family.h"
#include "models/hyper.h"
#include "models/rope.h"

namespace tenon {
namespace {

constexpr const char* kWindow = "sliding_attention";
constexpr const char* kSparse = "compressed_sparse_attention";
constexpr const char* kDense = "heavily_compressed_attention";

struct Sizes {
  int64_t heads, head_dim, rope_dim, q_rank, groups, o_rank, window, sparse_stride, dense_stride;
};

std::vector<std::string> attention_kinds(ConfigReader& config, size_t layers) {
  std::vector<std::string> kinds = config.texts_or_empty("layer_types");
  const std::vector<double> ratios = config.numbers_or_empty("compress_ratios");
  for (size_t i = 0; kinds.empty() && i < std::min(layers, ratios.size()); ++i) {
    const bool known = ratios[i] == 0 || ratios[i] == 4 || ratios[i] == 128;
    config.require(known, "compress_ratios", "must be 0, 4 or 128");
    if (!known) return {};
  }
  for (double ratio : kinds.empty() ? ratios : std::vector<double>{})
    kinds.emplace_back(ratio == 0 ? kWindow : ratio == 4 ? kSparse : kDense);
  for (size_t i = 0; kinds.size() < layers && ratios.empty() && i < layers; ++i)
    kinds.emplace_back(i < 2 || i % 2 == 0 ? kDense : kSparse);
  kinds.resize(std::min(kinds.size(), layers));
  config.require(kinds.size() == layers, "layer_types", "must have one entry a layer");
  return kinds;
}

std::vector<bool> layers_by_id(ConfigReader& config, size_t layers) {
  const std::vector<std::string> kinds = config.texts_or_empty("mlp_layer_types");
  const int64_t first = config.has("num_hash_layers") ? config.integer("num_hash_layers") : 3;
  config.require(kinds.empty() || kinds.size() >= layers, "mlp_layer_types", "must have one entry a layer");
  std::vector<bool> by_id(layers, false);
  for (size_t i = 0; i < layers; ++i)
    by_id[i] = kinds.size() >= layers ? kinds[i] == "hash_moe" : static_cast<int64_t>(i) < first;
  return by_id;
}

Sizes read_sizes(ConfigReader& config) {
  Sizes s;
  s.heads = config.positive_or("num_attention_heads", 64);
  s.head_dim = config.positive_or("head_dim", 512);
  const double rotary = config.number_or("partial_rotary_factor", 64.0 / 512.0);
  const auto rotated = static_cast<int64_t>(static_cast<double>(s.head_dim) * rotary);
  s.rope_dim = config.positive_or("qk_rope_head_dim", std::max<int64_t>(1, rotated));
  s.q_rank = config.positive_or("q_lora_rank", 1024);
  s.groups = config.positive_or("o_groups", 8);
  s.o_rank = config.positive_or("o_lora_rank", 1024);
  s.window = config.positive_or("sliding_window", 128);
  s.sparse_stride = config.positive_or("compress_rate_csa", 4);
  s.dense_stride = config.positive_or("compress_rate_hca", 128);
  if (std::optional<ConfigReader> rates = config.object("compress_rates")) {
    s.sparse_stride = rates->positive_or(kSparse, s.sparse_stride);
    s.dense_stride = rates->positive_or(kDense, s.dense_stride);
    if (const Status status = rates->status(); !status.ok()) config.fail(status.error());
  }
  config.require(config.positive_or("num_key_value_heads", 1) == 1, "num_key_value_heads", "must be 1");
  config.require(s.groups <= 1024 && s.heads % s.groups == 0, "o_groups",
                 "must be at most 1024 and divide num_attention_heads");
  config.require(s.rope_dim <= s.head_dim && s.rope_dim % 2 == 0, "qk_rope_head_dim",
                 "must be even and at most head_dim");
  return s;
}

// Rope 0 is that of layers without entries, rope 1 that of the others.
std::vector<RopeSpec> read_ropes(ConfigReader& config, const Sizes& s, int64_t max_positions) {
  const RopeSizes sizes{.head_dim = s.rope_dim, .max_positions = max_positions, .whole = true};
  RopeSizes main = sizes, compress = sizes;
  main.layer_type = "main";
  compress.layer_type = "compress";
  std::optional<ConfigReader> parameters = config.object("rope_parameters");
  std::vector<RopeSpec> ropes;
  if (parameters && parameters->is_object("main")) {
    ropes = {read_rope(config, main), read_rope(config, compress)};
  } else {
    ropes.push_back(plain_rope(config.number_or("rope_theta", 10000), s.rope_dim));
    config.alias("rope_theta", "compress_rope_theta");
    config.suppose("compress_rope_theta", 160000);
    ropes.push_back(read_rope(config, sizes));
    config.alias("rope_theta", "rope_theta");
    ropes[1].amplitude = 1;  // the reference leaves yarn's factor out
  }
  config.ignore("compress_rope_theta");
  for (RopeSpec& rope : ropes) rope.interleaved = true;
  return ropes;
}

// The file's `path`: "wkv", "wgate", "ape" and "norm"; `module` names the projections as adapters do.
CompressorSpec compressor(const ModelSpec& spec, int64_t stride, int64_t parts, int64_t width,
                          const std::string& module, const std::string& path) {
  CompressorSpec out;
  out.stride = stride;
  out.parts = parts;
  out.x = {module + ".kv_proj", spec.hidden, parts * width};
  out.gate = {module + ".gate_proj", spec.hidden, parts * width};
  out.bias = path + ".ape";
  out.norm = rms_norm_spec(path + ".norm", width, spec.final_norm.eps);
  return out;
}

CompressedAttentionSpec attention(ConfigReader& config, ModelSpec& spec, const Sizes& s,
                                  const std::string& layer, const std::string& kind) {
  const std::string path = layer + ".self_attn", file = layer + ".attn";
  const double eps = spec.final_norm.eps;
  CompressedAttentionSpec a;
  a.heads = s.heads;
  a.head_dim = s.head_dim;
  a.q_a = {path + ".q_a_proj", spec.hidden, s.q_rank};
  a.q_a_norm = rms_norm_spec(file + ".q_norm", s.q_rank, eps);
  a.q_b = {path + ".q_b_proj", s.q_rank, s.heads * s.head_dim};
  a.q_norm = rms_norm_spec(file + ".q_head_norm", s.head_dim, eps);
  a.q_norm.weight = false;
  a.kv = {path + ".kv_proj", spec.hidden, s.head_dim};
  a.kv_norm = rms_norm_spec(file + ".norm", s.head_dim, eps);
  a.rope = kind == kWindow ? 0 : 1;
  a.attend.scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
  a.attend.window = s.window;
  a.attend.sinks = file + ".attn_sink";
  const bool sparse = kind == kSparse;
  if (kind != kWindow) {
    a.compressor = compressor(spec, sparse ? s.sparse_stride : s.dense_stride, sparse ? 2 : 1, s.head_dim,
                              path + ".compressor", file + ".compressor");
  }
  if (sparse) {
    EntryIndexerSpec indexer;
    indexer.heads = config.positive_or("index_n_heads", 64);
    indexer.dim = config.positive_or("index_head_dim", 128);
    indexer.entries = config.positive_or("index_topk", 512);
    config.require(indexer.dim >= s.rope_dim, "index_head_dim", "is less than the rotated part");
    indexer.q = {file + ".indexer.wq_b", s.q_rank, indexer.heads * indexer.dim};
    indexer.weights = {file + ".indexer.weights_proj", spec.hidden, indexer.heads};
    const std::string own = file + ".indexer.compressor";
    indexer.compressor = compressor(spec, s.sparse_stride, 2, indexer.dim, own, own);
    indexer.compressor.x.path = own + ".wkv";
    indexer.compressor.gate.path = own + ".wgate";
    a.indexer = indexer;
  }
  const int64_t width = s.heads / s.groups * s.head_dim;
  for (int64_t g = 0; g < s.groups; ++g) {
    LinearSpec part{file + ".wo_a." + std::to_string(g), width, s.o_rank};
    part.weight_name = "";
    StoredBlock rows;
    rows.tensor = file + ".wo_a.weight";
    rows.rows = s.o_rank;
    rows.columns = width;
    rows.from_row = g * s.o_rank;
    spec.stored[part.path] = {rows};
    a.o_a.push_back(part);
  }
  a.o_b = {path + ".o_b_proj", s.groups * s.o_rank, spec.hidden};
  return a;
}

void set_file_names(ModelSpec& spec) {
  for (const auto& [from, to] : std::initializer_list<std::pair<const char*, const char*>>{
           {"post_attention_layernorm", "ffn_norm"},
           {"input_layernorm", "attn_norm"},
           {".mlp.", ".ffn."},
           {"shared_experts.gate_proj", "shared_experts.w1"},
           {"shared_experts.up_proj", "shared_experts.w3"},
           {"shared_experts.down_proj", "shared_experts.w2"},
           {"compressor.gate_proj", "compressor.wgate"},
           {".self_attn.", ".attn."},
           {".q_a_proj", ".wq_a"},
           {".q_b_proj", ".wq_b"},
           {".o_b_proj", ".wo_b"},
           {".kv_proj", ".wkv"},
           {"lm_head.", "head."}})
    spec.renames.emplace_back(from, to);
}

Result<ModelSpec> read_deepseek_v4(ConfigReader& config) {
  const Sizes s = read_sizes(config);
  for (const char* key : {"num_nextn_predict_layers", "attention_bias"}) config.ignore(key);
  config.require(!config.flag_or("mlp_bias", false), "mlp_bias", "must be false");
  config.require(!config.flag_or("attention_bias", false), "attention_bias", "must be false");
  config.require(config.text_or("scoring_func", "sqrtsoftplus") == "sqrtsoftplus", "scoring_func",
                 "must be sqrtsoftplus");
  config.require(config.flag_or("norm_topk_prob", true), "norm_topk_prob", "must be true");
  DecoderTraits traits;
  traits.rope = false;
  traits.intermediate = 1;  // no layer is dense
  config.suppose("num_key_value_heads", 1);
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<std::string> kinds = attention_kinds(config, spec.blocks.size());
  const std::vector<bool> by_id = layers_by_id(config, spec.blocks.size());
  spec.streams = config.positive_or("hc_mult", 4);
  config.require(spec.streams > 1 && spec.streams <= 64, "hc_mult", "must be between 2 and 64");
  spec.ropes = read_ropes(config, s, spec.max_positions);
  const double eps = config.number_or("hc_eps", 1e-6);
  HyperConnectionSizes hyper{.norm_eps = spec.final_norm.eps, .before_eps = eps, .after_scale = 2};
  hyper.among = SinkhornOptions{config.positive_or("hc_sinkhorn_iters", 20), eps};
  MoeSpec moe;
  moe.scores = RouterScores::sqrt_softplus;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.renormalise = true;
  moe.renormalise_eps = 1e-20;
  moe.scale = config.number_or("routed_scaling_factor", 1.5);
  moe.inner.limit = config.number_or("swiglu_limit", 10);
  ExpertNames names{.file = "ffn", .gate = "w1", .up = "w3", .down = "w2"};
  names.stored_bias = "ffn.gate.bias";
  const int64_t width = config.positive("moe_intermediate_size");
  config.require(config.positive_or("n_shared_experts", 1) == 1, "n_shared_experts", "must be 1");
  const ExpertSizes sizes{config.positive("n_routed_experts"), width, width};
  if (!config.status().ok()) return spec;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    const std::string layer = layer_path(traits, i);
    config.require(kinds[i] == kWindow || kinds[i] == kSparse || kinds[i] == kDense, "layer_types",
                   "has a kind that is not known: " + kinds[i]);
    block.mixer = attention(config, spec, s, layer, kinds[i]);
    names.selection_bias = by_id[i] ? "" : "gate.e_score_correction_bias";
    set_experts(spec, i, moe, names, sizes);
    if (by_id[i]) std::get<MoeSpec>(block.feed_forward).expert_table = layer + ".ffn.gate.tid2eid";
    block.mixer_streams = hyper_connection(spec, layer + ".hc_attn_", hyper);
    block.feed_forward_streams = hyper_connection(spec, layer + ".hc_ffn_", hyper);
  }
  spec.head_streams = hyper_head(spec, "model.hc_head.hc_", hyper);
  set_file_names(spec);
  return spec;
}

constexpr Family kFamilies[] = {
    {"deepseek_v4", {"deepseek_v4"}, {}, read_deepseek_v4},
};

}  // namespace

std::span<const Family> deepseek_v4_families() {
  return kFamilies;
}

}  // namespace tenon
