// One vocabulary in several files: what tokenizer.json says, written as tiktoken ranks, as vocab.json with
// merges.txt and as GGUF metadata, must give the same ids on all kinds of text. The ids of tokenizer.json
// itself are held against the reference in tokenizer_goldens_test.cc. Also the expected ids that other
// projects publish with their own tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/json.h"
#include "io/json_file.h"
#include "io/test_folder.h"
#include "text/tokenizer.h"

namespace tenon {
namespace {

const std::string kShared = TENON_SOURCE_DIR "/../shared/data";
constexpr EncodeOptions kPlain = {.add_special = false, .parse_special = false};

Json read_json(const std::string& path) {
  auto json = read_json_file(path);
  EXPECT_TRUE(json.ok()) << path;
  return json.ok() ? std::move(*json) : Json();
}

// The short texts of the goldens, and a page of each language of the human rights declaration.
std::vector<std::string> texts() {
  std::vector<std::string> out;
  for (const Json& entry : read_json(TENON_SOURCE_DIR "/tests/text/texts.json")) {
    if (entry.contains("text")) out.push_back(entry["text"].text());
  }
  for (const auto& entry : std::filesystem::directory_iterator(kShared + "/datasets/udhr")) {
    if (entry.path().extension() != ".txt") continue;
    const auto text = read_file(entry.path().string());
    EXPECT_TRUE(text.ok());
    std::string page = text->substr(0, 4000);
    while (!page.empty() && (static_cast<unsigned char>(page.back()) & 0x80)) page.pop_back();
    out.push_back(std::move(page));
  }
  return out;
}

Tokenizer load(const std::string& path) {
  auto tokenizer = Tokenizer::from_file(path);
  if (!tokenizer.ok()) {
    ADD_FAILURE() << tokenizer.error().text();
    std::abort();
  }
  return std::move(*tokenizer);
}

// `added`: tokens that only one of the two knows; texts that spell one are left out.
void expect_same_ids(const Tokenizer& want, const Tokenizer& have, const Json& added = Json::array()) {
  std::vector<std::string> all = texts();
  std::erase_if(all, [&](const std::string& text) {
    return std::any_of(added.begin(), added.end(), [&](const Json& token) {
      return text.find(token["content"].text()) != std::string::npos;
    });
  });
  ASSERT_GE(all.size(), 140u);
  for (const std::string& text : all) {
    ASSERT_EQ(have.encode(text, kPlain), want.encode(text, kPlain)) << text.substr(0, 200);
  }
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) {
      word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k <= bytes.size() ? kDigits[word >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

TEST(TokenizerForms, Base64OfThisTestIsTheStandards) {  // RFC 4648, section 10
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

class WithSharedTokenizer : public testing::TestWithParam<const char*> {
 protected:
  std::string path() const { return kShared + "/tokenizers/" + GetParam() + "/tokenizer.json"; }
};

class Tiktoken : public WithSharedTokenizer {};

TEST_P(Tiktoken, RanksGiveTheIdsOfTokenizerJson) {
  if (!is_file(path())) GTEST_SKIP() << "no " << path();
  const Tokenizer want = load(path());
  const Json json = read_json(path());
  const size_t count = json["model"]["vocab"].size();
  std::string ranks;
  for (size_t id = 0; id < count; ++id) {
    ranks += base64(want.token_bytes(static_cast<int32_t>(id))) + " " + std::to_string(id) + "\n";
  }
  const TestFolder folder;
  folder.put("tokenizer.tiktoken", ranks);
  expect_same_ids(want, load(folder / "tokenizer.tiktoken"), json["added_tokens"]);
}

// The ids of these are the ranks.
INSTANTIATE_TEST_SUITE_P(Forms, Tiktoken, testing::Values("llama3", "gptoss"));

std::vector<std::string> merge_lines(const Json& model) {
  std::vector<std::string> lines;
  for (const Json& merge : model["merges"]) {
    lines.push_back(merge.is_string() ? merge.get<std::string>()
                                      : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return lines;
}

TEST(TokenizerForms, VocabularyAndMergesGiveTheIdsOfTokenizerJson) {
  const std::string path = kShared + "/tokenizers/qwen3/tokenizer.json";
  if (!is_file(path)) GTEST_SKIP() << "no " << path;
  const Json json = read_json(path);
  const Json& model = json["model"];
  std::string merges = "#version: 0.2\n";
  for (const std::string& line : merge_lines(model)) merges += line + "\n";
  const TestFolder folder;
  folder.put("vocab.json", model["vocab"].dump());
  folder.put("merges.txt", merges);
  folder.put("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  expect_same_ids(load(path), load(folder.path()), json["added_tokens"]);
}

// A GGUF file (version 3) of metadata alone: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
class GgufWriter {
 public:
  void text(const std::string& key, std::string_view value) {
    begin(key, kString);
    put_text(value);
  }
  void texts(const std::string& key, const std::vector<std::string>& values) {
    begin(key, kArray);
    put<uint32_t>(kString);
    put<uint64_t>(values.size());
    for (const std::string& value : values) put_text(value);
  }
  void integers(const std::string& key, const std::vector<int32_t>& values) {
    begin(key, kArray);
    put<uint32_t>(kInt32);
    put<uint64_t>(values.size());
    for (const int32_t value : values) put(value);
  }
  std::string file() const {
    GgufWriter head;
    head.bytes_ = "GGUF";
    head.put<uint32_t>(3);
    head.put<uint64_t>(0);
    head.put<uint64_t>(count_);
    return head.bytes_ + bytes_;
  }

 private:
  static constexpr uint32_t kInt32 = 5, kString = 8, kArray = 9;

  template <typename T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(std::string_view text) {
    put<uint64_t>(text.size());
    bytes_ += text;
  }
  void begin(const std::string& key, uint32_t type) {
    put_text(key);
    put(type);
    ++count_;
  }

  std::string bytes_;
  uint64_t count_ = 0;
};

struct PreCase {
  const char* tokenizer;
  const char* pre;
};
class GgufPre : public testing::TestWithParam<PreCase> {};

TEST_P(GgufPre, GivesTheIdsOfTokenizerJson) {
  const std::string path = kShared + "/tokenizers/" + GetParam().tokenizer + "/tokenizer.json";
  if (!is_file(path)) GTEST_SKIP() << "no " << path;
  const Json json = read_json(path);
  constexpr int32_t kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5;
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  const auto set = [&](size_t id, const std::string& token, int32_t type) {
    if (id >= tokens.size()) {
      tokens.resize(id + 1);
      types.resize(id + 1, kUnused);
    }
    tokens[id] = token;
    types[id] = type;
  };
  for (const auto& [token, id] : json["model"]["vocab"].items()) set(id.get<size_t>(), token, kNormal);
  for (const Json& added : json["added_tokens"]) {
    set(added["id"].get<size_t>(), added["content"].text(),
        added["special"].get<bool>() ? kControl : kUserDefined);
  }
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) tokens[id] = "[unused" + std::to_string(id) + "]";
  }
  GgufWriter writer;
  writer.text("tokenizer.ggml.model", "gpt2");
  writer.text("tokenizer.ggml.pre", GetParam().pre);
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.integers("tokenizer.ggml.token_type", types);
  writer.texts("tokenizer.ggml.merges", merge_lines(json["model"]));
  const TestFolder folder;
  folder.put("model.gguf", writer.file());
  expect_same_ids(load(path), load(folder / "model.gguf"));
}

INSTANTIATE_TEST_SUITE_P(Forms, GgufPre,
                         testing::Values(PreCase{"llama3", "llama-bpe"}, PreCase{"qwen3", "qwen2"},
                                         PreCase{"deepseek_v3", "deepseek-v3"}, PreCase{"gptoss", "gpt-4o"}));

// Cases that swift-transformers tests its tokenizers by.
struct SwiftCase {
  const char* name;
  const char* tokenizer;
};
class SwiftCases : public testing::TestWithParam<SwiftCase> {};

TEST_P(SwiftCases, GiveThePublishedIds) {
  const std::string path = kShared + "/" + GetParam().tokenizer;
  const std::string cases = kShared + "/tokenizers/golden/swift-transformers/tokenizer_tests.json";
  if (!is_file(path) || !is_file(cases)) GTEST_SKIP() << "no " << path;
  const Tokenizer tokenizer = load(path);
  const Json all = read_json(cases)[GetParam().name];
  ASSERT_GE(all.size(), 18u);
  for (const Json& one : all) {
    const std::string text = one["input"].text();
    const auto ids = one["encoded"]["input_ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.encode(text), ids) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, SwiftCases,
    testing::Values(SwiftCase{"coreml-projects/Llama-2-7b-chat-coreml", "tokenizers/llama2/tokenizer.json"},
                    SwiftCase{"pcuenq/Llama-3.2-1B-Instruct-tokenizer", "tokenizers/llama3/tokenizer.json"},
                    SwiftCase{"distilgpt2", "gguf_vocab/ggml-vocab-gpt-2.gguf"},
                    SwiftCase{"tiiuae/falcon-7b", "gguf_vocab/ggml-vocab-falcon.gguf"}));

struct LongText {
  const char* file;
  const char* tokenizer;
  bool special;
};
class SwiftLongTexts : public testing::TestWithParam<LongText> {};

TEST_P(SwiftLongTexts, GiveThePublishedIds) {
  const std::string path = kShared + "/" + GetParam().tokenizer;
  if (!is_file(path)) GTEST_SKIP() << "no " << path;
  const Json golden = read_json(kShared + "/tokenizers/golden/swift-transformers/" + GetParam().file);
  const auto ids = golden["token_ids"].get<std::vector<int32_t>>();
  EXPECT_EQ(load(path).encode(golden["text"].get<std::string>(), {.add_special = GetParam().special}), ids);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, SwiftLongTexts,
    testing::Values(LongText{"llama_encoded.json", "tokenizers/llama2/tokenizer.json", true},
                    LongText{"llama_3.2_encoded.json", "tokenizers/llama3/tokenizer.json", true},
                    LongText{"gpt2_encoded_tokens.json", "gguf_vocab/ggml-vocab-gpt-2.gguf", false},
                    LongText{"falcon_encoded.json", "gguf_vocab/ggml-vocab-falcon.gguf", false}));

}  // namespace
}  // namespace tenon
