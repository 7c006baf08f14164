// The dtypes that a model's matrices have in memory. Kept as they are stored, block-quantised matrices stay
// in the mapped file, and kernels read their values block by block.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "device/device_facts.h"

namespace tenon {

struct Model;

// By name of the weight; one that is not here has the compute dtype.
using WeightDTypes = std::map<std::string, DType, std::less<>>;

// Values of `--weights` beside names of dtypes.
inline constexpr std::string_view kWeightsAuto = "auto";
inline constexpr std::string_view kWeightsAsStored = "as-stored";

// "as-stored": matrices that the file has in q8_0, q4_0 or q4_1 keep that dtype. "bf16", "f32", "q8_0": every
// matrix has this one (q8_0: those whose rows are whole blocks). "auto": as stored on a CPU, whose kernels
// read blocks as fast as they come from memory; elsewhere none differs. Stacks of expert matrices always have
// the compute dtype.
WeightDTypes choose_weight_dtypes(const Model& model, std::string_view choice, const DeviceFacts& facts);

}  // namespace tenon
