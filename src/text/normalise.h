// The normaliser stage: rewrites text before it is split into words, keeping track of where each byte came
// from. Steps are plain values; what each does is what the element of the same name does in tokenizers.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "text/byte_trie.h"
#include "text/charsmap.h"
#include "text/pattern.h"
#include "text/text_view.h"

namespace tenon {

struct NormaliseForm {  // NFC, NFD, NFKC, NFKD
  bool compose = false;
  bool compatibility = false;
};
struct NormaliseReplace {
  Pattern pattern;
  std::string content;
};
struct NormalisePrepend {
  std::string text;
};
struct NormaliseStrip {
  bool left = true;
  bool right = true;
};
struct NormaliseLowercase {};
struct NormaliseStripAccents {};  // drops nonspacing marks (category Mn)
struct NormaliseNmt {};           // drops controls, turns exotic white space into spaces
struct NormaliseBytes {};         // bytes to their byte-level characters
struct NormaliseBert {
  bool clean_text = true;
  bool split_cjk = true;  // spaces around ideographs
  bool strip_accents = true;
  bool lowercase = true;
};
struct NormaliseCharsmap {
  Charsmap map;
};
// What SentencePiece does besides its character map (sentencepiece/src/normalizer.cc).
struct NormaliseSentencePiece {
  Charsmap map;
  bool add_prefix = true;           // a space before the text
  bool prefix_as_suffix = false;    // ... after it
  bool remove_extra_spaces = true;  // at both ends, and runs of spaces
  bool escape_spaces = true;        // a space becomes U+2581
  ByteTrie verbatim;                // user-defined symbols, which are left as they are
};

using NormaliseStep = std::variant<NormaliseForm, NormaliseReplace, NormalisePrepend, NormaliseStrip,
                                   NormaliseLowercase, NormaliseStripAccents, NormaliseNmt, NormaliseBytes,
                                   NormaliseBert, NormaliseCharsmap, NormaliseSentencePiece>;

using Normaliser = std::vector<NormaliseStep>;

// The normalised text: a view of `storage` or, where nothing changes, of the text itself. `tracked` asks for
// origins.
TextView normalise(const Normaliser& steps, const TextView& text, bool tracked, AlignedText& storage);

// The steps that need more than a line or two; each returns the rewritten text.
AlignedText normalise_form(const NormaliseForm& step, const TextView& text, bool tracked);
AlignedText normalise_lowercase(const TextView& text, bool tracked);
AlignedText normalise_strip_accents(const TextView& text, bool tracked);
AlignedText normalise_nmt(const TextView& text, bool tracked);
AlignedText normalise_bert(const NormaliseBert& step, const TextView& text, bool tracked);
AlignedText normalise_charsmap(const Charsmap& map, const TextView& text, bool tracked);
AlignedText normalise_sentencepiece(const NormaliseSentencePiece& step, const TextView& text, bool tracked);

}  // namespace tenon
