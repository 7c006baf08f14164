// Tokenizers against the reference libraries (tests/text/, written by tools/make_tokenizer_goldens.py) and
// against the expected ids that come with the vocabularies in the shared test data.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/folder.h"
#include "io/json_file.h"
#include "io/write_file.h"
#include "text/tokenizer.h"

namespace tenon {
namespace {

const std::string kTexts = TENON_SOURCE_DIR "/tests/text";
const std::string kShared = TENON_SOURCE_DIR "/../shared/data";

std::string read_text(const std::string& path) {
  auto text = read_file(path);
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? *text : std::string();
}

std::string crc(const void* data, size_t bytes) {
  char out[16];
  std::snprintf(out, sizeof out, "%08lx", crc32_z(0, static_cast<const Bytef*>(data), bytes));
  return out;
}

std::vector<std::string> split_tabs(const std::string& line) {
  std::vector<std::string> fields;
  std::stringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
  return fields;
}

// The texts by name; those in the shared data only where it is there.
std::map<std::string, std::string> load_texts() {
  std::map<std::string, std::string> texts;
  auto json = read_json_file(kTexts + "/texts.json");
  EXPECT_TRUE(json.ok());
  if (!json.ok()) return texts;
  for (const Json& entry : *json) {
    std::string text;
    if (entry.contains("text")) {
      text = entry["text"].text();
    } else if (entry.contains("repeat")) {
      const std::string unit = entry["repeat"].text();
      for (int i = entry["times"].get<int>(); i > 0; --i) text += unit;
    } else {
      const std::string path = kShared + "/" + entry["file"].get<std::string>();
      if (!is_file(path)) continue;
      const auto begin = entry["begin"].get<size_t>();
      text = read_text(path).substr(begin, entry["end"].get<size_t>() - begin);
    }
    texts[entry["name"].text()] = text;
  }
  return texts;
}

const std::map<std::string, std::string>& texts() {
  static const std::map<std::string, std::string> all = load_texts();
  return all;
}

// The golden lines of one tokenizer.
std::vector<std::vector<std::string>> goldens_of(const std::string& key) {
  std::vector<std::vector<std::string>> lines;
  std::ifstream file(kTexts + "/goldens.tsv");
  for (std::string line; std::getline(file, line);) {
    auto fields = split_tabs(line);
    fields.resize(7);
    if (fields[0] == key) lines.push_back(fields);
  }
  return lines;
}

struct Options {
  bool sentencepiece = false;  // goldens of the processor itself: no special tokens
};

void check_line(const Tokenizer& tokenizer, const std::vector<std::string>& golden, const std::string& text,
                Options options) {
  EncodeOptions encode;
  encode.add_special = encode.parse_special = !options.sentencepiece;
  const std::vector<int32_t> ids = tokenizer.encode(text, encode);
  ASSERT_EQ(std::to_string(ids.size()), golden[2])
      << golden[1] << " want " << golden[6] << " have "
      << testing::PrintToString(
             std::vector(ids.begin(), ids.begin() + std::min<ptrdiff_t>(30, std::ssize(ids))));
  ASSERT_EQ(crc(ids.data(), ids.size() * 4), golden[3]) << golden[1] << " want " << golden[6];
  const std::vector<TokenSpan> spans = tokenizer.encode_spans(text, encode);
  ASSERT_EQ(spans.size(), ids.size());
  std::vector<int64_t> flat;
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(spans[i].id, ids[i]);
    flat.insert(flat.end(), {spans[i].begin, spans[i].end});
  }
  const std::string decoded = tokenizer.decode(ids);
  StreamDecoder stream(tokenizer);
  std::string streamed;
  for (int32_t id : ids) streamed += stream.push(id);
  streamed += stream.finish();
  EXPECT_EQ(streamed, decoded) << golden[1];
  if (options.sentencepiece) return;
  EXPECT_EQ(crc(flat.data(), flat.size() * 8), golden[4]) << "spans of " << golden[1];
  EXPECT_EQ(crc(decoded.data(), decoded.size()), golden[5]) << "decoded " << golden[1];
}

void check_goldens(const std::string& key, const Tokenizer& tokenizer, Options options) {
  const auto lines = goldens_of(key);
  ASSERT_GE(lines.size(), 100u) << key;
  for (const auto& golden : lines) {
    const auto text = texts().find(golden[1]);
    if (text != texts().end()) check_line(tokenizer, golden, text->second, options);
    if (testing::Test::HasFatalFailure()) return;
  }
}

class TinyTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(TinyTokenizer, EqualsReference) {
  const std::string name = GetParam();
  auto tokenizer = Tokenizer::from_file(kTexts + "/tokenizers/" + name);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().text();
  check_goldens(name, *tokenizer, {name.ends_with(".model")});
}

INSTANTIATE_TEST_SUITE_P(Goldens, TinyTokenizer,
                         testing::Values("byte_level.json", "metaspace.json", "unigram.json",
                                         "wordpiece.json", "bpe.model", "unigram.model"));

class SharedTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(SharedTokenizer, EqualsReference) {
  const std::string key = GetParam();
  const std::string path = kShared + "/" + key;
  if (!is_file(path)) GTEST_SKIP() << "no " << path;
  const bool is_model = key.find("/tokenizer.model") != std::string::npos;
  // Without the configuration beside it, which may decide on BOS and EOS.
  auto tokenizer = is_model ? Tokenizer::from_file(path) : Tokenizer::from_json(read_text(path), path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().text();
  check_goldens(key, *tokenizer, {is_model});
}

INSTANTIATE_TEST_SUITE_P(
    Goldens, SharedTokenizer,
    testing::Values("tokenizers/deepseek_v3/tokenizer.json", "tokenizers/gemma3/tokenizer.json",
                    "tokenizers/gptoss/tokenizer.json", "tokenizers/llama2/tokenizer.json",
                    "tokenizers/llama3/tokenizer.json", "tokenizers/mistral_v0_1/tokenizer.json",
                    "tokenizers/mistral_v0_3/tokenizer.json", "tokenizers/olmo2/tokenizer.json",
                    "tokenizers/phi3/tokenizer.json", "tokenizers/qwen3/tokenizer.json",
                    "tokenizers/internlm2/tokenizer.model", "tokenizers/llama2/tokenizer.model",
                    "tokenizers/minicpm3/tokenizer.model", "tokenizers/mistral_v0_1/tokenizer.model",
                    "tokenizers/mistral_v0_3/tokenizer.model.v2",
                    "tokenizers/mistral_v0_3/tokenizer.model.v3", "tokenizers/yi/tokenizer.model"));

void check_element(const Json& element, const std::string& base) {
  Json file = Json::parse(base);
  file.update(element["replace"]);
  const std::string what =
      element["base"].get<std::string>() + " " + element["replace"].dump().substr(0, 200);
  auto tokenizer = Tokenizer::from_json(file.dump(), "element");
  ASSERT_TRUE(tokenizer.ok()) << what << "\n" << tokenizer.error().text();
  for (const Json& golden : element["encode"]) {
    const std::string text = golden["text"].text();
    EXPECT_EQ(tokenizer->encode(text), golden["ids"].get<std::vector<int32_t>>()) << what << "\n"
                                                                                  << golden["text"].dump();
    std::vector<int64_t> flat;
    for (const TokenSpan& span : tokenizer->encode_spans(text))
      flat.insert(flat.end(), {span.begin, span.end});
    EXPECT_EQ(flat, golden["spans"].get<std::vector<int64_t>>()) << "spans " << what << "\n"
                                                                 << golden["text"].dump();
  }
  for (const Json& golden : element["decode"]) {
    const auto ids = golden["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer->decode(ids), golden["text"].get<std::string>()) << what;
    EXPECT_EQ(tokenizer->decode(ids, true), golden["no_special"].get<std::string>()) << what;
    StreamDecoder stream(*tokenizer);
    std::string streamed;
    for (int32_t id : ids) streamed += stream.push(id);
    EXPECT_EQ(streamed + stream.finish(), golden["text"].get<std::string>()) << what;
  }
}

TEST(TokenizerElements, EachEqualsReference) {
  auto elements = read_json_file(kTexts + "/elements.json");
  ASSERT_TRUE(elements.ok());
  ASSERT_GE(elements->size(), 70u);
  std::map<std::string, std::string> bases;
  for (const Json& element : *elements) {
    const std::string name = element["base"].text();
    std::string& base = bases[name];
    if (base.empty()) base = read_text(kTexts + "/tokenizers/" + name + ".json");
    check_element(element, base);
  }
}

std::vector<std::string> vector_texts() {
  const std::string all = read_text(kShared + "/gguf_vocab/ggml-vocab.inp");
  const std::string mark = "\n__ggml_vocab_test__\n";
  std::vector<std::string> out;
  for (size_t at = 0; at <= all.size();) {
    const size_t end = std::min(all.find(mark, at), all.size());
    out.push_back(all.substr(at, end - at));
    at = end + mark.size();
  }
  return out;
}

struct VectorCase {
  const char* tokenizer;
  const char* ids;
};
class VocabularyVectors : public testing::TestWithParam<VectorCase> {};

TEST_P(VocabularyVectors, GiveTheExpectedIds) {
  const std::string path = kShared + "/" + GetParam().tokenizer;
  if (!is_file(path)) GTEST_SKIP() << "no " << path;
  auto tokenizer = Tokenizer::from_file(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().text();
  std::stringstream lines(read_text(kShared + "/gguf_vocab/" + GetParam().ids));
  size_t count = 0;
  for (const std::string& text : vector_texts()) {
    std::string line;
    if (!std::getline(lines, line)) break;
    std::stringstream numbers(line);
    std::vector<int32_t> want;
    for (int32_t id; numbers >> id;) want.push_back(id);
    EXPECT_EQ(tokenizer->encode(text, {.add_special = false}), want) << text;
    ++count;
  }
  EXPECT_GE(count, 46u);
}

INSTANTIATE_TEST_SUITE_P(
    Goldens, VocabularyVectors,
    testing::Values(VectorCase{"gguf_vocab/ggml-vocab-bert-bge.gguf", "ggml-vocab-bert-bge.gguf.out"},
                    VectorCase{"gguf_vocab/ggml-vocab-deepseek-coder.gguf",
                               "ggml-vocab-deepseek-coder.gguf.out"},
                    VectorCase{"gguf_vocab/ggml-vocab-falcon.gguf", "ggml-vocab-falcon.gguf.out"},
                    VectorCase{"gguf_vocab/ggml-vocab-gpt-2.gguf", "ggml-vocab-gpt-2.gguf.out"},
                    VectorCase{"gguf_vocab/ggml-vocab-llama-spm.gguf", "ggml-vocab-llama-spm.gguf.out"},
                    VectorCase{"gguf_vocab/ggml-vocab-mpt.gguf", "ggml-vocab-mpt.gguf.out"},
                    VectorCase{"gguf_vocab/ggml-vocab-refact.gguf", "ggml-vocab-refact.gguf.out"},
                    VectorCase{"gguf_vocab/ggml-vocab-starcoder.gguf", "ggml-vocab-starcoder.gguf.out"},
                    VectorCase{"gguf_vocab/ggml-vocab-phi-3.gguf", "ggml-vocab-llama-spm.gguf.out"},
                    VectorCase{"tokenizers/llama3/tokenizer.json", "ggml-vocab-llama-bpe.gguf.out"},
                    VectorCase{"tokenizers/qwen3/tokenizer.json", "ggml-vocab-qwen2.gguf.out"}));

}  // namespace
}  // namespace tenon
