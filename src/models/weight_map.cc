#include "models/weight_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/half.h"
#include "io/dequantise.h"
#include "models/family.h"
#include "models/gguf_names.h"

namespace tenon {
namespace {

void need_linear(const LinearSpec& linear, std::vector<WeightNeed>& out) {
  out.push_back({linear.path + ".weight", Shape{linear.out, linear.in}});
  if (linear.bias) out.push_back({linear.path + ".bias", Shape{linear.out}});
}

void need_norm(const NormSpec& norm, std::vector<WeightNeed>& out) {
  if (norm.kind != NormKind::none) out.push_back({norm.path + ".weight", Shape{norm.width}});
}

struct MixerNeeds {
  std::vector<WeightNeed>& out;
  void operator()(const AttentionSpec& a) const {
    for (const LinearSpec* linear : {&a.q, &a.k, &a.v, &a.o}) need_linear(*linear, out);
    need_norm(a.q_norm, out);
    need_norm(a.k_norm, out);
  }
};

struct FeedForwardNeeds {
  std::vector<WeightNeed>& out;
  void operator()(const GatedMlpSpec& mlp) const {
    for (const LinearSpec* linear : {&mlp.gate, &mlp.up, &mlp.down}) need_linear(*linear, out);
  }
};

// Heads of the rotary projections, whose rows GGUF permutes, by path.
int64_t rotary_heads(const ModelSpec& spec, std::string_view name) {
  for (const BlockSpec& block : spec.blocks) {
    const auto* a = std::get_if<AttentionSpec>(&block.mixer);
    if (!a || a->rope < 0) continue;
    if (name.starts_with(a->q.path + ".")) return a->heads;
    if (name.starts_with(a->k.path + ".")) return a->kv_heads;
  }
  return 0;
}

// Tensors that carry nothing a model needs: recomputed frequencies, and a copy of a tied head.
bool is_harmless(const ModelSpec& spec, std::string_view tensor) {
  return tensor.ends_with("rotary_emb.inv_freq") || tensor == "rope_freqs.weight" ||
         (spec.tied && tensor == spec.head.path + ".weight");
}

std::string some_of(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < 5; ++i) out += fmt::format("{}{}", i ? ", " : "", names[i]);
  if (names.size() > 5) out += fmt::format(" and {} more", names.size() - 5);
  return out;
}

// Source row of a logical row: pairs (2i, 2i + 1) of a head hold rows i and i + head_dim / 2.
int64_t stored_row(const WeightSource& source, int64_t row) {
  if (source.transform == LoadTransform::none) return row;
  const int64_t head_dim = source.shape[0] / source.heads;
  const int64_t head = row / head_dim;
  const int64_t within = row % head_dim;
  const int64_t half = head_dim / 2;
  return head * head_dim + 2 * (within % half) + within / half;
}

int64_t row_elements(const WeightSource& source) {
  return source.shape.rank() == 1 ? 1 : source.shape[-1];
}

Status check_finite(const WeightSource& source, const float* row, int64_t elements, int64_t row_index) {
  for (int64_t i = 0; i < elements; ++i) {
    if (!std::isfinite(row[i])) {
      return bad_file(fmt::format("the value at row {}, column {} is not finite", row_index, i),
                      source.tensor, "The file is damaged or the model was saved after it diverged.");
    }
  }
  return {};
}

void narrow(const float* from, DType dtype, std::byte* to, int64_t elements) {
  if (dtype == DType::f32) {
    std::memcpy(to, from, static_cast<size_t>(elements) * 4);
    return;
  }
  uint16_t* out = reinterpret_cast<uint16_t*>(to);
  CHECK(dtype == DType::bf16 || dtype == DType::f16, dtype_name(dtype));
  for (int64_t i = 0; i < elements; ++i)
    out[i] = dtype == DType::bf16 ? f32_to_bf16(from[i]) : f32_to_f16(from[i]);
}

}  // namespace

std::vector<WeightNeed> weights_needed(const ModelSpec& spec) {
  std::vector<WeightNeed> out;
  out.push_back({spec.embedding_path + ".weight", Shape{spec.vocab, spec.hidden}});
  for (const BlockSpec& block : spec.blocks) {
    need_norm(block.mixer_norm, out);
    std::visit(MixerNeeds{out}, block.mixer);
    need_norm(block.feed_forward_norm, out);
    std::visit(FeedForwardNeeds{out}, block.feed_forward);
  }
  need_norm(spec.final_norm, out);
  if (!spec.tied) need_linear(spec.head, out);
  return out;
}

