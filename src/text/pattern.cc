#include "text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tenon {
namespace {

// White_Space, as Oniguruma's \s; PCRE2's own \s adds U+180E.
constexpr std::string_view kSpaceSet =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

constexpr std::string_view kWordSet = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc})";

// Puts Oniguruma's meaning into PCRE2's syntax: \s, \w and their opposites by set, \h as a hexadecimal digit,
// \uHHHH as \x{HHHH}. Sets inside sets and && have no counterpart.
class Translator {
 public:
  explicit Translator(std::string_view expression) : in_(expression) {}

  Result<std::string> run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\' && at_ + 1 < in_.size()) {
        RETURN_IF_ERROR(escape());
      } else if (in_set_) {
        RETURN_IF_ERROR(set_character(c));
      } else {
        out_.push_back(c);
        ++at_;
        if (c == '[') open_set();
      }
    }
    return std::move(out_);
  }

 private:
  void open_set() {
    in_set_ = true;
    if (at_ < in_.size() && in_[at_] == '^') out_.push_back(in_[at_++]);
    // A bracket right after the opening is a literal.
    if (at_ < in_.size() && in_[at_] == ']') out_.push_back(in_[at_++]);
  }

  Status set_character(char c) {
    if (c == '[' && in_.substr(at_).starts_with("[:")) {
      const size_t end = std::min(in_.find(":]", at_), in_.size() - 2);
      out_.append(in_.substr(at_, end + 2 - at_));
      at_ = end + 2;
      return {};
    }
    if (c == '[' || in_.substr(at_).starts_with("&&")) {
      return unsupported("regular expression has a set inside a set", std::string(in_));
    }
    if (c == ']') in_set_ = false;
    out_.push_back(c);
    ++at_;
    return {};
  }

  void put_set(std::string_view set, bool negated) {
    if (in_set_) {
      out_.append(set);
    } else {
      out_.append(negated ? "[^" : "[").append(set).append("]");
    }
  }

  Status escape() {
    const char kind = in_[at_ + 1];
    at_ += 2;
    if (in_set_ && kind == 'W') {
      return unsupported("regular expression has \\W inside a set", std::string(in_));
    }
    if (in_set_ && kind == 'S') {
      out_ += "\\S\\x{180e}";  // the one character that only PCRE2 takes for a space
      return {};
    }
    if (kind == 's' || kind == 'S') {
      put_set(kSpaceSet, kind == 'S');
    } else if (kind == 'w' || kind == 'W') {
      put_set(kWordSet, kind == 'W');
    } else if (kind == 'h') {
      put_set("0-9a-fA-F", false);
    } else if (kind == 'u' && at_ + 4 <= in_.size()) {
      out_ += fmt::format("\\x{{{}}}", in_.substr(at_, 4));
      at_ += 4;
    } else {
      out_.push_back('\\');
      out_.push_back(kind);
    }
    return {};
  }

  std::string_view in_;
  size_t at_ = 0;
  bool in_set_ = false;
  std::string out_;
};

// Text with U+FFFD for each invalid byte, and the way back.
struct Repaired {
  std::string text;
  std::vector<size_t> original;  // by byte of text, and one past the end
};

Repaired repair(std::string_view text) {
  Repaired out;
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Char c = decode_char(p, end);
    const size_t before = out.text.size();
    append_char(out.text, c.valid() ? c.value : 0xfffd);
    const auto at = static_cast<size_t>(p - text.data());
    for (size_t i = before; i < out.text.size(); ++i) out.original.push_back(at);
    p += c.bytes;
  }
  out.original.push_back(text.size());
  return out;
}

struct MatchData {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 * 1024, 16 * 1024 * 1024, nullptr);
  MatchData() { pcre2_jit_stack_assign(context, nullptr, stack); }
  ~MatchData() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
};

}  // namespace

struct Pattern::Compiled {
  pcre2_code* code = nullptr;
  ~Compiled() { pcre2_code_free(code); }

  // `text` is valid UTF-8.
  bool find(std::string_view text, size_t from, TextRange& match) const {
    thread_local MatchData scratch;
    const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    int rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, scratch.data, scratch.context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
      rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, scratch.data,
                       scratch.context);
    }
    if (rc < 0) return false;
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch.data);
    match = {ends[0], std::max(ends[0], ends[1])};
    return true;
  }
};

Pattern::Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.source_ = std::move(text);
  pattern.is_literal_ = true;
  return pattern;
}

Result<Pattern> Pattern::regex(std::string expression) {
  if (const KnownExpression* known = find_known_expression(expression)) {
    Pattern pattern;
    pattern.source_ = std::move(expression);
    pattern.known_ = known;
    return pattern;
  }
  return regex_by_pcre2(std::move(expression));
}

Result<Pattern> Pattern::regex_by_pcre2(std::string expression) {
  ASSIGN_OR_RETURN(const std::string translated, Translator(expression).run());
  int error = 0;
  PCRE2_SIZE at = 0;
  Pattern pattern;
  pattern.compiled_ = std::make_unique<Compiled>();
  pattern.compiled_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &at, nullptr);
  if (!pattern.compiled_->code) {
    char message[256];
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
    return unsupported(fmt::format("regular expression cannot be compiled: {}", message), expression);
  }
  pcre2_jit_compile(pattern.compiled_->code, PCRE2_JIT_COMPLETE);
  pattern.source_ = std::move(expression);
  return pattern;
}

bool Pattern::find(std::string_view text, size_t from, TextRange& match) const {
  if (is_literal_) {
    const size_t at = source_.empty() ? std::string_view::npos : text.find(source_, from);
    if (at == std::string_view::npos) return false;
    match = {at, at + source_.size()};
    return true;
  }
  if (compiled_) return compiled_->find(text, from, match);
  if (from >= text.size()) return false;
  if (known_->function) return known_->function(text, from, match);
  match = {from, scan_word(known_->words, text, from)};
  return true;
}

void Pattern::split(std::string_view text, FunctionRef<void(TextRange, bool)> visit) const {
  if (compiled_ && !is_valid_utf8(text)) {
    const Repaired repaired = repair(text);
    split(repaired.text, [&](TextRange range, bool is_match) {
      visit({repaired.original[range.begin], repaired.original[range.end]}, is_match);
    });
    return;
  }
  size_t done = 0;
  size_t from = 0;
  TextRange match;
  while (from <= text.size() && find(text, from, match)) {
    if (match.begin > done) visit({done, match.begin}, false);
    visit(match, true);
    done = from = match.end;
    if (match.end > match.begin) continue;
    // After an empty match the search goes on one character later.
    const char* at = text.data() + from;
    from +=
        match.end < text.size() ? static_cast<size_t>(decode_char(at, text.data() + text.size()).bytes) : 1;
  }
  if (done < text.size()) visit({done, text.size()}, false);
}

}  // namespace tenon
