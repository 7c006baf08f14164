#include "base/dtype.h"

#include <array>

#include "base/checked_math.h"

namespace tenon {
namespace {

constexpr std::array<DTypeInfo, 18> kInfos = {{
    {"f64", 1, 8, true},
    {"f32", 1, 4, true},
    {"f16", 1, 2, true},
    {"bf16", 1, 2, true},
    {"i64", 1, 8, false},
    {"i32", 1, 4, false},
    {"i8", 1, 1, false},
    {"u8", 1, 1, false},
    {"q4_0", 32, 18, false},
    {"q4_1", 32, 20, false},
    {"q5_0", 32, 22, false},
    {"q5_1", 32, 24, false},
    {"q8_0", 32, 34, false},
    {"q2_k", 256, 84, false},
    {"q3_k", 256, 110, false},
    {"q4_k", 256, 144, false},
    {"q5_k", 256, 176, false},
    {"q6_k", 256, 210, false},
}};
static_assert(kInfos.size() == static_cast<size_t>(DType::q6_k) + 1);

}  // namespace

const DTypeInfo& dtype_info(DType dtype) {
  return kInfos[static_cast<size_t>(dtype)];
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<int64_t> dtype_bytes(DType dtype, int64_t elements) {
  const DTypeInfo& info = dtype_info(dtype);
  if (elements < 0 || elements % info.block_elements != 0) return std::nullopt;
  return checked_mul(elements / info.block_elements, info.block_bytes);
}

}  // namespace tenon
