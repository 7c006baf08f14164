#include "text/word_scan.h"

namespace tenon {
namespace {

// Reads characters with their classes.
struct Reader {
  const CharClasses& classes;
  const char* data;
  size_t size;

  struct Step {
    CharClass kind = 0;  // 0 at the end of the text
    size_t next = 0;
  };
  Step at(size_t pos) const {
    if (pos >= size) return {0, pos};
    const auto byte = static_cast<unsigned char>(data[pos]);
    if (byte < 128) return {classes.ascii(byte), pos + 1};
    const Char c = decode_char(data + pos, data + size);
    return {classes.of(c.value), pos + static_cast<size_t>(c.bytes)};
  }
  // The end of the run of characters with any of `kinds`.
  size_t run(size_t pos, CharClass kinds) const {
    for (Step step = at(pos); step.kind & kinds; step = at(pos)) pos = step.next;
    return pos;
  }
  // The end of the run of characters without any of `kinds`.
  size_t run_without(size_t pos, CharClass kinds) const {
    for (Step step = at(pos); step.kind && !(step.kind & kinds); step = at(pos)) pos = step.next;
    return pos;
  }
  // As run(), at most `limit` characters where it is not 0.
  size_t digits(size_t pos, int limit) const {
    int count = 0;
    for (Step step = at(pos); step.kind & kNumber; step = at(pos)) {
      pos = step.next;
      if (++count == limit) break;
    }
    return pos;
  }
  bool is(size_t pos, char c) const { return pos < size && data[pos] == c; }
};

// Spaces and line separators have no category here, so that a class of 0 can mean the end.
static_assert(kSpace != 0);

// 's 't 're 've 'm 'll 'd; in any case also U+017F, which folds to s. 0 where there is none.
size_t contraction(const Reader& r, size_t pos, WordScan::Contractions kind) {
  if (kind == WordScan::Contractions::none || !r.is(pos, '\'')) return 0;
  const bool any_case = kind == WordScan::Contractions::any_case;
  const auto letter = [&](size_t at) -> char {
    if (at >= r.size) return 0;
    const char c = r.data[at];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c;
  };
  const char a = letter(pos + 1);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if (any_case && a == '\xc5' && letter(pos + 2) == '\xbf') return 3;
  const char b = letter(pos + 2);
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
  return 0;
}

// \s+(?!\S)|\s+ and, with `newlines`, \s*[\r\n]+ before it.
size_t white_space(const Reader& r, size_t pos, bool newlines) {
  size_t end = pos;
  size_t last = pos;
  size_t after_newline = pos;
  for (Reader::Step step = r.at(pos); step.kind & kSpace; step = r.at(end)) {
    last = end;
    end = step.next;
    if (step.kind & kNewline) after_newline = end;
  }
  if (newlines && after_newline > pos) return after_newline;
  return end == r.size || last == pos ? end : last;
}

size_t scan_gpt2(const WordScan& scan, const Reader& r, size_t pos) {
  if (const size_t n = contraction(r, pos, scan.contractions)) return pos + n;
  const size_t body = r.is(pos, ' ') ? pos + 1 : pos;
  const Reader::Step first = r.at(body);
  if (first.kind & scan.letters) return r.run(first.next, scan.letters);
  if (first.kind & kNumber)
    return scan.max_digits ? r.digits(body, scan.max_digits) : r.run(first.next, kNumber);
  if (first.kind && !(first.kind & kSpace)) return r.run_without(first.next, kSpace | scan.letters | kNumber);
  return white_space(r, pos, false);
}

// Numbers, symbols and white space: what cl100k and o200k share. Something always matches.
size_t scan_rest(const WordScan& scan, const Reader& r, size_t pos) {
  const Reader::Step first = r.at(pos);
  if (first.kind & kNumber) return r.digits(pos, scan.max_digits);
  const size_t body = r.is(pos, ' ') ? pos + 1 : pos;
  size_t end = r.run_without(body, kSpace | scan.letters | kNumber);
  if (end == body) return white_space(r, pos, true);
  while (r.is(end, '\r') || r.is(end, '\n') || (scan.slash_after_symbols && r.is(end, '/'))) ++end;
  return end;
}

size_t scan_cl100k(const WordScan& scan, const Reader& r, size_t pos) {
  const Reader::Step first = r.at(pos);
  if (first.kind & kLetter) return r.run(first.next, scan.letters);
  if (const size_t n = contraction(r, pos, scan.contractions)) return pos + n;
  if (!(first.kind & (kNewline | kNumber))) {
    const size_t end = r.run(first.next, scan.letters);
    if (end > first.next || (first.kind & scan.letters)) return end;
  }
  return scan_rest(scan, r, pos);
}

// [upperish]*[lowerish]+ from `pos`; `pos` where it does not match.
size_t lower_word(const Reader& r, size_t pos) {
  size_t end = pos;
  size_t after_lower = pos;  // after the last character of the run that is lowerish too
  Reader::Step step = r.at(end);
  for (; step.kind & kUpperish; step = r.at(end)) {
    end = step.next;
    if (step.kind & kLowerish) after_lower = end;
  }
  return step.kind & kLowerish ? r.run(end, kLowerish) : after_lower;
}

// [upperish]+[lowerish]* from `pos`; `pos` where it does not match.
size_t upper_word(const Reader& r, size_t pos) {
  const size_t end = r.run(pos, kUpperish);
  return end == pos ? pos : r.run(end, kLowerish);
}

size_t scan_o200k(const WordScan& scan, const Reader& r, size_t pos) {
  const Reader::Step first = r.at(pos);
  const bool may_prefix = !(first.kind & (kNewline | kLetter | kNumber));
  const auto finish = [&](size_t end) { return end + contraction(r, end, scan.contractions); };
  for (const auto word : {lower_word, upper_word}) {
    if (may_prefix) {
      const size_t end = word(r, first.next);
      if (end > first.next) return finish(end);
    }
    const size_t end = word(r, pos);
    if (end > pos) return finish(end);
  }
  return scan_rest(scan, r, pos);
}

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// The match at `pos`, or `pos`.
size_t deepseek_at(const Reader& r, size_t pos) {
  if (is_ascii_punctuation(r.data[pos])) {
    const size_t end = r.run(pos + 1, kAsciiLetter);
    if (end > pos + 1) return end;
  }
  const Reader::Step first = r.at(pos);
  constexpr CharClass kLetters = kLetter | kMark;
  if (!(first.kind & (kNewline | kLetter | kPunctuation | kSymbol))) {
    const size_t end = r.run(first.next, kLetters);
    if (end > first.next) return end;
  }
  if (first.kind & kLetters) return r.run(pos, kLetters);
  const size_t body = r.is(pos, ' ') ? pos + 1 : pos;
  const size_t end = r.run(body, kPunctuation | kSymbol);
  if (end > body) return r.run(end, kNewline);
  return first.kind & kSpace ? white_space(r, pos, true) : pos;
}

Reader reader_of(std::string_view text) {
  return {CharClasses::get(), text.data(), text.size()};
}

using C = WordScan::Contractions;

constexpr WordScan kGpt2{WordRule::gpt2, kLetter, 0, C::lower, false};

constexpr WordScan cl100k(CharClass letters, int digits) {
  return {WordRule::cl100k, letters, digits, C::any_case, false};
}

constexpr WordScan o200k(int digits, C contractions) {
  return {WordRule::o200k, kLetter, digits, contractions, true};
}

// Expressions as the files spell them; several spellings of one rule are in use.
const KnownExpression kKnown[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", kGpt2},
    // Llama 3, OLMo 2, GLM 4, and cl100k itself in tiktoken's two spellings.
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     cl100k(kLetter, 3)},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     cl100k(kLetter, 3)},
    // Qwen 2 and 3, and the later form that keeps marks with letters.
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     cl100k(kLetter, 1)},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     cl100k(kLetter | kMark, 1)},
    // gpt-oss and GPT-4o; Mistral's Tekken.
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     o200k(3, C::any_case)},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     o200k(1, C::none)},
    // DeepSeek V3, three expressions one after the other.
    {R"(\p{N}{1,3})", {}, scan_digits_3},
    {"[一-龥\u3040-ゟ゠-ヿ]+", {}, scan_cjk_kana},
    {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
     "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
     {},
     scan_deepseek},
};

}  // namespace

