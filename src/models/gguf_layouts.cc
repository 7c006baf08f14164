#include "models/gguf_layouts.h"

#include <utility>

#include "models/gguf_architectures.h"
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

// Gate and up of stacked experts, or their biases, side by side in the weight. Newer files may have the
// matrices as one tensor.
std::vector<StoredBlock> gate_and_up(const MoeSpec& moe, const Checkpoint& checkpoint,
                                     const std::string& block, int64_t hidden, bool biases) {
  std::vector<StoredBlock> out;
  const int64_t width = moe.intermediate;
  const std::string fused = block + "ffn_gate_up_exps.weight";
  if (!biases && checkpoint.find(fused)) return {rows_of(fused, 0, 0, 2 * moe.experts * width, hidden)};
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

std::vector<StoredBlock> expert_parts(const MoeSpec& moe, const Checkpoint& checkpoint, int64_t hidden,
                                      const std::string& block, std::string_view name) {
  if (name == moe.up_name && moe.gated) return gate_and_up(moe, checkpoint, block, hidden, false);
  if (name == moe.up_bias && moe.gated) return gate_and_up(moe, checkpoint, block, hidden, true);
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

// Qwen3-Next's projection by key head (q, k, v, gate) in two tensors, the gates apart, each with all queries
// first, then all keys, then all values. Older files have it as it is.
std::vector<StoredBlock> fused_delta_parts(const DeltaSpec& d, const Checkpoint& checkpoint,
                                           const std::string& block) {
  const std::string whole = block + "ssm_in.weight";
  const int64_t columns = d.qkvz.in, values = d.heads / d.key_heads * d.value_dim;
  if (checkpoint.find(whole)) return {rows_of(whole, 0, 0, d.qkvz.out, columns)};
  std::vector<StoredBlock> out;
  int64_t row = 0;
  for (int64_t head = 0; head < d.key_heads; ++head) {
    int64_t begin = 0;
    for (const int64_t share : {d.key_dim, d.key_dim, values}) {
      out.push_back(rows_of(block + "attn_qkv.weight", begin + head * share, row, share, columns));
      begin += d.key_heads * share;
      row += share;
    }
    out.push_back(rows_of(block + "attn_gate.weight", head * values, row, values, columns));
    row += values;
  }
  return out;
}

// Heads of values that share a key follow each other here; these files have the first of every key, then the
// second of every key, and so on.
int64_t tiled_head(const DeltaSpec& d, int64_t head) {
  const int64_t by_key = d.heads / d.key_heads;
  return head % by_key * d.key_heads + head / by_key;
}

// `dim` rows of each head of values, after `first` rows that are where they belong.
std::vector<StoredBlock> tiled_rows(const DeltaSpec& d, const std::string& tensor, int64_t first, int64_t dim,
                                    int64_t columns) {
  std::vector<StoredBlock> out;
  if (first > 0) out.push_back(rows_of(tensor, 0, 0, first, columns));
  for (int64_t head = 0; head < d.heads; ++head)
    out.push_back(rows_of(tensor, first + tiled_head(d, head) * dim, first + head * dim, dim, columns));
  return out;
}

std::vector<StoredBlock> tiled_delta_parts(const DeltaSpec& d, const std::string& block,
                                           std::string_view name) {
  const int64_t keys = 2 * d.key_heads * d.key_dim, dim = d.value_dim;
  const auto is = [&](const std::string& path) { return name == path + ".weight"; };
  if (is(d.qkv.path)) return tiled_rows(d, block + "attn_qkv.weight", keys, dim, d.qkv.in);
  if (is(d.gate.path)) return tiled_rows(d, block + "attn_gate.weight", 0, dim, d.gate.in);
  if (is(d.beta.path)) return tiled_rows(d, block + "ssm_beta.weight", 0, 1, d.beta.in);
  if (is(d.decay.path)) return tiled_rows(d, block + "ssm_alpha.weight", 0, 1, d.decay.in);
  if (is(d.conv.path)) return tiled_rows(d, block + "ssm_conv1d.weight", keys, dim, d.conv.taps);
  if (name == d.decay_kind.a_log) return tiled_rows(d, block + "ssm_a", 0, 1, 1);
  if (name == d.decay_kind.dt_bias) return tiled_rows(d, block + "ssm_dt.bias", 0, 1, 1);
  std::vector<StoredBlock> out;
  for (int64_t head = 0; is(d.out.path) && head < d.heads; ++head) {
    out.push_back(rows_of(block + "ssm_out.weight", 0, 0, d.out.out, dim));
    out.back().column = head * dim;
    out.back().from_column = tiled_head(d, head) * dim;
  }
  return out;
}

std::vector<StoredBlock> delta_parts(const ModelSpec& spec, const DeltaSpec& d, const Checkpoint& checkpoint,
                                     const std::string& block, std::string_view name) {
  if (d.qkvz.present())
    return name == d.qkvz.path + ".weight" ? fused_delta_parts(d, checkpoint, block)
                                           : std::vector<StoredBlock>{};
  const bool tiled = gguf_architecture(spec.architecture).tiled_values && d.heads > d.key_heads;
  return tiled ? tiled_delta_parts(d, block, name) : std::vector<StoredBlock>{};
}

// Projections between AltUp's streams, one after the other in a tensor.
std::vector<StoredBlock> stream_parts(const std::vector<LinearSpec>& streams, const std::string& tensor,
                                      std::string_view name) {
  int64_t row = 0;
  for (const LinearSpec& each : streams) {
    if (name == each.path + ".weight") return {rows_of(tensor, row, 0, each.out, each.in)};
    row += each.out;
  }
  return {};
}

// xIELU's parameters, which are lists in the metadata, a value for each block.
std::vector<StoredBlock> activation_parts(const MlpSpec& mlp, int64_t layer, std::string_view name) {
  const std::string prefix = mlp.activation_path + ".";
  if (mlp.activation_path.empty() || !name.starts_with(prefix)) return {};
  return {rows_of("xielu." + std::string(name.substr(prefix.size())), layer, 0, 1, 1)};
}

void shift(NormSpec& norm) {
  if (norm.weight_offset == 1) norm.weight_offset = 0;
}

}  // namespace

std::vector<StoredBlock> gguf_blocks(const ModelSpec& spec, const Checkpoint& checkpoint,
                                     std::string_view name) {
  if (spec.head.bias && name == spec.head.path + ".weight") return head_parts(spec);
  for (const auto& [streams, tensor] :
       {std::pair{&spec.stream_in, "altup_proj.weight"}, {&spec.stream_out, "altup_unembd_proj.weight"}}) {
    if (auto parts = stream_parts(*streams, tensor, name); !parts.empty()) return parts;
  }
  const std::string block = gguf_block_name(name).block;
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    const BlockSpec& each = spec.blocks[layer];
    std::vector<StoredBlock> parts;
    if (const auto* moe = std::get_if<MoeSpec>(&each.feed_forward)) {
      parts = expert_parts(*moe, checkpoint, spec.hidden, block, name);
    } else if (const auto* mlp = std::get_if<MlpSpec>(&each.feed_forward)) {
      parts = shared_mlp_parts(*mlp, "", block, name);
      if (parts.empty()) parts = activation_parts(*mlp, static_cast<int64_t>(layer), name);
    }
    if (parts.empty()) {
      if (const auto* a = std::get_if<AttentionSpec>(&each.mixer)) parts = grouped_parts(*a, block, name);
      if (const auto* a = std::get_if<LatentAttentionSpec>(&each.mixer))
        parts = latent_parts(*a, checkpoint, block, name);
      if (const auto* d = std::get_if<DeltaSpec>(&each.mixer))
        parts = delta_parts(spec, *d, checkpoint, block, name);
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
