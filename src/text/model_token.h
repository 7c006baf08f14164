// What a model makes of a word: an id and how many of the word's bytes it takes.
#pragma once

#include <cstdint>

namespace tenon {

struct ModelToken {
  int32_t id = 0;
  uint32_t bytes = 0;
};

}  // namespace tenon
