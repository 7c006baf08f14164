// Text to token ids and back, as the model's own tokenizer files say: tokenizer.json, SentencePiece
// tokenizer.model, vocab.json with merges.txt, tiktoken ranks, GGUF metadata. An element of such a file that
// is not implemented is an error that names it. A Tokenizer is immutable after load and may be used from many
// threads at once; encoding costs linear time in the text, also for text without a single word boundary.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tenon {

struct TokenizerParts;  // text/tokenizer_parts.h
class DecodeChain;      // text/decode_chain.h

struct TokenSpan {
  int32_t id = 0;
  // Bytes [begin, end) of the input the token stands for, always whole characters: the tokens that share a
  // character all cover it. Empty for what the post-processor adds.
  int64_t begin = 0;
  int64_t end = 0;
};

struct EncodeOptions {
  bool add_special = true;    // add what the post-processor adds (BOS, EOS, [CLS], ...)
  bool parse_special = true;  // text that spells a special token becomes that token
};

struct ChatTemplateText {
  std::string name;  // "default" where the file gives no name
  std::string text;
};

// What the files around the tokenizer say of special tokens.
struct SpecialTokens {
  std::optional<int32_t> bos, pad, unk;
  std::vector<int32_t> eos;  // any of them ends a generation; the tokenizer's own one first
  bool add_bos = false;      // encode() with add_special begins with bos
  bool add_eos = false;      // encode() with add_special ends with an eos
  std::vector<ChatTemplateText> chat_templates;
};

class Tokenizer {
 public:
  // Reads a model folder, a tokenizer.json, a SentencePiece .model, a .tiktoken file, a vocab.json (with
  // merges.txt beside it) or a .gguf file. Configuration files beside the file are read where they exist.
  static Result<Tokenizer> from_file(const std::filesystem::path& path);

  // Reads the text of a tokenizer.json; `name` is the subject of errors.
  static Result<Tokenizer> from_json(std::string_view tokenizer_json, std::string name);

  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Any bytes may be given. A byte that is not part of valid UTF-8 counts as one character of the class of
  // U+FFFD; byte-level and byte-fallback vocabularies encode the byte itself, others give the unknown token.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
  std::vector<TokenSpan> encode_spans(std::string_view text, EncodeOptions options = {}) const;

  // Always valid UTF-8: bytes that form no character come out as U+FFFD. Ids outside the vocabulary give
  // nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  // One more than the highest id.
  int32_t vocab_size() const;
  // Tokens as the file spells them ("Ġthe", "▁the", "<0x0A>"); an unused or wrong id has the empty token.
  std::optional<int32_t> id_of(std::string_view token) const;
  std::string_view token(int32_t id) const;
  // The bytes the token stands for in the middle of a text (" the", "\n"); for constrained decoding.
  std::string token_bytes(int32_t id) const;
  bool is_special(int32_t id) const;
  const SpecialTokens& special() const;

 private:
  friend class StreamDecoder;
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);

  std::unique_ptr<const TokenizerParts> parts_;
  struct ScratchPool;
  std::unique_ptr<ScratchPool> scratch_pool_;
};

// Decodes a generation token by token. What push() and finish() return, put together, is decode() of all ids;
// each piece is valid UTF-8. The tokenizer must outlive it (it may be moved).
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;

  // The text that has become certain with this token; often empty.
  std::string push(int32_t id);
  // The rest. The decoder is then as new.
  std::string finish();

 private:
  const TokenizerParts* parts_;
  bool skip_special_;
  std::unique_ptr<DecodeChain> chain_;
};

}  // namespace tenon
