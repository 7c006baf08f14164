#include "text/overlap.h"

#include <gtest/gtest.h>

#include <string>

namespace tenon {
namespace {

std::vector<uint64_t> shingles(std::string_view text) {
  std::vector<uint64_t> out;
  shingles_of(text, out);
  return out;
}

TEST(Overlap, ShinglesAreFiveWordsWithoutCaseAndSigns) {
  EXPECT_EQ(shingles("one two three four five six").size(), 2u);
  EXPECT_EQ(shingles("One, two: THREE four (five) six!"), shingles("one two three four five six"));
  EXPECT_NE(shingles("one two three four five six"), shingles("one two three five four six"));
  EXPECT_EQ(shingles("a a a a a a a a").size(), 1u);
  EXPECT_EQ(shingles("today").size(), 1u);
  EXPECT_NE(shingles("to day"), shingles("today"));
  EXPECT_EQ(shingles(" ?! ").size(), 0u);
  EXPECT_EQ(shingles("今天天气很好").size(), 2u);  // six ideographs
}

std::string numbered(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) text += "word" + std::to_string(i) + " ";
  return text;
}

TEST(Overlap, FindsCopiesAndNearCopies) {
  EvalOverlap eval;
  eval.add("What is the capital of France?");
  eval.add(numbered(0, 104));  // 100 shingles
  eval.add("Short one");
  EvalOverlap::Found found;
  eval.look("nothing of that kind stands here", 0, found);
  for (const auto& seen : found.seen) EXPECT_EQ(seen.train_row, -1);
  eval.look("Tell me: what is the capital of france? Paris.", 7, found);
  eval.look("what is the capital of France", 9, found);
  EXPECT_EQ(found.seen[0].train_row, 7);  // the first that holds it whole
  EXPECT_EQ(found.seen[0].share, 1);
  eval.look(numbered(0, 60), 3, found);  // 56 % of the shingles
  EXPECT_EQ(found.seen[1].train_row, -1);
  eval.look(numbered(0, 100), 4, found);  // 96 %
  EXPECT_EQ(found.seen[1].train_row, 4);
  eval.look("a short one", 5, found);
  EXPECT_EQ(found.seen[2].train_row, -1);
  eval.look("SHORT ONE.", 6, found);
  EXPECT_EQ(found.seen[2].train_row, 6);
}

TEST(Overlap, ThreadsAddUp) {
  EvalOverlap eval;
  eval.add("one two three four five");
  EvalOverlap::Found first, second;
  eval.look("one two three four five", 8, first);
  eval.look("one two three four five", 2, second);
  EvalOverlap::merge(first, second);
  EXPECT_EQ(first.seen[0].train_row, 2);
}

}  // namespace
}  // namespace tenon
