#include "text/sentencepiece.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/unicode.h"

namespace tenon {
namespace {

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";
// SentencePiece takes such a piece as unused where bytes have pieces of their own.
constexpr std::string_view kNul("\0", 1);

// Symbols of BPE: normal pieces, and characters that occur inside them only.
int32_t symbol(std::string_view text, const Vocabulary& vocabulary, const std::vector<bool>& normal,
               BpeModel& bpe) {
  const int32_t id = vocabulary.find(text);
  if (id >= 0 && normal[static_cast<size_t>(id)]) return id;
  const Char c = decode_char(text.data(), text.data() + text.size());
  if (static_cast<size_t>(c.bytes) != text.size()) return -1;
  int32_t inner = bpe.inner_chars.find(text);
  if (inner < 0) {
    inner = bpe.inner_chars.size();
    bpe.inner_chars.add(text, inner);
  }
  return vocabulary.size() + inner;
}

// Any two neighbours that spell a piece merge to it; the piece's score is the order.
void build_merges(const SentencePieceModel& model, const Vocabulary& vocabulary, BpeModel& bpe) {
  std::vector<float> scores;
  std::vector<bool> normal;
  for (const SentencePiece& piece : model.pieces) {
    const bool is_normal = piece.kind == PieceKind::normal || piece.kind == PieceKind::user_defined;
    normal.push_back(is_normal);
    if (is_normal) scores.push_back(piece.score);
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePiece& piece = model.pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (!normal[i] || piece.text.empty() || vocabulary.find(piece.text) != id) continue;
    const auto at = std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>());
    const auto rank = static_cast<uint32_t>(at - scores.begin());
    const char* end = piece.text.data() + piece.text.size();
    for (size_t cut = 0;;) {
      cut += static_cast<size_t>(decode_char(piece.text.data() + cut, end).bytes);
      if (cut >= piece.text.size()) break;
      const int32_t left = symbol(piece.text.substr(0, cut), vocabulary, normal, bpe);
      const int32_t right = left < 0 ? -1 : symbol(piece.text.substr(cut), vocabulary, normal, bpe);
      if (right >= 0) bpe.merges.add(left, right, rank, id);
    }
  }
}

Status build_model(const SentencePieceModel& model, TokenizerParts& parts) {
  const auto unk = static_cast<int32_t>(model.unk);
  if (model.kind == SentencePieceModel::Kind::bpe) {
    const auto unused = std::find_if(model.pieces.begin(), model.pieces.end(),
                                     [](const SentencePiece& p) { return p.kind == PieceKind::unused; });
    // SentencePiece splits such pieces again after merging to them.
    if (unused != model.pieces.end() && !model.raw_user_defined) {
      return unsupported(fmt::format("unused piece \"{}\" of a BPE model is not implemented", unused->text));
    }
    BpeModel bpe;
    bpe.unk = unk;
    bpe.fuse_unk = true;
    bpe.byte_fallback = model.byte_fallback;
    build_merges(model, parts.vocabulary, bpe);
    parts.model = std::move(bpe);
    return {};
  }
  if (model.kind != SentencePieceModel::Kind::unigram) {
    return unsupported("SentencePiece model of the kind word or char is not implemented");
  }
  UnigramModel unigram;
  unigram.unk = unk;
  unigram.byte_fallback = model.byte_fallback;
  unigram.single_precision = true;
  std::vector<bool> matchable;
  for (const SentencePiece& piece : model.pieces) {
    unigram.scores.push_back(piece.score);
    unigram.user_defined.push_back(piece.kind == PieceKind::user_defined);
    matchable.push_back(piece.kind == PieceKind::normal || piece.kind == PieceKind::user_defined);
  }
  finish_unigram(unigram, parts.vocabulary, matchable);
  parts.model = std::move(unigram);
  return {};
}

void add_tokens(const SentencePieceModel& model, TokenizerParts& parts) {
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePiece& piece = model.pieces[i];
    const bool special = piece.kind == PieceKind::control || piece.kind == PieceKind::unknown;
    if (piece.text.empty() || (!special && piece.kind != PieceKind::user_defined)) continue;
    AddedToken token;
    token.content = piece.text;
    token.id = static_cast<int32_t>(i);
    token.special = special;
    token.normalized = token.verbatim = !special && !model.raw_user_defined;
    parts.added.add(std::move(token));
  }
}

