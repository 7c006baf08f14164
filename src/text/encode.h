// Runs text through the stages of a tokenizer.
#pragma once

#include <string_view>
#include <vector>

#include "text/token_sink.h"
#include "text/tokenizer_parts.h"
#include "text/word_cache.h"

namespace tenon {

// What encoding one text needs besides the tokenizer; kept from text to text for its cache. One a thread at a
// time, always with the same tokenizer.
struct EncodeScratch {
  WordCache cache;
  BpeScratch bpe;
  UnigramScratch unigram;
  std::vector<ModelToken> tokens;
};

// Adds the tokens of the text to `sink`, whose `tracked` says whether spans are wanted.
void encode_text(const TokenizerParts& parts, std::string_view text, EncodeOptions options,
                 EncodeScratch& scratch, TokenSink& sink);

}  // namespace tenon
