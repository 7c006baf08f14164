#include "text/tokenizer_audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "io/folder.h"

namespace tenon {
namespace {

struct Cost {
  const char* tokenizer;
  const char* language;
  int64_t bytes, tokens;
};
// Tokens as PyPI's tokenizers counts them, without special tokens.
constexpr Cost kCosts[] = {
    {"llama3", "English", 180, 36},
    {"llama3", "Hindi", 1139, 225},
    {"llama3", "Japanese", 201, 51},
    {"llama3", "Amharic", 309, 305},
    {"llama3", "Chinese, Mandarin (Simplified)", 335, 94},
    {"qwen3", "English", 180, 36},
    {"qwen3", "Hindi", 1139, 407},
    {"qwen3", "Japanese", 201, 45},
    {"qwen3", "Amharic", 309, 114},
    {"qwen3", "Chinese, Mandarin (Simplified)", 335, 78},
};

TEST(TokenizerAudit, CountsTheTokensOfALanguage) {
  for (const std::string name : {"llama3", "qwen3"}) {
    const std::string path = TENON_SOURCE_DIR "/../shared/data/tokenizers/" + name;
    if (!is_folder(path)) GTEST_SKIP() << "no " << path;
    const auto tokenizer = Tokenizer::from_file(path);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().text();
    const TokenizerAudit audit = audit_tokenizer(*tokenizer);
    ASSERT_EQ(audit.costs.size(), 53u);
    for (const Cost& cost : kCosts) {
      if (cost.tokenizer != name) continue;
      const auto found = std::find_if(audit.costs.begin(), audit.costs.end(),
                                      [&](const TokenCost& each) { return each.language == cost.language; });
      ASSERT_NE(found, audit.costs.end()) << cost.language;
      EXPECT_EQ(found->bytes, cost.bytes) << cost.language;
      EXPECT_EQ(found->tokens, cost.tokens) << name << " " << cost.language;
    }
    for (size_t i = 1; i < audit.costs.size(); ++i)
      EXPECT_GE(audit.costs[i - 1].bytes_per_token(), audit.costs[i].bytes_per_token());
  }
}

}  // namespace
}  // namespace tenon
