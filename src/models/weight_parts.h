// A weight as parts of stored tensors, for devices that load and convert it by themselves: what load_weight()
// (weight_map.h) does on the host, as data.
#pragma once

#include <vector>

#include "base/stored_part.h"
#include "models/weight_map.h"

namespace tenon {

// The parts of `source` as a weight of `dtype`. What none of them covers is zero. Spans point into the
// checkpoint's mapped files. None where the file has other values than the weight (gguf_names.h), which
// load_weight() makes.
std::vector<StoredPart> weight_parts(const Checkpoint& checkpoint, const WeightSource& source, DType dtype);

// What is wrong with a weight whose element `element` is not finite: bad_file, naming the stored tensor and
// the place of the value in it.
Error not_finite_error(const Checkpoint& checkpoint, const WeightSource& source, int64_t element);

}  // namespace tenon
