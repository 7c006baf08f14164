// What must hold for any bytes given to a parser. The fuzz targets (*_fuzz.cc) and the test that replays
// their corpus call the same functions; no other code does. A broken promise aborts.
#pragma once

#include <cstddef>
#include <span>

namespace tenon {

// Each returns true when the parser accepted the bytes.
bool fuzz_safetensors(std::span<const std::byte> file);
bool fuzz_gguf(std::span<const std::byte> file);
bool fuzz_json(std::span<const std::byte> file);

}  // namespace tenon
