#include "io/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/json.h"
#include "io/gguf_writer.h"
#include "io/safetensors.h"
#include "io/test_folder.h"

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// One-byte tensors, each holding its value.
using Weights = std::vector<std::pair<std::string, uint8_t>>;

void put_weights(const TestFolder& folder, std::string_view file, const Weights& weights) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, value] : weights) specs.push_back({name, DType::u8, {1}});
  auto writer = create_safetensors(folder / file, specs, {});
  ASSERT_TRUE(writer.ok()) << writer.error().text();
  for (const auto& [name, value] : weights) {
    const auto byte = static_cast<std::byte>(value);
    ASSERT_TRUE(writer->append(name, std::span(&byte, 1)).ok());
  }
  ASSERT_TRUE(writer->commit().ok());
}

void put_gguf(const TestFolder& folder, std::string_view file, uint32_t parts = 0) {
  GgufHeader header;
  header.add_string("general.architecture", "llama");
  if (parts > 0) header.add_u32("split.count", parts);
  const TensorSpec specs[] = {{"z", DType::f32, {1}}, {"a", DType::f32, {1}}};
  auto writer = create_gguf(folder / file, header, specs);
  ASSERT_TRUE(writer.ok()) << writer.error().text();
  for (const float value : {1.0f, 2.0f})
    ASSERT_TRUE(writer->append(value == 1.0f ? "z" : "a", std::as_bytes(std::span(&value, 1))).ok());
  ASSERT_TRUE(writer->commit().ok());
}

Error refusal(const std::string& path) {
  auto opened = Checkpoint::open(path);
  if (opened.ok()) ADD_FAILURE() << "accepted " << path;
  return opened.ok() ? Error{} : std::move(opened).error();
}

TEST(Checkpoint, OpensASingleFile) {
  const TestFolder folder;
  folder.put("config.json", R"({"model_type": "x", "limit": Infinity})");
  folder.put("generation_config.json", R"({"eos_token_id": 2})");
  folder.put("tokenizer.json", "{}");
  put_weights(folder, "model.safetensors", {{"b", 7}, {"a", 9}});
  auto opened = Checkpoint::open(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.error().text();
  const Checkpoint checkpoint = std::move(opened).value();
  EXPECT_EQ(checkpoint.format(), CheckpointFormat::huggingface);
  EXPECT_EQ(checkpoint.path(), folder.path());
  EXPECT_THAT(checkpoint.files(), ElementsAre(folder / "model.safetensors"));
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "a");
  EXPECT_EQ(checkpoint.bytes("a")[0], std::byte{9});
  EXPECT_EQ(checkpoint.bytes(**checkpoint.require("b"))[0], std::byte{7});
  EXPECT_EQ(checkpoint.find("c"), nullptr);
  EXPECT_THAT(checkpoint.require("c").error().text(), HasSubstr("there is no tensor c among the 2"));
  EXPECT_EQ(checkpoint.config()["model_type"], "x");
  EXPECT_EQ((*checkpoint.generation_config())["eos_token_id"], 2);
  EXPECT_EQ(checkpoint.side_file("tokenizer.json"), folder / "tokenizer.json");
  EXPECT_FALSE(checkpoint.side_file("tokenizer.model").has_value());
}

TEST(Checkpoint, OpensShards) {
  const TestFolder folder;
  folder.put("config.json", "{}");
  put_weights(folder, "s1", {{"b", 1}});
  put_weights(folder, "s2", {{"a", 2}, {"c", 3}});
  folder.put("model.safetensors.index.json",
             R"({"metadata": {}, "weight_map": {"a": "s2", "b": "s1", "c": "s2"}})");
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().text();
  EXPECT_THAT(checkpoint->files(), ElementsAre(folder / "s1", folder / "s2"));
  EXPECT_EQ(checkpoint->bytes("a")[0], std::byte{2});
  EXPECT_EQ(checkpoint->bytes("b")[0], std::byte{1});
  EXPECT_EQ(checkpoint->find("c")->file, 1);
  EXPECT_EQ(checkpoint->generation_config(), nullptr);
}

