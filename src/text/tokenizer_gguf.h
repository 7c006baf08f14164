// Tokenizers in GGUF metadata (keys "tokenizer.ggml.*"): byte-level BPE, SentencePiece BPE and unigram, and
// WordPiece.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/tokenizer_parts.h"

namespace tenon {

// `file` is the whole GGUF file. Errors: bad_file; unsupported, naming the kind of tokenizer or of
// pre-tokeniser; not_found where the file has no tokenizer.
Result<std::unique_ptr<TokenizerParts>> read_tokenizer_gguf(std::span<const std::byte> file,
                                                            const std::string& name);

struct GgufPreDefaults {
  bool ignore_merges = false;
  bool add_bos = false;
};

// Appends the stages that a value of tokenizer.ggml.pre stands for. Error: unsupported, naming the value.
Result<GgufPreDefaults> add_gguf_pretokeniser(std::string_view pre, TokenizerParts& parts);

}  // namespace tenon
