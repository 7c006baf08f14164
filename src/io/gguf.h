// The GGUF format, versions 2 and 3, little-endian (ggml/docs/gguf.md): typed metadata, a tensor index, then
// aligned data. Parsing is a pure function over bytes; values and strings are views into those bytes, so a
// vocabulary of a million strings costs no copies. Writing is in io/gguf_writer.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/tensor_entry.h"

namespace tenon {

// Numbered as in the format.
enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

std::string_view gguf_type_name(GgufType type);
int64_t gguf_type_bytes(GgufType type);  // of one value; 0 for string and array

// A metadata value: a view into the file, checked when parsed.
struct GgufValue {
  GgufType type = GgufType::u8;
  GgufType element_type = GgufType::u8;  // of an array
  int64_t count = 1;                     // elements of an array; 1 for anything else
  std::span<const std::byte> raw;        // the payload: a string's characters, an array's elements

  // Nothing where the value is of another kind or does not fit. Integers of any width and booleans do not
  // mix.
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;  // any float or integer
  std::optional<bool> boolean() const;
  std::optional<std::string_view> string() const;
  std::optional<std::vector<int64_t>> integers() const;
  std::optional<std::vector<float>> floats() const;  // an array of f32 or f64
  std::optional<std::vector<bool>> booleans() const;
  std::optional<std::vector<std::string_view>> strings() const;
  std::optional<std::vector<GgufValue>> elements() const;  // an array of anything, arrays too
};

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

struct GgufFile {
  uint32_t version = 3;
  int64_t alignment_bytes = 32;
  int64_t data_begin_bytes = 0;
  std::vector<GgufEntry> metadata;   // in the file's order, keys unique
  std::vector<TensorEntry> tensors;  // in the file's order, names unique; offsets from the start of the file

  const GgufValue* find(std::string_view key) const;  // null where missing

  // The value of a key. Errors: not_found, or bad_file where it has another type; the subject is the key.
  Result<int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::string_view> string(std::string_view key) const;
  Result<std::vector<int64_t>> integers(std::string_view key) const;
  Result<std::vector<float>> floats(std::string_view key) const;
  Result<std::vector<std::string_view>> strings(std::string_view key) const;
};

// `file` is the whole file and must outlive the result. Errors: bad_file, or unsupported (version,
// big-endian, a tensor type that Tenon cannot read, by name). The subject is the key or tensor, if any.
Result<GgufFile> parse_gguf(std::span<const std::byte> file);

// The number of a dtype in ggml.h's enum ggml_type; nothing where ggml has none (u8).
std::optional<uint32_t> ggml_type_number(DType dtype);

}  // namespace tenon
