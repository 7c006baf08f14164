// Every data set of the shared test data: all its rows are read, or it is refused with file, line and reason.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "io/folder.h"
#include "text/dataset.h"

namespace tenon {
namespace {

const std::string kFolder = TENON_SOURCE_DIR "/../shared/data/datasets/";

struct Demo {
  const char* file;
  RowFormat format;
  int64_t rows;
  ColumnNames columns = {};
};

// Rows as Python's json and csv modules count them.
const Demo kRead[] = {
    {"TruthfulQA.csv",
     RowFormat::prompt_completion,
     813,
     {{"prompt", "Question"}, {"completion", "Best Answer"}}},
    {"HumanEval.jsonl", RowFormat::prompt_completion, 164, {{"completion", "canonical_solution"}}},
    {"gsm8k/train.jsonl", RowFormat::instruction, 7473, {{"instruction", "question"}, {"output", "answer"}}},
    {"gsm8k/test.jsonl",
     RowFormat::prompt_completion,
     1319,
     {{"prompt", "question"}, {"completion", "answer"}}},
    {"llama-factory/alpaca_en_demo.json", RowFormat::instruction, 999},
    {"llama-factory/alpaca_zh_demo.json", RowFormat::instruction, 1000},
    {"llama-factory/c4_demo.jsonl", RowFormat::text, 300},
    {"llama-factory/dpo_en_demo.json", RowFormat::preference_pair, 299},
    {"llama-factory/glaive_toolcall_en_demo.json", RowFormat::sharegpt, 300},
    {"llama-factory/identity.json", RowFormat::instruction, 91},
    {"llama-factory/kto_en_demo.json", RowFormat::preference_label, 300},
    {"llama-factory/reason_tool_use_demo_50.jsonl", RowFormat::messages, 50},
};

struct Refused {
  const char* file;
  const char* message;
};
const Refused kRefused[] = {
    {"HumanEval.jsonl",
     "the row has no known format; its keys are: task_id, prompt, entry_point, canonical_solution, test"},
    {"TruthfulQA.csv",
     "the row has no known format; its keys are: Type, Category, Question, Best Answer, Correct Answers, "
     "Incorrect Answers, Source"},
    {"alpaca_seed_tasks.jsonl",
     "the row has no known format; its keys are: id, name, instruction, instances, is_classification"},
    {"gsm8k/train.jsonl", "the row has no known format; its keys are: question, answer"},
    {"gsm8k/test.jsonl", "the row has no known format; its keys are: question, answer"},
    {"ifeval_input_data.jsonl",
     "the row has no known format; its keys are: key, prompt, instruction_id_list, kwargs"},
    {"mt_bench/question.jsonl", "the row has no known format; its keys are: question_id, category, turns"},
};

TEST(DatasetDemos, AreReadRowByRow) {
  if (!is_folder(kFolder)) GTEST_SKIP() << "no " << kFolder;
  for (const Demo& demo : kRead) {
    const auto dataset = Dataset::open(kFolder + demo.file, demo.columns);
    ASSERT_TRUE(dataset.ok()) << dataset.error().text();
    EXPECT_EQ(dataset->rows(), demo.rows) << demo.file;
    EXPECT_EQ(dataset->format(0), demo.format) << demo.file;
    const bool preference = dataset->first_preference_row() >= 0;
    for (int64_t row = 0; row < dataset->rows(); ++row) {
      if (preference) {
        const auto read = dataset->preference(row);
        ASSERT_TRUE(read.ok()) << read.error().text();
      } else {
        const auto read = dataset->conversation(row);
        ASSERT_TRUE(read.ok()) << read.error().text();
      }
    }
  }
}

TEST(DatasetDemos, AreRefusedWithFileLineAndReason) {
  if (!is_folder(kFolder)) GTEST_SKIP() << "no " << kFolder;
  for (const Refused& demo : kRefused) {
    const auto dataset = Dataset::open(kFolder + demo.file);
    ASSERT_FALSE(dataset.ok()) << demo.file;
    const bool csv = std::string_view(demo.file).ends_with(".csv");
    EXPECT_EQ(dataset.error().subject, kFolder + demo.file + (csv ? ":2" : ":1"));
    EXPECT_EQ(dataset.error().message, demo.message);
  }
  const auto info = Dataset::open(kFolder + "llama-factory/dataset_info.json");
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.error().code, ErrorCode::bad_file);
  EXPECT_EQ(info.error().subject, kFolder + "llama-factory/dataset_info.json:1");
}

TEST(DatasetDemos, TextsAreReadWhole) {
  if (!is_folder(kFolder)) GTEST_SKIP() << "no " << kFolder;
  for (const char* name : {"sonnet.txt", "tinyshakespeare.txt", "udhr/*.txt"}) {
    const auto dataset = Dataset::open(kFolder + name);
    ASSERT_TRUE(dataset.ok()) << dataset.error().text();
    std::string whole;
    for (int64_t row = 0; row < dataset->rows(); ++row) whole += dataset->conversation(row)->completion;
    EXPECT_EQ(static_cast<int64_t>(whole.size()), dataset->size_bytes()) << name;
  }
}

// A file that is added to the shared data must be added above.
TEST(DatasetDemos, NoneIsForgotten) {
  if (!is_folder(kFolder)) GTEST_SKIP() << "no " << kFolder;
  std::set<std::string> known = {"sonnet.txt", "tinyshakespeare.txt", "llama-factory/dataset_info.json"};
  for (const Demo& demo : kRead) known.insert(demo.file);
  for (const Refused& demo : kRefused) known.insert(demo.file);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder)) {
    const std::string name = entry.path().string().substr(kFolder.size());
    if (!entry.is_regular_file() || name.starts_with("udhr/")) continue;
    EXPECT_TRUE(known.count(name)) << name;
  }
}

}  // namespace
}  // namespace tenon
