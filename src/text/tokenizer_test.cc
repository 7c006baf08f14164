#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "io/test_folder.h"
#include "text/tokenizer_fuzz_checks.h"
#include "text/unicode.h"

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kTiny = TENON_SOURCE_DIR "/tests/text/tokenizers/";

Tokenizer tiny(const std::string& name) {
  auto tokenizer = Tokenizer::from_file(kTiny + name);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().text();
  return std::move(tokenizer).value();
}

// A byte pair tokenizer of the letters a, b, c and their merges, with the stages given.
std::string letters(const std::string& stages) {
  return R"({"added_tokens":[{"id":9,"content":"<x>","special":true,"normalized":false}],)" + stages +
         R"("model":{"type":"BPE","unk_token":"?","vocab":{"?":0,"a":1,"b":2,"c":3,"ab":4,"abc":5,"bc":6," ":7},)"
         R"("merges":["b c","a b","ab c"]}})";
}

TEST(Tokenizer, MergesByRankThenFromTheLeft) {
  auto t = Tokenizer::from_json(letters(""), "letters");
  ASSERT_TRUE(t.ok()) << t.error().text();
  EXPECT_THAT(t->encode("abcab"), ElementsAre(1, 6, 4));  // "b c" comes before "a b"
  EXPECT_THAT(t->encode("azz<x>b"), ElementsAre(1, 0, 0, 9, 2));
  EXPECT_THAT(t->encode("<x>", {.parse_special = false}), ElementsAre(0, 0, 0));
  EXPECT_EQ(t->vocab_size(), 10);
  EXPECT_EQ(t->token(5), "abc");
  EXPECT_EQ(t->token(8), "");
  EXPECT_EQ(t->token(-1), "");
  EXPECT_EQ(t->token(10), "");
  EXPECT_EQ(t->id_of("<x>"), 9);
  EXPECT_EQ(t->id_of("zz"), std::nullopt);
  EXPECT_TRUE(t->is_special(9));
  EXPECT_FALSE(t->is_special(5));
}

TEST(Tokenizer, NamesWhatItCannotRead) {
  const auto error = [](const std::string& json) {
    auto t = Tokenizer::from_json(json, "file.json");
    EXPECT_FALSE(t.ok());
    return t.ok() ? std::string() : t.error().text();
  };
  EXPECT_THAT(error("{"), HasSubstr("file.json: is not JSON"));
  EXPECT_THAT(error("{}"), HasSubstr("\"model\""));
  EXPECT_THAT(error(R"({"model":{"type":"Neural"}})"), HasSubstr("\"Neural\""));
  for (const char* stage : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    EXPECT_THAT(error(letters("\"" + std::string(stage) + R"(":{"type":"Magic"},)")), HasSubstr("\"Magic\""))
        << stage;
  }
  EXPECT_THAT(error(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})"), HasSubstr("\"b\""));
  EXPECT_THAT(error(R"({"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}})"), HasSubstr("id 0"));
  EXPECT_THAT(error(R"({"model":{"type":"BPE","vocab":{"a":99999999999},"merges":[]}})"), HasSubstr("\"a\""));
  EXPECT_THAT(error(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1}})"),
              HasSubstr("dropout"));
  EXPECT_THAT(error(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[],"fuse_unk":"yes"}})"),
              HasSubstr("fuse_unk"));
}

TEST(Tokenizer, FileThatIsMissingOrUnknown) {
  const TestFolder folder;
  EXPECT_EQ(Tokenizer::from_file(folder / "tokenizer.json").error().code, ErrorCode::not_found);
  EXPECT_EQ(Tokenizer::from_file(folder.path()).error().code, ErrorCode::not_found);
  folder.put("weights.bin", "x");
  EXPECT_EQ(Tokenizer::from_file(folder / "weights.bin").error().code, ErrorCode::unsupported);
}