void add_decoder(const SentencePieceModel& model, Decoder& decoder) {
  decoder.emplace_back(DecodeReplace{Pattern::literal(std::string(kSpaceMark)), " "});
  if (model.byte_fallback) decoder.emplace_back(DecodeByteFallback{});
  decoder.emplace_back(DecodeFuse{});
  if (!model.add_prefix) return;
  decoder.emplace_back(DecodeStrip{" ", model.prefix_as_suffix ? 0 : 1, model.prefix_as_suffix ? 1 : 0});
}

Status check_id(const char* name, int64_t id, size_t count) {
  if (id < static_cast<int64_t>(count)) return {};
  return bad_file(fmt::format("{} is {}, outside the vocabulary of {}", name, id, count));
}

}  // namespace

Status build_sentencepiece(const SentencePieceModel& model, TokenizerParts& parts) {
  const size_t count = model.pieces.size();
  if (count > kMaxTokenId) return bad_file("vocabulary too large");
  RETURN_IF_ERROR(check_id("unk_id", model.unk, count));
  RETURN_IF_ERROR(check_id("bos_id", model.bos, count));
  RETURN_IF_ERROR(check_id("eos_id", model.eos, count));
  RETURN_IF_ERROR(check_id("pad_id", model.pad, count));
  size_t text_bytes = 0;
  for (const SentencePiece& piece : model.pieces) text_bytes += piece.text.size();
  parts.vocabulary.reserve(count, text_bytes);
  for (size_t i = 0; i < count; ++i) {
    if (model.byte_fallback && model.pieces[i].text == kNul) {
      parts.vocabulary.add_unfindable(kNul, static_cast<int32_t>(i));
      continue;
    }
    // Of two pieces with the same text the first one counts.
    const bool seen = parts.vocabulary.find(model.pieces[i].text) >= 0;
    const int32_t first = seen ? parts.vocabulary.find(model.pieces[i].text) : -1;
    parts.vocabulary.add(model.pieces[i].text, static_cast<int32_t>(i));
    if (seen) parts.vocabulary.prefer(first);
  }
  NormaliseSentencePiece normalise;
  ASSIGN_OR_RETURN(normalise.map, Charsmap::parse(model.charsmap));
  normalise.add_prefix = model.add_prefix;
  normalise.prefix_as_suffix = model.prefix_as_suffix;
  normalise.remove_extra_spaces = model.remove_extra_spaces;
  normalise.escape_spaces = model.escape_spaces;
  for (size_t i = 0; i < count && !model.raw_user_defined; ++i) {
    const SentencePiece& piece = model.pieces[i];
    if (piece.kind == PieceKind::user_defined && !piece.text.empty()) {
      normalise.verbatim.add(piece.text, static_cast<int32_t>(i));
    }
  }
  parts.normaliser.emplace_back(std::move(normalise));
  RETURN_IF_ERROR(build_model(model, parts));
  add_tokens(model, parts);
  add_decoder(model, parts.decoder);
  const auto optional = [](int64_t id) {
    return id < 0 ? std::nullopt : std::optional(static_cast<int32_t>(id));
  };
  parts.special.bos = optional(model.bos);
  parts.special.unk = optional(model.unk);
  parts.special.pad = optional(model.pad);
  if (model.eos >= 0) parts.special.eos.push_back(static_cast<int32_t>(model.eos));
  return {};
}

}  // namespace tenon
