// Tokenizers in plain files: tiktoken ranks, Mistral's tekken.json, and GPT-2's vocab.json with merges.txt.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/tokenizer_parts.h"

namespace tenon {

// Lines of a base64 token and its rank. The file does not say how text is split into words; known
// vocabularies are told by their size. Errors: bad_file; unsupported for an unknown vocabulary.
Result<std::unique_ptr<TokenizerParts>> read_tiktoken(std::string_view text, const std::string& name);
bool looks_like_tiktoken(std::string_view text);

// A file with "config", "vocab" and "special_tokens". Errors: bad_file, unsupported.
Result<std::unique_ptr<TokenizerParts>> read_tekken(std::string_view text, const std::string& name);

// `tokenizer_class` of the tokenizer_config.json beside it says how text is split; empty means GPT-2's way.
// Errors: bad_file; unsupported for another class.
Result<std::unique_ptr<TokenizerParts>> read_vocab_and_merges(std::string_view vocab, std::string_view merges,
                                                              std::string_view tokenizer_class,
                                                              const std::string& name);

}  // namespace tenon
