#include "base/iso_time.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

// Right values from `date -u -d TEXT +%s`.
TEST(IsoTime, Reads) {
  EXPECT_EQ(parse_iso_time("1970-01-01")->unix_seconds, 0);
  EXPECT_EQ(parse_iso_time("2024-07-26")->unix_seconds, 1721952000);
  EXPECT_EQ(parse_iso_time("2024-07-26T12:34:56Z")->unix_seconds, 1721997296);
  EXPECT_EQ(parse_iso_time("2024-07-26 12:34:56.789")->unix_seconds, 1721997296);
  EXPECT_EQ(parse_iso_time("2024-07-26T12:34+02:00")->unix_seconds, 1721990040);
  EXPECT_EQ(parse_iso_time("2024-07-26T12:34+02:00")->utc_offset_seconds, 7200);
  EXPECT_EQ(parse_iso_time("2024-07-26T12:34-0330")->utc_offset_seconds, -12600);
  EXPECT_EQ(parse_iso_time("2024-02-29")->unix_seconds, 1709164800);
}

TEST(IsoTime, Writes) {
  EXPECT_EQ(iso_time_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(iso_time_text(1721997296), "2024-07-26T12:34:56Z");
  EXPECT_EQ(iso_time_text(-1), "1969-12-31T23:59:59Z");
}

TEST(IsoTime, RefusesWhatIsNone) {
  for (const char* wrong :
       {"", "today", "2023-02-29", "2024-13-01", "2024-7-26", "2024-07-26T", "2024-07-26T25:00",
        "2024-07-26T12:60", "2024-07-26T12:34:56+25:00", "2024-07-26T12:34:56 ", "20240726"})
    EXPECT_FALSE(parse_iso_time(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace tenon
