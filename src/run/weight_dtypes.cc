#include "run/weight_dtypes.h"

#include <optional>

#include "run/model.h"

namespace tenon {
namespace {

bool stays_quantised(DType dtype) {
  return dtype == DType::q8_0 || dtype == DType::q4_0 || dtype == DType::q4_1;
}

// The one dtype of all stored parts, where there is one.
std::optional<DType> stored_dtype(const WeightSource& source) {
  for (const SourceBlock& block : source.blocks) {
    if (block.stored != source.stored()) return std::nullopt;
  }
  return source.stored();
}

}  // namespace

WeightDTypes choose_weight_dtypes(const Model& model, std::string_view choice, const DeviceFacts& facts) {
  WeightDTypes out;
  if (choice == kWeightsAuto) {
    if (facts.kind != DeviceKind::cpu) return out;
    choice = kWeightsAsStored;
  }
  const LinearSpec& head = model.spec.head;
  const std::string head_name = (model.spec.tied ? model.spec.embedding_path : head.path) + ".weight";
  for (const WeightSource& source : model.weights.sources) {
    if (source.shape.rank() != 2) continue;
    // The loss multiplies its rows, which blocks do not allow.
    if (!head.channels.weight.empty() && source.name == head_name) continue;
    const std::optional<DType> dtype =
        choice == kWeightsAsStored ? stored_dtype(source) : dtype_from_name(choice);
    if (!dtype || (choice == kWeightsAsStored && !stays_quantised(*dtype))) continue;
    const bool whole_blocks = source.shape[1] % dtype_info(*dtype).block_elements == 0;
    if (is_block_quantised(*dtype) && !(whole_blocks && has_whole_rows(source))) continue;
    out.emplace(source.name, *dtype);
  }
  return out;
}

}  // namespace tenon
