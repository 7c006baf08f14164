#include "run/cache_report.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

NormSpec norm(int64_t width) {
  NormSpec spec{NormKind::rms, "norm", width, 1e-6};
  spec.weight = false;
  return spec;
}

ModelSpec empty_model() {
  ModelSpec spec;
  spec.vocab = 8;
  spec.hidden = 4;
  spec.embedding_path = "embed";
  spec.final_norm = norm(4);
  spec.head = {"head", 4, 8};
  return spec;
}

BlockSpec attention_block(const std::string& path) {
  AttentionSpec a;
  a.heads = 2;
  a.kv_heads = 1;
  a.head_dim = 2;
  a.v_head_dim = 2;
  a.q = {path + "q", 4, 4};
  a.k = {path + "k", 4, 2};
  a.v = {path + "v", 4, 2};
  a.o = {path + "o", 4, 4};
  BlockSpec block;
  block.mixer = a;
  return block;
}

BlockSpec convolution_block(const std::string& path) {
  BlockSpec block;
  block.mixer = ShortConvSpec{{path + "in", 4, 12}, {path + "out", 4, 4}, {path + "conv", 4, 3}};
  return block;
}

// One key and one value head of 2 elements in bf16: 2 * 2 * 2 bytes a token. A convolution of 3 taps over 4
// channels keeps 2 * 4 elements of bf16.
TEST(CacheReport, CountsBytesByTokenAndBySequence) {
  ModelSpec spec = empty_model();
  spec.blocks = {convolution_block("a."), convolution_block("b."), attention_block("c.")};
  const CacheReport report = cache_report(spec, DType::bf16);
  ASSERT_EQ(report.layers.size(), 3u);
  EXPECT_EQ(report.layers[2].token_bytes, 8);
  EXPECT_EQ(report.layers[2].state_bytes, 0);
  EXPECT_EQ(report.layers[0].token_bytes, 0);
  EXPECT_EQ(report.layers[0].state_bytes, 16);
  EXPECT_EQ(report.token_bytes(), 8);
  EXPECT_EQ(report.state_bytes(), 32);
  const std::string text = cache_report_text(report);
  EXPECT_NE(text.find("8 B a token, 32 B of fixed state a sequence"), std::string::npos) << text;
  EXPECT_NE(text.find("layers 0-1"), std::string::npos) << text;
}

// A layer that reads another's keys keeps none.
TEST(CacheReport, SharedKeysAreCountedOnce) {
  ModelSpec spec = empty_model();
  BlockSpec sharing = attention_block("b.");
  std::get<AttentionSpec>(sharing.mixer).kv_from = 0;
  spec.blocks = {attention_block("a."), sharing};
  EXPECT_EQ(cache_report(spec, DType::f32).token_bytes(), 16);
}

}  // namespace
}  // namespace tenon
