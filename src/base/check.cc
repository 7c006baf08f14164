#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tenon {

void check_failed(const char* file, int line, const char* condition, std::string_view detail) {
  std::fprintf(
      stderr, "tenon: bug: %s:%d: check failed: %s%s%.*s\nPlease report this with the command you ran.\n",
      file, line, condition, detail.empty() ? "" : ": ", static_cast<int>(detail.size()), detail.data());
  std::abort();
}

}  // namespace tenon
