// libFuzzer target for io/gguf.h. Its corpus is tests/fuzz/gguf_fuzz.
#include <cstddef>
#include <cstdint>

#include "io/fuzz_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tenon::fuzz_gguf(std::as_bytes(std::span(data, size)));
  return 0;
}
