#include "base/hash.h"

#include <fmt/format.h>

namespace tenon {

std::string hash_text(uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

}  // namespace tenon
