#include "io/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "io/gguf_writer.h"
#include "io/mapped_file.h"
#include "io/test_folder.h"

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Builds GGUF bytes field by field, right or wrong.
struct Raw {
  std::string bytes;

  template <typename T>
  Raw& put(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  Raw& text(std::string_view value) {
    put(static_cast<uint64_t>(value.size()));
    bytes += value;
    return *this;
  }
  Raw& type(GgufType value) { return put(static_cast<uint32_t>(value)); }
  Raw& tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t dtype, uint64_t offset) {
    text(name).put(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) put(dim);
    return put(dtype).put(offset);
  }
  Raw& data(size_t count) {
    bytes.resize((bytes.size() + 31) / 32 * 32 + count);
    return *this;
  }
};

Raw head(uint64_t tensors, uint64_t entries, uint32_t version = 3) {
  Raw raw;
  raw.bytes = "GGUF";
  return raw.put(version).put(tensors).put(entries);
}

Error refusal(const Raw& raw) {
  const auto parsed = parse_gguf(as_bytes(raw.bytes));
  if (parsed.ok()) ADD_FAILURE() << "accepted";
  return parsed.ok() ? Error{} : parsed.error();
}

class Reference : public testing::Test {
 protected:
  // tests/io/reference.gguf is written by the Python package gguf (tools/make_io_goldens.py).
  MappedFile map_ = *MappedFile::open(TENON_SOURCE_DIR "/tests/io/reference.gguf");
  GgufFile file_ = *parse_gguf(map_.bytes());
};

TEST_F(Reference, MetadataOfEveryType) {
  EXPECT_EQ(file_.version, 3u);
  EXPECT_EQ(*file_.string("general.architecture"), "llama");
  EXPECT_EQ(*file_.integer("t.u8"), 255);
  EXPECT_EQ(*file_.integer("t.i8"), -128);
  EXPECT_EQ(*file_.integer("t.u16"), 65535);
  EXPECT_EQ(*file_.integer("t.i16"), -32768);
  EXPECT_EQ(*file_.integer("t.u32"), 4294967295);
  EXPECT_EQ(*file_.integer("t.i32"), INT32_MIN);
  EXPECT_EQ(*file_.integer("t.i64"), INT64_MIN);
  EXPECT_EQ(*file_.number("t.f32"), static_cast<double>(0.1f));
  EXPECT_EQ(*file_.number("t.f64"), 0.1);
  EXPECT_EQ(*file_.number("t.u8"), 255.0);
  EXPECT_TRUE(*file_.boolean("t.bool"));
  EXPECT_EQ(*file_.string("t.string"), "h\xc3\xa9llo");
  EXPECT_THAT(*file_.strings("t.strings"), ElementsAre("a", "", "caf\xc3\xa9"));
  EXPECT_THAT(*file_.integers("t.i32s"), ElementsAre(1, -2, 3));
  EXPECT_THAT(*file_.floats("t.f32s"), ElementsAre(0.5f, -1.5f));
  EXPECT_THAT(*file_.find("t.bools")->booleans(), ElementsAre(true, false, true));
  // Views, not copies.
  const auto* begin = reinterpret_cast<const char*>(map_.bytes().data());
  const std::string_view first = file_.strings("t.strings")->front();
  EXPECT_TRUE(first.data() > begin && first.data() < begin + map_.bytes().size());
}

TEST_F(Reference, WrongKindsAreNamed) {
  EXPECT_EQ(file_.integer("t.none").error().code, ErrorCode::not_found);
  EXPECT_EQ(file_.integer("t.none").error().subject, "t.none");
  EXPECT_THAT(file_.integer("t.u64").error().message,
              HasSubstr("type u64, but an integer of 64 bits is needed"));
  EXPECT_THAT(file_.strings("t.i32s").error().message, HasSubstr("an array of i32, but an array of strings"));
  for (const char* key : {"t.bool", "t.f32", "t.string", "t.strings"})
    EXPECT_FALSE(file_.integer(key).ok()) << key;
  for (const char* key : {"t.u8", "t.string", "t.bools"}) EXPECT_FALSE(file_.boolean(key).ok()) << key;
  for (const char* key : {"t.bool", "t.string", "t.i32s"}) EXPECT_FALSE(file_.number(key).ok()) << key;
  for (const char* key : {"t.f32s", "t.strings", "t.bools", "t.u8"})
    EXPECT_FALSE(file_.integers(key).ok()) << key;
  EXPECT_FALSE(file_.floats("t.i32s").ok());
  EXPECT_FALSE(file_.string("t.strings").ok());
}

