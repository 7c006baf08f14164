// One row of the adaptability table: what a model is, what decoding keeps and what training it takes, from
// its configuration alone.
#pragma once

#include <string>

#include "base/error.h"
#include "device/device.h"
#include "models/model_spec.h"

namespace tenon {

struct ModelRow {
  std::string family;
  std::string mixers;  // models/describe.h
  std::string feed_forwards;
  int64_t parameters = 0;
  int64_t token_bytes = 0;  // of the cache, bf16
  int64_t state_bytes = 0;
  int64_t train_bytes =
      0;  // LoRA of rank 64 on all linear layers, 2 x 2048 tokens in bf16, all blocks recomputed
  std::string attention_kernel;  // that would serve training; "-" where there is no attention
};

int64_t parameter_count(const ModelSpec& spec);

// Plans for `facts` with the kernels of `device`. Errors as make_plan.
Result<ModelRow> model_row(const ModelSpec& spec, const DeviceFacts& facts, const Device& device);

}  // namespace tenon
