// All of a loaded tokenizer: the stages in the order text goes through them, and what loaders share.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decode_chain.h"
#include "text/normalise.h"
#include "text/postprocess.h"
#include "text/pretokenise.h"
#include "text/tokenizer.h"
#include "text/unigram.h"
#include "text/vocabulary.h"
#include "text/wordpiece.h"

namespace tenon {

using TokenModel = std::variant<BpeModel, UnigramModel, WordPieceModel, WordLevelModel>;

struct TokenizerParts {
  AddedTokens added;
  Normaliser normaliser;
  Pretokeniser pretokeniser;
  Vocabulary vocabulary;
  TokenModel model;
  Postprocessor postprocessor;
  Decoder decoder;
  SpecialTokens special;

  // Set by finish_parts(), by id: the text, whether it is special, whether it is an added token.
  std::vector<std::string_view> texts;
  std::vector<bool> specials;
  std::vector<bool> is_added;

  int32_t find(std::string_view token) const {
    const int32_t id = added.find(token);
    return id >= 0 ? id : vocabulary.find(token);
  }
  std::string_view text(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < texts.size() ? texts[static_cast<size_t>(id)]
                                                             : std::string_view();
  }
  bool is_special(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < specials.size() && specials[static_cast<size_t>(id)];
  }
};

// Fills the tables that depend on several parts. The parts do not move afterwards.
void finish_parts(TokenizerParts& parts);

}  // namespace tenon
