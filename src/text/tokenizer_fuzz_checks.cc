#include "text/tokenizer_fuzz_checks.h"

#include "base/check.h"
#include "text/encode.h"
#include "text/sentencepiece.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_gguf.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_plain.h"
#include "text/unicode.h"

namespace tenon {
namespace {

constexpr std::string_view kText = "Hello  world's 12345 \xe4\xb8\xad\xff\n\n <s> e\xcc\x81";

Result<std::unique_ptr<TokenizerParts>> read(char kind, std::string_view file) {
  switch (kind) {
    case 'J':
      return read_tokenizer_json(file, "input");
    case 'G':
      return read_tokenizer_gguf(std::as_bytes(std::span(file)), "input");
    case 'T':
      return read_tiktoken(file, "input");
    case 'K':
      return read_tekken(file, "input");
    case 'V': {
      const size_t cut = std::min(file.find('\1'), file.size());
      return read_vocab_and_merges(file.substr(0, cut), file.substr(std::min(cut + 1, file.size())), "",
                                   "input");
    }
    case 'S': {
      auto parts = std::make_unique<TokenizerParts>();
      ASSIGN_OR_RETURN(const SentencePieceModel model, parse_sentencepiece(file));
      RETURN_IF_ERROR(build_sentencepiece(model, *parts));
      set_added_specials(*parts, model.bos >= 0, false);
      return parts;
    }
    default:
      return bad_file("unknown kind");
  }
}

void check_text(const TokenizerParts& parts, std::string_view text) {
  EncodeScratch scratch;
  TokenSink plain, tracked;
  tracked.tracked = true;
  encode_text(parts, text, {}, scratch, plain);
  encode_text(parts, text, {}, scratch, tracked);
  CHECK(plain.ids == tracked.ids && plain.spans.empty() && tracked.spans.size() == tracked.ids.size());
  DecodeChain chain(parts.decoder);
  std::string decoded;
  for (size_t i = 0; i < plain.ids.size(); ++i) {
    const TokenSpan& span = tracked.spans[i];
    CHECK(span.id == plain.ids[i] && span.begin >= 0 && span.begin <= span.end);
    CHECK(span.end <= static_cast<int64_t>(text.size()));
    std::string piece;
    chain.push(parts.text(span.id), piece);
    CHECK(is_valid_utf8(piece));
    decoded += piece;
  }
  chain.finish(decoded);
  CHECK(is_valid_utf8(decoded));
}

}  // namespace

bool fuzz_tokenizer(std::span<const std::byte> input) {
  if (input.empty()) return false;
  const std::string_view all(reinterpret_cast<const char*>(input.data()), input.size());
  const char kind = all[0];
  const bool has_text = kind != 'S' && kind != 'G';
  const size_t cut = has_text ? std::min(all.find('\0'), all.size()) : all.size();
  auto parts = read(kind, all.substr(1, cut - 1));
  if (!parts.ok()) {
    CHECK(!parts.error().message.empty());
    return false;
  }
  finish_parts(**parts);
  check_text(**parts, kText);
  if (has_text && cut < all.size()) check_text(**parts, all.substr(cut + 1));
  return true;
}

}  // namespace tenon
