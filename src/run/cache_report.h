// What decoding keeps for a sequence, by layer: bytes for each token (keys and values), and the fixed state
// of convolutions and recurrences. Read off a decoding program, so it is what is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"
#include "models/model_spec.h"

namespace tenon {

struct LayerCache {
  int64_t layer = 0;
  int64_t token_bytes = 0;  // for each token
  int64_t state_bytes = 0;  // for each sequence
};

struct CacheReport {
  std::vector<LayerCache> layers;  // those that keep something, in order

  int64_t token_bytes() const;
  int64_t state_bytes() const;
};

// Of a program of build_forward() over caches.
CacheReport cache_report(const Program& decode);
CacheReport cache_report(const ModelSpec& spec, DType dtype);

// A line for each run of layers that keep the same.
std::string cache_report_text(const CacheReport& report);

}  // namespace tenon
