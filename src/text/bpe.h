// Byte pair encoding (Sennrich et al. 2016): the pair of neighbours with the lowest rank merges first, the
// leftmost of equal ones, until no pair has a rule. Short words by scanning, long ones with a heap, so a
// megabyte without a boundary costs n log n.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/model_token.h"
#include "text/vocabulary.h"

namespace tenon {

// (left id, right id) -> rank and merged id.
class MergeTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Rule {
    uint64_t pair = UINT64_MAX;
    uint32_t rank = kNone;
    int32_t id = -1;
  };

  void reserve(size_t rules);
  // A pair given twice keeps the rule given last.
  void add(int32_t left, int32_t right, uint32_t rank, int32_t id);
  size_t size() const { return size_; }

  // A rule with rank kNone where there is none.
  const Rule& find(int32_t left, int32_t right) const {
    const uint64_t pair = key(left, right);
    for (size_t at = slot_of(pair);; at = (at + 1) & mask_) {
      const Rule& rule = rules_[at];
      if (rule.pair == pair || rule.pair == UINT64_MAX) return rule;
    }
  }

  // Starts to fetch what add() or find() of this pair will read.
  void prefetch(int32_t left, int32_t right) const { __builtin_prefetch(&rules_[slot_of(key(left, right))]); }

  template <typename F>
  void for_each(F&& f) const {
    for (const Rule& rule : rules_) {
      if (rule.rank != kNone) f(static_cast<int32_t>(rule.pair >> 32), static_cast<int32_t>(rule.pair), rule);
    }
  }

 private:
  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t pair) const { return (pair * 0x9e3779b97f4a7c15ull) >> shift_; }
  void rehash(size_t capacity);

  std::vector<Rule> rules_ = std::vector<Rule>(2);
  size_t mask_ = 1;
  int shift_ = 63;
  size_t size_ = 0;
};

struct BpeModel {
  MergeTable merges;
  int32_t unk = -1;
  bool fuse_unk = false;       // neighbouring unknown characters give one unknown token
  bool byte_fallback = false;  // unknown characters give the tokens of their bytes, <0x00> to <0xFF>
  bool ignore_merges = false;  // a word that is a token is that token, whatever the merges say
  bool byte_level = false;     // words are raw bytes, spelled in the vocabulary as text/byte_level.h says
  std::string prefix, suffix;  // continuing_subword_prefix, end_of_word_suffix

  // Set by finish_bpe().
  std::array<int32_t, 256> byte_ids{};      // byte_level: of the byte; byte_fallback: of its token; else -1
  std::array<int32_t, 128> ascii_ids{};     // of one-character tokens, without prefix and suffix
  bool metaspace_cuts = false;              // no merge reaches over a cut before a space mark
  std::array<bool, 256> joins_metaspace{};  // some token holds a space mark after a character ending so

  // Characters that occur inside tokens only (SentencePiece): symbols with ids from vocabulary.size() on,
  // which merge and, where they are left, are unknown.
  Vocabulary inner_chars;
};

// Fills the tables that depend on the vocabulary and the merges.
void finish_bpe(BpeModel& model, const Vocabulary& vocabulary);

struct BpeScratch {
  std::vector<int32_t> ids, merged_ids, previous, next;
  std::vector<uint32_t> bytes, ranks;
  std::vector<uint64_t> heap;
};

// Appends the tokens of one word.
void encode_bpe(const BpeModel& model, const Vocabulary& vocabulary, std::string_view word,
                BpeScratch& scratch, std::vector<ModelToken>& out);

// The end of the stretch from `from` that merges on its own; text.size() where none is known.
size_t next_bpe_cut(const BpeModel& model, std::string_view text, size_t from);

}  // namespace tenon
