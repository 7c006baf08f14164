#include "io/json_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "io/describe.h"
#include "io/test_folder.h"

namespace tenon {
namespace {

using testing::HasSubstr;

TEST(Json, ReadsPythonNumbers) {
  const auto value =
      parse_json(R"({"limit": [0.0, Infinity, -Infinity, NaN, -1], "t": "NaN \" Infinity", "N": 3})", "c");
  ASSERT_TRUE(value.ok()) << value.error().text();
  const auto& limit = (*value)["limit"];
  EXPECT_EQ(limit[1].get<double>(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(limit[2].get<double>(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(limit[3].get<double>()));
  EXPECT_EQ(limit[4], -1);
  EXPECT_EQ((*value)["t"], "NaN \" Infinity");
  EXPECT_EQ((*value)["N"], 3);
}

TEST(Json, SaysWhereItIsWrong) {
  const auto bad = parse_json("{\n  \"a\": 1,\n  \"b\" 2\n}", "config.json");
  EXPECT_EQ(bad.error().code, ErrorCode::bad_file);
  EXPECT_THAT(bad.error().subject, HasSubstr("config.json:3:"));
  EXPECT_THAT(bad.error().message, HasSubstr("not valid JSON: syntax error"));
  EXPECT_EQ(parse_json("", "c").error().subject, "c:1:1");
  EXPECT_FALSE(parse_json("{\"a\": Infinit}", "c").ok());
  EXPECT_FALSE(parse_json("[1e999]", "c").ok());
  EXPECT_FALSE(parse_json("\"\xff\"", "c").ok());
  EXPECT_FALSE(parse_json("NaNNaN", "c").ok());
}

TEST(Json, RefusesDeepNesting) {
  const auto deep = parse_json(std::string(10'000'000, '['), "c");
  EXPECT_THAT(deep.error().message, HasSubstr("nested more than 256 deep"));
  EXPECT_TRUE(parse_json("\"" + std::string(1000, '[') + "\"", "c").ok());
  EXPECT_TRUE(parse_json(std::string(256, '[') + std::string(256, ']'), "c").ok());
}

TEST(Json, ReadsFiles) {
  const TestFolder folder;
  folder.put("a.json", "{\"a\": 1}");
  EXPECT_EQ((*read_json_file(folder / "a.json"))["a"], 1);
  EXPECT_EQ(read_json_file(folder / "a.json", 3).error().code, ErrorCode::bad_file);
  EXPECT_EQ(read_json_file(folder / "b.json").error().code, ErrorCode::not_found);
}

TEST(Describe, CleansNames) {
  EXPECT_EQ(printable("w\xc3\xa9 \x1b[2J\n\xff"), "w\xc3\xa9 ?[2J??");
  EXPECT_EQ(printable(std::string(500, 'a')), std::string(120, 'a') + "... (500 bytes)");
}

}  // namespace
}  // namespace tenon