TEST(Tokenizer, InvalidUtf8KeepsItsBytes) {
  const std::string text = "ab\xff\xfe c\xe4\xb8 \xf0\x9f\x98";
  for (const char* name : {"byte_level.json", "metaspace.json", "bpe.model"}) {
    const Tokenizer t = tiny(name);
    std::string bytes;
    for (const int32_t id : t.encode(text, {.add_special = false})) bytes += t.token_bytes(id);
    if (bytes.starts_with(' ')) bytes.erase(0, 1);  // the space before the text
    EXPECT_EQ(bytes, text) << name;
    EXPECT_TRUE(is_valid_utf8(t.decode(t.encode(text)))) << name;
    const auto spans = t.encode_spans(text, {.add_special = false});
    EXPECT_EQ(spans.back().end, static_cast<int64_t>(text.size())) << name;
  }
}

TEST(Tokenizer, SpansCoverByteLevelText) {
  const Tokenizer t = tiny("byte_level.json");
  const auto spans = t.encode_spans("a\xe4\xb8\xad b");  // a, one character of three bytes, a space, b
  ASSERT_FALSE(spans.empty());
  EXPECT_EQ(spans.front().begin, 0);
  for (const TokenSpan& span : spans)
    EXPECT_TRUE(span.begin != 2 && span.begin != 3 && span.end != 2 && span.end != 3);
  EXPECT_EQ(spans.back().end, 6);
}

TEST(StreamDecoder, GivesValidPiecesThatAddUpToDecode) {
  std::mt19937 rng(3);
  for (const char* name :
       {"byte_level.json", "metaspace.json", "unigram.json", "wordpiece.json", "bpe.model"}) {
    const Tokenizer t = tiny(name);
    std::uniform_int_distribution<int32_t> any(0, t.vocab_size() - 1);
    for (int round = 0; round < 200; ++round) {
      std::vector<int32_t> ids(1 + rng() % 20);
      for (int32_t& id : ids) id = any(rng);
      StreamDecoder stream(t, round % 2 == 0);
      std::string all;
      for (int32_t id : ids) {
        const std::string piece = stream.push(id);
        EXPECT_TRUE(is_valid_utf8(piece)) << name;
        all += piece;
      }
      all += stream.finish();
      ASSERT_EQ(all, t.decode(ids, round % 2 == 0)) << name;
    }
  }
}

