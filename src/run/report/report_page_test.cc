#include "run/report/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "io/test_folder.h"
#include "run/report/run_facts.h"

namespace tenon {
namespace {

using testing::HasSubstr;
using testing::Not;

Json data_of(const std::string& page) {
  const std::string open = "<script id=\"data\" type=\"application/json\">";
  const size_t begin = page.find(open) + open.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

ReportRun run_of(int64_t steps) {
  ReportRun run;
  run.name = "</script><b>run";
  run.record.header.recipe = "model: m\n";
  for (int64_t i = 1; i <= steps; ++i) {
    RecordStep step;
    step.step = i;
    step.loss = static_cast<double>(i);
    run.record.steps.push_back(step);
  }
  run.facts = R"({"samples": [{"prompt": "<img src=x>"}]})";
  return run;
}

TEST(ReportPage, TextOfARunNeverEndsTheElementThatHoldsIt) {
  const ReportRun run = run_of(2);
  const std::string page = report_html({&run, 1});
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  const auto data = data_of(page);
  EXPECT_EQ(data["runs"][0]["name"], run.name);
  EXPECT_EQ(data["runs"][0]["facts"]["samples"][0]["prompt"], "<img src=x>");
  EXPECT_EQ(data["runs"][0]["steps"]["loss"], Json({1.0, 2.0}));
}

TEST(ReportPage, FetchesNothing) {
  ReportRun run = run_of(1);
  run.facts = "{}";
  const std::string page = report_html({&run, 1});
  for (const char* outside :
       {" src=", "@import", "url(", "fetch(", "XMLHttpRequest", "<link rel=\"stylesheet"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
}

// 9001 steps are thinned by four: means of 1..4, 5..8, ...; the last stands alone.
TEST(ReportPage, LongRunsAreThinnedByMeans) {
  const ReportRun run = run_of(9001);
  const auto steps = data_of(report_html({&run, 1}))["runs"][0]["steps"];
  EXPECT_EQ(steps["every"], 4);
  EXPECT_EQ(steps["step"].size(), 2251u);
  EXPECT_EQ(steps["loss"][0], 2.5);
  EXPECT_EQ(steps["loss"][1], 6.5);
  EXPECT_EQ(steps["loss"][2250], 9001.0);
}

TEST(ReportPage, WhatIsNotANumberIsAGap) {
  ReportRun run = run_of(1);
  run.record.steps[0].loss = NAN;
  EXPECT_TRUE(data_of(report_html({&run, 1}))["runs"][0]["steps"]["loss"][0].is_null());
}

TEST(RunFacts, ComeBackFromTheFolder) {
  const TestFolder folder;
  EXPECT_TRUE(read_facts(folder.path()).samples.empty());
  RunFacts facts;
  facts.kernels = kernel_facts({{"train_step", "matmul", 3, 0.5}});
  facts.samples = sample_facts({{{}, "p", "e", "b", "a"}});
  ASSERT_TRUE(write_facts(folder.path(), facts).ok());
  const RunFacts back = read_facts(folder.path());
  EXPECT_EQ(back.kernels, facts.kernels);
  const auto samples = parse_samples(back.samples);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].before, "b");
  folder.put("facts.json", "not json");
  EXPECT_TRUE(read_facts(folder.path()).kernels.empty());
}

}  // namespace
}  // namespace tenon
