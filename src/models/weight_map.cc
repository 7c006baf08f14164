#include "models/weight_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/builder.h"
#include "models/family.h"
#include "models/forward.h"
#include "models/gguf_architectures.h"
#include "models/gguf_layouts.h"
#include "models/gguf_names.h"
#include "models/matrix_shape.h"

namespace tenon {
namespace {

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

// What a file has in place of the beginning of transformers' names.
struct Prefix {
  std::string from, to;

  std::string apply(const std::string& name) const {
    return name.starts_with(from) ? to + name.substr(from.size()) : name;
  }
};

// Found by where the embedding is: the first of the known forms under which it is there.
Prefix find_prefix(const Checkpoint& checkpoint, const std::string& embedding) {
  std::vector<Prefix> forms = {{"", ""}, {"", "language_model."}, {"", "thinker."}};
  for (const char* inner : {"model.language_model.", "model.text_model.", "language_model."})
    forms.push_back({"model.", inner});
  forms.push_back({embedding.substr(0, embedding.find('.') + 1), ""});
  for (const Prefix& form : forms) {
    if (checkpoint.find(form.apply(embedding))) return form;
  }
  return {};
}

// Why a tensor that nothing reads does no harm; empty where it may.
std::string_view why_harmless(const ModelSpec& spec, const Prefix& prefix, std::string_view tensor) {
  for (const std::string& part : spec.ignored) {
    if (tensor.starts_with(part) || tensor.ends_with(part)) return "the language model does not need it";
  }
  if (tensor.ends_with("rotary_emb.inv_freq") || tensor == "rope_freqs.weight" ||
      tensor.starts_with("rope_factors_"))
    return "frequencies are computed";
  const std::string head = prefix.apply(spec.head.path + ".weight");
  if (spec.tied && tensor == head) return "the head is tied to the embedding";
  if (!spec.quantisation.method.empty() && tensor.ends_with("_scale"))
    return "activations are not quantised here";
  const std::string own = prefix.to.empty() ? "model." : prefix.to;
  if (spec.multimodal && !tensor.starts_with(own) && tensor != head) return "it belongs to another modality";
  return {};
}

std::string some_of(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < 5; ++i) out += fmt::format("{}{}", i ? ", " : "", names[i]);
  if (names.size() > 5) out += fmt::format(" and {} more", names.size() - 5);
  return out;
}

using Renames = std::vector<std::pair<std::string, std::string>>;

std::string renamed(const Renames& renames, std::string name) {
  for (const auto& [from, to] : renames) {
    for (size_t at = name.find(from); at != std::string::npos; at = name.find(from, at + to.size()))
      name.replace(at, from.size(), to);
  }
  return name;
}

// Where the file keeps a weight, by the specification alone: in parts, or in one tensor as it is.
struct StoredParts {
  std::vector<StoredBlock> blocks;
  bool whole = false;
};

StoredParts stored_parts(const ModelSpec& spec, const Checkpoint& checkpoint, const WeightNeed& need) {
  const bool gguf = checkpoint.format() == CheckpointFormat::gguf;
  StoredParts parts;
  const auto cut = spec.stored.find(need.name);
  if (gguf) {
    parts.blocks = gguf_blocks(spec, checkpoint, need.name);
  } else if (cut != spec.stored.end()) {
    parts.blocks = cut->second;
  }
  if (!parts.blocks.empty()) return parts;
  StoredBlock whole;
  whole.tensor = gguf ? gguf_tensor_name(need.name, gguf_architecture(spec.architecture).norms_after)
                      : renamed(spec.renames, need.name);
  whole.rows = as_matrix(need.shape).rows;
  whole.columns = as_matrix(need.shape).columns;
  return {{whole}, true};
}

bool lies_within(const StoredBlock& block, const Shape& shape) {
  const MatrixShape stored = as_matrix(shape);
  const int64_t rows = block.transposed ? block.columns : (block.rows - 1) * block.stride + 1;
  const int64_t columns = block.transposed ? (block.rows - 1) * block.stride + 1 : block.columns;
  return block.from_row >= 0 && block.from_column >= 0 && block.from_row + rows <= stored.rows &&
         block.from_column + columns <= stored.columns;
}

Error wrong_shape(const Checkpoint& checkpoint, const SourceBlock& block, const std::string& wanted) {
  return bad_file(
      fmt::format("its shape is {}, but the configuration asks for {}", block.stored_shape.text(), wanted),
      fmt::format("{}: {}", checkpoint.path(), block.tensor),
      "The configuration and the weights are not of the same model.");
}

// GGUF drops axes of one element, adds them, or cuts a vector into rows: the values and their order are the
// same.
void use_needed_axes(SourceBlock& block, const Shape& needed) {
  const auto squeezed = [](const Shape& shape) {
    std::vector<int64_t> axes;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] != 1) axes.push_back(shape[i]);
    }
    return axes;
  };
  const bool vector = needed.rank() == 1 && block.stored_shape.elements() == needed.elements();
  if (is_block_quantised(block.stored)) return;
  if (vector || squeezed(block.stored_shape) == squeezed(needed)) block.stored_shape = needed;
}

