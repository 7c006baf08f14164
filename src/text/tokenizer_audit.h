// What someone who tunes a model should know of its tokenizer before the first step, found by asking the
// tokenizer itself: what it puts around and before a text, how it cuts, which entries no text can give, and
// what a text costs in each language. Pure; never reads files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace tenon {

struct TokenCost {
  std::string_view language;
  int64_t bytes = 0;
  int64_t tokens = 0;
  double bytes_per_token() const {
    return tokens == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(tokens);
  }
};

struct SplitExample {
  std::string_view what;  // "digits"
  std::string text;
  std::vector<std::string> pieces;  // the text of each token
};

// Something between angle brackets, bars or square brackets that a chat template writes.
struct TemplateMarker {
  std::string text;
  int64_t tokens = 0;  // 1: the vocabulary has it
};

struct TokenizerAudit {
  int32_t ids = 0;      // one more than the highest id
  int32_t entries = 0;  // ids that stand for something
  int32_t special = 0;

  bool adds_space_before_text = false;
  bool drops_spaces = false;     // two spaces do not come back from encoding and decoding
  bool keeps_any_bytes = false;  // bytes that are not UTF-8 come back from their tokens
  bool pad_is_eos = false;
  bool pad_is_missing = false;
  bool template_writes_bos = false;  // in the default template: then encode() must not add one too

  std::vector<SplitExample> splits;
  std::vector<TemplateMarker> markers;  // of the default template, those of one token first
  std::vector<TokenCost> costs;         // by language, the cheapest first

  int64_t empty_ids = 0;    // ids below `ids` without an entry
  int64_t reserved = 0;     // entries named as kept free: <unused5>, <|reserved_special_token_2|>, [PAD7]
  int64_t same_text = 0;    // entries that stand for the same bytes as one with a lower id
  int64_t unreachable = 0;  // ordinary entries that their own text does not give, wherever it stands
  std::vector<int32_t> same_text_examples;
  std::vector<int32_t> unreachable_examples;
};

// Takes about a second for a vocabulary of 250,000.
TokenizerAudit audit_tokenizer(const Tokenizer& tokenizer);

// Markers that the source of a template spells, each once, in order: <|im_start|>, [INST], </s>,
// <start_of_turn>.
std::vector<std::string> template_markers(std::string_view template_source);

struct TokenizerDifference {
  int32_t ids_a = 0, ids_b = 0;
  int64_t different_ids = 0;  // ids whose bytes differ, those that one lacks included
  std::vector<int32_t> id_examples;
  std::vector<std::string> settings;  // "bos: <s> (1) / none", and the like
  struct Text {
    std::string_view name;
    int64_t tokens_a = 0, tokens_b = 0;
    int64_t first_difference = -1;  // token position; -1 where all are the same
    int64_t begin = 0;              // the byte at which it begins
  };
  std::vector<Text> texts;

  bool same() const;
};

struct NamedText {
  std::string_view name;
  std::string_view text;
};

// Compares ids, special tokens, and what becomes of each text (as encode() gives it by default). Without
// texts, the language samples.
TokenizerDifference compare_tokenizers(const Tokenizer& a, const Tokenizer& b,
                                       std::vector<NamedText> texts = {});

// A paragraph in each of 53 languages.
std::vector<NamedText> language_samples();

}  // namespace tenon