const WeightSource* WeightMap::find(std::string_view name) const {
  for (const WeightSource& source : sources) {
    if (source.name == name) return &source;
  }
  return nullptr;
}

Result<WeightMap> map_weights(const ModelSpec& spec, const Checkpoint& checkpoint) {
  const bool gguf = checkpoint.format() == CheckpointFormat::gguf;
  const GgufLayout* layout = gguf ? find_gguf_layout(spec.architecture) : nullptr;
  WeightMap map;
  std::vector<std::string> missing;
  std::set<std::string_view> used;
  for (const WeightNeed& need : weights_needed(spec)) {
    WeightSource source{need.name, gguf ? gguf_tensor_name(need.name) : need.name, need.shape};
    const CheckpointTensor* tensor = checkpoint.find(source.tensor);
    if (!tensor) {
      missing.push_back(source.tensor);
      continue;
    }
    if (tensor->shape != need.shape) {
      return bad_file(fmt::format("its shape is {}, but the configuration asks for {}", tensor->shape.text(),
                                  need.shape.text()),
                      fmt::format("{}: {}", checkpoint.path(), source.tensor),
                      "The configuration and the weights are not of the same model.");
    }
    if (!can_dequantise(tensor->dtype)) {
      return bad_file(fmt::format("weights of type {} are not supported", dtype_name(tensor->dtype)),
                      fmt::format("{}: {}", checkpoint.path(), source.tensor));
    }
    source.stored = tensor->dtype;
    if (layout && layout->permuted_rope) source.heads = rotary_heads(spec, need.name);
    if (source.heads > 0) source.transform = LoadTransform::unpermute_rope;
    used.insert(tensor->name);
    map.sources.push_back(std::move(source));
  }
  if (!missing.empty()) {
    return not_found(fmt::format("{} tensors are missing: {}", missing.size(), some_of(missing)),
                     checkpoint.path(),
                     "The file is incomplete, or its configuration describes another model.");
  }
  std::vector<std::string> unknown;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    if (used.contains(tensor.name)) continue;
    (is_harmless(spec, tensor.name) ? map.unused : unknown).push_back(tensor.name);
  }
  if (!unknown.empty()) {
    return bad_file(fmt::format("{} tensors belong to nothing in this architecture: {}", unknown.size(),
                                some_of(unknown)),
                    checkpoint.path(), "The configuration describes another model than the weights.");
  }
  return map;
}

bool is_stored_as(const WeightSource& source, DType dtype) {
  return source.stored == dtype && source.transform == LoadTransform::none;
}

Status load_weight(const Checkpoint& checkpoint, const WeightSource& source, DType dtype,
                   std::span<std::byte> destination) {
  const std::span<const std::byte> stored = checkpoint.bytes(source.tensor);
  const int64_t elements = row_elements(source);
  const int64_t rows = source.shape.elements() / elements;
  const int64_t stored_row_bytes = static_cast<int64_t>(stored.size()) / rows;
  const int64_t row_bytes = static_cast<int64_t>(destination.size()) / rows;
  if (source.shape.rank() == 1 && source.transform == LoadTransform::none) {  // one long row
    std::vector<float> values(static_cast<size_t>(rows));
    dequantise_row(source.stored, stored.data(), values.data(), rows);
    RETURN_IF_ERROR(check_finite(source, values.data(), rows, 0));
    narrow(values.data(), dtype, destination.data(), rows);
    return {};
  }
  std::vector<float> row(static_cast<size_t>(elements));
  for (int64_t r = 0; r < rows; ++r) {
    const std::byte* from = stored.data() + stored_row(source, r) * stored_row_bytes;
    std::byte* to = destination.data() + r * row_bytes;
    if (dtype == source.stored && is_block_quantised(dtype)) {
      std::memcpy(to, from, static_cast<size_t>(row_bytes));
      continue;
    }
    dequantise_row(source.stored, from, row.data(), elements);
    RETURN_IF_ERROR(check_finite(source, row.data(), elements, r));
    narrow(row.data(), dtype, to, elements);
  }
  return {};
}

std::vector<float> to_stored_order(const WeightSource& source, std::span<const float> logical) {
  std::vector<float> out(logical.size());
  const int64_t elements = row_elements(source);
  const int64_t rows = static_cast<int64_t>(logical.size()) / elements;
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(logical.begin() + r * elements, elements, out.begin() + stored_row(source, r) * elements);
  }
  return out;
}

}  // namespace tenon
