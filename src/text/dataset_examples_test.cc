// The demo data in examples/helpdesk: what its page promises of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/dataset.h"

namespace tenon {
namespace {

const std::string kFolder = std::string(TENON_SOURCE_DIR) + "/examples/helpdesk/";

// Letters and digits in lower case, all else one space.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  return out;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

TEST(Examples, HelpDeskAsksNewQuestionsOnFactsTaughtTenTimes) {
  const auto train = Dataset::open(kFolder + "train.jsonl");
  ASSERT_TRUE(train.ok()) << train.error().text();
  ASSERT_EQ(train->format(0), RowFormat::messages);
  EXPECT_TRUE(train->rows() >= 150 && train->rows() <= 400);
  std::set<std::string> questions;
  std::vector<std::string> answers;
  for (int64_t row = 0; row < train->rows(); ++row) {
    const auto conversation = train->conversation(row);
    ASSERT_TRUE(conversation.ok());
    const auto& messages = conversation->variables->at("messages");
    ASSERT_EQ(messages.size(), 2u);
    EXPECT_TRUE(questions.insert(plain(messages[0]["content"].text())).second) << messages[0]["content"];
    answers.push_back(lower(messages[1]["content"].text()));
  }

  std::ifstream held_out(kFolder + "heldout.jsonl");
  int asked = 0;
  for (std::string line; std::getline(held_out, line); ++asked) {
    const auto row = Json::parse(line);
    const std::string fact = lower(row["fact"].text());
    EXPECT_FALSE(questions.count(plain(row["question"].text()))) << row["question"];
    EXPECT_EQ(lower(row["question"].text()).find(fact), std::string::npos) << fact;
    EXPECT_NE(lower(row["answer"].text()).find(fact), std::string::npos) << fact;
    const auto taught = std::count_if(answers.begin(), answers.end(), [&](const std::string& answer) {
      return answer.find(fact) != std::string::npos;
    });
    EXPECT_TRUE(taught >= 10 && taught <= 15) << fact << ": " << taught;
  }
  EXPECT_EQ(asked, 20);
}

}  // namespace
}  // namespace tenon
