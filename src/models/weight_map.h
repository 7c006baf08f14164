// From the weights that a model needs to the tensors that hold them: names, transforms, and what is missing
// or left over. Pure over the checkpoint's index; loading converts one weight at a time into memory that the
// caller owns.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/checkpoint.h"
#include "ir/type.h"
#include "models/model_spec.h"
#include "models/stored_values.h"

namespace tenon {

// A parameter that the spec calls for.
struct WeightNeed {
  std::string name;  // module path + ".weight" or ".bias"
  Shape shape;
};
// In the order of the forward Program.
std::vector<WeightNeed> weights_needed(const ModelSpec& spec);

struct WeightSource {
  std::string name;  // logical
  Shape shape;
  std::vector<SourceBlock> blocks;
  bool whole = false;  // one tensor, as it is

  const std::string& tensor() const { return blocks[0].tensor; }
  DType stored() const { return blocks[0].stored; }
};

// A tensor that nothing reads, and why that does no harm.
struct UnusedTensor {
  std::string name;
  std::string_view why;
};

struct WeightMap {
  std::vector<WeightSource> sources;  // one for each need, in its order
  std::vector<UnusedTensor> unused;

  const WeightSource* find(std::string_view name) const;
};

// Names may have another prefix than transformers gives them: the text part of a multimodal model lies under
// `language_model.` or `model.language_model.`, and a base model has no `model.` or `transformer.`.
//
// Errors: not_found listing the missing tensors, bad_file for a shape that differs from the configuration's
// or a tensor that nothing reads and that is not known to be harmless.
Result<WeightMap> map_weights(const ModelSpec& spec, const Checkpoint& checkpoint);

// Whether every part of a weight is whole rows of a stored tensor: rows can then stay, or become, quantised.
bool has_whole_rows(const WeightSource& source);

// Converts a weight to `dtype` into `destination`, blocks put together: f32, bf16 or f16, and where it has
// whole rows q8_0 or the dtype that it is stored in.
// Errors: bad_file where a value is not finite (naming the tensor and the index).
Status load_weight(const Checkpoint& checkpoint, const WeightSource& source, DType dtype,
                   std::span<std::byte> destination);

// Whether the stored bytes are already what load_weight() would give, so that they can be used where they
// are.
bool is_stored_as(const WeightSource& source, DType dtype);

// Gradients (f32) by logical name to those of the checkpoint's tensors, by tensor: each block put back where
// it came from, zero where no given weight reads.
struct StoredGradient {
  Shape shape;
  std::vector<float> values;
};
std::map<std::string, StoredGradient> to_stored(const WeightMap& map,
                                                const std::map<std::string, std::vector<float>>& logical);

}  // namespace tenon
