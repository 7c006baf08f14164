// What decoding keeps for a sequence, by layer: bytes for each token (keys and values, or a latent), the same
// for the last tokens only where a layer sees a window, and the fixed state of convolutions and recurrences.
// Read off a decoding program, so it is what is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"
#include "models/model_spec.h"

namespace tenon {

struct LayerCache {
  int64_t layer = 0;
  int64_t token_bytes = 0;    // for each token
  int64_t window_tokens = 0;  // 0: of all tokens; otherwise the last ones that are kept
  int64_t state_bytes = 0;    // for each sequence, whatever its length: windows too

  bool operator==(const LayerCache&) const = default;
};

struct CacheReport {
  std::vector<LayerCache> layers;  // those that keep something, in order
  // A sequence that grows beyond this is computed once more, because its rotary frequencies change; 0: none
  // is.
  int64_t again_beyond_tokens = 0;
  bool again_with_each_token = false;

  int64_t token_bytes() const;  // that a sequence grows by
  int64_t state_bytes() const;
};

// Of a program of build_forward() over caches.
CacheReport cache_report(const Program& decode);
// Of decoding a token at a time in a context of `context_tokens`.
CacheReport cache_report(const ModelSpec& spec, DType dtype, int64_t context_tokens);

// A line for each run of layers that keep the same.
std::string cache_report_text(const CacheReport& report);

}  // namespace tenon
