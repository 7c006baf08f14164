#include "io/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/mapped_file.h"
#include "io/test_folder.h"

namespace tenon {
namespace {

using testing::HasSubstr;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A file of this header and that many data bytes.
std::string file_of(std::string_view json, size_t data_bytes) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return out + std::string(json) + std::string(data_bytes, '\1');
}

Error refusal(std::string_view json, size_t data_bytes) {
  const std::string file = file_of(json, data_bytes);
  auto parsed = parse_safetensors(as_bytes(file));
  if (parsed.ok()) ADD_FAILURE() << "accepted: " << json;
  return parsed.ok() ? Error{} : parsed.error();
}

// tests/io/reference.safetensors is written by the reference package (tools/make_io_goldens.py).
TEST(Safetensors, ReadsTheReferenceFile) {
  const auto file = MappedFile::open(TENON_SOURCE_DIR "/tests/io/reference.safetensors");
  ASSERT_TRUE(file.ok());
  const auto header = parse_safetensors(file->bytes());
  ASSERT_TRUE(header.ok()) << header.error().text();
  EXPECT_THAT(header->metadata, testing::ElementsAre(testing::Pair("format", "pt")));
  struct Expected {
    const char* name;
    DType dtype;
    Shape shape;
  };
  const Expected expected[] = {
      {"b.i64", DType::i64, {2}}, {"a.f64", DType::f64, {2}},   {"c.f32", DType::f32, {2, 3}},
      {"d.i32", DType::i32, {1}}, {"e.bf16", DType::bf16, {2}}, {"f.f16", DType::f16, {2}},
      {"h.i8", DType::i8, {2}},   {"i.u8", DType::u8, {1, 0}},  {"j.\"quoted\"\n\xc3\xa9", DType::u8, {}}};
  ASSERT_EQ(header->tensors.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(header->tensors[i].name, expected[i].name);
    EXPECT_EQ(header->tensors[i].dtype, expected[i].dtype) << expected[i].name;
    EXPECT_EQ(header->tensors[i].shape, expected[i].shape) << expected[i].name;
  }
  const TensorEntry& last = header->tensors.back();
  EXPECT_EQ(file->bytes()[static_cast<size_t>(last.offset_bytes)], std::byte{9});
  EXPECT_EQ(last.offset_bytes + last.size_bytes, static_cast<int64_t>(file->bytes().size()));
}

TEST(Safetensors, WritesTheBytesOfTheReference) {
  const TestFolder folder;
  const auto file = MappedFile::open(TENON_SOURCE_DIR "/tests/io/reference.safetensors");
  ASSERT_TRUE(file.ok());
  const auto header = parse_safetensors(file->bytes());
  ASSERT_TRUE(header.ok());
  std::vector<TensorSpec> specs;
  for (const TensorEntry& entry : header->tensors) specs.push_back({entry.name, entry.dtype, entry.shape});
  auto writer = create_safetensors(folder / "copy", specs, header->metadata);
  ASSERT_TRUE(writer.ok()) << writer.error().text();
  for (const TensorEntry& entry : header->tensors) {
    const auto bytes =
        file->bytes().subspan(static_cast<size_t>(entry.offset_bytes), static_cast<size_t>(entry.size_bytes));
    for (const std::byte& byte : bytes) ASSERT_TRUE(writer->append(entry.name, std::span(&byte, 1)).ok());
  }
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_EQ(*read_file(folder / "copy"), *read_file(file->path()));
}

TEST(Safetensors, ReadsEdgeCases) {
  const std::string none = file_of("{}", 0);
  EXPECT_TRUE(parse_safetensors(as_bytes(none))->tensors.empty());
  const std::string padded =
      file_of("{\"a\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}   ", 3);
  EXPECT_EQ(parse_safetensors(as_bytes(padded))->tensors[0].dtype, DType::u8);
}

TEST(Safetensors, RefusesBadLengths) {
  for (const std::string& file :
       {std::string(), std::string("1234567"), std::string(8, '\xff') + "{}",
        std::string("\3\0\0\0\0\0\0\0{}", 10), std::string("\0\0\0\0\0\0\0\0{}", 10)}) {
    const auto parsed = parse_safetensors(as_bytes(file));
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().code, ErrorCode::bad_file);
    EXPECT_THAT(parsed.error().message, HasSubstr("not a safetensors file"));
    EXPECT_FALSE(parsed.error().hint.empty());
  }
  EXPECT_THAT(parse_safetensors(as_bytes(std::string(8, '\xff') + "{}")).error().message,
              HasSubstr("announces a header of 18446744073709551615 bytes"));
}

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view range) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, range);
}

