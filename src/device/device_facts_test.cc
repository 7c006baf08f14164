#include "device/device_facts.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

DeviceFacts facts_of_a_gpu() {
  DeviceFacts facts;
  facts.kind = DeviceKind::cuda;
  facts.name = "NVIDIA H200";
  facts.features = {"sm_90a"};
  facts.threads = 16;
  facts.memory_bytes = 150754820096;
  facts.gflops_bf16 = 989500.5;
  facts.gigabytes_per_second = 4800;
  return facts;
}

TEST(DeviceFacts, JsonRoundTrips) {
  const DeviceFacts facts = facts_of_a_gpu();
  const auto parsed = parse_device_facts(device_facts_json(facts), "h200.json");
  ASSERT_TRUE(parsed.ok()) << parsed.error().text();
  EXPECT_EQ(parsed->kind, facts.kind);
  EXPECT_EQ(parsed->name, facts.name);
  EXPECT_EQ(parsed->features, facts.features);
  EXPECT_EQ(parsed->threads, facts.threads);
  EXPECT_EQ(parsed->memory_bytes, facts.memory_bytes);
  EXPECT_EQ(parsed->gflops_bf16, facts.gflops_bf16);
  EXPECT_EQ(device_facts_json(*parsed), device_facts_json(facts));
  EXPECT_TRUE(parsed->has("sm_90a"));
  EXPECT_FALSE(parsed->has("sm_80"));
}

TEST(DeviceFacts, RefusesWhatIsNotFacts) {
  for (const char* json : {
           "",
           "[1]",
           R"({"kind":"tpu","name":"a","threads":1,"memory_bytes":1})",
           R"({"kind":"cpu","name":1,"threads":1,"memory_bytes":1})",
           R"({"kind":"cpu","name":"a","threads":0,"memory_bytes":1})",
           R"({"kind":"cpu","name":"a","threads":1.5,"memory_bytes":1})",
           R"({"kind":"cpu","name":"a","threads":1,"memory_bytes":-4})",
           R"({"kind":"cpu","name":"a","threads":1})",
           R"({"kind":"cpu","name":"a","threads":1,"memory_bytes":1,"features":[1]})",
           R"({"kind":"cpu","name":"a","threads":1,"memory_bytes":1,"gflops_f32":-1})",
           R"({"kind":"cpu","name":"a","threads":1,"memory_bytes":1,"memory_byte":1})",
       }) {
    const auto facts = parse_device_facts(json, "facts.json");
    ASSERT_FALSE(facts.ok()) << json;
    EXPECT_EQ(facts.error().code, ErrorCode::bad_file);
    EXPECT_EQ(facts.error().subject, "facts.json");
  }
}

}  // namespace
}  // namespace tenon
