// libFuzzer target for io/json_file.h. Its corpus is tests/fuzz/json_fuzz.
#include <cstddef>
#include <cstdint>

#include "io/fuzz_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tenon::fuzz_json(std::as_bytes(std::span(data, size)));
  return 0;
}
