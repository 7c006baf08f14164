// Fills in the experts of a block: names, sizes, and where the file keeps each expert's matrices.
#pragma once

#include <string>

#include "models/decoder.h"

namespace tenon {

struct ExpertNames {
  std::string module = "mlp";  // of the feed-forward in a block, as transformers has it
  std::string file = "mlp";    // the same, as the file has it
  std::string router = "gate";
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";  // of one expert in the file
  std::string shared = "shared_experts";                               // in module and file
  std::string selection_bias;                                          // after the module; empty: none
  std::string stored_shared;  // after `file`, where it differs from `shared`
  std::string stored_bias;    // after the block, where it is not file + selection_bias
  bool stacked = false;       // the file has the experts stacked, as transformers does
};

struct ExpertSizes {
  int64_t experts = 0;
  int64_t intermediate = 0;
  int64_t shared_intermediate = 0;  // 0: no shared expert
};

// Experts stored one by one, `moe` holding the settings. Sets the block's feed-forward.
void set_experts(ModelSpec& spec, size_t layer, MoeSpec moe, const ExpertNames& names,
                 const ExpertSizes& sizes, const std::string& layers = "model.layers");

// Whether each layer's MLP is dense, by `mlp_layer_types` or `first_k_dense_replace`.
std::vector<bool> dense_mlp_layers(ConfigReader& config, size_t layers);

// The whole tensor `tensor` as the weight `name` of that many rows and columns.
void store_whole(ModelSpec& spec, const std::string& name, std::string tensor, int64_t rows, int64_t columns);

// Settings of DeepSeek-V3's router and of those after it: sigmoid scores, a bias that only selects, groups.
MoeSpec read_deepseek_router(ConfigReader& config);

// Experts by Qwen's keys: softmax scores, a shared expert with a gate, dense layers by `mlp_only_layers` and
// `decoder_sparse_step`.
void set_qwen_experts(ConfigReader& config, ModelSpec& spec, bool renormalise);

}  // namespace tenon