TEST_F(Reference, TensorsOutermostFirst) {
  ASSERT_EQ(file_.tensors.size(), 4u);
  EXPECT_EQ(file_.tensors[0].name, "w.f32");
  EXPECT_EQ(file_.tensors[0].shape, (Shape{2, 3}));
  float values[6];
  std::memcpy(values, map_.bytes().data() + file_.tensors[0].offset_bytes, sizeof(values));
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(file_.tensors[1].dtype, DType::f16);
  EXPECT_EQ(file_.tensors[2].dtype, DType::q8_0);
  EXPECT_EQ(file_.tensors[2].shape, (Shape{3, 64}));
  EXPECT_EQ(file_.tensors[2].size_bytes, 3 * 2 * 34);
  EXPECT_EQ(file_.tensors[3].dtype, DType::q4_1);
}

TEST_F(Reference, WriterGivesTheSameBytes) {
  GgufHeader header;
  for (const GgufEntry& entry : file_.metadata) header.add(entry.key, entry.value);
  std::vector<TensorSpec> specs;
  for (const TensorEntry& tensor : file_.tensors) specs.push_back({tensor.name, tensor.dtype, tensor.shape});
  const TestFolder folder;
  auto writer = create_gguf(folder / "copy.gguf", header, specs);
  ASSERT_TRUE(writer.ok()) << writer.error().text();
  for (const TensorEntry& tensor : file_.tensors) {
    const auto bytes = map_.bytes().subspan(static_cast<size_t>(tensor.offset_bytes),
                                            static_cast<size_t>(tensor.size_bytes));
    ASSERT_TRUE(writer->append(tensor.name, bytes.first(3)).ok());
    ASSERT_TRUE(writer->append(tensor.name, bytes.subspan(3)).ok());
  }
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_EQ(*read_file(folder / "copy.gguf"), *read_file(map_.path()));
}

TEST(GgufWriter, TypedValuesComeBack) {
  GgufHeader header;
  header.add_u32("general.alignment", 64);
  header.add_i32("i", -3);
  header.add_u64("u", 1ull << 40);
  header.add_f32("f", 1.5f);
  header.add_bool("b", false);
  header.add_string("s", "text");
  const int32_t ints[] = {4, -5};
  const float floats[] = {0.25f};
  const std::string strings[] = {"x", "yy"};
  header.add_i32s("is", ints);
  header.add_f32s("fs", floats);
  header.add_strings("ss", strings);
  const TensorSpec specs[] = {{"a", DType::bf16, {3}}, {"b", DType::f32, {}}};
  auto layout = header.layout(specs);
  ASSERT_TRUE(layout.ok()) << layout.error().text();
  layout->header.resize(static_cast<size_t>(layout->file_bytes));
  const auto file = parse_gguf(as_bytes(layout->header));
  ASSERT_TRUE(file.ok()) << file.error().text();
  EXPECT_EQ(file->alignment_bytes, 64);
  EXPECT_EQ(*file->integer("i"), -3);
  EXPECT_EQ(*file->integer("u"), int64_t{1} << 40);
  EXPECT_EQ(*file->number("f"), 1.5);
  EXPECT_FALSE(*file->boolean("b"));
  EXPECT_EQ(*file->string("s"), "text");
  EXPECT_THAT(*file->integers("is"), ElementsAre(4, -5));
  EXPECT_THAT(*file->floats("fs"), ElementsAre(0.25f));
  EXPECT_THAT(*file->strings("ss"), ElementsAre("x", "yy"));
  EXPECT_EQ(file->tensors[1].shape, Shape{});
  EXPECT_EQ(file->tensors[1].offset_bytes, file->data_begin_bytes + 64);
  EXPECT_EQ(file->tensors[0].offset_bytes, layout->tensors[0].offset_bytes);
}

TEST(GgufWriter, RefusesWhatDoesNotFit) {
  const GgufHeader header;
  const auto message = [&](std::vector<TensorSpec> specs) { return header.layout(specs).error().message; };
  EXPECT_THAT(message({{"w", DType::u8, {1}}}), HasSubstr("cannot hold u8"));
  EXPECT_THAT(message({{"w", DType::q4_0, {2, 16}}}), HasSubstr("cannot be stored as q4_0"));
  EXPECT_THAT(message({{"w", DType::f32, {0}}}), HasSubstr("cannot be stored"));
  EXPECT_THAT(message({{"w", DType::f32, {1, 1, 1, 1, 1}}}), HasSubstr("at most 4"));
  EXPECT_THAT(message({{"w", DType::f32, {1}}, {"w", DType::f32, {1}}}), HasSubstr("given twice"));
  EXPECT_THAT(message({{"w", DType::f32, {INT64_MAX}}}), HasSubstr("cannot be stored"));
  GgufHeader odd;
  odd.add_u32("general.alignment", 24);
  EXPECT_THAT(odd.layout({}).error().message, HasSubstr("power of two"));
}

