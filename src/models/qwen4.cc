// Qwen 4: gated delta layers and attention to chosen blocks of keys, several residual streams read element by
// element, and on some layers an embedding of hashed n-grams.
#include "models/delta.h"
#include "models/experts.h"
#include "models/family.h"

namespace tenon {
namespace {

GatedStreamsSpec gated_streams(const ModelSpec& spec, const std::string& path, int64_t rank, bool writes) {
  const int64_t width = spec.streams * spec.hidden;
  GatedStreamsSpec out;
  out.norm = rms_norm_spec(path + ".hc_norm", width, spec.final_norm.eps, 1);
  out.norm.groups = spec.streams;
  out.down = {path + ".input_mix_weight_down", width, rank};
  out.up = {path + ".input_mix_weight_up", rank, width};
  if (writes) out.inject = {path + ".block_inject_weight", width, spec.streams};
  return out;
}

BlockIndexerSpec pooled_indexer(ConfigReader& config, const ModelSpec& spec, const std::string& path) {
  BlockIndexerSpec out;
  out.pooled = true;
  out.heads = config.positive("indexer_n_heads");
  out.dim = config.positive("indexer_head_dim");
  out.block = config.positive("indexer_compress_ratio");
  const int64_t budget = config.positive("indexer_budget");
  config.require(config.positive_or("indexer_kv_heads", 1) == 1, "indexer_kv_heads", "must be 1");
  config.require(budget % out.block == 0, "indexer_budget", "must be a multiple of indexer_compress_ratio");
  const auto pairs = static_cast<int64_t>(spec.ropes[0].inv_freq.size());
  config.require(2 * pairs <= out.dim, "indexer_head_dim", "is less than the rotated part of a head");
  out.blocks = std::max<int64_t>(1, budget / out.block);
  out.qk = {path + ".index_qk_proj", spec.hidden, (out.heads + 1) * out.dim};
  out.q_norm = rms_norm_spec(path + ".q_layernorm", out.dim, spec.final_norm.eps, 1);
  out.k_norm = rms_norm_spec(path + ".k_layernorm", out.dim, spec.final_norm.eps, 1);
  out.rope = 0;
  return out;
}

// SplitMix64 (Steele et al. 2014).
uint64_t mixed_bits(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

// Odd multipliers of the hash, small enough that none overflows with a token id.
std::vector<int64_t> hash_multipliers(int64_t vocab, int64_t count, int64_t table, int64_t seed) {
  constexpr int64_t kTableStep = 10007;
  const int64_t half = std::max<int64_t>(1, INT64_MAX / vocab / 2);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t at =
        static_cast<uint64_t>(seed + kTableStep * table) + 0x9E3779B97F4A7C15 * static_cast<uint64_t>(i + 1);
    out.push_back(2 * static_cast<int64_t>(mixed_bits(at) % static_cast<uint64_t>(half)) + 1);
  }
  return out;
}

bool is_prime(int64_t value) {
  for (int64_t d = 2; d * d <= value; ++d) {
    if (value % d == 0) return false;
  }
  return value > 1;
}

// Primes from `base` on, the first `skip` left out.
std::vector<int64_t> primes_from(int64_t base, int64_t skip, int64_t count) {
  std::vector<int64_t> out;
  for (int64_t value = base; static_cast<int64_t>(out.size()) < count; ++value) {
    if (!is_prime(value)) continue;
    if (skip > 0) {
      --skip;
    } else {
      out.push_back(value);
    }
  }
  return out;
}

int64_t end_token(ConfigReader& config) {
  const std::vector<double> several =
      config.is_list("eos_token_id") ? config.numbers_or_empty("eos_token_id") : std::vector<double>{};
  return several.empty() ? config.integer("eos_token_id") : static_cast<int64_t>(several[0]);
}

// The file keeps the table in `split_ngram_parts` parts of rows.
void store_table(ConfigReader& config, ModelSpec& spec, const NgramSpec& ngram, const std::string& path) {
  const int64_t parts = config.positive_or("split_ngram_parts", 512);
  config.require(parts <= ngram.table_rows && parts <= 65536, "split_ngram_parts", "is too large");
  for (int64_t i = 0; i < parts && config.status().ok(); ++i) {
    StoredBlock rows;
    rows.tensor = path + ".ngram_embedding.shard_" + std::to_string(i) + ".weight";
    rows.columns = ngram.width / static_cast<int64_t>(ngram.hash.sizes.size());
    spec.stored[ngram.table].push_back(rows);
  }
  for (const char* buffer : {".layer_multipliers", ".ngram_heads_offsets", ".ngram_heads_vocab_sizes"})
    spec.ignored.push_back(path + buffer);
}

// The `index`-th layer with an n-gram embedding.
NgramSpec read_ngram(ConfigReader& config, ModelSpec& spec, const std::string& layer, int64_t index) {
  const std::string path = layer + ".ple", table = path + ".ple_embedding";
  const int64_t order = config.positive_or("ngram_size", 3);
  const int64_t heads = config.positive_or("heads_per_ngram", 8);
  const int64_t wide = spec.streams * spec.hidden,
                base = config.positive_or("ngram_vocab_size_base", 20000000);
  const int64_t multiple = config.positive_or("make_ngram_vocab_size_divisible_by", 128);
  NgramSpec out;
  out.width = config.positive_or("ple_embed_dim", spec.hidden);
  config.require(order > 1 && order <= 64 && heads <= 256, "ngram_size", "or heads_per_ngram is implausible");
  if (!config.status().ok()) return out;
  const int64_t all = (order - 1) * heads;
  config.require(out.width % all == 0, "ple_embed_dim", "must be a multiple of the n-gram heads");
  config.require(base <= (int64_t{1} << 31), "ngram_vocab_size_base", "is too large");
  if (!config.status().ok()) return out;
  out.hash.heads = heads;
  out.hash.end = end_token(config);
  out.hash.sizes = primes_from(base, index * all, all);
  const int64_t seed = config.has("seed") ? config.integer("seed") : 1234;
  out.hash.multipliers = hash_multipliers(spec.vocab, order, index, seed);
  for (int64_t size : out.hash.sizes) out.table_rows += size;
  out.table_rows = (out.table_rows + multiple - 1) / multiple * multiple;
  out.table = table + ".ngram_embedding.weight";
  store_table(config, spec, out, table);
  out.key = {path + ".key_proj", out.width, wide};
  out.value = {path + ".value_proj", out.width, spec.hidden};
  for (const auto& [norm, name] : {std::pair{&out.key_norm, ".norm_key"},
                                   {&out.query_norm, ".norm_query"},
                                   {&out.conv_norm, ".norm_conv"}}) {
    *norm = rms_norm_spec(path + name, wide, spec.final_norm.eps, 1);
    norm->groups = spec.streams;
  }
  out.conv = {path + ".conv1d", wide, config.positive_or("ple_conv_kernel_size", 4)};
  out.dilation = order;
  return out;
}

void set_ngrams(ConfigReader& config, ModelSpec& spec) {
  int64_t index = 0;
  for (double id : config.numbers_or_empty("ple_layer_ids")) {
    config.require(id >= 1 && id <= static_cast<double>(spec.blocks.size()), "ple_layer_ids",
                   "names a layer that is not there");
    if (!config.status().ok()) return;
    const auto layer = static_cast<size_t>(id) - 1;
    spec.blocks[layer].ngram = read_ngram(config, spec, "model.layers." + std::to_string(layer), index++);
  }
}

Result<ModelSpec> read_qwen4(ConfigReader& config) {
  DecoderTraits traits = qwen_hybrid_traits(config);
  traits.intermediate = 1;  // no layer is dense
  traits.names.mixer_norm = traits.names.feed_forward_norm = "";
  for (const char* key : {"number_of_conv_states", "ngram_size", "heads_per_ngram", "ngram_vocab_size_base",
                          "make_ngram_vocab_size_divisible_by", "seed", "split_ngram_parts", "ple_embed_dim",
                          "ple_conv_kernel_size"})
    config.ignore(key);
  const std::string gate = config.text_or("output_gate_type", "silu");
  config.require(gate == "silu" || gate == "sigmoid", "output_gate_type", "must be silu or sigmoid");
  ModelSpec spec = read_qwen_hybrid(config, traits, false);
  set_qwen_experts(config, spec, config.flag_or("norm_topk_prob", true));
  spec.streams = config.positive_or("hc_count", 4);
  config.require(spec.streams > 1 && spec.streams <= 64, "hc_count", "must be between 2 and 64");
  const int64_t rank = config.positive_or("hc_lowrank", 320);
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    const std::string layer = layer_path(traits, i);
    if (auto* a = std::get_if<AttentionSpec>(&block.mixer))
      a->indexer = pooled_indexer(config, spec, layer + ".self_attn.indexer");
    if (auto* delta = std::get_if<DeltaSpec>(&block.mixer)) delta->norm.sigmoid = gate == "sigmoid";
    block.mixer_streams = gated_streams(spec, layer + ".attn_hyper_connection", rank, true);
    block.feed_forward_streams = gated_streams(spec, layer + ".mlp_hyper_connection", rank, true);
  }
  spec.head_streams = gated_streams(spec, "model.hyper_connection_mixer", rank, false);
  set_ngrams(config, spec);
  spec.final_norm = {};
  return spec;
}

constexpr Family kFamilies[] = {
    {"qwen4", {"qwen4_exp_text"}, {}, read_qwen4},
};

}  // namespace

std::span<const Family> qwen4_families() {
  return kFamilies;
}

}  // namespace tenon
