#include "run/recipe.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace tenon {
namespace {

struct AnyValue {
  template <typename T>
  operator T() const;
};

// Whether a TrainRecipe has so many fields or more.
template <size_t... I>
consteval bool has_fields(std::index_sequence<I...>) {
  return requires {
    TrainRecipe{(static_cast<void>(I), AnyValue{})...};
  };
}

template <size_t Known = 0>
consteval size_t recipe_fields() {
  if constexpr (has_fields(std::make_index_sequence<Known + 1>())) {
    return recipe_fields<Known + 1>();
  } else {
    return Known;
  }
}

std::string failure(std::string_view yaml) {
  TrainRecipe recipe;
  const Status status = parse_recipe(yaml, "r.yaml", recipe);
  EXPECT_TRUE(status.ok() || recipe == TrainRecipe()) << "changed by an error";
  return status.ok() ? "" : status.error().text();
}

TEST(Recipe, ReadsYaml) {
  TrainRecipe recipe;
  recipe.alpha = 7;
  const Status status = parse_recipe(R"(# A comment
model: "models/small one"
lr: 1e-4
steps: 60
rslora: true
targets: [q_proj, v_proj]
rank-pattern: {q_proj: 8, "o_proj": 4}
without: cpu.fast, fuse
memory: 8GiB
)",
                                     "r.yaml", recipe);
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(recipe.model, "models/small one");
  EXPECT_EQ(recipe.lr, 1e-4);
  EXPECT_EQ(recipe.steps, 60);
  EXPECT_TRUE(recipe.rslora);
  EXPECT_EQ(recipe.targets, (StringList{"q_proj", "v_proj"}));
  EXPECT_EQ(recipe.rank_pattern, (IntegerMap{{"q_proj", 8}, {"o_proj", 4}}));
  EXPECT_EQ(recipe.without, (StringList{"cpu.fast", "fuse"}));
  EXPECT_EQ(recipe.memory.bytes, 8ll << 30);
  EXPECT_EQ(recipe.alpha, 7);  // what is not named stays
}