TEST(Gguf, AcceptsTheLeast) {
  EXPECT_TRUE(parse_gguf(as_bytes(head(0, 0).bytes)).ok());
  EXPECT_EQ(parse_gguf(as_bytes(head(0, 0, 2).bytes))->version, 2u);
  const auto one = head(1, 0).tensor("w", {2, 3}, 0, 0).data(24);
  EXPECT_EQ(parse_gguf(as_bytes(one.bytes))->tensors[0].shape, (Shape{3, 2}));
}

TEST(Gguf, ReadsNestedArrays) {
  auto raw = head(0, 1).text("k").type(GgufType::array).type(GgufType::array).put(uint64_t{2});
  raw.type(GgufType::u8).put(uint64_t{2}).put(uint8_t{1}).put(uint8_t{2});
  raw.type(GgufType::string).put(uint64_t{1}).text("in");
  const auto file = parse_gguf(as_bytes(raw.bytes));
  ASSERT_TRUE(file.ok()) << file.error().text();
  const auto elements = file->find("k")->elements();
  ASSERT_EQ(elements->size(), 2u);
  EXPECT_THAT(*(*elements)[0].integers(), ElementsAre(1, 2));
  EXPECT_THAT(*(*elements)[1].strings(), ElementsAre("in"));

  auto deep = head(0, 1).text("k").type(GgufType::array);
  for (int i = 0; i < 100; ++i) deep.type(GgufType::array).put(uint64_t{1});
  EXPECT_EQ(refusal(deep).code, ErrorCode::unsupported);
}

TEST(Gguf, RefusesOtherFilesAndVersions) {
  EXPECT_THAT(refusal(Raw{""}).message, HasSubstr("not a GGUF file"));
  EXPECT_THAT(refusal(Raw{"GGML1234"}).message, HasSubstr("not a GGUF file"));
  EXPECT_THAT(refusal(Raw{"GGUF\3"}).message, HasSubstr("ends inside the header"));
  EXPECT_THAT(refusal(head(0, 0, 1)).message, HasSubstr("version 1"));
  EXPECT_THAT(refusal(head(0, 0, 4)).message, HasSubstr("version 4"));
  EXPECT_THAT(refusal(head(0, 0, 0x03000000)).message, HasSubstr("big-endian"));
  EXPECT_EQ(refusal(head(0, 0, 0x03000000)).code, ErrorCode::unsupported);
}

TEST(Gguf, RefusesImpossibleCounts) {
  EXPECT_THAT(refusal(head(UINT64_MAX, 0)).message,
              HasSubstr("announces 0 metadata entries and 18446744073709551615"));
  EXPECT_THAT(refusal(head(0, UINT64_MAX)).message, HasSubstr("do not fit"));
  EXPECT_THAT(refusal(head(0, 1)).message, HasSubstr("do not fit"));
  // The metadata eats what the tensor count could have been.
  EXPECT_THAT(refusal(head(2, 1).text("k").type(GgufType::string).text(std::string(60, 'x'))).message,
              HasSubstr("ends inside the tensor index"));
}

TEST(Gguf, RefusesBadMetadataByKey) {
  struct Case {
    Raw raw;
    const char* message;
    const char* subject;
  };
  const Case cases[] = {
      {head(0, 1).text("").type(GgufType::u32).put(1).put(1), "entry 1 of 1 has an empty key", ""},
      {head(0, 1).put(UINT64_MAX).put(1).put(1), "ends inside metadata entry 1 of 1", ""},
      {head(0, 1).text("k").put(13u).put(1), "type 13, which GGUF does not define", "k"},
      {head(0, 1).text("k").type(GgufType::array).put(99u).put(uint64_t{1}).put(1), "type 99", "k"},
      {head(0, 1).text("k").type(GgufType::boolean).put(uint8_t{2}), "neither 0 nor 1", "k"},
      {head(0, 1).text("k").type(GgufType::array).type(GgufType::boolean).put(uint64_t{1}).put(uint8_t{7}),
       "neither 0 nor 1", "k"},
      {head(0, 1).text("k").type(GgufType::u64).put(1), "ends inside a metadata value", "k"},
      {head(0, 1).text("k").type(GgufType::string).put(uint64_t{9}).put(1), "ends inside a string", "k"},
      {head(0, 1).text("k").type(GgufType::array).type(GgufType::u64).put(UINT64_MAX / 8 + 1).put(1),
       "ends inside an array", "k"},
      {head(0, 1).text("k").type(GgufType::array).type(GgufType::u64).put(uint64_t{1} << 61).put(1),
       "ends inside an array", "k"},
      {head(0, 1).text("k").type(GgufType::array).type(GgufType::string).put(uint64_t{3}).put(1),
       "ends inside an array", "k"},
      {head(0, 1).text("k").type(GgufType::array).type(GgufType::string).put(uint64_t{1}).put(uint64_t{100}),
       "ends inside an array of strings", "k"},
      {head(0, 2).text("k").type(GgufType::u32).put(1).text("k").type(GgufType::u32).put(1), "there twice",
       "k"},
      {head(0, 1).text("general.alignment").type(GgufType::u32).put(0u), "alignment is 0",
       "general.alignment"},
      {head(0, 1).text("general.alignment").type(GgufType::u32).put(48u), "not a power of two",
       "general.alignment"},
      {head(0, 1).text("general.alignment").type(GgufType::i64).put(int64_t{32}), "not a u32",
       "general.alignment"},
  };
  for (const Case& c : cases) {
    const Error error = refusal(c.raw);
    EXPECT_EQ(error.code, ErrorCode::bad_file) << c.message;
    EXPECT_THAT(error.message, HasSubstr(c.message));
    EXPECT_EQ(error.subject, c.subject) << c.message;
    EXPECT_FALSE(error.hint.empty());
  }
}

