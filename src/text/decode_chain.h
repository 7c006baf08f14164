// The decoder stage: token texts back to text, one token at a time. Each step gives out what can no longer
// change and holds the rest, so decoding a stream and decoding a list are the same code and give the same
// text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/pattern.h"

namespace tenon {

// What each does is what the decoder of the same name does in tokenizers.
struct DecodeByteLevel {};
struct DecodeByteFallback {};
struct DecodeFuse {};
struct DecodeJoin {};  // no decoder: tokens with spaces between
struct DecodeMetaspace {
  std::string mark = "\xe2\x96\x81";
  bool drop_first = true;  // the mark that was put before the text
};
struct DecodeWordPiece {
  std::string prefix = "##";
  std::string word_prefix;  // as WordPieceModel::word_prefix
  bool cleanup = true;
};
struct DecodeBpe {
  std::string suffix = "</w>";
};
struct DecodeCtc {
  std::string pad = "<pad>";
  std::string word_delimiter = "|";
  bool cleanup = true;
};
struct DecodeReplace {
  Pattern pattern;
  std::string content;
};
struct DecodeStrip {
  std::string content;  // one character
  int64_t start = 0;    // how many at most at the start, at the end
  int64_t stop = 0;
};

using DecodeStep = std::variant<DecodeByteLevel, DecodeByteFallback, DecodeFuse, DecodeJoin, DecodeMetaspace,
                                DecodeWordPiece, DecodeBpe, DecodeCtc, DecodeReplace, DecodeStrip>;
using Decoder = std::vector<DecodeStep>;

// The bytes of one token in the middle of a text, also where they are no whole character.
std::string bytes_of_token(const Decoder& steps, std::string_view token);

class DecodeChain {
 public:
  // `steps` must outlive the chain.
  explicit DecodeChain(const Decoder& steps);

  // Appends to `out` the text that has become certain.
  void push(std::string_view token, std::string& out);
  // Appends the rest; the chain is then as new.
  void finish(std::string& out);

 private:
  struct State {
    bool fused = false;  // what comes in are parts of one token
    bool first = true;
    int64_t count = 0;
    std::string held;
    std::optional<std::string> last;
  };
  struct Push;
  struct Finish;

  void reset();
  void emit(size_t step, std::string_view token);  // the output of step - 1
  void flush_bytes(size_t step);
  void write(std::string_view text);

  const Decoder& steps_;
  std::vector<State> states_;
  std::string tail_;  // bytes of a character still to be completed
  std::string* out_ = nullptr;
};

}  // namespace tenon