TEST(Recipe, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(failure("rank: 8\nwarmup_steps: 3\n"),
            "r.yaml:2: unknown key 'warmup_steps'\n  did you mean 'warmup-steps'?");
  EXPECT_EQ(failure("batch: 8\n"), "r.yaml:1: unknown key 'batch'\n  'tenon train --help' lists the keys.");
  EXPECT_EQ(failure("\nrank: 0"),
            "r.yaml:2: rank: 0 is out of range: it must be at least 1 and at most 65536");
  EXPECT_EQ(failure("train-on: answer"),
            "r.yaml:1: train-on: 'answer' is not one of answers, last, all\n  did you mean 'answers'?");
  EXPECT_EQ(failure("rank: 8\nlr: 1\nrank: 4"), "r.yaml:3: 'rank' stands a second time, first in line 1");
  EXPECT_EQ(failure("rank: [8]"), "r.yaml:1: rank: is a list, but takes N");
  EXPECT_EQ(failure("rslora: {a: 1}"), "r.yaml:1: rslora: is a map, but takes true or false");
  EXPECT_EQ(failure("lr:"), "r.yaml:1: lr: has no value");
  EXPECT_EQ(
      failure("memory: lots"),
      "r.yaml:1: memory: lots: not a size\n  Write a number and a unit, for example 8GiB, 500MB or 1.5G.");
  EXPECT_EQ(failure("targets: [[a]]"), "r.yaml:1: targets: has an element that is not a text");
  EXPECT_EQ(failure("- rank"),
            "r.yaml: is not a list of 'key: value' lines\n  Write one setting a line, such as rank: 16.");
  EXPECT_EQ(failure("rank: \"8").substr(0, 25), "r.yaml:1: is not YAML: il");
  EXPECT_EQ(failure(""), "");
  EXPECT_NE(failure(std::string(100'000, '[')), "");
  EXPECT_NE(failure("a: &x [*x]"), "");
}

TEST(Recipe, PrintsWhatReadsBack) {
  TrainRecipe recipe;
  recipe.model = "a \"b\\\n: #ü/中";
  recipe.data = {"true"};
  recipe.out = "12";
  recipe.adapter = "runs/x-1/adapter";
  recipe.overwrite = true;
  recipe.lr = 0.1 + 0.2;
  recipe.eps = 1e-30;
  recipe.seed = 9'007'199'254'740'993;
  recipe.targets = {"q,proj", "no", ""};
  recipe.rank_pattern = {{"q_proj", 8}, {"7", 1}};
  recipe.memory = {(8ll << 30) + 1};
  TrainRecipe back;
  const Status status = parse_recipe(recipe_yaml(recipe), "printed", back);
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(back, recipe);
  EXPECT_EQ(recipe_yaml(back), recipe_yaml(recipe));
  EXPECT_NE(recipe_yaml(recipe).find("adapter: runs/x-1/adapter\n"), std::string::npos);
}

// A field without an option could not be set and would be lost by printing.
TEST(Recipe, EveryFieldHasAnOption) {
  TrainRecipe recipe;
  EXPECT_EQ(recipe_options(recipe).size(), recipe_fields());
}

TEST(Recipe, EveryOptionSurvivesPrinting) {
  TrainRecipe recipe;
  std::set<std::string_view> names;
  for (const Option& option : recipe_options(recipe)) {
    TrainRecipe changed;
    const Option own = *find_option(recipe_options(changed), option.name);
    EXPECT_TRUE(names.insert(own.name).second) << own.name << " stands twice";
    bool set = false;
    for (const std::string text : {"true", "3", "0.25", "1MiB", "x=3", "x,y"})
      set = set || set_option(own, text).ok();
    for (const std::string_view choice : own.choices)
      if (option_text(option) != choice) set = set_option(own, choice).ok() || set;
    ASSERT_TRUE(set) << own.name;
    EXPECT_NE(changed, TrainRecipe()) << own.name;
    TrainRecipe back;
    ASSERT_TRUE(parse_recipe(recipe_yaml(changed), "printed", back).ok()) << own.name;
    EXPECT_EQ(back, changed) << own.name;
  }
}

// Sources of data are a list, or one text that may hold several; a later file replaces them all.
TEST(Recipe, SourcesOfDataAreAListOrOneText) {
  TrainRecipe recipe;
  ASSERT_TRUE(parse_recipe("data: [a.jsonl:0.7, b.jsonl:0.3]\neval-data: held.jsonl", "r", recipe).ok());
  EXPECT_EQ(recipe.data, (StringList{"a.jsonl:0.7", "b.jsonl:0.3"}));
  EXPECT_EQ(recipe.eval_data, StringList{"held.jsonl"});
  ASSERT_TRUE(parse_recipe("data: a.jsonl:0.7,b.jsonl:0.3\neval-data: ''", "r", recipe).ok());
  EXPECT_EQ(recipe.data, StringList{"a.jsonl:0.7,b.jsonl:0.3"});
  EXPECT_EQ(recipe.eval_data, StringList{});
}

TEST(Recipe, DefaultsAgree) {
  EXPECT_TRUE(check_recipe({}).ok());
  const auto refused = [](auto change) {
    TrainRecipe recipe;
    change(recipe);
    const Status status = check_recipe(recipe);
    return status.ok() ? std::string() : status.error().subject;
  };
  EXPECT_EQ(refused([](auto& r) { r.eval_data = {"x"}, r.eval_fraction = 0.1; }), "--eval-data");
  EXPECT_EQ(refused([](auto& r) { r.eval_every = 5; }), "--eval-every");
  EXPECT_EQ(refused([](auto& r) { r.steps = 5, r.warmup_steps = 6; }), "--warmup-steps");
  EXPECT_EQ(refused([](auto& r) { r.max_tokens = 4096; }), "--max-tokens");
  EXPECT_EQ(refused([](auto& r) { r.targets = {"all-linear", "q_proj"}; }), "--targets");
  EXPECT_EQ(refused([](auto& r) { r.targets = {}; }), "--targets");
  EXPECT_EQ(refused([](auto& r) { r.lr = 0; }), "--lr");
  EXPECT_EQ(refused([](auto& r) { r.schedule = "steep"; }), "--schedule");
}

TEST(Recipe, NamesWhatIsMissing) {
  TrainRecipe recipe;
  recipe.model = "m";
  const Status status = require_recipe(recipe, {"model", "data"});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().text(), "--data: is missing\n  Add --data FILE, or data: in the recipe.");
  recipe.data = {"d"};
  EXPECT_TRUE(require_recipe(recipe, {"model", "data"}).ok());
}

}  // namespace
}  // namespace tenon
