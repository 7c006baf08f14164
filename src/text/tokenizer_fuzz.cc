// libFuzzer target for the tokenizer readers and encode(). Its corpus is tests/fuzz/tokenizer_fuzz.
#include <cstddef>
#include <cstdint>

#include "text/tokenizer_fuzz_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tenon::fuzz_tokenizer(std::as_bytes(std::span(data, size)));
  return 0;
}
