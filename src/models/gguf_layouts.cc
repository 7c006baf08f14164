#include "models/gguf_layouts.h"

#include "models/gguf_names.h"

namespace tenon {
namespace {

StoredBlock rows_of(std::string tensor, int64_t from_row, int64_t row, int64_t rows, int64_t columns) {
  StoredBlock block;
  block.tensor = std::move(tensor);
  block.from_row = from_row;
  block.row = row;
  block.rows = rows;
  block.columns = columns;
  return block;
}

// Gate and up of stacked experts, or their biases, side by side in the weight.
std::vector<StoredBlock> gate_and_up(const MoeSpec& moe, const std::string& block, int64_t hidden,
                                     bool biases) {
  std::vector<StoredBlock> out;
  const int64_t width = moe.intermediate;
  for (int64_t half = 0; half < 2; ++half) {
    const std::string tensor =
        block + (half == 0 ? "ffn_gate_exps." : "ffn_up_exps.") + (biases ? "bias" : "weight");
    if (biases) {
      out.push_back(rows_of(tensor, 0, 0, moe.experts, width));
      out.back().column = half * width;
      continue;
    }
    for (int64_t e = 0; e < moe.experts; ++e)
      out.push_back(rows_of(tensor, e * width, (2 * e + half) * width, width, hidden));
  }
  return out;
}

std::vector<StoredBlock> head_parts(const ModelSpec& spec) {
  std::vector<StoredBlock> out = {rows_of("output.weight", 0, 0, spec.vocab, spec.head.in),
                                  rows_of("output.bias", 0, 0, spec.vocab, 1)};
  out[1].column = spec.head.in;
  return out;
}

// Granite's dense and shared layers: gate and up, which the module has in one projection.
std::vector<StoredBlock> shared_mlp_parts(const MlpSpec& mlp, const std::string& suffix,
                                          const std::string& block, std::string_view name) {
  if (!mlp.gate_up.path.ends_with(".shared_mlp.input_linear")) return {};
  const int64_t half = mlp.gate_up.out / 2;
  if (name == mlp.gate_up.path + ".weight") {
    return {rows_of(block + "ffn_gate" + suffix + ".weight", 0, 0, half, mlp.gate_up.in),
            rows_of(block + "ffn_up" + suffix + ".weight", 0, half, half, mlp.gate_up.in)};
  }
  if (name == mlp.down.path + ".weight")
    return {rows_of(block + "ffn_down" + suffix + ".weight", 0, 0, mlp.down.out, mlp.down.in)};
  return {};
}

std::vector<StoredBlock> expert_parts(const MoeSpec& moe, int64_t hidden, const std::string& block,
                                      std::string_view name) {
  if (name == moe.up_name && moe.gated) return gate_and_up(moe, block, hidden, false);
  if (name == moe.up_bias && moe.gated) return gate_and_up(moe, block, hidden, true);
  if (name == moe.up_name)
    return {rows_of(block + "ffn_up_exps.weight", 0, 0, moe.experts * moe.intermediate, hidden)};
  if (name == moe.down_name)
    return {rows_of(block + "ffn_down_exps.weight", 0, 0, moe.experts * hidden, moe.intermediate)};
  if (name == moe.down_bias) return {rows_of(block + "ffn_down_exps.bias", 0, 0, moe.experts, hidden)};
  return moe.shared ? shared_mlp_parts(*moe.shared, "_shexp", block, name) : std::vector<StoredBlock>{};
}

// A fused projection whose groups each have their queries, keys and values: GGUF has all queries first, then
// all keys, then all values.
std::vector<StoredBlock> grouped_parts(const AttentionSpec& a, const std::string& block,
                                       std::string_view name) {
  const bool weight = name == a.qkv.path + ".weight", bias = name == a.qkv.path + ".bias";
  if (!a.qkv.present() || a.qkv_groups < 2 || (!weight && !bias)) return {};
  const int64_t columns = weight ? a.qkv.in : 1, groups = a.qkv_groups;
  const int64_t shares[] = {a.q.out / groups, a.k.out / groups, a.v.out / groups};
  std::vector<StoredBlock> out;
  int64_t row = 0;
  for (int64_t group = 0; group < groups; ++group) {
    int64_t begin = 0;
    for (const int64_t share : shares) {
      out.push_back(rows_of(block + (weight ? "attn_qkv.weight" : "attn_qkv.bias"), begin + group * share,
                            row, share, columns));
      begin += groups * share;
      row += share;
    }
  }
  return out;
}

// kv_b in two tensors, as they are absorbed: of keys [heads, latent, nope], transposed, and of values [heads,
// v, latent]. Older files have it as one.
std::vector<StoredBlock> latent_parts(const LatentAttentionSpec& a, const Checkpoint& checkpoint,
                                      const std::string& block, std::string_view name) {
  const std::string k = block + "attn_k_b.weight", v = block + "attn_v_b.weight";
  if (name != a.kv_b.path + ".weight" || checkpoint.find(block + "attn_kv_b.weight")) return {};
  const int64_t latent = a.kv_b.in, by_head = a.nope_dim + a.v_head_dim;
  std::vector<StoredBlock> out;
  for (int64_t head = 0; head < a.heads; ++head) {
    out.push_back(rows_of(k, head * latent, head * by_head, a.nope_dim, latent));
    out.back().transposed = true;
    out.push_back(rows_of(v, head * a.v_head_dim, head * by_head + a.nope_dim, a.v_head_dim, latent));
  }
  return out;
}

void shift(NormSpec& norm) {
  if (norm.weight_offset == 1) norm.weight_offset = 0;
}

}  // namespace

std::vector<StoredBlock> gguf_blocks(const ModelSpec& spec, const Checkpoint& checkpoint,
                                     std::string_view name) {
  if (spec.head.bias && name == spec.head.path + ".weight") return head_parts(spec);
  const std::string block = gguf_block_name(name).block;
  for (const BlockSpec& each : spec.blocks) {
    std::vector<StoredBlock> parts;
    if (const auto* moe = std::get_if<MoeSpec>(&each.feed_forward)) {
      parts = expert_parts(*moe, spec.hidden, block, name);
    } else if (const auto* mlp = std::get_if<MlpSpec>(&each.feed_forward)) {
      parts = shared_mlp_parts(*mlp, "", block, name);
    }
    if (parts.empty()) {
      if (const auto* a = std::get_if<AttentionSpec>(&each.mixer)) parts = grouped_parts(*a, block, name);
      if (const auto* a = std::get_if<LatentAttentionSpec>(&each.mixer))
        parts = latent_parts(*a, checkpoint, block, name);
    }
    if (!parts.empty()) return parts;
  }
  return {};
}

void use_shifted_norms(ModelSpec& spec) {
  shift(spec.final_norm);
  for (BlockSpec& block : spec.blocks) {
    for (NormSpec* norm :
         {&block.mixer_norm, &block.mixer_post_norm, &block.feed_forward_norm, &block.feed_forward_post_norm})
      shift(*norm);
    if (auto* a = std::get_if<AttentionSpec>(&block.mixer)) shift(a->q_norm), shift(a->k_norm);
  }
}

}  // namespace tenon
