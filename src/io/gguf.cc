#include "io/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/checked_math.h"
#include "io/describe.h"

namespace tenon {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read in place");

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr int kDeepestArray = 4;
constexpr uint32_t kMostDims = 4;                          // GGML_MAX_DIMS
constexpr uint64_t kLeastEntryBytes = 8 + 1 + 4 + 1;       // key length, a character, type, a byte
constexpr uint64_t kLeastTensorBytes = 8 + 1 + 4 + 4 + 8;  // name length, a character, rank, type, offset
constexpr std::string_view kDownloadAgain = "Download the file again, or write it anew with its maker.";

struct GgmlType {
  uint32_t number;
  std::string_view name;
  std::optional<DType> dtype;  // nothing where Tenon cannot read it
};
constexpr std::array<GgmlType, 37> kGgmlTypes = {{
    {0, "F32", DType::f32},    {1, "F16", DType::f16},    {2, "Q4_0", DType::q4_0},
    {3, "Q4_1", DType::q4_1},  {4, "Q4_2", {}},           {5, "Q4_3", {}},
    {6, "Q5_0", DType::q5_0},  {7, "Q5_1", DType::q5_1},  {8, "Q8_0", DType::q8_0},
    {9, "Q8_1", {}},           {10, "Q2_K", DType::q2_k}, {11, "Q3_K", DType::q3_k},
    {12, "Q4_K", DType::q4_k}, {13, "Q5_K", DType::q5_k}, {14, "Q6_K", DType::q6_k},
    {15, "Q8_K", {}},          {16, "IQ2_XXS", {}},       {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},       {19, "IQ1_S", {}},         {20, "IQ4_NL", {}},
    {21, "IQ3_S", {}},         {22, "IQ2_S", {}},         {23, "IQ4_XS", {}},
    {24, "I8", DType::i8},     {25, "I16", {}},           {26, "I32", DType::i32},
    {27, "I64", DType::i64},   {28, "F64", DType::f64},   {29, "IQ1_M", {}},
    {30, "BF16", DType::bf16}, {31, "Q4_0_4_4", {}},      {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},         {39, "MXFP4", {}},         {40, "NVFP4", {}},
    {41, "Q1_0", {}},
}};

Error damaged(std::string message, std::string_view subject = {}) {
  return bad_file(std::move(message), printable(subject), std::string(kDownloadAgain));
}

// Reads forward through the file; every step is bounds-checked.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> file) : file_(file) {}

  uint64_t left() const { return file_.size() - at_; }
  int64_t position() const { return static_cast<int64_t>(at_); }
  std::span<const std::byte> since(int64_t begin) const {
    return file_.subspan(static_cast<size_t>(begin), at_ - static_cast<size_t>(begin));
  }

  template <typename T>
  std::optional<T> read() {
    if (left() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  bool skip(uint64_t bytes) {
    if (bytes > left()) return false;
    at_ += static_cast<size_t>(bytes);
    return true;
  }
  std::optional<std::string_view> string() {
    const auto length = read<uint64_t>();
    if (!length || !skip(*length)) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(file_.data()) + at_ - *length,
                            static_cast<size_t>(*length));
  }

 private:
  std::span<const std::byte> file_;
  size_t at_ = 0;
};

Error cut_short(std::string_view what, std::string_view subject = {}) {
  return damaged(fmt::format("the file ends inside {}", what), subject);
}

bool are_booleans(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b <= std::byte{1}; });
}

Result<GgufType> read_type(Cursor& cursor, std::string_view key) {
  const auto number = cursor.read<uint32_t>();
  if (!number) return cut_short("a metadata value", key);
  if (*number > static_cast<uint32_t>(GgufType::f64))
    return damaged(fmt::format("the value has type {}, which GGUF does not define", *number), key);
  return static_cast<GgufType>(*number);
}

Result<GgufValue> read_value(Cursor& cursor, GgufType type, std::string_view key, int depth);

