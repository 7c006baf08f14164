// Which text of a conversation is trained on, for every published template, against a reference computed with
// Python's jinja2 by other rules (tools/make_mask_goldens.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "io/test_folder.h"
#include "text/dataset.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
const fs::path kText = fs::path(TENON_SOURCE_DIR) / "tests/text";
const fs::path kShared = fs::path(TENON_SOURCE_DIR) / "../shared/data";

std::string file_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string template_source(const fs::path& path) {
  std::string text = file_text(path);
  return path.extension() == ".json" ? Json::parse(text)["chat_template"].text() : text;
}

// A tokenizer of single bytes and of the tags that the template writes, each a special token; those in `ends`
// end a generation.
Tokenizer tokenizer_with_tags(const TestFolder& folder, std::set<std::string> tags,
                              const std::set<std::string>& ends) {
  Json file = Json::parse(file_text(kText / "tokenizers/byte_level.json"));
  tags.insert({"<BOS>", "<EOS>", "<UNK>", "<PAD>"});
  Json added = Json::array(), end_ids = Json::array();
  int id = 1000;
  for (const std::string& tag : tags) {
    if (ends.contains(tag)) end_ids.push_back(id);
    added.push_back({{"id", id++}, {"content", tag}, {"special", true}, {"normalized", false}});
  }
  file["added_tokens"] = added;
  file["model"]["merges"] = Json::array();
  file["post_processor"] = nullptr;
  const Json config = {
      {"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}, {"unk_token", "<UNK>"}, {"pad_token", "<PAD>"}};
  std::ofstream(folder / "tokenizer.json") << file.dump();
  std::ofstream(folder / "tokenizer_config.json") << config.dump();
  Json generation = Json::object();
  generation["eos_token_id"] = end_ids;
  std::ofstream(folder / "generation_config.json") << generation.dump();
  auto tokenizer = Tokenizer::from_file(folder.path());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().text();
  return std::move(*tokenizer);
}

Conversation conversation_of(const Json& row) {
  auto parsed = parse_conversation(row, RowFormat::messages);
  EXPECT_TRUE(parsed.ok()) << parsed.error().text();
  return std::move(*parsed);
}

std::vector<std::string> trained_texts(const RenderedExample& rendered, const TokenizedRow& tokens) {
  std::vector<std::string> texts;
  for (const TextSpan& span : tokens.trained) {
    texts.push_back(
        rendered.text.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin)));
  }
  return texts;
}

void add_texts(const Json& golden, const char* key, std::set<std::string>& out) {
  if (!golden.contains(key)) return;
  for (const Json& text : golden.at(key)) out.insert(text.text());
}

void check_case(const Json& golden, const Json& row, const RenderSettings& settings) {
  const auto rendered = render_conversation(conversation_of(row), settings);
  if (golden.contains("refused")) {
    EXPECT_FALSE(rendered.ok()) << golden["refused"];
    return;
  }
  ASSERT_TRUE(rendered.ok()) << rendered.error().text();
  const auto tokens = tokenize_example(*rendered, {settings.tokenizer, 1 << 20, TooLong::error});
  ASSERT_TRUE(tokens.ok()) << tokens.error().text();
  EXPECT_EQ(trained_texts(*rendered, *tokens), golden["trained"].get<std::vector<std::string>>())
      << rendered->text;
  EXPECT_EQ(rendered->answers_rewritten > 0, golden.value("last_only", false));
}

TEST(TemplateMasks, EveryTemplateTrainsTheAnswersAndTheirEnds) {
  if (!fs::exists(kShared / "chat_templates")) GTEST_SKIP() << "no shared templates";
  const Json goldens = Json::parse(file_text(kText / "templates/masks.json"));
  ASSERT_GE(goldens["templates"].size(), 117u);
  const TestFolder folder;
  for (const Json& row : goldens["templates"]) {
    const std::string& name = row["name"].text();
    const std::string source = template_source(kShared / name);
    ASSERT_EQ(hash_text(hash_bytes(source)), row["hash"].text()) << name;
    const auto chat_template = ChatTemplate::parse(source, name);
    ASSERT_TRUE(chat_template.ok()) << chat_template.error().text();
    std::set<std::string> tags, ends;
    for (const auto& [_, golden] : row["cases"].items()) {
      add_texts(golden, "tags", tags);
      add_texts(golden, "end", ends);
    }
    tags.insert(ends.begin(), ends.end());
    const Tokenizer tokenizer = tokenizer_with_tags(folder, tags, ends);
    RenderSettings settings;
    settings.chat_template = &*chat_template;
    settings.tokenizer = &tokenizer;
    settings.options.clock_unix_seconds = goldens["clock"].get<int64_t>();
    for (const auto& [what, golden] : row["cases"].items()) {
      SCOPED_TRACE(name + " " + what);
      check_case(golden, goldens["conversations"][what], settings);
    }
  }
}

}  // namespace
}  // namespace tenon
