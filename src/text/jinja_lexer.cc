// The two modes of the lexer: template data up to the next tag, and the tokens inside a tag.
#include "text/jinja_lexer.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>

#include "text/jinja_literal.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (pos_ < source_.size()) lex_data();
    push(TokenKind::end, pos_);
    return std::move(tokens_);
  }

 private:
  // Lines and columns are found by moving forward from the last asked offset.
  Position position(size_t offset) {
    if (offset < seen_) {
      seen_ = 0;
      at_ = Position{};
    }
    while (seen_ < offset) {
      const auto c = static_cast<unsigned char>(source_[seen_++]);
      if (c == '\n') {
        ++at_.line;
        at_.column = 1;
      } else if ((seen_ >= source_.size() || (static_cast<unsigned char>(source_[seen_]) & 0xc0) != 0x80)) {
        ++at_.column;
      }
    }
    return at_;
  }

  Token& push(TokenKind kind, size_t offset) {
    tokens_.emplace_back();
    tokens_.back().kind = kind;
    tokens_.back().at = position(offset);
    return tokens_.back();
  }

  void push_data(std::string_view text, size_t offset) {
    if (!text.empty()) push(TokenKind::data, offset).text = std::string(text);
  }

  [[noreturn]] void error(std::string message, size_t offset) {
    fail_syntax(std::move(message), position(offset));
  }

  bool at(std::string_view text, size_t offset) const { return source_.substr(offset, text.size()) == text; }

  size_t skip_space(size_t offset) const {
    while (offset < source_.size()) {
      size_t next = offset;
      if (!is_space(next_code_point(source_, next))) break;
      offset = next;
    }
    return offset;
  }

  // The text before a tag, as its sign and lstrip_blocks leave it.
  std::string_view strip_before(std::string_view text, char sign, bool variable) const {
    if (sign == '-') return strip_right(text);
    if (sign == '+' || variable) return text;
    const size_t newline = text.rfind('\n');
    const size_t line = newline == kNone ? 0 : newline + 1;
    if ((line > 0 || line_starting_) && line < text.size() && strip_left(text.substr(line)).empty()) {
      return text.substr(0, line);
    }
    return text;
  }

  void finish(size_t end) {
    line_starting_ = end > 0 && source_[end - 1] == '\n';
    pos_ = end;
  }

  // `offset` is just past "{%": the end of a "raw" tag, if this is one.
  std::optional<size_t> raw_end(size_t offset) const {
    size_t p = skip_space(offset);
    if (!at("raw", p)) return std::nullopt;
    p = skip_space(p + 3);
    if (at("-%}", p)) return skip_space(p + 3);
    if (at("%}", p)) return p + 2;
    return std::nullopt;
  }

  char sign_at(size_t offset) const {
    const char c = offset < source_.size() ? source_[offset] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  void lex_data() {
    size_t tag = pos_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == kNone || tag + 1 >= source_.size()) {
        push_data(source_.substr(pos_), pos_);
        finish(source_.size());
        return;
      }
      const char next = source_[tag + 1];
      if (next == '%' || next == '{' || next == '#') break;
      ++tag;
    }
    const char type = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    const size_t inside = tag + 2 + (sign != '\0' ? 1 : 0);
    const size_t start = pos_;
    push_data(strip_before(source_.substr(start, tag - start), sign, type == '{'), start);
    if (type == '#') {
      lex_comment(tag, inside);
    } else if (type == '{') {
      push(TokenKind::variable_begin, tag);
      lex_tag(inside, true);
    } else if (auto raw = raw_end(inside)) {
      lex_raw(tag, *raw);
    } else {
      push(TokenKind::block_begin, tag);
      lex_tag(inside, false);
    }
  }

  // The end of a closing mark such as "%}" or "#}" with its sign and, without one, the line end it swallows.
  std::optional<size_t> close_at(std::string_view mark, size_t p) const {
    if (at("+", p) && at(mark, p + 1)) return p + 1 + mark.size();
    if (at("-", p) && at(mark, p + 1)) return skip_space(p + 1 + mark.size());
    if (at(mark, p)) return p + mark.size() + (at("\n", p + mark.size()) ? 1 : 0);
    return std::nullopt;
  }

  void lex_comment(size_t tag, size_t inside) {
    const size_t mark = source_.find("#}", inside);
    if (mark == kNone) error("Missing end of comment tag", tag);
    const bool sign = mark > inside && (source_[mark - 1] == '-' || source_[mark - 1] == '+');
    finish(*close_at("#}", sign ? mark - 1 : mark));
  }

  void lex_raw(size_t tag, size_t inside) {
    line_starting_ = inside > 0 && source_[inside - 1] == '\n';
    for (size_t p = source_.find("{%", inside); p != kNone; p = source_.find("{%", p + 1)) {
      const char sign = sign_at(p + 2);
      size_t q = skip_space(p + 2 + (sign != '\0' ? 1 : 0));
      if (!at("endraw", q)) continue;
      q = skip_space(q + 6);
      if (auto end = close_at("%}", q)) {
        push_data(strip_before(source_.substr(inside, p - inside), sign, false), inside);
        finish(*end);
        return;
      }
    }
    error("Missing end of raw directive", tag);
  }

  bool lex_tag_end(bool variable) {
    if (!variable) {
      if (auto end = close_at("%}", pos_)) {
        push(TokenKind::block_end, pos_);
        finish(*end);
        return true;
      }
      return false;
    }
    const bool minus = at("-}}", pos_);
    if (!minus && !at("}}", pos_)) return false;
    push(TokenKind::variable_end, pos_);
    finish(minus ? skip_space(pos_ + 3) : pos_ + 2);
    return true;
  }

  void lex_tag(size_t inside, bool variable) {
    pos_ = inside;
    std::string closers;
    while (pos_ < source_.size()) {
      if (closers.empty() && lex_tag_end(variable)) return;
      const size_t after_space = skip_space(pos_);
      if (after_space != pos_) {
        pos_ = after_space;
        continue;
      }
      if (!lex_number() && !lex_name() && !lex_string() && !lex_operator(closers)) {
        size_t next = pos_;
        std::string c;
        append_code_point(c, next_code_point(source_, next));
        error(fmt::format("unexpected char {} at {}", quote(c), code_point_count(source_.substr(0, pos_))),
              pos_);
      }
    }
  }

  bool lex_number() {
    if (!is_ascii_digit(source_[pos_])) return false;
    const bool after_dot = pos_ > 0 && source_[pos_ - 1] == '.';
    const size_t real_end = after_dot ? 0 : scan_real(source_, pos_);
    if (real_end != 0) {
      push(TokenKind::real, pos_).real = parse_real_literal(source_.substr(pos_, real_end - pos_));
      pos_ = real_end;
      return true;
    }
    const size_t end = scan_integer(source_, pos_);
    const auto value = parse_integer_literal(source_.substr(pos_, end - pos_));
    if (!value) {
      Failure failure{ErrorCode::unsupported, "Unsupported", "an integer does not fit 64 bits",
                      position(pos_)};
      throw failure;
    }
    push(TokenKind::integer, pos_).integer = *value;
    pos_ = end;
    return true;
  }

  bool lex_name() {
    size_t end = pos_;
    while (end < source_.size()) {
      size_t next = end;
      const uint32_t c = next_code_point(source_, next);
      if (!is_word(c) && !is_name_mark(c)) break;
      end = next;
    }
    if (end == pos_) return false;
    const std::string_view name = source_.substr(pos_, end - pos_);
    if (!is_identifier(name)) error("Invalid character in identifier", pos_);
    push(TokenKind::name, pos_).text = std::string(name);
    pos_ = end;
    return true;
  }

  bool lex_string() {
    const char mark = source_[pos_];
    if (mark != '\'' && mark != '"') return false;
    size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != mark) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return false;
    std::string problem;
    auto text = unescape_literal(source_.substr(pos_ + 1, end - pos_ - 1), problem);
    if (!text) error(problem, pos_);
    push(TokenKind::string, pos_).text = std::move(*text);
    pos_ = end + 1;
    return true;
  }

  bool lex_operator(std::string& closers) {
    static constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                      ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (std::string_view op : kOperators) {
      if (!at(op, pos_)) continue;
      balance(op[0], closers);
      push(TokenKind::op, pos_).text = std::string(op);
      pos_ += op.size();
      return true;
    }
    return false;
  }

  void balance(char c, std::string& closers) {
    if (c == '{') closers += '}';
    if (c == '(') closers += ')';
    if (c == '[') closers += ']';
    if (c != '}' && c != ')' && c != ']') return;
    if (closers.empty()) error(fmt::format("unexpected '{}'", c), pos_);
    if (closers.back() != c) error(fmt::format("unexpected '{}', expected '{}'", c, closers.back()), pos_);
    closers.pop_back();
  }

  std::string_view source_;
  size_t pos_ = 0;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
  size_t seen_ = 0;
  Position at_;
};

}  // namespace

std::string normalize_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::data:
      return "template data / text";
    case TokenKind::block_begin:
      return "begin of statement block";
    case TokenKind::block_end:
      return "end of statement block";
    case TokenKind::variable_begin:
      return "begin of print statement";
    case TokenKind::variable_end:
      return "end of print statement";
    case TokenKind::name:
    case TokenKind::op:
      return token.text;
    case TokenKind::string:
      return "string";
    case TokenKind::integer:
      return "integer";
    case TokenKind::real:
      return "float";
    case TokenKind::end:
      return "end of template";
  }
  return "";
}

}  // namespace tenon::jinja