const std::string_view kGpt2Expression = kKnown[0].expression;

std::span<const KnownExpression> known_expressions() {
  return kKnown;
}

const KnownExpression* find_known_expression(std::string_view expression) {
  for (const KnownExpression& known : kKnown) {
    if (known.expression == expression) return &known;
  }
  return nullptr;
}

size_t scan_word(const WordScan& scan, std::string_view text, size_t from) {
  const Reader reader = reader_of(text);
  switch (scan.rule) {
    case WordRule::gpt2:
      return scan_gpt2(scan, reader, from);
    case WordRule::cl100k:
      return scan_cl100k(scan, reader, from);
    case WordRule::o200k:
      break;
  }
  return scan_o200k(scan, reader, from);
}

bool scan_deepseek(std::string_view text, size_t from, TextRange& match) {
  const Reader reader = reader_of(text);
  for (size_t pos = from; pos < text.size(); pos = reader.at(pos).next) {
    const size_t end = deepseek_at(reader, pos);
    if (end == pos) continue;
    match = {pos, end};
    return true;
  }
  return false;
}

bool scan_digits_3(std::string_view text, size_t from, TextRange& match) {
  const Reader reader = reader_of(text);
  const size_t begin = reader.run_without(from, kNumber);
  if (begin == text.size()) return false;
  match = {begin, reader.digits(begin, 3)};
  return true;
}

bool scan_cjk_kana(std::string_view text, size_t from, TextRange& match) {
  const char* end = text.data() + text.size();
  const auto matches = [](uint32_t c) {
    return (c >= 0x4e00 && c <= 0x9fa5) || (c >= 0x3040 && c <= 0x30ff);
  };
  bool found = false;
  for (const char* p = text.data() + from; p < end;) {
    if (static_cast<unsigned char>(*p) < 128 && !found) {
      ++p;
      continue;
    }
    const Char c = decode_char(p, end);
    const auto at = static_cast<size_t>(p - text.data());
    p += c.bytes;
    if (matches(c.value)) {
      if (!found) match.begin = at;
      found = true;
      match.end = at + static_cast<size_t>(c.bytes);
    } else if (found) {
      break;
    }
  }
  return found;
}

}  // namespace tenon
