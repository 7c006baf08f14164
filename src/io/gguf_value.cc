#include <array>
#include <concepts>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "io/gguf.h"

namespace tenon {
namespace {

struct TypeFacts {
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<TypeFacts, 13> kTypes = {{{"u8", 1},
                                               {"i8", 1},
                                               {"u16", 2},
                                               {"i16", 2},
                                               {"u32", 4},
                                               {"i32", 4},
                                               {"f32", 4},
                                               {"bool", 1},
                                               {"string", 0},
                                               {"array", 0},
                                               {"u64", 8},
                                               {"i64", 8},
                                               {"f64", 8}}};

// The parser has checked that the bytes are there.
template <typename T>
T read_at(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
std::optional<int64_t> as_int64(const std::byte* at) {
  const T value = read_at<T>(at);
  if (!std::in_range<int64_t>(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::optional<int64_t> read_integer(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::u8:
      return as_int64<uint8_t>(at);
    case GgufType::i8:
      return as_int64<int8_t>(at);
    case GgufType::u16:
      return as_int64<uint16_t>(at);
    case GgufType::i16:
      return as_int64<int16_t>(at);
    case GgufType::u32:
      return as_int64<uint32_t>(at);
    case GgufType::i32:
      return as_int64<int32_t>(at);
    case GgufType::u64:
      return as_int64<uint64_t>(at);
    case GgufType::i64:
      return as_int64<int64_t>(at);
    default:
      return std::nullopt;
  }
}

std::optional<double> read_number(GgufType type, const std::byte* at) {
  if (type == GgufType::f32) return read_at<float>(at);
  if (type == GgufType::f64) return read_at<double>(at);
  const auto integer = read_integer(type, at);
  return integer ? std::optional<double>(static_cast<double>(*integer)) : std::nullopt;
}

bool is_float(GgufType type) {
  return type == GgufType::f32 || type == GgufType::f64;
}

// The length prefix at the front of `rest`, which is moved past it.
size_t take_length(std::span<const std::byte>& rest) {
  const auto length = static_cast<size_t>(read_at<uint64_t>(rest.data()));
  rest = rest.subspan(sizeof(uint64_t));
  return length;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The element at the front of `rest`, which is moved past it. Recurses as deep as the parser allowed.
GgufValue take_element(GgufType type, std::span<const std::byte>& rest) {
  GgufValue value{.type = type, .raw = {}};
  size_t size = static_cast<size_t>(gguf_type_bytes(type));
  if (type == GgufType::string) size = take_length(rest);
  if (type == GgufType::array) {
    value.element_type = static_cast<GgufType>(read_at<uint32_t>(rest.data()));
    rest = rest.subspan(sizeof(uint32_t));
    value.count = static_cast<int64_t>(take_length(rest));
    auto inner = rest;
    const auto width = static_cast<size_t>(gguf_type_bytes(value.element_type));
    if (width > 0) {
      inner = inner.subspan(static_cast<size_t>(value.count) * width);
    } else {
      for (int64_t i = 0; i < value.count; ++i) take_element(value.element_type, inner);
    }
    size = rest.size() - inner.size();
  }
  value.raw = rest.first(size);
  rest = rest.subspan(size);
  return value;
}

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  return kTypes[static_cast<size_t>(type)].name;
}

int64_t gguf_type_bytes(GgufType type) {
  return kTypes[static_cast<size_t>(type)].bytes;
}

std::optional<int64_t> GgufValue::integer() const {
  return read_integer(type, raw.data());
}

std::optional<double> GgufValue::number() const {
  return read_number(type, raw.data());
}

std::optional<bool> GgufValue::boolean() const {
  if (type != GgufType::boolean) return std::nullopt;
  return raw[0] != std::byte{0};
}

std::optional<std::string_view> GgufValue::string() const {
  if (type != GgufType::string) return std::nullopt;
  return text_of(raw);
}

std::optional<std::vector<int64_t>> GgufValue::integers() const {
  if (type != GgufType::array) return std::nullopt;
  const int64_t width = gguf_type_bytes(element_type);
  if (width == 0 || is_float(element_type) || element_type == GgufType::boolean) return std::nullopt;
  std::vector<int64_t> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const auto value = read_integer(element_type, raw.data() + i * width);
    if (!value) return std::nullopt;
    out[static_cast<size_t>(i)] = *value;
  }
  return out;
}

std::optional<std::vector<float>> GgufValue::floats() const {
  if (type != GgufType::array || !is_float(element_type)) return std::nullopt;
  const int64_t width = gguf_type_bytes(element_type);
  std::vector<float> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    out[static_cast<size_t>(i)] = static_cast<float>(*read_number(element_type, raw.data() + i * width));
  return out;
}

std::optional<std::vector<bool>> GgufValue::booleans() const {
  if (type != GgufType::array || element_type != GgufType::boolean) return std::nullopt;
  std::vector<bool> out;
  out.reserve(static_cast<size_t>(count));
  for (const std::byte byte : raw) out.push_back(byte != std::byte{0});
  return out;
}

std::optional<std::vector<std::string_view>> GgufValue::strings() const {
  if (type != GgufType::array || element_type != GgufType::string) return std::nullopt;
  std::vector<std::string_view> out;
  out.reserve(static_cast<size_t>(count));
  auto rest = raw;
  for (int64_t i = 0; i < count; ++i) {
    const size_t length = take_length(rest);
    out.push_back(text_of(rest.first(length)));
    rest = rest.subspan(length);
  }
  return out;
}

std::optional<std::vector<GgufValue>> GgufValue::elements() const {
  if (type != GgufType::array) return std::nullopt;
  std::vector<GgufValue> out;
  out.reserve(static_cast<size_t>(count));
  auto rest = raw;
  for (int64_t i = 0; i < count; ++i) out.push_back(take_element(element_type, rest));
  return out;
}

}  // namespace tenon
