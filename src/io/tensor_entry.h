// One tensor of a file: what it is called, what it holds and where its bytes lie. Plain data, shared by the
// readers and writers of every format; shapes are outermost first whatever the file's own order.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/dtype.h"
#include "base/shape.h"

namespace tenon {

// A tensor to be written.
struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

// What the bytes of a `u8` tensor stand for, where the file says more than that (io/narrow_floats.h).
enum class ByteCode : uint8_t { none, f8_e4m3, f8_e5m2, f8_e8m0 };

// A tensor inside a file. Readers promise: size_bytes is exactly what dtype and shape say, the whole range
// lies inside the file, and no two tensors of a file overlap. The bytes may be unaligned for the dtype.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  int64_t offset_bytes = 0;  // from the start of the file
  int64_t size_bytes = 0;
  ByteCode code = ByteCode::none;
};

// Free text about a file; sorted, so that the same pairs give the same bytes.
using TextMetadata = std::map<std::string, std::string, std::less<>>;

}  // namespace tenon
