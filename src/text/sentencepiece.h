// SentencePiece vocabularies, whether from a tokenizer.model (sentencepiece_model.proto) or from GGUF
// metadata: pieces with scores and kinds, and how text is normalised. BPE and unigram.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/tokenizer_parts.h"

namespace tenon {

// Numbered as in the format; GGUF's token types are the same.
enum class PieceKind : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct SentencePiece {
  std::string_view text;
  float score = 0;
  PieceKind kind = PieceKind::normal;
};

struct SentencePieceModel {
  enum class Kind : int32_t { unigram = 1, bpe = 2, word = 3, character = 4 };
  Kind kind = Kind::unigram;
  std::vector<SentencePiece> pieces;  // by id
  std::string_view charsmap;
  bool add_prefix = true;
  bool prefix_as_suffix = false;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;
  bool byte_fallback = false;
  // User-defined pieces are matched in the text itself, not in the normalised text (as llama.cpp does).
  bool raw_user_defined = false;
  int64_t unk = 0, bos = 1, eos = 2, pad = -1;  // -1 where there is none
};

// The pieces view `file`. Errors: bad_file.
Result<SentencePieceModel> parse_sentencepiece(std::string_view file);

// Fills all stages but the post-processor. Control pieces become special tokens. Errors: bad_file,
// unsupported.
Status build_sentencepiece(const SentencePieceModel& model, TokenizerParts& parts);

}  // namespace tenon