// The payload of an array, after its element type and count.
Status skip_elements(Cursor& cursor, const GgufValue& array, std::string_view key, int depth) {
  const auto count = static_cast<uint64_t>(array.count);
  const auto width = static_cast<uint64_t>(gguf_type_bytes(array.element_type));
  if (width > 0) {
    if (count > cursor.left() / width) return cut_short("an array", key);
    cursor.skip(count * width);
    return {};
  }
  if (count > cursor.left() / sizeof(uint64_t)) return cut_short("an array", key);
  for (uint64_t i = 0; i < count; ++i) {
    if (array.element_type == GgufType::string) {
      if (!cursor.string()) return cut_short("an array of strings", key);
    } else {
      RETURN_IF_ERROR(read_value(cursor, array.element_type, key, depth + 1));
    }
  }
  return {};
}

Result<GgufValue> read_value(Cursor& cursor, GgufType type, std::string_view key, int depth) {
  GgufValue value{.type = type, .raw = {}};
  if (type == GgufType::string) {
    const auto text = cursor.string();
    if (!text) return cut_short("a string", key);
    value.raw = std::as_bytes(std::span(*text));
    return value;
  }
  if (type == GgufType::array) {
    if (depth >= kDeepestArray) return unsupported("arrays are nested too deep", printable(key));
    ASSIGN_OR_RETURN(value.element_type, read_type(cursor, key));
    const auto count = cursor.read<uint64_t>();
    if (!count || !std::in_range<int64_t>(*count)) return cut_short("an array", key);
    value.count = static_cast<int64_t>(*count);
    const int64_t begin = cursor.position();
    RETURN_IF_ERROR(skip_elements(cursor, value, key, depth));
    value.raw = cursor.since(begin);
  } else {
    const int64_t begin = cursor.position();
    if (!cursor.skip(static_cast<uint64_t>(gguf_type_bytes(type)))) return cut_short("a metadata value", key);
    value.raw = cursor.since(begin);
  }
  const GgufType leaf = type == GgufType::array ? value.element_type : type;
  if (leaf == GgufType::boolean && !are_booleans(value.raw))
    return damaged("a boolean is neither 0 nor 1", key);
  return value;
}

Status read_metadata(Cursor& cursor, uint64_t count, GgufFile& out) {
  out.metadata.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    const auto key = cursor.string();
    if (!key) return cut_short(fmt::format("metadata entry {} of {}", i + 1, count));
    if (key->empty()) return damaged(fmt::format("metadata entry {} of {} has an empty key", i + 1, count));
    ASSIGN_OR_RETURN(const GgufType type, read_type(cursor, *key));
    ASSIGN_OR_RETURN(const GgufValue value, read_value(cursor, type, *key, 0));
    out.metadata.push_back({*key, value});
  }
  std::vector<std::string_view> keys;
  for (const GgufEntry& entry : out.metadata) keys.push_back(entry.key);
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  if (twice != keys.end()) return damaged("the metadata key is there twice", *twice);
  return {};
}

Status read_alignment(GgufFile& out) {
  constexpr std::string_view kKey = "general.alignment";
  const GgufValue* value = out.find(kKey);
  if (!value) return {};
  const auto alignment = value->type == GgufType::u32 ? value->integer() : std::nullopt;
  if (!alignment) return damaged("the alignment is not a u32", kKey);
  if (!std::has_single_bit(static_cast<uint64_t>(*alignment)))
    return damaged(fmt::format("the alignment is {}, which is not a power of two", *alignment), kKey);
  out.alignment_bytes = *alignment;
  return {};
}

Result<DType> read_dtype(Cursor& cursor, std::string_view name) {
  const auto number = cursor.read<uint32_t>();
  if (!number) return cut_short("the tensor index", name);
  const auto type = std::ranges::find(kGgmlTypes, *number, &GgmlType::number);
  if (type == kGgmlTypes.end())
    return unsupported(fmt::format("the tensor has ggml type {}, which is not known here", *number),
                       printable(name),
                       "Use a file quantised as Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, F16 or BF16.");
  if (!type->dtype)
    return unsupported(fmt::format("cannot read tensors of type {}", type->name), printable(name),
                       "Use a file quantised as Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, F16 or BF16.");
  return *type->dtype;
}