// Whether a weight is a table of whole numbers: experts by token id.
bool holds_ids(const ModelSpec& spec, std::string_view name) {
  return std::any_of(spec.blocks.begin(), spec.blocks.end(), [&](const BlockSpec& block) {
    const auto* moe = std::get_if<MoeSpec>(&block.feed_forward);
    return moe && moe->expert_table == name;
  });
}

// What all weights of a checkpoint are looked up by.
struct Lookup {
  const ModelSpec& spec;
  const Checkpoint& checkpoint;
  Prefix prefix;
  bool permuted = false;  // rows of q and k, as GGUF has them
};

// The blocks of one weight, checked against the file; names of missing tensors are added to `missing`.
Result<WeightSource> find_source(const Lookup& lookup, const WeightNeed& need,
                                 std::vector<std::string>& missing) {
  const auto& [spec, checkpoint, prefix, permuted] = lookup;
  const bool gguf = checkpoint.format() == CheckpointFormat::gguf;
  const StoredParts parts = stored_parts(spec, checkpoint, need);
  WeightSource source{need.name, need.shape, {}, parts.whole};
  const bool ids = holds_ids(spec, need.name);
  int64_t next_row = 0;
  for (const StoredBlock& wanted : parts.blocks) {
    SourceBlock block{wanted, {}};
    block.tensor = prefix.apply(wanted.tensor);
    ASSIGN_OR_RETURN(bool found, find_stored(checkpoint, spec.quantisation, block, ids));
    if (!found && source.whole && !spec.other_renames.empty()) {
      block.tensor = prefix.apply(renamed(spec.other_renames, need.name));
      ASSIGN_OR_RETURN(found, find_stored(checkpoint, spec.quantisation, block, ids));
      if (!found) block.tensor = prefix.apply(wanted.tensor);
    }
    if (!found && gguf && source.whole && wanted.tensor.ends_with(".ffn_norm.weight")) {
      // Falcon-H1's files leave the suffix out.
      block.tensor = wanted.tensor.substr(0, wanted.tensor.rfind('.'));
      ASSIGN_OR_RETURN(found, find_stored(checkpoint, spec.quantisation, block, ids));
      if (!found) block.tensor = wanted.tensor;
    }
    if (!found) {
      missing.push_back(block.tensor);
      continue;
    }
    if (block.stored_shape.elements() == 0) return wrong_shape(checkpoint, block, "more");
    if (gguf && source.whole) use_needed_axes(block, need.shape);
    if (source.whole && block.stored_shape != need.shape)
      return wrong_shape(checkpoint, block, need.shape.text());
    if (block.rows == 0) {
      block.row = next_row;
      block.rows = as_matrix(block.stored_shape).rows;
    }
    next_row = block.row + block.rows;
    if (next_row > as_matrix(need.shape).rows) return wrong_shape(checkpoint, block, "less");
    if (!lies_within(block, block.stored_shape)) return wrong_shape(checkpoint, block, "more");
    if (permuted) block.rope_heads = rotary_heads(spec, need.name);
    source.blocks.push_back(std::move(block));
  }
  return source;
}

}  // namespace

std::vector<WeightNeed> weights_needed(const ModelSpec& spec) {
  Program program;
  Builder builder(program);
  ForwardOptions options;
  options.tokens = 1;
  const ValueId hidden = build_forward(builder, spec, options);
  build_logits(builder, spec, hidden, 1, options);
  std::vector<WeightNeed> out;
  for (const Value& value : program.values) {
    if (value.role == Role::weight && !value.producer.valid()) out.push_back({value.name, value.type.shape});
  }
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
  Lookup lookup{spec, checkpoint, {}, layout && layout->permuted_rope};
  if (!gguf) lookup.prefix = find_prefix(checkpoint, renamed(spec.renames, spec.embedding_path + ".weight"));
  WeightMap map;
  std::vector<std::string> missing;
  std::set<std::string, std::less<>> used;
  for (const WeightNeed& need : weights_needed(spec)) {
    ASSIGN_OR_RETURN(WeightSource source, find_source(lookup, need, missing));
    for (const SourceBlock& block : source.blocks) {
      used.insert(block.tensor);
      if (!block.scales.tensor.empty()) used.insert(block.scales.tensor);
    }
    map.sources.push_back(std::move(source));
  }
  if (!missing.empty()) {
    return not_found(fmt::format("{} tensor{} missing: {}", missing.size(),
                                 missing.size() == 1 ? " is" : "s are", some_of(missing)),
                     checkpoint.path(),
                     "The file is incomplete, or its configuration describes another model.");
  }
  std::vector<std::string> unknown;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    if (used.contains(tensor.name)) continue;
    const std::string_view why = why_harmless(spec, lookup.prefix, tensor.name);
    if (why.empty()) {
      unknown.push_back(tensor.name);
    } else {
      map.unused.push_back({tensor.name, why});
    }
  }
  if (!unknown.empty()) {
    return bad_file(fmt::format("{} tensors belong to nothing in this architecture: {}", unknown.size(),
                                some_of(unknown)),
                    checkpoint.path(), "The configuration describes another model than the weights.");
  }
  return map;
}

}  // namespace tenon
