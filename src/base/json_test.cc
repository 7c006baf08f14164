#include "base/json.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Json, ListsOfPairsAreObjectsAndOthersArrays) {
  EXPECT_EQ((Json{{"a", 1}, {"b", {1, "x", nullptr}}}).dump(), R"({"a":1,"b":[1,"x",null]})");
  EXPECT_EQ((Json{"a", 1}).dump(), R"(["a",1])");
  EXPECT_EQ(Json::array({Json{"a", 1}}).dump(), R"([["a",1]])");
  EXPECT_EQ(Json(std::vector<std::vector<int>>{{1, 2}, {}}).dump(), "[[1,2],[]]");
  EXPECT_EQ(Json(std::map<std::string, bool>{{"y", true}, {"x", false}}).dump(), R"({"x":false,"y":true})");
}

TEST(Json, KeepsTheOrderOfKeysAndTheLastOfRepeatedOnes) {
  EXPECT_EQ(Json::parse(R"({"b":1,"a":{"k":1,"j":2,"k":3},"b":[2]})").dump(),
            R"({"b":[2],"a":{"k":3,"j":2}})");
}

TEST(Json, NumbersKeepTheirKindAndPrintShortest) {
  const Json json = Json::parse("[-9223372036854775808,18446744073709551615,0.1,1e-5,100000.0]");
  EXPECT_EQ(json[0].get<int64_t>(), INT64_MIN);
  EXPECT_EQ(json[1].get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(json[2].dump() + " " + json[3].dump() + " " + json[4].dump(), "0.1 1e-05 100000.0");
  EXPECT_EQ(Json(1), Json(1u));
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_NE(Json(-1), Json(UINT64_MAX));
}

TEST(Json, BytesThatAreNotUtf8PrintAsTheReplacementCharacter) {
  EXPECT_EQ(Json("a\xff\"").dump(), "\"a\xef\xbf\xbd\\\"\"");
}

TEST(Json, SaysWhereATextIsNotJson) {
  try {
    Json::parse("{\"a\": x}");
    FAIL();
  } catch (const JsonError& error) {
    EXPECT_EQ(error.byte(), 7);
  }
  EXPECT_TRUE(Json::parse_or_null("{").is_null());
  EXPECT_TRUE(Json::parse_or_null("1e400").is_null());
  EXPECT_TRUE(Json::parse_or_null(std::string(100'000, '[')).is_null());
}

TEST(Json, AskingForAnotherKindThrows) {
  const Json json{{"a", "text"}};
  EXPECT_THROW(json.at("b"), JsonError);
  EXPECT_THROW(json.at("a").get<int64_t>(), JsonError);
  EXPECT_THROW(json.at("a").get<bool>(), JsonError);
  EXPECT_THROW(json[0], JsonError);
  EXPECT_EQ(json.value("b", "missing"), "missing");
}

TEST(Json, ElementsAndMembersChangeInPlace) {
  Json json;
  json["list"].push_back(1);
  json["list"].push_back("two");
  json["list"].insert_front(0.5);
  json["list"].erase(size_t{1});
  json.update({{"list2", json["list"]}, {"x", nullptr}});
  EXPECT_EQ(json.erase("x"), 1);
  for (Json& element : json["list2"]) element = true;
  EXPECT_EQ(json.dump(), R"({"list":[0.5,"two"],"list2":[true,true]})");
  EXPECT_EQ(json, Json::parse(R"({"list2":[true,true],"list":[0.5,"two"]})"));
}

}  // namespace
}  // namespace tenon