TEST(Checkpoint, NamesMissingShards) {
  const TestFolder folder;
  folder.put("config.json", "{}");
  put_weights(folder, "s1", {{"a", 1}});
  folder.put("model.safetensors.index.json",
             R"({"weight_map": {"a": "s1", "b": "s2", "c": "s3", "d": "s2"}})");
  const Error error = refusal(folder.path());
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_THAT(error.text(), HasSubstr("2 of 3 weight files are missing: s2, s3"));
}

TEST(Checkpoint, RefusesAnIndexThatDisagrees) {
  const auto with_index = [](std::string_view index) {
    const TestFolder folder;
    folder.put("config.json", "{}");
    put_weights(folder, "s1", {{"a", 1}, {"b", 2}});
    put_weights(folder, "s2", {{"c", 1}});
    put_weights(folder, "s3", {{"a", 1}});
    folder.put("model.safetensors.index.json", index);
    return refusal(folder.path()).text();
  };
  EXPECT_THAT(with_index(R"({"weight_map": {"a": "s1", "b": "s1", "d": "s2"}})"),
              HasSubstr("the shards lack tensors that the index names: d (s2)"));
  EXPECT_THAT(with_index(R"({"weight_map": {"a": "s1"}})"), HasSubstr("elsewhere or not at all: b"));
  EXPECT_THAT(with_index(R"({"weight_map": {"a": "s2", "b": "s1", "c": "s2"}})"),
              HasSubstr("elsewhere or not at all: a"));
  EXPECT_THAT(with_index(R"({"weight_map": {"a": "s3", "b": "s1"}})"),
              HasSubstr("a: the tensor is in two files"));
  EXPECT_THAT(with_index(R"({"weight_map": {"a": "../s1"}})"), HasSubstr("not a plain file name: ../s1"));
  EXPECT_THAT(with_index(R"({"weight_map": {"a": "/etc/passwd"}})"), HasSubstr("not a plain file name"));
  EXPECT_THAT(with_index(R"({"weight_map": {"a": ".."}})"), HasSubstr("not a plain file name"));
  EXPECT_THAT(with_index(R"({"weight_map": {"a": 5}})"), HasSubstr("not a plain file name: number"));
  EXPECT_THAT(with_index(R"({"weight_map": []})"), HasSubstr("lacks the object 'weight_map'"));
  EXPECT_THAT(with_index(R"({"weight_map": {}})"), HasSubstr("or it is empty"));
  EXPECT_THAT(with_index("[]"), HasSubstr("must hold a JSON object"));
  EXPECT_THAT(with_index("{"), HasSubstr("index.json:1:2: not valid JSON"));
}

TEST(Checkpoint, SaysWhatAFolderLacks) {
  const TestFolder empty;
  EXPECT_EQ(refusal(empty.path()).code, ErrorCode::not_found);
  EXPECT_THAT(refusal(empty.path()).text(), HasSubstr("nor a .gguf file"));
  EXPECT_EQ(refusal(empty / "missing").code, ErrorCode::not_found);

  const TestFolder pickled;
  pickled.put("config.json", "{}");
  pickled.put("pytorch_model.bin", "x");
  EXPECT_EQ(refusal(pickled.path()).code, ErrorCode::unsupported);
  EXPECT_THAT(refusal(pickled.path()).text(), HasSubstr("only PyTorch files: pytorch_model.bin"));

  const TestFolder part;
  part.put("config.json", "{}");
  put_weights(part, "model-00001-of-00002.safetensors", {{"a", 1}});
  EXPECT_THAT(refusal(part.path()).text(),
              HasSubstr("other safetensors files: model-00001-of-00002.safetensors"));

  const TestFolder bare;
  put_weights(bare, "model.safetensors", {{"a", 1}});
  EXPECT_THAT(refusal(bare.path()).text(), HasSubstr("weights but no config.json"));
  EXPECT_THAT(refusal(bare / "model.safetensors").text(), HasSubstr("neither a folder nor a .gguf file"));

  const TestFolder both;
  both.put("config.json", "{}");
  put_weights(both, "model.safetensors", {{"a", 1}});
  both.put("model.safetensors.index.json", "{}");
  EXPECT_EQ(refusal(both.path()).code, ErrorCode::bad_argument);
}

