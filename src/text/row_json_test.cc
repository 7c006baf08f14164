#include "text/row_json.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace tenon {
namespace {

// Both parsers agree, in values and in what they refuse.
TEST(RowJson, GivesWhatTheSlowParserGives) {
  const std::string deep = std::string(2000, '[') + std::string(2000, ']');
  for (const std::string text :
       {R"({"b":1,"a":[true,false,null,"é\n\u00e9\ud83e\udd99"],"c":{"z":{},"y":[]}})",
        R"({"a":1,"b":2,"a":{"c":3}})",
        "0",
        "-0",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
        "1.5",
        "1e300",
        "-0.0",
        "1E-400",
        "123456789012345678901234567890",
        R"("")",
        R"("\u0000x")",
        " [ 1 , 2 ] ",
        "",
        "{",
        R"({"a":})",
        "[1,]",
        "nul",
        R"("\ud800")",
        "\"\xff\"",
        "\"a\nb\"",
        "1e400",
        "01",
        "[1] 2",
        R"({"a" 1})",
        deep.c_str()}) {
    std::optional<Json> want;
    try {
      want = Json::parse(text);
    } catch (const JsonError&) {
    }
    int64_t offset = -1;
    const auto have = parse_row_json(text, offset);
    ASSERT_EQ(have.ok(), want.has_value()) << text;
    if (!have.ok()) {
      EXPECT_GE(offset, 0) << text;
      continue;
    }
    EXPECT_EQ(have->dump(), want->dump());
    EXPECT_EQ(have->is_number_float(), want->is_number_float()) << text;
  }
}

TEST(RowJson, SaysWhereItEnds) {
  int64_t offset = -1;
  const auto broken = parse_row_json(R"({"a": tru})", offset);
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(offset, 9);
  EXPECT_NE(broken.error().message.find("at byte 9 of the row"), std::string::npos) << broken.error().message;
}

}  // namespace
}  // namespace tenon