// The dimensions as stored, innermost first, turned round.
Result<Shape> read_shape(Cursor& cursor, std::string_view name) {
  const auto rank = cursor.read<uint32_t>();
  if (!rank) return cut_short("the tensor index", name);
  if (*rank > kMostDims)
    return damaged(fmt::format("the tensor has {} dimensions; at most {} are allowed", *rank, kMostDims),
                   name);
  std::array<int64_t, kMostDims> dims{};
  for (uint32_t i = 0; i < *rank; ++i) {
    const auto extent = cursor.read<uint64_t>();
    if (!extent) return cut_short("the tensor index", name);
    if (*extent == 0 || !std::in_range<int64_t>(*extent))
      return damaged(fmt::format("the tensor has a dimension of {}", *extent), name);
    dims[*rank - 1 - i] = static_cast<int64_t>(*extent);
  }
  return Shape(std::span<const int64_t>(dims.data(), *rank));
}

// The bytes of a tensor whose rows are whole blocks.
Result<int64_t> tensor_bytes(const TensorEntry& tensor) {
  const DTypeInfo& info = dtype_info(tensor.dtype);
  const int64_t row = tensor.shape.rank() == 0 ? 1 : tensor.shape[-1];
  if (row % info.block_elements != 0) {
    return damaged(fmt::format("rows of {} values cannot be {}, which has blocks of {}", row, info.name,
                               info.block_elements),
                   tensor.name);
  }
  const auto elements = tensor.shape.checked_elements();
  const auto bytes = elements ? dtype_bytes(tensor.dtype, *elements) : std::nullopt;
  if (!bytes) return damaged("the shape overflows: " + tensor.shape.text(), tensor.name);
  return *bytes;
}

// The offset stays relative to the data.
Status read_tensor(Cursor& cursor, GgufFile& out) {
  const auto name = cursor.string();
  if (!name) return cut_short("the tensor index");
  if (name->empty()) return damaged("a tensor has an empty name");
  TensorEntry tensor{.name = std::string(*name), .shape = {}};
  ASSIGN_OR_RETURN(tensor.shape, read_shape(cursor, *name));
  ASSIGN_OR_RETURN(tensor.dtype, read_dtype(cursor, *name));
  ASSIGN_OR_RETURN(tensor.size_bytes, tensor_bytes(tensor));
  const auto offset = cursor.read<uint64_t>();
  if (!offset) return cut_short("the tensor index", *name);
  if (!std::in_range<int64_t>(*offset) || static_cast<int64_t>(*offset) % out.alignment_bytes != 0)
    return damaged(
        fmt::format("the offset {} is not a multiple of the alignment, {}", *offset, out.alignment_bytes),
        *name);
  tensor.offset_bytes = static_cast<int64_t>(*offset);
  out.tensors.push_back(std::move(tensor));
  return {};
}

// Turns offsets into places in the file and checks that they are inside it and apart from each other.
Status place_tensors(int64_t file_bytes, GgufFile& out) {
  for (TensorEntry& tensor : out.tensors) {
    const auto begin = checked_add(out.data_begin_bytes, tensor.offset_bytes);
    const auto end = begin ? checked_add(*begin, tensor.size_bytes) : std::nullopt;
    if (!end || *end > file_bytes) {
      return damaged(
          fmt::format(
              "the tensor {} {} at offset {} of the data ends after the file, which has {}; it is cut "
              "short or damaged",
              dtype_name(tensor.dtype), tensor.shape.text(), tensor.offset_bytes, bytes_text(file_bytes)),
          tensor.name);
    }
    tensor.offset_bytes = *begin;
  }
  std::vector<const TensorEntry*> sorted;
  for (const TensorEntry& tensor : out.tensors) sorted.push_back(&tensor);
  std::ranges::sort(sorted, {}, &TensorEntry::offset_bytes);
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->offset_bytes < sorted[i - 1]->offset_bytes + sorted[i - 1]->size_bytes)
      return damaged(fmt::format("the tensor's bytes overlap those of {}", printable(sorted[i - 1]->name)),
                     sorted[i]->name);
  }
  std::ranges::sort(sorted, {}, &TensorEntry::name);
  const auto twice = std::ranges::adjacent_find(sorted, {}, &TensorEntry::name);
  if (twice != sorted.end()) return damaged("the tensor name is there twice", (*twice)->name);
  return {};
}

