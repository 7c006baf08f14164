// MiniMax M3: blocks of keys chosen by an indexer, clamped SwiGLU with an offset, sigmoid routing.
#include "models/experts.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

// Settings of the indexer by today's keys, or by those of `sparse_attention_config`.
class SparseKeys {
 public:
  explicit SparseKeys(ConfigReader& config)
      : config_(config), older_(config.object("sparse_attention_config")) {}

  int64_t size(const char* key, const char* older_key, int64_t otherwise) {
    if (config_.has(key)) return config_.positive(key);
    return older_ && older_->has(older_key) ? older_->positive(older_key) : otherwise;
  }
  // Which layers choose their keys.
  std::vector<bool> layers(size_t count) {
    std::vector<bool> chosen = layers_of_kind(config_, "minimax_m3_sparse");
    if (!chosen.empty()) return chosen;
    chosen.resize(count, false);
    if (!older_) return chosen;
    const std::vector<double> frequency = older_->numbers_or_empty("sparse_attention_freq");
    config_.require(frequency.empty() || frequency.size() == count, "sparse_attention_config",
                    "must have one sparse_attention_freq a layer");
    for (size_t i = 0; i < frequency.size() && i < count; ++i) chosen[i] = frequency[i] != 0;
    return chosen;
  }
  Status status() const { return older_ ? older_->status() : Status(); }

 private:
  ConfigReader& config_;
  std::optional<ConfigReader> older_;
};

// The angles of element i of an index head are those of element i of the whole: where the whole is wider, its
// second half turns by other frequencies.
int32_t upper_rope(ModelSpec& spec, int64_t dim) {
  const int64_t pairs = static_cast<int64_t>(spec.ropes[0].inv_freq.size()), half = dim / 2;
  if (dim >= 2 * pairs) return -1;
  RopeSpec lower = spec.ropes[0], upper = spec.ropes[0];
  lower.inv_freq.resize(static_cast<size_t>(half));
  upper.inv_freq.clear();
  for (int64_t i = half; i < dim; ++i)
    upper.inv_freq.push_back(spec.ropes[0].inv_freq[static_cast<size_t>(i % pairs)]);
  spec.ropes.push_back(lower);
  spec.ropes.push_back(upper);
  return 2;
}

void set_indexers(ConfigReader& config, ModelSpec& spec) {
  SparseKeys keys(config);
  const std::vector<bool> chosen = keys.layers(spec.blocks.size());
  BlockIndexerSpec indexer;
  indexer.heads = keys.size("index_n_heads", "sparse_num_index_heads", 4);
  indexer.dim = keys.size("index_head_dim", "sparse_index_dim", 128);
  indexer.block = keys.size("index_block_size", "sparse_block_size", 128);
  indexer.blocks = keys.size("index_topk_blocks", "sparse_topk_blocks", 16);
  indexer.local = keys.size("index_local_blocks", "sparse_local_block", 1);
  if (const Status status = keys.status(); !status.ok()) config.fail(status.error());
  const AttentionSpec& first = attention_of(spec.blocks[0]);
  config.require(first.heads % indexer.heads == 0, "index_n_heads", "must divide num_attention_heads");
  config.require(indexer.dim % 2 == 0, "index_head_dim", "must be even");
  if (!config.status().ok()) return;
  indexer.upper_rope = upper_rope(spec, indexer.dim);
  indexer.rope = indexer.upper_rope < 0 ? 0 : 1;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (!chosen[i]) continue;
    const std::string path = "model.layers." + std::to_string(i) + ".self_attn.indexer";
    indexer.q = {path + ".q_proj", spec.hidden, indexer.heads * indexer.dim};
    indexer.k = {path + ".k_proj", spec.hidden, indexer.dim};
    indexer.q_norm = rms_norm_spec(path + ".q_norm", indexer.dim, spec.final_norm.eps, 1);
    indexer.k_norm = rms_norm_spec(path + ".k_norm", indexer.dim, spec.final_norm.eps, 1);
    attention_of(spec.blocks[i]).indexer = indexer;
  }
}

// Which layers have a dense MLP.
std::vector<bool> dense_layers(ConfigReader& config, size_t layers) {
  const std::vector<double> frequency = config.numbers_or_empty("moe_layer_freq");
  if (config.has("mlp_layer_types") || frequency.empty()) return dense_mlp_layers(config, layers);
  config.require(frequency.size() == layers, "moe_layer_freq", "must have one entry a layer");
  std::vector<bool> dense(layers, false);
  for (size_t i = 0; i < frequency.size() && i < layers; ++i) dense[i] = frequency[i] == 0;
  return dense;
}

void fuse_gate_up(MlpSpec& mlp, const std::string& path) {
  mlp.gate_up = {path + ".gate_up_proj", mlp.up.in, 2 * mlp.up.out};
  mlp.gate = mlp.up = {};
}

Result<ModelSpec> read_minimax_m3(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm_offset = 1;
  traits.qk_norm = QkNorm::head;
  traits.intermediate = 12288;
  for (const char* key : {"rotary_dim", "hidden_act"}) config.ignore(key);
  traits.activation_key = "";  // the gate's is fixed, whatever hidden_act says
  config.alias("intermediate_size", "dense_intermediate_size");
  ModelSpec spec = read_decoder(config, traits);
  config.alias("intermediate_size", "intermediate_size");
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  set_indexers(config, spec);
  MlpSpec inner;
  inner.swish = config.number_or("swiglu_alpha", 1.702);
  inner.limit = config.number_or("swiglu_limit", 7);
  inner.up_offset = 1;
  MoeSpec moe;
  moe.scores = RouterScores::sigmoid;
  moe.top_k.k = config.positive_or("num_experts_per_tok", 4);
  moe.renormalise = true;
  moe.scale = config.number_or("routed_scaling_factor", 2);
  moe.inner = inner;
  const ExpertNames names{.selection_bias = "gate.e_score_correction_bias", .stacked = true};
  const ExpertSizes sizes{config.positive(config.has("num_experts") ? "num_experts" : "num_local_experts"),
                          config.positive("intermediate_size"),
                          config.positive_or("shared_intermediate_size", 3072)};
  const std::vector<bool> dense = dense_layers(config, spec.blocks.size());
  if (!config.status().ok()) return spec;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    const std::string path = layer_path(traits, i) + ".mlp";
    if (dense[i]) {
      const MlpSpec was = mlp_of(spec.blocks[i]);
      MlpSpec mlp = inner;
      mlp.up = was.up;
      mlp.down = was.down;
      fuse_gate_up(mlp, path);
      spec.blocks[i].feed_forward = mlp;
      continue;
    }
    set_experts(spec, i, moe, names, sizes);
    fuse_gate_up(*std::get<MoeSpec>(spec.blocks[i].feed_forward).shared, path + ".shared_experts");
  }
  return spec;
}

constexpr Family kFamilies[] = {
    {"minimax_m3", {"minimax_m3_vl_text"}, {}, read_minimax_m3},
};

}  // namespace

std::span<const Family> minimax_m3_families() {
  return kFamilies;
}

}  // namespace tenon
