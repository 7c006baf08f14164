#include "io/json_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/json.h"
#include "io/describe.h"
#include "io/write_file.h"

namespace tenon {
namespace {

constexpr int kDeepest = 256;  // nesting; copying and printing a json value recurse

// Python's non-finite numbers travel through the parser as strings that start with a zero byte.
struct NonFinite {
  std::string_view literal;
  std::string_view escaped;  // what the parser is given
  std::string_view marker;   // what it makes of it
  double value;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr NonFinite kNonFinite[] = {
    {"-Infinity", R"("\u0000-inf")", {"\0-inf", 5}, -kInfinity},
    {"Infinity", R"("\u0000inf")", {"\0inf", 4}, kInfinity},
    {"NaN", R"("\u0000nan")", {"\0nan", 4}, std::numeric_limits<double>::quiet_NaN()},
};

std::string position(std::string_view text, std::string_view subject, size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::ranges::count(before, '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? before.size() + 1 : before.size() - start;
  return fmt::format("{}:{}:{}", subject, line, column);
}

// One pass outside strings: where the nesting gets too deep, and the text with non-finite numbers replaced
// (empty where there is none).
struct Prepared {
  std::optional<size_t> too_deep_at;
  std::string replaced;
};

Prepared prepare(std::string_view text) {
  Prepared out;
  int depth = 0;
  bool in_string = false;
  size_t copied = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++i;
    if (in_string) continue;
    if (c == '{' || c == '[') {
      if (++depth > kDeepest) return {.too_deep_at = i, .replaced = {}};
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == '-' || c == 'I' || c == 'N') {
      for (const NonFinite& number : kNonFinite) {
        if (!text.substr(i).starts_with(number.literal)) continue;
        out.replaced.append(text, copied, i - copied).append(number.escaped);
        copied = i + number.literal.size();
        i = copied - 1;
        break;
      }
    }
  }
  if (copied > 0) out.replaced.append(text, copied);
  return out;
}

// Undoes what prepare() replaced.
void restore_non_finite(Json& parsed) {
  for (Json& element : parsed) restore_non_finite(element);
  if (!parsed.is_string()) return;
  for (const NonFinite& number : kNonFinite) {
    if (parsed.text() != number.marker) continue;
    parsed = number.value;
    break;
  }
}

// The library's wording without its prefix and position.
std::string reason(std::string_view what) {
  const size_t start = what.find("syntax error");
  return printable(start == std::string_view::npos ? what : what.substr(start));
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view subject) {
  constexpr std::string_view kHint = "Correct the file, or download it again if it was cut short.";
  const Prepared prepared = prepare(text);
  if (prepared.too_deep_at) {
    return bad_file(fmt::format("not acceptable JSON: nested more than {} deep", kDeepest),
                    position(text, subject, *prepared.too_deep_at), std::string(kHint));
  }
  const std::string_view input = prepared.replaced.empty() ? text : prepared.replaced;
  try {
    Json parsed = Json::parse(input);
    if (!prepared.replaced.empty()) restore_non_finite(parsed);
    return parsed;
  } catch (const JsonError& error) {
    const size_t at = std::min(error.byte() > 0 ? error.byte() - 1 : 0, input.size());
    return bad_file(fmt::format("not valid JSON: {}", reason(error.what())), position(input, subject, at),
                    std::string(kHint));
  }
}

Result<Json> read_json_file(const std::string& path, int64_t max_bytes) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path, max_bytes));
  return parse_json(text, path);
}

}  // namespace tenon
