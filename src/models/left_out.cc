#include "models/left_out.h"

namespace tenon {

std::span<const LeftOut> left_out() {
  static constexpr LeftOut kLeftOut[] = {
#define TENON_LEFT_OUT(model_type, reason) {model_type, reason},
#include "models/left_out.inc"
#undef TENON_LEFT_OUT
  };
  return kLeftOut;
}

const LeftOut* find_left_out(std::string_view model_type) {
  for (const LeftOut& each : left_out()) {
    if (each.model_type == model_type) return &each;
  }
  return nullptr;
}

}  // namespace tenon
