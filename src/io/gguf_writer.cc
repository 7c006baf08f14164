#include "io/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "base/check.h"
#include "base/checked_math.h"
#include "io/describe.h"

namespace tenon {
namespace {

constexpr int kMostDims = 4;

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void put_string(std::string& out, std::string_view text) {
  put(out, static_cast<uint64_t>(text.size()));
  out += text;
}

void put_array(std::string& out, GgufType element, size_t count) {
  put(out, static_cast<uint32_t>(element));
  put(out, static_cast<uint64_t>(count));
}

Result<int64_t> spec_bytes(const TensorSpec& spec) {
  const DTypeInfo& info = dtype_info(spec.dtype);
  const std::string name = printable(spec.name);
  if (!ggml_type_number(spec.dtype)) return bad_argument(fmt::format("GGUF cannot hold {}", info.name), name);
  if (spec.shape.rank() > kMostDims)
    return bad_argument(
        fmt::format("GGUF tensors have at most {} dimensions, not {}", kMostDims, spec.shape.text()), name);
  const auto elements = spec.shape.checked_elements();
  const auto bytes = elements ? dtype_bytes(spec.dtype, *elements) : std::nullopt;
  const int64_t row = spec.shape.rank() == 0 ? 1 : spec.shape[-1];
  if (!bytes || *bytes == 0 || row % info.block_elements != 0)
    return bad_argument(
        fmt::format("{} cannot be stored as {}", spec.shape.text(), info.name), name,
        fmt::format("Rows must be whole blocks of {}, and nothing may be empty.", info.block_elements));
  return *bytes;
}

}  // namespace

void GgufHeader::begin(std::string_view key, GgufType type) {
  CHECK(!key.empty() && std::ranges::find(keys_, key) == keys_.end(), key);
  keys_.emplace_back(key);
  put_string(entries_, key);
  put(entries_, static_cast<uint32_t>(type));
}

void GgufHeader::add_u32(std::string_view key, uint32_t value) {
  begin(key, GgufType::u32);
  put(entries_, value);
  if (key == "general.alignment") alignment_bytes_ = value;
}
void GgufHeader::add_i32(std::string_view key, int32_t value) {
  begin(key, GgufType::i32);
  put(entries_, value);
}
void GgufHeader::add_u64(std::string_view key, uint64_t value) {
  begin(key, GgufType::u64);
  put(entries_, value);
}
void GgufHeader::add_f32(std::string_view key, float value) {
  begin(key, GgufType::f32);
  put(entries_, value);
}
void GgufHeader::add_bool(std::string_view key, bool value) {
  begin(key, GgufType::boolean);
  put(entries_, static_cast<uint8_t>(value));
}
void GgufHeader::add_string(std::string_view key, std::string_view value) {
  begin(key, GgufType::string);
  put_string(entries_, value);
}
void GgufHeader::add_i32s(std::string_view key, std::span<const int32_t> values) {
  begin(key, GgufType::array);
  put_array(entries_, GgufType::i32, values.size());
  for (const int32_t value : values) put(entries_, value);
}
void GgufHeader::add_f32s(std::string_view key, std::span<const float> values) {
  begin(key, GgufType::array);
  put_array(entries_, GgufType::f32, values.size());
  for (const float value : values) put(entries_, value);
}
void GgufHeader::add_strings(std::string_view key, std::span<const std::string> values) {
  begin(key, GgufType::array);
  put_array(entries_, GgufType::string, values.size());
  for (const std::string& value : values) put_string(entries_, value);
}

void GgufHeader::add(std::string_view key, const GgufValue& value) {
  begin(key, value.type);
  if (value.type == GgufType::array)
    put_array(entries_, value.element_type, static_cast<size_t>(value.count));
  if (value.type == GgufType::string) put(entries_, static_cast<uint64_t>(value.raw.size()));
  entries_.append(reinterpret_cast<const char*>(value.raw.data()), value.raw.size());
  if (key == "general.alignment") alignment_bytes_ = value.type == GgufType::u32 ? *value.integer() : 0;
}

Result<TensorFileLayout> GgufHeader::layout(std::span<const TensorSpec> tensors) const {
  if (!std::has_single_bit(static_cast<uint64_t>(alignment_bytes_)))
    return bad_argument("the alignment is not a u32 power of two", "general.alignment");
  TensorFileLayout out;
  out.header = "GGUF";
  put(out.header, uint32_t{3});
  put(out.header, static_cast<uint64_t>(tensors.size()));
  put(out.header, static_cast<uint64_t>(keys_.size()));
  out.header += entries_;
  std::unordered_set<std::string_view> names;
  int64_t offset = 0;
  for (const TensorSpec& spec : tensors) {
    if (spec.name.empty() || !names.insert(spec.name).second)
      return bad_argument("the tensor name is empty or given twice", printable(spec.name));
    ASSIGN_OR_RETURN(const int64_t bytes, spec_bytes(spec));
    const auto end = checked_add(offset, bytes);
    const auto next = end ? checked_add(*end, alignment_bytes_) : std::nullopt;
    if (!next) return bad_argument("the tensors together are too large", printable(spec.name));
    put_string(out.header, spec.name);
    put(out.header, static_cast<uint32_t>(spec.shape.rank()));
    for (int i = spec.shape.rank() - 1; i >= 0; --i) put(out.header, static_cast<uint64_t>(spec.shape[i]));
    put(out.header, *ggml_type_number(spec.dtype));
    put(out.header, static_cast<uint64_t>(offset));
    out.tensors.push_back({spec.name, spec.dtype, spec.shape, offset, bytes});
    offset = round_up(*end, alignment_bytes_);
  }
  const int64_t header_bytes = round_up(static_cast<int64_t>(out.header.size()), alignment_bytes_);
  out.header.resize(static_cast<size_t>(header_bytes), '\0');
  for (TensorEntry& tensor : out.tensors) tensor.offset_bytes += header_bytes;
  out.file_bytes = header_bytes + offset;
  return out;
}

Result<TensorFileWriter> create_gguf(const std::string& path, const GgufHeader& header,
                                     std::span<const TensorSpec> tensors) {
  auto layout = header.layout(tensors);
  if (!layout.ok()) return std::move(layout).error().within(path);
  return TensorFileWriter::create(path, std::move(layout).value());
}

}  // namespace tenon
