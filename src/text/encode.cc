#include "text/encode.h"

namespace tenon {
namespace {

class Encoder {
 public:
  Encoder(const TokenizerParts& parts, EncodeScratch& scratch, TokenSink& sink)
      : parts_(parts), bpe_(std::get_if<BpeModel>(&parts.model)), scratch_(scratch), sink_(sink) {}

  void text(std::string_view bytes, bool parse_special) {
    const TextView whole{bytes, nullptr, 0, true, bytes.data() + bytes.size()};
    parts_.added.split(bytes, false, parse_special, [&](size_t begin, size_t end, const AddedToken* token) {
      if (token) return sink_.add(token->id, whole, begin, end);
      section(whole.part(begin, end), parse_special);
    });
  }

 private:
  void section(const TextView& raw, bool parse_special) {
    AlignedText storage;
    const TextView view = normalise(parts_.normaliser, raw, sink_.tracked, storage);
    parts_.added.split(view.bytes, true, parse_special,
                       [&](size_t begin, size_t end, const AddedToken* token) {
                         if (token) return sink_.add(token->id, view, begin, end);
                         pretokenise(parts_.pretokeniser, view.part(begin, end), sink_.tracked,
                                     [&](const TextView& piece) { word(piece); });
                       });
  }

  void word(const TextView& piece) {
    if (!bpe_ || !bpe_->metaspace_cuts) return stretch(piece);
    for (size_t at = 0; at < piece.bytes.size();) {
      const size_t end = next_bpe_cut(*bpe_, piece.bytes, at);
      stretch(piece.part(at, end));
      at = end;
    }
  }

  void stretch(const TextView& piece) {
    if (piece.bytes.size() > WordCache::kMaxBytes) {
      run_model(piece.bytes);
      return take(piece, scratch_.tokens);
    }
    const WordCache::Key key = WordCache::make_key(piece.bytes, piece.readable_end);
    if (const WordCache::Hit hit = scratch_.cache.find(key); hit.count) {
      if (!sink_.tracked) {
        for (size_t i = 0; i < hit.count; ++i) sink_.ids.push_back(hit.ids[i]);
        return;
      }
      scratch_.tokens.clear();
      for (size_t i = 0; i < hit.count; ++i) scratch_.tokens.push_back({hit.ids[i], hit.bytes[i]});
    } else {
      run_model(piece.bytes);
      scratch_.cache.insert(key, scratch_.tokens);
    }
    take(piece, scratch_.tokens);
  }

  void run_model(std::string_view word) {
    scratch_.tokens.clear();
    if (bpe_) {
      encode_bpe(*bpe_, parts_.vocabulary, word, scratch_.bpe, scratch_.tokens);
    } else if (const auto* unigram = std::get_if<UnigramModel>(&parts_.model)) {
      encode_unigram(*unigram, word, scratch_.unigram, scratch_.tokens);
    } else if (const auto* pieces = std::get_if<WordPieceModel>(&parts_.model)) {
      encode_wordpiece(*pieces, parts_.vocabulary, word, scratch_.tokens);
    } else {
      encode_wordlevel(std::get<WordLevelModel>(parts_.model), parts_.vocabulary, word, scratch_.tokens);
    }
  }

  void take(const TextView& piece, const std::vector<ModelToken>& tokens) {
    size_t at = 0;
    for (const ModelToken& token : tokens) {
      sink_.add(token.id, piece, at, at + token.bytes);
      at += token.bytes;
    }
  }

  const TokenizerParts& parts_;
  const BpeModel* bpe_;
  EncodeScratch& scratch_;
  TokenSink& sink_;
};

}  // namespace

void encode_text(const TokenizerParts& parts, std::string_view text, EncodeOptions options,
                 EncodeScratch& scratch, TokenSink& sink) {
  sink.ids.reserve(text.size() / 3 + 8);
  Encoder(parts, scratch, sink).text(text, options.parse_special);
  const auto token = [&](int32_t id) { return parts.added.by_id(id) ? std::string_view() : parts.text(id); };
  postprocess(parts.postprocessor, options.add_special, text, token, sink);
}

}  // namespace tenon
