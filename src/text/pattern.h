// A pattern of a tokenizer file: a literal string, or a regular expression in Oniguruma's syntax as
// tokenizers uses it. Known expressions run as hand-written scanners; others are compiled by PCRE2 (UTF, UCP,
// JIT).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/function_ref.h"
#include "text/word_scan.h"

namespace tenon {

class Pattern {
 public:
  static Pattern literal(std::string text);
  // Error: unsupported, with the expression as the subject, where PCRE2 cannot read it.
  static Result<Pattern> regex(std::string expression);
  // A regular expression that always goes to PCRE2: the second way to the same matches.
  static Result<Pattern> regex_by_pcre2(std::string expression);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // Calls visit(range, is_match) for the matches and the stretches between them, in order, covering the text.
  // Stretches are not empty; matches may be.
  void split(std::string_view text, FunctionRef<void(TextRange range, bool is_match)> visit) const;

  bool is_literal() const { return is_literal_; }
  const std::string& source() const { return source_; }
  // The scanner that stands for the whole expression and matches everywhere, or null.
  const WordScan* words() const { return known_ && !known_->function ? &known_->words : nullptr; }

 private:
  struct Compiled;
  Pattern();
  bool find(std::string_view text, size_t from, TextRange& match) const;

  std::string source_;
  bool is_literal_ = false;
  const KnownExpression* known_ = nullptr;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace tenon
