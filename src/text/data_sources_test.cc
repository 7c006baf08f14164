#include "text/data_sources.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"
#include "text/dataset.h"

namespace tenon {
namespace {

std::vector<std::string> names_of(const Result<std::vector<DataSource>>& sources) {
  std::vector<std::string> names;
  EXPECT_TRUE(sources.ok()) << (sources.ok() ? "" : sources.error().text());
  if (!sources.ok()) return names;
  for (const DataSource& source : *sources)
    for (const std::string& file : source.files) names.push_back(file.substr(file.rfind('/') + 1));
  return names;
}

using Names = std::vector<std::string>;

TEST(DataSources, FilesFoldersAndPatterns) {
  const TestFolder folder;
  for (const char* name : {"b.jsonl", "a.json.gz", "notes.md", "c.bin", ".hidden.txt", "d,e.txt", "f:2.csv"})
    folder.put(name, "{}");
  EXPECT_EQ(names_of(data_sources({folder / "b.jsonl"})), (Names{"b.jsonl"}));
  EXPECT_EQ(names_of(data_sources({folder.path()})),
            (Names{"a.json.gz", "b.jsonl", "d,e.txt", "f:2.csv", "notes.md"}));
  EXPECT_EQ(names_of(data_sources({folder / "?.b*"})), (Names{"c.bin"}));
  EXPECT_EQ(names_of(data_sources({folder / "d,e.txt"})), (Names{"d,e.txt"}));
  EXPECT_EQ(names_of(data_sources({folder / "f:2.csv"})), (Names{"f:2.csv"}));
  EXPECT_EQ(names_of(data_sources({folder / "b.jsonl" + "," + folder / "notes.md"})),
            (Names{"b.jsonl", "notes.md"}));
}

TEST(DataSources, WeightsStandAfterAColon) {
  const TestFolder folder;
  folder.put("a.jsonl", "{}");
  folder.put("b.jsonl", "{}");
  const auto sources = data_sources({folder / "a.jsonl" + ":0.7", folder / "b.jsonl" + ":3e-1"});
  ASSERT_TRUE(sources.ok()) << sources.error().text();
  EXPECT_EQ((*sources)[0].weight, 0.7);
  EXPECT_EQ((*sources)[1].weight, 0.3);
  EXPECT_EQ((*sources)[1].name, folder / "b.jsonl");
  const auto message = [&](const std::string& text) {
    const auto refused = data_sources({text});
    return refused.ok() ? "" : refused.error().message;
  };
  EXPECT_EQ(message(folder / "a.jsonl" + ":0.7," + folder / "b.jsonl"),
            "some sources have a weight and some have none");
  EXPECT_EQ(message(folder / "a.jsonl" + ":0"), "'0' is not a weight above 0");
  EXPECT_EQ(message(folder / "a.jsonl" + ":nan"), "'nan' is not a weight above 0");
  EXPECT_EQ(message(folder / "a.jsonl" + ":1x"), "'1x' is not a weight above 0");
  EXPECT_EQ(message(folder / "none.jsonl"), "there is no such file or folder");
  EXPECT_EQ(message(folder / "*.csv"), "no file fits the pattern");
}

TEST(DataSources, FolderWithoutDataIsRefused) {
  const TestFolder folder;
  folder.put("weights.bin", "x");
  EXPECT_EQ(data_sources({folder.path()}).error().code, ErrorCode::not_found);
}

TEST(DataSources, PatternsMatchAsAShellsDo) {
  EXPECT_TRUE(matches_pattern("*.jsonl", "a.jsonl"));
  EXPECT_TRUE(matches_pattern("*a*b", "xaabab"));
  EXPECT_TRUE(matches_pattern("**", ""));
  EXPECT_FALSE(matches_pattern("?", ""));
  EXPECT_FALSE(matches_pattern("*.jsonl", "a.jsonl.gz"));
  EXPECT_FALSE(matches_pattern("a*c", "abcd"));
}

TEST(Dataset, RowsRunThroughTheFiles) {
  const TestFolder folder;
  folder.put("a.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n");
  folder.put("b.csv", "prompt,completion\nq,a\n");
  folder.put("c.txt", "three\n");
  const auto dataset = Dataset::open(folder.path());
  ASSERT_TRUE(dataset.ok()) << dataset.error().text();
  ASSERT_EQ(dataset->rows(), 4);
  EXPECT_EQ(dataset->conversation(1)->completion, "two");
  EXPECT_EQ(dataset->conversation(2)->prompt, "q");
  EXPECT_EQ(dataset->conversation(3)->completion, "three\n");
  EXPECT_EQ(dataset->format(2), RowFormat::prompt_completion);
  EXPECT_EQ(dataset->where(1), folder / "a.jsonl" + ":2");
  EXPECT_EQ(dataset->where(2), folder / "b.csv" + ":2");
}

TEST(Dataset, NamedColumns) {
  const auto names = column_names({"prompt=Question", "completion=Best Answer"});
  ASSERT_TRUE(names.ok());
  const std::string csv = "Type,Question,Best Answer\nx,Why?,\"Because, so\"\n";
  const auto dataset = Dataset::from_bytes(csv, "rows.csv", *names);
  ASSERT_TRUE(dataset.ok()) << dataset.error().text();
  EXPECT_EQ(dataset->conversation(0)->completion, "Because, so");
  const auto missing = Dataset::from_bytes(csv, "rows.csv", {{"prompt", "Frage"}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "there is no column 'Frage'");
  EXPECT_EQ(missing.error().subject, "rows.csv:2");
  EXPECT_EQ(missing.error().hint, "The columns are: Type, Question, Best Answer");
  EXPECT_FALSE(column_names({"prompt"}).ok());
}

TEST(Dataset, TextIsReadInBlocksOfWholeLines) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::string(59, static_cast<char>('a' + i % 26)) + "\n";
  const auto lines = Dataset::from_bytes(text, "lines.txt");
  ASSERT_TRUE(lines.ok());
  ASSERT_EQ(lines->rows(), 3);  // 34 lines of 60 bytes fit 2048
  EXPECT_EQ(lines->conversation(0)->completion, text.substr(0, 34 * 60));
  EXPECT_TRUE(lines->conversation(1)->continues);
  EXPECT_FALSE(lines->conversation(2)->continues);
  EXPECT_EQ(lines->conversation(2)->completion, text.substr(68 * 60));
  // One line of characters of three bytes: 682 of them fit.
  std::string line;
  for (int i = 0; i < 1000; ++i) line += "\xe4\xb8\xad";
  const auto cut = Dataset::from_bytes(line, "line.txt");
  ASSERT_TRUE(cut.ok());
  ASSERT_EQ(cut->rows(), 2);
  EXPECT_EQ(cut->conversation(0)->completion.size(), 682u * 3);
  EXPECT_EQ(cut->conversation(0)->completion + cut->conversation(1)->completion, line);
}

}  // namespace
}  // namespace tenon
