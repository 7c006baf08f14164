#include "io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "io/describe.h"

namespace tenon {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;  // the limit of the reference implementation
constexpr std::string_view kDownloadAgain = "Download the file again, or write it anew with its maker.";

struct DTypeName {
  std::string_view name;
  DType dtype;
  ByteCode code = ByteCode::none;
};
constexpr std::array<DTypeName, 12> kNames = {{{"F64", DType::f64},
                                               {"F32", DType::f32},
                                               {"F16", DType::f16},
                                               {"BF16", DType::bf16},
                                               {"I64", DType::i64},
                                               {"I32", DType::i32},
                                               {"I8", DType::i8},
                                               {"U8", DType::u8},
                                               {"BOOL", DType::u8},
                                               {"F8_E4M3", DType::u8, ByteCode::f8_e4m3},
                                               {"F8_E5M2", DType::u8, ByteCode::f8_e5m2},
                                               {"F8_E8M0", DType::u8, ByteCode::f8_e8m0}}};

Error damaged(std::string message, std::string_view subject = {}) {
  return bad_file(std::move(message), printable(subject), std::string(kDownloadAgain));
}

// One tensor of the header as it is being read.
struct RawTensor {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> range;
};

// Checks dtype, shape and range against each other. The offset stays relative to the data.
Result<TensorEntry> checked_entry(const RawTensor& raw, uint64_t data_bytes) {
  if (!raw.dtype || !raw.shape || !raw.range)
    return damaged("the header lacks the tensor's dtype, shape or data_offsets", raw.name);
  const auto known = std::ranges::find(kNames, std::string_view(*raw.dtype), &DTypeName::name);
  if (known == kNames.end()) {
    return unsupported(fmt::format("cannot read tensors of dtype {}", printable(*raw.dtype)),
                       printable(raw.name), "Convert the checkpoint to BF16, F16 or F32.");
  }
  if (raw.shape->size() > kMaxRank) {
    return unsupported(
        fmt::format("the tensor has {} dimensions; at most {} are supported", raw.shape->size(), kMaxRank),
        printable(raw.name), "Reshape it before saving.");
  }
  TensorEntry entry{.name = raw.name, .dtype = known->dtype, .shape = {}};
  std::array<int64_t, kMaxRank> dims{};
  for (size_t i = 0; i < raw.shape->size(); ++i) {
    if (!std::in_range<int64_t>((*raw.shape)[i])) return damaged("the shape overflows", raw.name);
    dims[i] = static_cast<int64_t>((*raw.shape)[i]);
  }
  entry.shape = Shape(std::span<const int64_t>(dims.data(), raw.shape->size()));
  const auto elements = entry.shape.checked_elements();
  const auto size = elements ? dtype_bytes(entry.dtype, *elements) : std::nullopt;
  if (!size) return damaged("the shape overflows: " + entry.shape.text(), raw.name);

  if (raw.range->size() != 2 || (*raw.range)[0] > (*raw.range)[1])
    return damaged("data_offsets is not a begin and an end", raw.name);
  const auto [begin, end] = std::pair((*raw.range)[0], (*raw.range)[1]);
  if (end > data_bytes) {
    return damaged(
        fmt::format("the tensor ends at byte {} of the data, but the file holds only {} of data; it is cut "
                    "short or damaged",
                    end, bytes_text(static_cast<int64_t>(data_bytes))),
        raw.name);
  }
  if (end - begin != static_cast<uint64_t>(*size)) {
    return damaged(fmt::format("data_offsets covers {}, but {} {} takes {}",
                               bytes_text(static_cast<int64_t>(end - begin)), *raw.dtype, entry.shape.text(),
                               bytes_text(*size)),
                   raw.name);
  }
  entry.offset_bytes = static_cast<int64_t>(begin);
  entry.size_bytes = *size;
  entry.code = known->code;
  return entry;
}

// Receives the header's JSON event by event: a document model would silently drop duplicate keys.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  explicit HeaderReader(uint64_t data_bytes) : data_bytes_(data_bytes) {}

  SafetensorsHeader header;
  Error error;

