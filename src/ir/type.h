// What a value is: element type and extents.
#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "base/shape.h"

namespace tenon {

struct Type {
  DType dtype = DType::f32;
  Shape shape;

  int64_t elements() const { return shape.elements(); }
  int64_t bytes() const {
    const auto bytes = dtype_bytes(dtype, shape.elements());
    CHECK(bytes.has_value(), "a value is not whole blocks of its dtype, or too large");
    return *bytes;
  }
  std::string text() const { return std::string(dtype_name(dtype)) + shape.text(); }  // "bf16[512, 576]"
  bool operator==(const Type&) const = default;
};

}  // namespace tenon
