// libFuzzer target for text/chat_template.h. Its corpus is tests/fuzz/chat_template_fuzz.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/chat_template_fuzz_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tenon::fuzz_chat_template(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