TEST(Checkpoint, NamesTheDamagedFile) {
  const TestFolder folder;
  folder.put("config.json", "{}");
  folder.put("model.safetensors", "not tensors at all");
  EXPECT_THAT(refusal(folder.path()).text(),
              HasSubstr(folder / "model.safetensors" + ": not a safetensors file"));
  folder.put("config.json", "{\n\"a\": }");
  EXPECT_THAT(refusal(folder.path()).text(), HasSubstr(folder / "config.json:2:"));
}

TEST(Checkpoint, OpensAConfigurationAlone) {
  const TestFolder folder;
  folder.put("config.json", R"({"hidden_size": 8})");
  EXPECT_FALSE(Checkpoint::open(folder.path()).ok());
  const auto checkpoint = Checkpoint::open(folder.path(), WeightFiles::optional);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().text();
  EXPECT_TRUE(checkpoint->tensors().empty());
  EXPECT_EQ(checkpoint->config()["hidden_size"], 8);
}

TEST(Checkpoint, OpensGguf) {
  const TestFolder folder;
  put_gguf(folder, "m.gguf");
  folder.put("README.md", "x");
  for (const std::string& path : {folder.path(), folder / "m.gguf"}) {
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().text();
    EXPECT_EQ(checkpoint->format(), CheckpointFormat::gguf);
    EXPECT_EQ(checkpoint->folder(), folder.path());
    EXPECT_EQ(*checkpoint->gguf().string("general.architecture"), "llama");
    float value = 0;
    std::memcpy(&value, checkpoint->bytes("a").data(), sizeof(value));
    EXPECT_EQ(value, 2.0f);
    EXPECT_EQ(checkpoint->generation_config(), nullptr);
    EXPECT_FALSE(checkpoint->side_file("README.md").has_value());
  }
  put_gguf(folder, "n.gguf");
  EXPECT_THAT(refusal(folder.path()).text(), HasSubstr("2 GGUF files: m.gguf, n.gguf"));
  put_gguf(folder, "part.gguf", 3);
  EXPECT_THAT(refusal(folder / "part.gguf").text(), HasSubstr("one of 3 parts"));
  folder.put("bad.gguf", "GGUF");
  EXPECT_THAT(refusal(folder / "bad.gguf").text(), HasSubstr("bad.gguf: the file ends inside the header"));
}

TEST(Checkpoint, OpensAdapters) {
  const TestFolder folder;
  const auto message = [&] { return Checkpoint::open_adapter(folder.path()).error().text(); };
  EXPECT_THAT(message(), HasSubstr("no adapter_config.json"));
  folder.put("adapter_config.json", R"({"r": 4})");
  EXPECT_THAT(message(), HasSubstr("no adapter_model.safetensors"));
  folder.put("adapter_model.bin", "x");
  EXPECT_THAT(message(), HasSubstr("a PyTorch file"));
  put_weights(folder, "adapter_model.safetensors", {{"a", 1}});
  const auto adapter = Checkpoint::open_adapter(folder.path());
  ASSERT_TRUE(adapter.ok()) << adapter.error().text();
  EXPECT_EQ(adapter->config()["r"], 4);
  EXPECT_EQ(adapter->tensors().size(), 1u);
  EXPECT_FALSE(Checkpoint::open_adapter(folder / "none").ok());
}

// All golden models, where the test data is there.
TEST(Checkpoint, OpensTheGoldenModels) {
  const std::string folder = TENON_SOURCE_DIR "/../shared/golden";
  if (!is_folder(folder)) GTEST_SKIP() << "no " << folder;
  const auto names = list_folder(folder);
  ASSERT_TRUE(names.ok());
  int opened = 0;
  for (const std::string& name : *names) {
    const std::string model = join_path(folder, name);
    if (!is_file(join_path(model, "model.safetensors"))) continue;
    const auto checkpoint = Checkpoint::open(model);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().text();
    EXPECT_GT(checkpoint->tensors().size(), 0u) << name;
    EXPECT_TRUE(checkpoint->config().contains("model_type")) << name;
    const auto adapter = Checkpoint::open_adapter(join_path(model, "adapter"));
    ASSERT_TRUE(adapter.ok()) << adapter.error().text();
    ++opened;
  }
  EXPECT_GT(opened, 100);
}

}  // namespace
}  // namespace tenon
