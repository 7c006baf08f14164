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
  const CacheReport report = cache_report(spec, DType::bf16, 4096);
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
  EXPECT_EQ(cache_report(spec, DType::f32, 4096).token_bytes(), 16);
}

// Decoding a token at a time needs the last 33 positions at any moment: three pages of 16. Layers that see
// all grow, and so does one whose keys such a layer reads.
TEST(CacheReport, WindowsKeepTheirLastTokens) {
  ModelSpec spec = empty_model();
  spec.blocks = {attention_block("a."), attention_block("b."), attention_block("c."), attention_block("d.")};
  const auto attention = [&](size_t i) -> AttentionSpec& {
    return std::get<AttentionSpec>(spec.blocks[i].mixer);
  };
  attention(0).attend.window = 33;
  attention(1).attend.chunk = 32;
  attention(2).attend.window = 33;
  attention(3).kv_from = 2;
  const CacheReport report = cache_report(spec, DType::f32, 4096);
  ASSERT_EQ(report.layers.size(), 3u);
  EXPECT_EQ(report.layers[0].window_tokens, 48);
  EXPECT_EQ(report.layers[0].state_bytes, 48 * 16);
  EXPECT_EQ(report.layers[1].window_tokens, 32);
  EXPECT_EQ(report.layers[2].window_tokens, 0);
  EXPECT_EQ(report.token_bytes(), 16);
  EXPECT_EQ(report.state_bytes(), (48 + 32) * 16);
  EXPECT_NE(cache_report_text(report).find("16 B a token of the last 48, 768 B of state"), std::string::npos)
      << cache_report_text(report);
  EXPECT_EQ(cache_report(spec, DType::f32, 32).state_bytes(), 0);  // a window longer than the context
}

// Latent attention keeps the latent and one rotary key, however many heads there are.
TEST(CacheReport, LatentAttentionKeepsTheLatent) {
  LatentAttentionSpec a;
  a.heads = 3;
  a.nope_dim = 2;
  a.rope_dim = 4;
  a.v_head_dim = 2;
  a.q = {"q", 4, 18};
  a.kv_a = {"kv_a", 4, 9};
  a.kv_a_norm = norm(5);
  a.kv_b = {"kv_b", 5, 12};
  a.o = {"o", 6, 4};
  ModelSpec spec = empty_model();
  spec.blocks.resize(1);
  spec.blocks[0].mixer = a;
  EXPECT_EQ(cache_report(spec, DType::f32, 64).token_bytes(), (5 + 4) * 4);
}

TEST(CacheReport, SaysWhereASequenceIsComputedOnceMore) {
  ModelSpec spec = empty_model();
  spec.blocks = {attention_block("a.")};
  spec.ropes = {RopeSpec{.inv_freq = {1}, .long_inv_freq = {0.5}, .long_from = 24}};
  const std::string once = cache_report_text(cache_report(spec, DType::bf16, 64));
  EXPECT_NE(
      once.find("Beyond 24 tokens its rotary frequencies change, and a sequence is computed once more.\n"),
      std::string::npos)
      << once;
  spec.ropes = {RopeSpec{.inv_freq = {1}, .long_from = 24, .dynamic_factor = 2, .theta = 1000}};
  const std::string each = cache_report_text(cache_report(spec, DType::bf16, 64));
  EXPECT_NE(each.find("once more with each token.\n"), std::string::npos) << each;
}

}  // namespace
}  // namespace tenon
