// What must hold for any bytes given to the tokenizer's readers and to encode(). The fuzz target
// (tokenizer_fuzz.cc) and the test that replays its corpus call this; no other code does. A broken promise
// aborts.
#pragma once

#include <cstddef>
#include <span>

namespace tenon {

// The first byte chooses the reader: 'J' tokenizer.json, 'S' SentencePiece, 'G' GGUF, 'T' tiktoken, 'K'
// tekken, 'V' vocab.json (the merges follow the first byte 1). A zero byte ends the file where the reader is
// 'J', 'T', 'K' or 'V', and what follows is encoded; the other files encode a fixed text. Returns true when
// the file was accepted.
bool fuzz_tokenizer(std::span<const std::byte> input);

}  // namespace tenon
