#include "cli/command.h"

#include <gtest/gtest.h>

#include "cli/help.h"

namespace tenon {
namespace {

struct Values {
  std::string path;
  StringList rest;
  int64_t rank = 16;
  bool json = false;
  std::string text;
};

Command sample(Values& values) {
  return {
      .name = "sample",
      .summary = "Do a thing",
      .details = {},
      .example = "tenon sample x",
      .positionals = {{"PATH", &values.path, "a path"}, {"MORE", &values.rest, "more", false}},
      .options = {{"rank", &values.rank, "the rank", {}, {}, at_least(1)},
                  {"json", &values.json, "as JSON"},
                  {"text", &values.text, "a text"}},
      .prepare = {},
      .run = {},
  };
}

std::string failure(std::vector<std::string> words) {
  Values values;
  const Status status = parse_arguments(sample(values), words);
  return status.ok() ? "" : status.error().text();
}

TEST(ParseArguments, SetsWhatIsGiven) {
  Values values;
  ASSERT_TRUE(
      parse_arguments(sample(values), {"--rank", "8", "p", "--json", "--text=--x", "a", "-1", "--", "--b"})
          .ok());
  EXPECT_EQ(values.path, "p");
  EXPECT_EQ(values.rest, (StringList{"a", "-1", "--b"}));
  EXPECT_EQ(values.rank, 8);
  EXPECT_TRUE(values.json);
  EXPECT_EQ(values.text, "--x");
}

TEST(ParseArguments, SaysWhatIsWrong) {
  EXPECT_EQ(failure({"p", "--rnak", "8"}), "sample: unknown option '--rnak'\n  did you mean '--rank'?");
  EXPECT_EQ(failure({"p", "--hlp"}), "sample: unknown option '--hlp'\n  did you mean '--help'?");
  EXPECT_EQ(failure({"p", "-q"}), "sample: unknown option '-q'\n  See 'tenon sample --help'.");
  EXPECT_EQ(failure({"p", "--rank"}),
            "--rank: needs a value: --rank N\n  Write --rank=VALUE for a value that begins with --.");
  EXPECT_EQ(failure({"p", "--rank", "0"}), "--rank: 0 is out of range: it must be at least 1");
  EXPECT_EQ(failure({"p", "--json=maybe"}), "--json: 'maybe' is neither true nor false");
  EXPECT_EQ(failure({}), "sample: PATH is missing\n  See 'tenon sample --help'.");
}

TEST(ParseArguments, RefusesWhatIsLeftOver) {
  Values values;
  Command command = sample(values);
  command.positionals.pop_back();
  const Status status = parse_arguments(command, {"a", "b"});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "unexpected argument 'b'");
}

TEST(ParseArguments, OptionsOverrideWhatPrepareSets) {
  Values values;
  Command command = sample(values);
  command.prepare = [&]() -> Status {
    EXPECT_EQ(values.path, "recipe.yaml");
    values.rank = 4;
    values.text = "from the file";
    return {};
  };
  ASSERT_TRUE(parse_arguments(command, {"recipe.yaml", "--rank", "8"}).ok());
  EXPECT_EQ(values.rank, 8);
  EXPECT_EQ(values.text, "from the file");
}

TEST(ParseArguments, PrepareSeesTheEarlyOptionsOnly) {
  Values values;
  Command command = sample(values);
  command.early_options = {"text"};
  command.prepare = [&]() -> Status {
    EXPECT_EQ(values.text, "early");
    EXPECT_EQ(values.rank, 16);
    return {};
  };
  ASSERT_TRUE(parse_arguments(command, {"p", "--rank", "8", "--text", "early"}).ok());
  EXPECT_EQ(values.rank, 8);
}

TEST(Commands, EveryOneExplainsItself) {
  for (const Command& command : all_commands()) {
    EXPECT_FALSE(command.summary.empty()) << command.name;
    EXPECT_TRUE(command.example.starts_with("tenon ")) << command.name;
    EXPECT_TRUE(command.run) << command.name;
    for (const Option& option : command.options) {
      EXPECT_FALSE(option.help.empty() || option.help.ends_with('.')) << command.name << " --" << option.name;
      EXPECT_EQ(find_option(command.options, option.name), &option) << option.name << " stands twice";
    }
    EXPECT_NE(command_help(command, 80).find(command.example.substr(0, command.example.find('\n'))),
              std::string::npos);
  }
}

TEST(Help, ShowsDefaultsAndPlaceholders) {
  Values values;
  const std::string page = command_help(sample(values), 60);
  EXPECT_NE(page.find("usage: tenon sample PATH [MORE ...] [options]\n"), std::string::npos) << page;
  EXPECT_NE(page.find("  --rank N     the rank (default: 16)\n"), std::string::npos) << page;
  EXPECT_NE(page.find("  --json       as JSON\n"), std::string::npos) << page;
}

}  // namespace
}  // namespace tenon
