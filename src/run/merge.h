// Folds an adapter into its base: W + scale * B·A, one weight at a time, into a new Hugging Face folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "device/device.h"

namespace tenon {

struct MergeRequest {
  std::string model;
  std::string adapter;
  std::string out;             // folder to make
  std::string dtype = "auto";  // of the matrices: f32, f16, bf16; auto: as stored, bf16 for quantised ones
  int64_t shard_bytes = int64_t{5} << 30;
  bool check = true;  // compare logits with the live adapter before saying done
  std::function<void(int64_t done, int64_t total)> progress;  // weights; may be empty
};

struct MergeResult {
  int64_t weights = 0;
  int64_t merged = 0;  // of those, changed by the adapter
  int64_t shards = 0;
  int64_t bytes = 0;
  // Relative distances of logits (norm of the difference over norm of the live adapter's), where checked.
  double base_distance = 0;    // base model to live adapter: the adapter's effect
  double merged_distance = 0;  // merged model to live adapter: what the merge lost
};

// Holds one weight in memory, and the checked model if `check`. Writes into a folder beside `out` that takes
// its name at the end. Errors: bad_argument where `out` exists, or the merge loses as much as half of the
// adapter's effect (a small adapter in few bits: the hint names f32); not_found, bad_file, unsupported, io.
Result<MergeResult> merge_adapter(const MergeRequest& request, Device& device);

}  // namespace tenon
