// The unigram language model (Kudo 2018): the segmentation whose tokens' scores sum highest, found by one
// pass over a trie of the tokens.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/model_token.h"
#include "text/vocabulary.h"

namespace tenon {

struct UnigramModel {
  std::vector<double> scores;  // by id
  int32_t unk = -1;            // -1: a character outside the vocabulary gives nothing
  bool byte_fallback = false;
  bool single_precision = false;  // sums in float, as SentencePiece does; else double, as tokenizers does
  // Tokens that beat any other segmentation of the same text (SentencePiece's user-defined ones).
  std::vector<bool> user_defined;

  // Set by finish_unigram().
  ByteTrie trie;
  double unk_score = 0;
  double max_score = 0;
  std::array<int32_t, 256> byte_ids{};
};

// Fills what follows from scores. `matchable` by id: tokens that text can match (not control, unknown or byte
// tokens of SentencePiece); empty for all.
void finish_unigram(UnigramModel& model, const Vocabulary& vocabulary, const std::vector<bool>& matchable);

struct UnigramScratch {
  struct Node {
    double score = 0;
    int64_t begin = -1;
    int32_t id = -1;
  };
  std::vector<Node> nodes;
  std::vector<ModelToken> reversed;
};

// Appends the tokens of the text.
void encode_unigram(const UnigramModel& model, std::string_view text, UnigramScratch& scratch,
                    std::vector<ModelToken>& out);

}  // namespace tenon