  bool start_object(size_t) override {
    if (place_ == Place::start) return go(Place::root);
    if (place_ != Place::root || !expecting_value_) return misplaced("an object");
    expecting_value_ = false;
    return go(raw_.name == "__metadata__" ? Place::metadata : Place::tensor);
  }
  bool end_object() override {
    if (place_ == Place::tensor && !finish_tensor()) return false;
    return go(place_ == Place::root ? Place::end : Place::root);
  }
  bool key(std::string& name) override {
    expecting_value_ = true;
    if (place_ == Place::root) {
      if (!names_.insert(name).second) return fail(damaged("the name is in the header twice", name));
      raw_ = RawTensor{.name = name, .dtype = {}, .shape = {}, .range = {}};
      return true;
    }
    field_ = name;
    return true;
  }
  bool string(std::string& value) override {
    if (place_ == Place::metadata) {
      if (header.metadata.emplace(field_, value).second) return true;
      return fail(damaged(fmt::format("the key '{}' is there twice", printable(field_)), "__metadata__"));
    }
    if (place_ != Place::tensor || field_ != "dtype" || raw_.dtype) return misplaced("a string");
    raw_.dtype = value;
    return true;
  }
  bool start_array(size_t) override {
    if (place_ != Place::tensor) return misplaced("an array");
    auto& target = field_ == "shape" ? raw_.shape : raw_.range;
    if ((field_ != "shape" && field_ != "data_offsets") || target) return misplaced("an array");
    target.emplace();
    numbers_ = &*target;
    return go(Place::array);
  }
  bool end_array() override { return go(Place::tensor); }
  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::array) return misplaced("a number");
    if (numbers_->size() >= kMostNumbers)
      return fail(damaged(fmt::format("{} is too long", field_), raw_.name));
    numbers_->push_back(value);
    return true;
  }
  bool number_integer(int64_t) override { return misplaced("a negative number"); }
  bool number_float(double, const std::string&) override {
    return misplaced("a number that is no whole number of 64 bits");
  }
  bool boolean(bool) override { return misplaced("a boolean"); }
  bool null() override { return misplaced("null"); }
  bool binary(json::binary_t&) override { return misplaced("binary data"); }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    return fail(damaged(fmt::format("the header is not valid JSON at its byte {}", at)));
  }

 private:
  enum class Place { start, root, tensor, array, metadata, end };
  static constexpr size_t kMostNumbers = 64;

  bool go(Place place) {
    place_ = place;
    return true;
  }
  bool fail(Error what) {
    error = std::move(what);
    return false;
  }
  bool misplaced(std::string_view what) {
    const bool inside = place_ == Place::tensor || place_ == Place::array || place_ == Place::metadata;
    return fail(
        damaged(inside ? fmt::format("the header has {} where '{}' cannot have it", what, printable(field_))
                       : fmt::format("the header has {} where a tensor belongs", what),
                raw_.name));
  }
  bool finish_tensor() {
    auto entry = checked_entry(raw_, data_bytes_);
    if (!entry.ok()) return fail(std::move(entry).error());
    header.tensors.push_back(std::move(entry).value());
    return true;
  }

  uint64_t data_bytes_;
  Place place_ = Place::start;
  bool expecting_value_ = false;
  RawTensor raw_;
  std::string field_;
  std::vector<uint64_t>* numbers_ = nullptr;
  std::unordered_set<std::string> names_;
};

// The tensors must tile the data: no overlap, no gap.
Status check_tiling(std::span<const TensorEntry> sorted, int64_t data_bytes) {
  int64_t end = 0;
  for (const TensorEntry& entry : sorted) {
    if (entry.offset_bytes < end) return damaged("the tensor's bytes overlap those of another", entry.name);
    if (entry.offset_bytes > end)
      return damaged(fmt::format("{} before the tensor belong to none", bytes_text(entry.offset_bytes - end)),
                     entry.name);
    end = entry.offset_bytes + entry.size_bytes;
  }
  if (end != data_bytes)
    return damaged(fmt::format("{} at the end belong to no tensor", bytes_text(data_bytes - end)));
  return {};
}

}  // namespace

std::string_view safetensors_dtype_name(DType dtype) {
  const auto known = std::ranges::find(kNames, dtype, &DTypeName::dtype);
  return known == kNames.end() ? std::string_view() : known->name;
}

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    return damaged(fmt::format("not a safetensors file: {} is too short for a header",
                               bytes_text(static_cast<int64_t>(file.size()))));
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= static_cast<uint64_t>(file[i]) << (8 * i);
  if (length > kLongestHeader || length > file.size() - kLengthBytes) {
    return damaged(fmt::format(
        "not a safetensors file, or cut short: it announces a header of {} bytes, but has {} in all", length,
        bytes_text(static_cast<int64_t>(file.size()))));
  }
  const auto* text = reinterpret_cast<const char*>(file.data()) + kLengthBytes;
  if (length == 0 || text[0] != '{')
    return damaged("not a safetensors file: the header does not start with '{'");

  const auto data_begin = static_cast<int64_t>(kLengthBytes + length);
  const auto data_bytes = static_cast<int64_t>(file.size()) - data_begin;
  HeaderReader reader(static_cast<uint64_t>(data_bytes));
  if (!json::sax_parse(text, text + length, &reader)) return std::move(reader.error);
  std::vector<TensorEntry>& tensors = reader.header.tensors;
  std::ranges::sort(tensors, {}, [](const TensorEntry& entry) {
    return std::tuple(entry.offset_bytes, entry.size_bytes, std::string_view(entry.name));
  });
  RETURN_IF_ERROR(check_tiling(tensors, data_bytes));
  for (TensorEntry& entry : tensors) entry.offset_bytes += data_begin;
  return std::move(reader.header);
}

}  // namespace tenon
