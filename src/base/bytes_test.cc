#include "base/bytes.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Bytes, ParsesBinaryAndDecimalUnits) {
  EXPECT_EQ(*parse_bytes("4096"), 4096);
  EXPECT_EQ(*parse_bytes("8GiB"), int64_t{8} << 30);
  EXPECT_EQ(*parse_bytes("8 gib"), int64_t{8} << 30);
  EXPECT_EQ(*parse_bytes("500MB"), 500'000'000);
  EXPECT_EQ(*parse_bytes("1.5G"), 1'610'612'736);  // 3 * 2^29
  EXPECT_EQ(*parse_bytes("2T"), int64_t{2} << 40);
  EXPECT_EQ(*parse_bytes("0.5K"), 512);
  EXPECT_EQ(*parse_bytes("10b"), 10);
}

TEST(Bytes, RefusesWhatIsNotASize) {
  for (const char* text :
       {"", "G", "-1G", "8GiBs", "8 bits", "1e400", "nan", "99999999T", "1.2.3", "0x10", " 8"}) {
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
  }
}

TEST(Bytes, FormatsInTheLargestUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1'610'612'736), "1.50 GiB");
  EXPECT_EQ(format_bytes(-2048), "-2.00 KiB");
}

}  // namespace
}  // namespace tenon
