// The options of commands that read rows: where they are, and what their text is rendered with. One wording
// for all commands.
#pragma once

#include <string>

#include "base/option.h"

namespace tenon {

// --data; may be given several times, each with a weight where sources are mixed.
inline Option data_option(StringList* target, bool required) {
  return {.name = "data",
          .target = target,
          .help = "Files, folders or patterns, each with :WEIGHT where they are mixed",
          .value_name = "FILE",
          .repeatable = true,
          .required = required};
}

// --columns
inline Option columns_option(StringList* target, std::string_view group = {}) {
  return {.name = "columns",
          .target = target,
          .help = "Columns under other names than a row format knows",
          .value_name = "KEY=COLUMN,...",
          .group = group};
}

// --clock
inline Option clock_option(std::string* target, std::string_view group = {}) {
  return {.name = "clock",
          .target = target,
          .help = "The time that the chat template is told where it asks; now if not given",
          .value_name = "TIME",
          .group = group};
}

}  // namespace tenon
