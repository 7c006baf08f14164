#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <unordered_set>

#include "base/checked_math.h"
#include "base/json.h"
#include "io/describe.h"
#include "io/safetensors.h"

namespace tenon {
namespace {

constexpr std::string_view kMetadataName = "__metadata__";
constexpr size_t kLengthBytes = 8;

// The text as a JSON string; nothing where it is not UTF-8.
std::optional<std::string> json_string(const std::string& text) {
  std::string out = Json(text).dump();
  if (Json::parse(out).text() != text) return std::nullopt;  // bytes were replaced
  return out;
}

Error not_utf8(std::string_view what, const std::string& name) {
  return bad_argument(fmt::format("the {} is not UTF-8", what), printable(name),
                      "Only UTF-8 text fits a safetensors header.");
}

Result<std::string> metadata_json(const TextMetadata& metadata) {
  std::string out;
  for (const auto& [key, value] : metadata) {
    const auto key_json = json_string(key);
    const auto value_json = json_string(value);
    if (!key_json || !value_json) return not_utf8("metadata", key);
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", *key_json, *value_json);
  }
  return fmt::format("\"{}\":{{{}}}", kMetadataName, out);
}

Result<int64_t> tensor_size(const TensorSpec& spec) {
  if (safetensors_dtype_name(spec.dtype).empty()) {
    return bad_argument(fmt::format("safetensors files cannot hold {}", dtype_name(spec.dtype)),
                        printable(spec.name), "Dequantise it first, or write GGUF.");
  }
  const auto elements = spec.shape.checked_elements();
  const auto size = elements ? dtype_bytes(spec.dtype, *elements) : std::nullopt;
  if (!size) return bad_argument("the shape is too large: " + spec.shape.text(), printable(spec.name));
  return *size;
}

}  // namespace

Result<TensorFileLayout> safetensors_layout(std::span<const TensorSpec> tensors,
                                            const TextMetadata& metadata) {
  TensorFileLayout layout;
  std::string json;
  if (!metadata.empty()) {
    ASSIGN_OR_RETURN(json, metadata_json(metadata));
  }
  std::unordered_set<std::string_view> names;
  int64_t offset = 0;
  for (const TensorSpec& spec : tensors) {
    const auto name = json_string(spec.name);
    if (!name) return not_utf8("name", spec.name);
    if (spec.name == kMetadataName || !names.insert(spec.name).second)
      return bad_argument("the tensor name is reserved or given twice", printable(spec.name));
    ASSIGN_OR_RETURN(const int64_t size, tensor_size(spec));
    const auto end = checked_add(offset, size);
    if (!end) return bad_argument("the tensors together are too large", printable(spec.name));
    json += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        json.empty() ? "" : ",", *name, safetensors_dtype_name(spec.dtype),
                        fmt::join(spec.shape.dims(), ","), offset, *end);
    layout.tensors.push_back({spec.name, spec.dtype, spec.shape, offset, size});
    offset = *end;
  }
  json = "{" + json + "}";
  json.resize(static_cast<size_t>(round_up(static_cast<int64_t>(json.size()), 8)), ' ');
  for (size_t i = 0; i < kLengthBytes; ++i) layout.header += static_cast<char>(json.size() >> (8 * i) & 0xff);
  layout.header += json;
  for (TensorEntry& entry : layout.tensors) entry.offset_bytes += static_cast<int64_t>(layout.header.size());
  return layout;
}

Result<TensorFileWriter> create_safetensors(const std::string& path, std::span<const TensorSpec> tensors,
                                            const TextMetadata& metadata) {
  auto layout = safetensors_layout(tensors, metadata);
  if (!layout.ok()) return std::move(layout).error().within(path);
  return TensorFileWriter::create(path, std::move(layout).value());
}

}  // namespace tenon
