// The files beside a tokenizer: tokenizer_config.json, special_tokens_map.json, generation_config.json,
// config.json, added_tokens.json, and chat templates. They name the special tokens and may add tokens.
#pragma once

#include <string>

#include "base/error.h"
#include "text/tokenizer_parts.h"

namespace tenon {

// Tokens that only the files in `folder` define: to be called before finish_parts(). Errors: bad_file.
Status read_extra_tokens(const std::string& folder, TokenizerParts& parts);

// "tokenizer_class" of tokenizer_config.json; empty where it does not say. Errors: bad_file.
Result<std::string> read_tokenizer_class(const std::string& folder);

// Fills parts.special from the files in `folder`, and lets tokenizer_config.json decide on BOS and EOS where
// transformers does. To be called after the model and added tokens are there. Errors: bad_file.
Status read_special_tokens(const std::string& folder, TokenizerParts& parts);

// Sets add_bos and add_eos from what the post-processor does.
void note_added_specials(TokenizerParts& parts);

// Makes encode() with add_special begin with bos and end with the first eos as asked; other templates go.
void set_added_specials(TokenizerParts& parts, bool add_bos, bool add_eos);

}  // namespace tenon