TEST(Gguf, RefusesBadTensorsByName) {
  struct Case {
    Raw raw;
    const char* message;
  };
  const uint64_t big = (uint64_t{1} << 42) + 1;
  const Case cases[] = {
      {head(1, 0).tensor("w", {big}, 0, 0).data(64), "ends after the file"},
      {head(1, 0).tensor("w", {big, big}, 0, 0).data(64), "overflows"},
      {head(1, 0).tensor("w", {uint64_t{1} << 62}, 0, 0).data(64), "overflows"},
      {head(1, 0).tensor("w", {UINT64_MAX}, 0, 0).data(64), "dimension of 18446744073709551615"},
      {head(1, 0).tensor("w", {0}, 0, 0).data(64), "dimension of 0"},
      {head(1, 0).tensor("w", {1, 1, 1, 1, 1}, 0, 0).data(64), "5 dimensions"},
      {head(1, 0).tensor("w", {16, 2}, 2, 0).data(64), "rows of 16 values cannot be q4_0"},
      {head(1, 0).tensor("w", {8}, 0, 4).data(64), "not a multiple of the alignment, 32"},
      {head(1, 0).tensor("w", {8}, 0, UINT64_MAX - 31).data(64), "not a multiple"},
      {head(1, 0).tensor("w", {8}, 0, (uint64_t{1} << 63) - 32).data(64), "ends after the file"},
      {head(1, 0).tensor("w", {8}, 0, 0).data(31), "cut short or damaged"},
      {head(2, 0).tensor("a", {16}, 0, 0).tensor("w", {8}, 0, 32).data(64), "overlap those of a"},
      {head(2, 0).tensor("w", {8}, 0, 0).tensor("w", {8}, 0, 32).data(64), "there twice"},
      {head(1, 0).text("w").put(1u).put(uint64_t{1}).put(0u).put(1u), "ends inside the tensor index"},
  };
  for (const Case& c : cases) {
    const Error error = refusal(c.raw);
    EXPECT_EQ(error.code, ErrorCode::bad_file) << c.message;
    EXPECT_THAT(error.message, HasSubstr(c.message));
    EXPECT_EQ(error.subject, "w") << c.message;
    EXPECT_FALSE(error.hint.empty());
  }
  EXPECT_THAT(refusal(head(1, 0).tensor("", {8}, 0, 0).data(64)).message, HasSubstr("empty name"));
}

TEST(Gguf, RefusesUnsupportedTypesByName) {
  const Error known = refusal(head(1, 0).tensor("w", {32}, 20, 0).data(64));
  EXPECT_EQ(known.code, ErrorCode::unsupported);
  EXPECT_THAT(known.text(), HasSubstr("w: cannot read tensors of type IQ4_NL"));
  EXPECT_THAT(refusal(head(1, 0).tensor("w", {32}, 777, 0).data(64)).text(), HasSubstr("ggml type 777"));
  EXPECT_EQ(*ggml_type_number(DType::q6_k), 14u);
  EXPECT_EQ(*ggml_type_number(DType::bf16), 30u);
  EXPECT_FALSE(ggml_type_number(DType::u8).has_value());
}

// Real vocabularies, where the test data is there.
TEST(Gguf, ReadsRealVocabularies) {
  const std::string folder = TENON_SOURCE_DIR "/../shared/data/gguf_vocab";
  if (!is_folder(folder)) GTEST_SKIP() << "no " << folder;
  const auto names = list_folder(folder);
  ASSERT_TRUE(names.ok());
  int read = 0;
  for (const std::string& name : *names) {
    if (!name.ends_with(".gguf")) continue;
    const auto map = MappedFile::open(join_path(folder, name));
    ASSERT_TRUE(map.ok());
    const auto file = parse_gguf(map->bytes());
    ASSERT_TRUE(file.ok()) << name << file.error().text();
    EXPECT_GT(file->strings("tokenizer.ggml.tokens")->size(), 30'000u) << name;
    ++read;
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace tenon
