// The pre-tokeniser stage: cuts normalised text into the words the model sees one at a time. Steps run one
// inside the other, each on the pieces of the step before; what each does is what the element of the same
// name does in tokenizers.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "text/pattern.h"
#include "text/text_view.h"
#include "text/unicode.h"

namespace tenon {

enum class SplitBehaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct PretokeniseSplit {
  Pattern pattern;
  SplitBehaviour behaviour = SplitBehaviour::isolated;
  bool invert = false;  // the stretches between the matches count as the matches
};
// Splits at single characters of some kind.
struct PretokeniseChars {
  CharClass classes = 0;            // any of these
  bool ascii_punctuation = false;   // ... or ASCII characters Unicode calls symbols ($ + < = > ^ ` | ~)
  uint32_t character = UINT32_MAX;  // ... or this one
  SplitBehaviour behaviour = SplitBehaviour::isolated;
};
// Runs of word characters and runs of others that are not white space; white space goes.
struct PretokeniseWhitespace {};
struct PretokeniseFixedLength {
  int64_t chars = 5;
};
struct PretokeniseMetaspace {
  std::string mark = "\xe2\x96\x81";  // stands for a space
  enum class Prepend { never, first, always } prepend = Prepend::always;
  bool split = true;  // before each mark
};
struct PretokeniseByteLevel {
  bool add_prefix_space = false;
  bool map_bytes = true;  // spell bytes as characters; false where the model takes bytes
};

using PretokeniseStep = std::variant<PretokeniseSplit, PretokeniseChars, PretokeniseWhitespace,
                                     PretokeniseFixedLength, PretokeniseMetaspace, PretokeniseByteLevel>;

using Pretokeniser = std::vector<PretokeniseStep>;

// Calls word(piece) for each word of the text in order; none is empty. The pieces view `text` or buffers that
// live during the call.
void pretokenise(const Pretokeniser& steps, const TextView& text, bool tracked,
                 FunctionRef<void(const TextView&)> word);

}  // namespace tenon
