// WordPiece: the longest token first, from left to right; a word that cannot be covered is unknown as a
// whole. WordLevel: a word is a token or unknown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/model_token.h"
#include "text/vocabulary.h"

namespace tenon {

struct WordPieceModel {
  int32_t unk = -1;
  std::string prefix = "##";  // of tokens that do not begin a word
  std::string word_prefix;    // of tokens that do: GGUF files mark those instead
  int64_t max_chars = 100;    // a longer word is unknown
};

struct WordLevelModel {
  int32_t unk = -1;  // -1: an unknown word gives nothing
};

void encode_wordpiece(const WordPieceModel& model, const Vocabulary& vocabulary, std::string_view word,
                      std::vector<ModelToken>& out);

void encode_wordlevel(const WordLevelModel& model, const Vocabulary& vocabulary, std::string_view word,
                      std::vector<ModelToken>& out);

}  // namespace tenon