TEST(Safetensors, RefusesBadTensorsByName) {
  struct Case {
    std::string entries;
    size_t data_bytes;
    const char* message;
  };
  const Case cases[] = {
      {entry("w", "F32", "[2]", "[0,8]") + "," + entry("w", "F32", "[2]", "[8,16]"), 16,
       "in the header twice"},
      {entry("a", "F32", "[2]", "[0,8]") + "," + entry("w", "F32", "[2]", "[4,12]"), 12, "overlap"},
      {entry("a", "F32", "[2]", "[0,8]") + "," + entry("w", "F32", "[2]", "[12,20]"), 20,
       "4 bytes before the tensor"},
      {entry("w", "F32", "[2]", "[4,12]"), 12, "4 bytes before the tensor"},
      {entry("w", "F32", "[2]", "[0,4]"), 8, "covers 4 bytes, but F32 [2] takes 8 bytes"},
      {entry("w", "F32", "[2]", "[0,8]"), 7, "the file holds only 7 bytes of data"},
      {entry("w", "F32", "[2]", "[8,0]"), 8, "not a begin and an end"},
      {entry("w", "F32", "[2]", "[0,8,9]"), 9, "not a begin and an end"},
      {entry("w", "F32", "[4294967296,4294967296]", "[0,0]"), 0, "overflows"},
      {entry("w", "F32", "[4611686018427387904]", "[0,0]"), 0, "overflows"},
      {entry("w", "F32", "[18446744073709551615]", "[0,0]"), 0, "overflows"},
      {entry("w", "F32", "[18446744073709551616]", "[0,0]"), 0, "no whole number of 64 bits"},
      {entry("w", "F32", "[-1]", "[0,0]"), 0, "negative number where 'shape'"},
      {entry("w", "F32", "[1.5]", "[0,0]"), 0, "no whole number"},
      {entry("w", "F32", "[[1]]", "[0,4]"), 4, "an array where 'shape'"},
      {entry("w", "F32", "null", "[0,4]"), 4, "null where 'shape'"},
      {R"("w":{"dtype":"F32","shape":[1]})", 0, "lacks the tensor's dtype, shape or data_offsets"},
      {R"("w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})", 4, "a string where 'dtype'"},
      {R"("w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":{}})", 4, "an object where 'more'"},
      {R"("w":[])", 0, "an array where a tensor belongs"},
      {R"("w":1)", 0, "a number where a tensor belongs"},
  };
  for (const Case& c : cases) {
    const Error error = refusal("{" + c.entries + "}", c.data_bytes);
    EXPECT_EQ(error.code, ErrorCode::bad_file) << c.entries;
    EXPECT_THAT(error.message, HasSubstr(c.message)) << c.entries;
    EXPECT_EQ(error.subject, "w") << c.entries;
    EXPECT_FALSE(error.hint.empty());
  }
  EXPECT_THAT(refusal("{" + entry("w", "F32", "[2]", "[0,8]") + "}", 10).message,
              HasSubstr("2 bytes at the end"));
  EXPECT_THAT(refusal("{\"w\":}", 0).message, HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{} {}", 0).message, HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("[]", 0).message, HasSubstr("does not start with '{'"));
  EXPECT_THAT(refusal("{" + std::string(1'000'000, '['), 0).message, HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(R"({"w":)" + std::string(1'000'000, '['), 0).message, HasSubstr("an array where"));
}

TEST(Safetensors, RefusesUnsupportedByName) {
  const Error dtype = refusal("{" + entry("w", "F6_E2M3", "[4]", "[0,4]") + "}", 4);
  EXPECT_EQ(dtype.code, ErrorCode::unsupported);
  EXPECT_THAT(dtype.text(), HasSubstr("w: cannot read tensors of dtype F6_E2M3"));
  const Error rank = refusal("{" + entry("w", "U8", "[1,1,1,1,1,1,1]", "[0,1]") + "}", 1);
  EXPECT_EQ(rank.code, ErrorCode::unsupported);
  EXPECT_THAT(rank.message, HasSubstr("7 dimensions"));
}

TEST(Safetensors, RefusesBadMetadata) {
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":1}})", 0).message, HasSubstr("a number where 'a'"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":"1","a":"2"}})", 0).message, HasSubstr("'a' is there twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":{"b":"c"}}})", 0).message, HasSubstr("an object where 'a'"));
}

TEST(Safetensors, WriterRefusesWhatDoesNotFit) {
  const auto layout = [](std::vector<TensorSpec> specs) {
    return safetensors_layout(specs, {}).error().message;
  };
  EXPECT_THAT(layout({{"w", DType::q4_0, {32}}}), HasSubstr("cannot hold q4_0"));
  EXPECT_THAT(layout({{"w", DType::f32, {1}}, {"w", DType::f32, {1}}}), HasSubstr("given twice"));
  EXPECT_THAT(layout({{"__metadata__", DType::f32, {1}}}), HasSubstr("reserved"));
  EXPECT_THAT(layout({{"\xff", DType::f32, {1}}}), HasSubstr("not UTF-8"));
  EXPECT_THAT(layout({{"w", DType::f32, {INT64_MAX, 2}}}), HasSubstr("too large"));
  EXPECT_THAT(layout({{"v", DType::u8, {INT64_MAX}}, {"w", DType::u8, {1}}}),
              HasSubstr("together are too large"));
}

}  // namespace
}  // namespace tenon
