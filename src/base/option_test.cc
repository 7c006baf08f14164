#include "base/option.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/bytes.h"

namespace tenon {
namespace {

std::string failure(const Option& option, std::string_view text) {
  const Status status = set_option(option, text);
  return status.ok() ? "" : status.error().text();
}

TEST(ByteSizeText, ReadsBackExactly) {
  for (const int64_t bytes : {0ll, 1ll, 1000ll, 1024ll, 8ll << 30, (8ll << 30) + 1, 3ll << 20})
    EXPECT_EQ(parse_bytes(byte_size_text({bytes})).value(), bytes);
  EXPECT_EQ(byte_size_text({8ll << 30}), "8GiB");
}

TEST(OptionText, NumbersKeepTheirRange) {
  double rate = 0.5;
  const Option option{"lr", &rate, "", {}, {}, above(0)};
  EXPECT_EQ(failure(option, "2e-4"), "");
  EXPECT_EQ(rate, 2e-4);
  EXPECT_EQ(option_text(option), "0.0002");
  EXPECT_EQ(failure(option, "0"), "lr: 0 is out of range: it must be above 0");
  EXPECT_EQ(failure(option, "1e-4x"), "lr: '1e-4x' is not a number");
  for (const char* wrong : {"nan", "inf", "", " 1", "0x10"}) EXPECT_NE(failure(option, wrong), "") << wrong;
  EXPECT_EQ(rate, 2e-4);  // unchanged by errors

  int64_t rank = 16;
  const Option whole{"rank", &rank, "", {}, {}, between(1, 64)};
  EXPECT_EQ(failure(whole, "65"), "rank: 65 is out of range: it must be at least 1 and at most 64");
  EXPECT_EQ(failure(whole, "1.5"), "rank: '1.5' is not a whole number");
  EXPECT_NE(failure(whole, "99999999999999999999"), "");
  EXPECT_EQ(rank, 16);
}

TEST(OptionText, ChoicesSuggest) {
  std::string value = "all";
  const Option option{"train-on", &value, "", {}, {"answers", "last", "all"}};
  EXPECT_EQ(failure(option, "answer"),
            "train-on: 'answer' is not one of answers, last, all\n  did you mean 'answers'?");
  EXPECT_EQ(value_placeholder(option), "answers|last|all");
  value = "nothing";
  EXPECT_FALSE(check_option(option).ok());
}

TEST(OptionText, ListsAndMaps) {
  StringList targets = {"x"};
  EXPECT_EQ(failure({"targets", &targets, ""}, "q_proj, v_proj"), "");
  EXPECT_EQ(targets, (StringList{"q_proj", "v_proj"}));
  EXPECT_NE(failure({"targets", &targets, ""}, "q_proj,,v_proj"), "");
  EXPECT_EQ(failure({"targets", &targets, ""}, ""), "");
  EXPECT_TRUE(targets.empty());

  StringList set;
  const Option repeated{.name = "set", .target = &set, .help = "", .repeatable = true};
  EXPECT_EQ(failure(repeated, "a=1,2"), "");
  EXPECT_EQ(failure(repeated, "b="), "");
  EXPECT_EQ(set, (StringList{"a=1,2", "b="}));

  IntegerMap ranks;
  const Option map{"rank-pattern", &ranks, "", {}, {}, at_least(1)};
  EXPECT_EQ(failure(map, "q_proj=8, v_proj=4"), "");
  EXPECT_EQ(option_text(map), "q_proj=8,v_proj=4");
  for (const char* wrong : {"q_proj", "=3", "q=0", "q=1,q=2", "q=x", "q=1,"})
    EXPECT_NE(failure(map, wrong), "") << wrong;
  EXPECT_EQ(ranks.size(), 2u);
}

TEST(OptionText, Flags) {
  bool flag = false;
  EXPECT_EQ(failure({"json", &flag, ""}, "true"), "");
  EXPECT_TRUE(flag);
  EXPECT_EQ(failure({"json", &flag, ""}, "yes"), "json: 'yes' is neither true nor false");
}

}  // namespace
}  // namespace tenon