TEST(StreamDecoder, HoldsACharacterUntilItIsWhole) {
  const Tokenizer t = tiny("byte_level.json");
  const auto bytes = [&](std::string_view text) {
    std::vector<int32_t> ids;
    for (char c : text) ids.push_back(t.encode(std::string_view(&c, 1)).at(0));
    return ids;
  };
  StreamDecoder stream(t);
  const auto ids = bytes("\xf0\x9f\xa6\x99!");
  EXPECT_EQ(stream.push(ids[0]), "");
  EXPECT_EQ(stream.push(ids[1]), "");
  EXPECT_EQ(stream.push(ids[2]), "");
  EXPECT_EQ(stream.push(ids[3]), "\xf0\x9f\xa6\x99");
  EXPECT_EQ(stream.push(ids[4]), "!");
  EXPECT_EQ(stream.push(ids[0]), "");
  EXPECT_EQ(stream.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(stream.push(ids[4]), "!");
}

TEST(Tokenizer, ManyThreadsShareOne) {
  const Tokenizer t = tiny("metaspace.json");
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> want;
  for (int i = 0; i < 40; ++i) {
    texts.push_back("text number " + std::to_string(i * 7919) + " and some more words");
    want.push_back(t.encode(texts.back()));
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      for (int round = 0; round < 20; ++round) {
        for (size_t i = 0; i < texts.size(); ++i)
          wrong[static_cast<size_t>(worker)] += t.encode(texts[i]) != want[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

TEST(Tokenizer, ConfigurationNamesTheSpecialTokens) {
  const TestFolder folder;
  folder.put("tokenizer.json", letters(""));
  folder.put("tokenizer_config.json",
             R"({"tokenizer_class":"LlamaTokenizerFast","add_bos_token":true,"bos_token":{"content":"<x>"},)"
             R"("eos_token":"c","pad_token":"a","unk_token":"?",)"
             R"("added_tokens_decoder":{"12":{"content":"<new>","special":true}},)"
             R"("chat_template":[{"name":"default","template":"D"},{"name":"tool_use","template":"T"}]})");
  folder.put("generation_config.json", R"({"eos_token_id":[6,3]})");
  folder.put("chat_template.jinja", "J");
  auto t = Tokenizer::from_file(folder.path());
  ASSERT_TRUE(t.ok()) << t.error().text();
  const SpecialTokens& special = t->special();
  EXPECT_EQ(special.bos, 9);
  EXPECT_EQ(special.pad, 1);
  EXPECT_EQ(special.unk, 0);
  EXPECT_THAT(special.eos, ElementsAre(3, 6));
  EXPECT_TRUE(special.add_bos);
  EXPECT_FALSE(special.add_eos);
  ASSERT_EQ(special.chat_templates.size(), 2u);
  EXPECT_EQ(special.chat_templates[0].name, "default");
  EXPECT_EQ(special.chat_templates[0].text, "J");
  EXPECT_EQ(special.chat_templates[1].name, "tool_use");
  EXPECT_THAT(t->encode("a<new>"), ElementsAre(9, 1, 12));
  EXPECT_THAT(t->encode("a<new>", {.add_special = false}), ElementsAre(1, 12));
  EXPECT_EQ(t->vocab_size(), 13);
  EXPECT_EQ(t->decode(std::vector<int32_t>{12, 1}, true), "a");
}

TEST(Tokenizer, PlainFiles) {
  const TestFolder folder;
  folder.put("vocab.json", R"({"a":0,"b":1,"ab":2,"\u0120":3,"\u0120a":4})");
  folder.put("merges.txt", "#version: 0.2\na b\n\u0120 a\n");
  auto t = Tokenizer::from_file(folder.path());
  ASSERT_TRUE(t.ok()) << t.error().text();
  EXPECT_THAT(t->encode("ab a"), ElementsAre(2, 4));
  EXPECT_EQ(t->decode(std::vector<int32_t>{2, 4, 1}), "ab ab");
  folder.put("tokenizer_config.json", R"({"tokenizer_class":"OddTokenizer"})");
  EXPECT_THAT(Tokenizer::from_file(folder.path()).error().text(), HasSubstr("OddTokenizer"));

  // YQ== a, Yg== b, YWI= ab; ids follow the special ones.
  folder.put(
      "tekken.json",
      R"({"config":{"pattern":"\\p{L}+|\\s+","default_vocab_size":13,"default_num_special_tokens":10},)"
      R"("vocab":[{"token_bytes":"YQ=="},{"token_bytes":"Yg=="},{"token_bytes":"YWI="},{"token_bytes":"YWE="}],)"
      R"("special_tokens":[{"rank":1,"token_str":"<s>"}]})");
  auto tekken = Tokenizer::from_file(folder / "tekken.json");
  ASSERT_TRUE(tekken.ok()) << tekken.error().text();
  EXPECT_THAT(tekken->encode("aab<s>"), ElementsAre(10, 12, 1));
  EXPECT_EQ(tekken->vocab_size(), 13);

  folder.put("odd.tiktoken", "YQ== 0\nYg== 1\n");
  EXPECT_THAT(Tokenizer::from_file(folder / "odd.tiktoken").error().text(), HasSubstr("2 ranks"));
}

TEST(Tokenizer, FuzzCorpus) {
  const std::string folder = TENON_SOURCE_DIR "/tests/fuzz/tokenizer_fuzz";
  const auto names = list_folder(folder);
  ASSERT_TRUE(names.ok()) << folder;
  EXPECT_GE(names->size(), 10u);
  for (const std::string& name : *names) {
    const auto bytes = read_file(join_path(folder, name));
    ASSERT_TRUE(bytes.ok()) << name;
    // A copy of exact size on the heap, so that the sanitizers see a read past the end.
    const std::vector<char> exact(bytes->begin(), bytes->end());
    const bool accepted = fuzz_tokenizer(std::as_bytes(std::span(exact)));
    if (name.starts_with("good")) {
      EXPECT_TRUE(accepted) << name;
    }
    if (name.starts_with("bad")) {
      EXPECT_FALSE(accepted) << name;
    }
  }
}

}  // namespace
}  // namespace tenon
