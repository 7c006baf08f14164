#include "io/fuzz_checks.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "io/gguf.h"
#include "io/gguf_writer.h"
#include "io/json_file.h"
#include "io/safetensors.h"

namespace tenon {
namespace {

bool checked_refusal(const Error& error) {
  CHECK(!error.message.empty() && error.message.size() < 2000 && error.subject.size() < 2000);
  return false;
}

// What io/tensor_entry.h promises of a file's tensors.
void check_tensors(std::vector<TensorEntry> tensors, std::span<const std::byte> file) {
  std::ranges::sort(tensors, {},
                    [](const TensorEntry& t) { return std::pair(t.offset_bytes, t.size_bytes); });
  int64_t end = 0;
  for (const TensorEntry& tensor : tensors) {
    CHECK(tensor.offset_bytes >= end && tensor.size_bytes >= 0);
    end = tensor.offset_bytes + tensor.size_bytes;
    CHECK(end <= static_cast<int64_t>(file.size()));
    CHECK(tensor.size_bytes == *dtype_bytes(tensor.dtype, *tensor.shape.checked_elements()));
  }
}

std::vector<TensorSpec> specs_of(const std::vector<TensorEntry>& tensors) {
  std::vector<TensorSpec> out;
  for (const TensorEntry& tensor : tensors) out.push_back({tensor.name, tensor.dtype, tensor.shape});
  return out;
}

// The header of a layout and enough data for it, where that is small.
std::string small_file(const TensorFileLayout& layout) {
  std::string file = layout.header;
  for (const TensorEntry& tensor : layout.tensors)
    file.resize(std::max(file.size(), static_cast<size_t>(tensor.offset_bytes + tensor.size_bytes)));
  return file;
}

// Every accessor of a value, and of what is inside it.
void touch_value(const GgufValue& value) {
  CHECK(value.integer().has_value() + value.boolean().has_value() + value.string().has_value() <= 1);
  const auto count = static_cast<size_t>(value.count);
  if (const auto items = value.integers()) CHECK(items->size() == count);
  if (const auto items = value.floats()) CHECK(items->size() == count);
  if (const auto items = value.booleans()) CHECK(items->size() == count);
  if (const auto items = value.strings()) CHECK(items->size() == count);
  if (const auto items = value.elements()) {
    CHECK(items->size() == count);
    for (const GgufValue& item : *items) touch_value(item);
  }
}

}  // namespace

bool fuzz_safetensors(std::span<const std::byte> file) {
  const auto parsed = parse_safetensors(file);
  if (!parsed.ok()) return checked_refusal(parsed.error());
  check_tensors(parsed->tensors, file);
  const auto layout = safetensors_layout(specs_of(parsed->tensors), parsed->metadata);
  CHECK(layout.ok());
  const std::string copy = small_file(*layout);
  const auto again = parse_safetensors(std::as_bytes(std::span(copy)));
  CHECK(again.ok() && again->metadata == parsed->metadata && again->tensors.size() == parsed->tensors.size());
  return true;
}

bool fuzz_gguf(std::span<const std::byte> file) {
  const auto parsed = parse_gguf(file);
  if (!parsed.ok()) return checked_refusal(parsed.error());
  check_tensors(parsed->tensors, file);
  GgufHeader header;
  for (const GgufEntry& entry : parsed->metadata) {
    touch_value(entry.value);
    header.add(entry.key, entry.value);
  }
  if (parsed->alignment_bytes > (1 << 20)) return true;
  const auto layout = header.layout(specs_of(parsed->tensors));
  CHECK(layout.ok());
  const std::string copy = small_file(*layout);
  const auto again = parse_gguf(std::as_bytes(std::span(copy)));
  CHECK(again.ok() && again->tensors.size() == parsed->tensors.size());
  for (size_t i = 0; i < parsed->metadata.size(); ++i)
    CHECK(std::ranges::equal(again->metadata[i].value.raw, parsed->metadata[i].value.raw));
  return true;
}

bool fuzz_json(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const auto parsed = parse_json(text, "input");
  if (!parsed.ok()) return checked_refusal(parsed.error());
  CHECK(!Json(*parsed).dump().empty());
  return true;
}

}  // namespace tenon
