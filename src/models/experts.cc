#include "models/experts.h"

#include <fmt/format.h>

namespace tenon {
namespace {

StoredBlock block_at(std::string tensor, int64_t row, int64_t rows, int64_t columns) {
  StoredBlock block;
  block.tensor = std::move(tensor);
  block.row = row;
  block.rows = rows;
  block.columns = columns;
  return block;
}

// Each expert's matrices have tensors of their own.
void store_one_by_one(ModelSpec& spec, const MoeSpec& moe, const std::string& file,
                      const ExpertNames& names) {
  std::vector<StoredBlock>& up = spec.stored[moe.up_name];
  std::vector<StoredBlock>& down = spec.stored[moe.down_name];
  const int64_t width = moe.intermediate;
  for (int64_t e = 0; e < moe.experts; ++e) {
    const std::string expert = fmt::format("{}.experts.{}.", file, e);
    int64_t row = e * (moe.gated ? 2 : 1) * width;
    if (moe.gated) {
      up.push_back(block_at(expert + names.gate + ".weight", row, width, spec.hidden));
      row += width;
    }
    up.push_back(block_at(expert + names.up + ".weight", row, width, spec.hidden));
    down.push_back(block_at(expert + names.down + ".weight", e * spec.hidden, spec.hidden, width));
  }
}

// Layers with experts, by Qwen's keys.
bool has_experts(ConfigReader& config, size_t layer, const std::vector<double>& dense) {
  const int64_t step = config.positive_or("decoder_sparse_step", 1);
  for (double each : dense) {
    if (static_cast<size_t>(each) == layer) return false;
  }
  return (static_cast<int64_t>(layer) + 1) % step == 0;
}

}  // namespace

void store_whole(ModelSpec& spec, const std::string& name, std::string tensor, int64_t rows,
                 int64_t columns) {
  spec.stored[name] = {block_at(std::move(tensor), 0, rows, columns)};
}

void set_experts(ModelSpec& spec, size_t layer, MoeSpec moe, const ExpertNames& names,
                 const ExpertSizes& sizes, const std::string& layers) {
  const std::string block = fmt::format("{}.{}.", layers, layer);
  const std::string module = block + names.module, file = block + names.file;
  moe.experts = sizes.experts;
  moe.intermediate = sizes.intermediate;
  moe.router = {module + "." + names.router, spec.hidden, sizes.experts, moe.router.bias};
  store_whole(spec, moe.router.path + ".weight", file + "." + names.router + ".weight", sizes.experts,
              spec.hidden);
  moe.up_name = module + ".experts." + (moe.gated ? "gate_up_proj" : "up_proj");
  moe.down_name = module + ".experts.down_proj";
  if (!names.selection_bias.empty()) {
    moe.selection_bias = module + "." + names.selection_bias;
    const std::string& stored = names.stored_bias;
    store_whole(spec, moe.selection_bias, stored.empty() ? file + "." + names.selection_bias : block + stored,
                sizes.experts, 1);
  }
  if (!names.stacked) store_one_by_one(spec, moe, file, names);
  if (sizes.shared_intermediate > 0) {
    const std::string path = module + "." + names.shared;
    const std::string stored =
        file + "." + (names.stored_shared.empty() ? names.shared : names.stored_shared);
    if (path != stored) spec.renames.emplace_back(path + ".", stored + ".");
    MlpSpec shared = moe.inner;
    if (moe.gated) shared.gate = {path + ".gate_proj", spec.hidden, sizes.shared_intermediate};
    shared.up = {path + ".up_proj", spec.hidden, sizes.shared_intermediate};
    shared.down = {path + ".down_proj", sizes.shared_intermediate, spec.hidden};
    moe.shared = shared;
  }
  spec.blocks[layer].feed_forward = std::move(moe);
}

std::vector<bool> dense_mlp_layers(ConfigReader& config, size_t layers) {
  std::vector<bool> dense(layers, false);
  const std::vector<std::string> types = config.texts_or_empty("mlp_layer_types");
  config.require(types.empty() || types.size() == layers, "mlp_layer_types", "must have one entry a layer");
  const int64_t first = config.has("first_k_dense_replace") ? config.integer("first_k_dense_replace") : 0;
  for (size_t i = 0; i < layers; ++i) {
    dense[i] = types.size() == layers ? types[i] == "dense" : static_cast<int64_t>(i) < first;
  }
  return dense;
}

void set_qwen_experts(ConfigReader& config, ModelSpec& spec, bool renormalise) {
  MoeSpec moe;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.renormalise = renormalise;
  ExpertSizes sizes{config.positive(config.has("num_experts") ? "num_experts" : "num_local_experts"),
                    config.positive("moe_intermediate_size")};
  const bool shared = config.has("shared_expert_intermediate_size");
  if (shared) sizes.shared_intermediate = config.positive("shared_expert_intermediate_size");
  const std::vector<double> dense = config.numbers_or_empty("mlp_only_layers");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (!has_experts(config, i, dense)) continue;
    set_experts(spec, i, moe, {.shared = "shared_expert"}, sizes);
    if (!shared) continue;
    const std::string path = fmt::format("model.layers.{}.mlp.shared_expert_gate", i);
    std::get<MoeSpec>(spec.blocks[i].feed_forward).shared_gate = {path, spec.hidden, 1};
  }
}

MoeSpec read_deepseek_router(ConfigReader& config) {
  MoeSpec moe;
  moe.scores = RouterScores::sigmoid;
  moe.top_k = {.k = config.positive("num_experts_per_tok"),
               .groups = config.positive_or("n_group", 1),
               .group_limit = config.positive_or("topk_group", 1),
               .group_sum = 2};
  moe.renormalise = config.flag_or("norm_topk_prob", true);
  moe.renormalise_eps = 1e-20;
  moe.scale = config.number_or("routed_scaling_factor", 1);
  const std::string scoring = config.text_or("scoring_func", "sigmoid");
  config.require(scoring == "sigmoid", "scoring_func", "must be sigmoid");
  const std::string method = config.text_or("topk_method", "noaux_tc");
  config.require(method == "noaux_tc", "topk_method", "must be noaux_tc");
  return moe;
}

}  // namespace tenon
