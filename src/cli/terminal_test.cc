#include "cli/terminal.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(TerminalText, Widths) {
  EXPECT_EQ(display_width("plain"), 5);
  EXPECT_EQ(display_width("é"), 1);
  EXPECT_EQ(display_width("中文"), 4);
  EXPECT_EQ(display_width("\x1b[31mred\x1b[0m"), 3);
  EXPECT_EQ(display_width("\xff"), 1);
}

TEST(TerminalText, Wraps) {
  EXPECT_EQ(wrapped("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("  in a b\n\nlongerthanwidth x", 6),
            (std::vector<std::string>{"  in a", "  b", "", "longerthanwidth", "x"}));
}

TEST(TerminalText, Tables) {
  Table table({{"name", Table::Align::left}, {"bytes", Table::Align::right}});
  table.add_row({"a", "12345"});
  table.add_row({"中文字", "1"});
  EXPECT_EQ(table.text(), "name    bytes\na       12345\n中文字      1\n");
}

TEST(TerminalText, HumanNumbers) {
  EXPECT_EQ(grouped_digits(1234567), "1,234,567");
  EXPECT_EQ(grouped_digits(-999), "-999");
  EXPECT_EQ(grouped_digits(-1000), "-1,000");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(22'176), "22.2 K");
  EXPECT_EQ(human_count(134'515'008), "135 M");
  EXPECT_EQ(human_duration(59.4), "59 s");
  EXPECT_EQ(human_duration(185), "3:05");
  EXPECT_EQ(human_duration(3723), "1:02:03");
}

TEST(TerminalText, ProgressLine) {
  EXPECT_EQ(progress_line({"step", 6, 12, 30, "loss 1.5"}, 50),
            "step  6/12 [########........]  loss 1.5  30 s left");
  EXPECT_EQ(progress_line({"step", 6, 12, 30, "loss 1.5"}, 0), "step  6/12  loss 1.5  30 s left");
  EXPECT_EQ(progress_line({"step", 12, 12, 60, {}}, 40), "step 12/12 [#####################]  1:00");
  EXPECT_EQ(progress_line({"row", 0, 0, 0, {}}, 40), "row 0/0");
}

}  // namespace
}  // namespace tenon
