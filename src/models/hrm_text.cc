// Two stacks of layers that run in loops (HRM): a slow stream and a fast one, each round of a stack beginning
// from the sum of both. Early rounds of the fast stack take no gradient.
#include <algorithm>

#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

constexpr int32_t kSlow = 0, kFast = 1;

// The file has gate, q, k and v of attention in one matrix, and gate and up of the MLP in another.
void split_stored(ModelSpec& spec, const BlockSpec& block, const std::string& path) {
  const auto cut = [&](const std::vector<const LinearSpec*>& parts, const std::string& tensor) {
    int64_t row = 0;
    for (const LinearSpec* linear : parts) {
      StoredBlock rows;
      rows.tensor = tensor;
      rows.rows = linear->out;
      rows.columns = linear->in;
      rows.from_row = row;
      row += linear->out;
      spec.stored[linear->path + ".weight"] = {rows};
    }
  };
  const auto& a = std::get<AttentionSpec>(block.mixer);
  const auto& mlp = std::get<MlpSpec>(block.feed_forward);
  cut({&a.gate, &a.q, &a.k, &a.v}, path + ".attn.gqkv_proj.weight");
  cut({&mlp.gate, &mlp.up}, path + ".mlp.gate_up_proj.weight");
}

std::vector<BlockSpec> read_stack(ModelSpec& spec, const std::string& stack, int64_t layers) {
  std::vector<BlockSpec> blocks;
  for (int64_t i = 0; i < layers; ++i) {
    const std::string path = "model." + stack + ".layers." + std::to_string(i);
    BlockSpec block = spec.blocks[0];
    auto& a = std::get<AttentionSpec>(block.mixer);
    auto& mlp = std::get<MlpSpec>(block.feed_forward);
    for (LinearSpec* linear : {&a.q, &a.k, &a.v, &a.o, &mlp.gate, &mlp.up, &mlp.down})
      linear->path.replace(0, std::string_view("model.layers.0").size(), path);
    a.gate_kind = GateKind::sigmoid;
    a.gate = {path + ".self_attn.gate_proj", spec.hidden, a.q.out, a.q.bias};
    split_stored(spec, block, path);
    blocks.push_back(block);
  }
  return blocks;
}

Result<ModelSpec> read_hrm_text(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm_weight = false;
  for (const char* key : {"prefix_lm", "num_key_value_heads", "num_hidden_layers"}) config.ignore(key);
  config.require(!config.flag_or("attention_bias", false), "attention_bias", "must be false");
  config.require(!config.flag_or("mlp_bias", false), "mlp_bias", "must be false");
  const int64_t layers = config.positive("num_layers_per_stack");
  const int64_t slow = config.positive("H_cycles"), fast = config.positive("L_cycles");
  const std::vector<double> trained = config.numbers_or_empty("L_bp_cycles");
  ModelSpec spec = read_decoder(config, traits);
  config.require(std::max({slow, fast, layers}) <= 100 && slow * (fast + 1) * layers <= 10000, "H_cycles",
                 "is implausibly large");
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  spec.embedding_scale = config.number_or("embedding_scale", 1);
  const std::vector<BlockSpec> fast_stack = read_stack(spec, "L_module", layers);
  const std::vector<BlockSpec> slow_stack = read_stack(spec, "H_module", layers);
  const NormSpec norm = spec.final_norm;
  spec.blocks.clear();
  const auto run = [&](std::vector<BlockSpec> stack, int32_t add, int32_t become, bool detached) {
    stack.front().kept.enter = add;
    stack.back().kept.leave = become;
    stack.back().kept.leave_norm = norm;
    stack.back().kept.detached = detached;
    spec.blocks.insert(spec.blocks.end(), stack.begin(), stack.end());
  };
  for (int64_t h = 0; h < slow; ++h) {
    const int64_t missing = slow - static_cast<int64_t>(trained.size());
    const bool given =
        h >= missing && h - std::max<int64_t>(missing, 0) < static_cast<int64_t>(trained.size());
    const double rounds = given ? trained[static_cast<size_t>(h - std::max<int64_t>(missing, 0))] : 1;
    for (int64_t l = 0; l < fast; ++l)
      run(fast_stack, l == 0 ? kFast : kSlow, kFast,
          static_cast<double>(l) < static_cast<double>(fast) - rounds);
    run(slow_stack, kSlow, kSlow, false);
  }
  spec.kept_streams = {"", "model.z_L_init"};
  spec.final_norm = {};
  spec.renames.emplace_back(".self_attn.", ".attn.");
  return spec;
}

constexpr Family kFamilies[] = {
    {"hrm_text", {"hrm_text"}, {}, read_hrm_text},
};

}  // namespace

std::span<const Family> hrm_text_families() {
  return kFamilies;
}

}  // namespace tenon