Result<uint32_t> read_version(Cursor& cursor) {
  const auto magic = cursor.read<uint32_t>();
  const auto version = cursor.read<uint32_t>();
  if (!magic || *magic != kMagic) return damaged("not a GGUF file: it does not start with 'GGUF'");
  if (!version) return cut_short("the header");
  if (*version != 0 && (*version & 0xffff) == 0)
    return unsupported("the file is big-endian", {},
                       "Convert it with gguf_convert_endian.py of the gguf package.");
  if (*version < 2 || *version > 3)
    return unsupported(fmt::format("cannot read GGUF version {}", *version), {}, "Convert it to version 3.");
  return *version;
}

template <typename T>
Result<T> required(const GgufFile& file, std::string_view key, std::string_view what,
                   std::optional<T> (GgufValue::*read)() const) {
  const GgufValue* value = file.find(key);
  if (!value)
    return not_found("the metadata lacks this key", std::string(key),
                     "Convert the model anew with a current converter.");
  auto out = (value->*read)();
  if (out) return std::move(*out);
  const bool array = value->type == GgufType::array;
  return bad_file(fmt::format("the value is {}{}, but {} is needed", array ? "an array of " : "of type ",
                              gguf_type_name(array ? value->element_type : value->type), what),
                  std::string(key), std::string(kDownloadAgain));
}

}  // namespace

std::optional<uint32_t> ggml_type_number(DType dtype) {
  const auto type = std::ranges::find(kGgmlTypes, std::optional<DType>(dtype), &GgmlType::dtype);
  if (type == kGgmlTypes.end()) return std::nullopt;
  return type->number;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto entry = std::ranges::find(metadata, key, &GgufEntry::key);
  return entry == metadata.end() ? nullptr : &entry->value;
}

Result<int64_t> GgufFile::integer(std::string_view key) const {
  return required(*this, key, "an integer of 64 bits", &GgufValue::integer);
}
Result<double> GgufFile::number(std::string_view key) const {
  return required(*this, key, "a number", &GgufValue::number);
}
Result<bool> GgufFile::boolean(std::string_view key) const {
  return required(*this, key, "a boolean", &GgufValue::boolean);
}
Result<std::string_view> GgufFile::string(std::string_view key) const {
  return required(*this, key, "a string", &GgufValue::string);
}
Result<std::vector<int64_t>> GgufFile::integers(std::string_view key) const {
  return required(*this, key, "an array of integers", &GgufValue::integers);
}
Result<std::vector<float>> GgufFile::floats(std::string_view key) const {
  return required(*this, key, "an array of floats", &GgufValue::floats);
}
Result<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  return required(*this, key, "an array of strings", &GgufValue::strings);
}

Result<GgufFile> parse_gguf(std::span<const std::byte> file) {
  Cursor cursor(file);
  GgufFile out;
  ASSIGN_OR_RETURN(out.version, read_version(cursor));
  const auto tensor_count = cursor.read<uint64_t>();
  const auto entry_count = cursor.read<uint64_t>();
  if (!tensor_count || !entry_count) return cut_short("the header");
  if (*entry_count > cursor.left() / kLeastEntryBytes || *tensor_count > cursor.left() / kLeastTensorBytes) {
    return damaged(
        fmt::format("the header announces {} metadata entries and {} tensors, which do not fit in {}",
                    *entry_count, *tensor_count, bytes_text(static_cast<int64_t>(file.size()))));
  }
  RETURN_IF_ERROR(read_metadata(cursor, *entry_count, out));
  RETURN_IF_ERROR(read_alignment(out));
  if (*tensor_count > cursor.left() / kLeastTensorBytes) return cut_short("the tensor index");
  out.tensors.reserve(static_cast<size_t>(*tensor_count));
  for (uint64_t i = 0; i < *tensor_count; ++i) RETURN_IF_ERROR(read_tensor(cursor, out));
  out.data_begin_bytes = round_up(cursor.position(), out.alignment_bytes);
  RETURN_IF_ERROR(place_tensors(static_cast<int64_t>(file.size()), out));
  return out;
}

}  // namespace tenon
