// A value that a person may set, declared once: `--name VALUE` on a command line and `name: VALUE` in a
// recipe share this declaration, its help text, default and range. Options are bound to variables that
// outlive them; what the variable holds when the option is declared is the default. Never reads files or
// prints.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"

namespace tenon {

// An amount of memory, written as base/bytes.h reads it: "8GiB".
struct ByteSize {
  int64_t bytes = 0;
  bool operator==(const ByteSize&) const = default;
};

// The exact size in the largest binary unit that divides it: "8GiB", "1000B"; "0" for zero.
std::string byte_size_text(ByteSize size);

using StringList = std::vector<std::string>;
using IntegerMap = std::map<std::string, int64_t, std::less<>>;

// What may stand in a number option. NaN and infinity never may.
struct NumberRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_open = false;  // min itself is not allowed
  bool max_open = false;

  bool contains(double value) const;
  std::string text() const;  // "at least 1", "above 0", "at least 0 and below 1"; empty where all is allowed
};

inline NumberRange at_least(double min) {
  return {.min = min};
}
inline NumberRange above(double min) {
  return {.min = min, .min_open = true};
}
inline NumberRange between(double min, double max) {
  return {.min = min, .max = max};
}
// [0, 1)
inline NumberRange fraction() {
  return {.min = 0, .max = 1, .max_open = true};
}

// bool: a flag; true without a value. optional: told apart from a text that is given and empty. StringList:
// "a,b,c"; where `repeatable`, each use adds one whole value instead. IntegerMap: "name=8,other=16".
using OptionTarget = std::variant<bool*, int64_t*, double*, std::string*, std::optional<std::string>*,
                                  ByteSize*, StringList*, IntegerMap*>;

struct Option {
  std::string_view name;  // without dashes in front: "warmup-steps"
  OptionTarget target;
  std::string_view help;                       // one sentence, no full stop
  std::string_view value_name = {};            // in help; empty takes one that fits the type
  std::vector<std::string_view> choices = {};  // of a string option; empty allows anything
  NumberRange range = {};                      // of number options and map values
  bool repeatable = false;                     // of list options
  bool required = false;                       // must be given
  std::string_view group = {};                 // heading in help
};

// Sets the variable from text. Error: bad_argument with the option's name as subject ("--NAME" is the
// caller's wording) and, for a mistyped choice, the nearest one as hint. The variable is unchanged after an
// error.
Status set_option(const Option& option, std::string_view text);

// Checks choices and ranges of what the variable holds. Same errors.
Status check_option(const Option& option);

// The value as text that set_option() reads back to the same value; lists as "a,b".
std::string option_text(const Option& option);

// "N", "TEXT", "error|cut|skip", "SIZE"; empty for a flag.
std::string value_placeholder(const Option& option);

// The option of that name, or null.
const Option* find_option(std::span<const Option> options, std::string_view name);

std::vector<std::string_view> option_names(std::span<const Option> options);

// The shortest decimal text that reads back to the same double: "0.0002", "1e-08".
std::string number_text(double value);

}  // namespace tenon
