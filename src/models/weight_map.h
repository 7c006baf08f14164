// From the weights that a model needs to the tensors that hold them: names, transforms, and what is missing
// or left over. Pure over the checkpoint's index; loading converts one weight at a time into memory that the
// caller owns.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/checkpoint.h"
#include "ir/type.h"
#include "models/model_spec.h"

namespace tenon {

// A parameter that the spec calls for.
struct WeightNeed {
  std::string name;  // module path + ".weight" or ".bias"
  Shape shape;
};
std::vector<WeightNeed> weights_needed(const ModelSpec& spec);

// How the stored rows become the logical ones. Both keep whole rows, so a block-quantised tensor can stay as
// it is.
enum class LoadTransform : uint8_t {
  none,
  unpermute_rope,  // GGUF keeps rotary pairs next to each other in q and k; back to the half-split order, by
                   // head
};

struct WeightSource {
  std::string name;    // logical
  std::string tensor;  // in the checkpoint
  Shape shape;
  DType stored = DType::f32;
  LoadTransform transform = LoadTransform::none;
  int64_t heads = 0;  // of unpermute_rope
};

struct WeightMap {
  std::vector<WeightSource> sources;  // one for each need, in its order
  std::vector<std::string> unused;    // tensors that nothing reads and that are known to be harmless

  const WeightSource* find(std::string_view name) const;
};

// Errors: not_found listing the missing tensors, bad_file for a shape that differs from the configuration's
// or a tensor that nothing reads and that is not known to be harmless.
Result<WeightMap> map_weights(const ModelSpec& spec, const Checkpoint& checkpoint);

// Converts a weight to `dtype` (f32, bf16, f16, or the stored one) into `destination`, transform applied.
// Errors: bad_file where a value is not finite (naming the tensor and the index).
Status load_weight(const Checkpoint& checkpoint, const WeightSource& source, DType dtype,
                   std::span<std::byte> destination);

// Whether the stored bytes are already what load_weight() would give, so that they can be used where they
// are.
bool is_stored_as(const WeightSource& source, DType dtype);

// Puts a gradient (f32, in the logical order) into the order of the checkpoint's tensor: the transform
// undone.
std::vector<float> to_stored_order(const WeightSource& source, std::span<const float> logical);

}  // namespace tenon
