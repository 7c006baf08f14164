// Compares Tenon with any other implementation: fixed token ids in, logits, loss, gradients, greedy tokens
// and a short training curve out, through the same programs, plan and kernels as training and generation.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "device/device.h"
#include "run/programs.h"

namespace tenon {

struct ProbeRequest : ProgramSettings {
  std::string model;
  std::string adapter;  // folder; empty: none
  std::string tokens;   // safetensors with input_ids and labels, [batch, tokens] i32
  std::string out;      // safetensors to write
  ProbeGradients gradients = ProbeGradients::none;
  std::string weight_choice = "auto";  // run/weight_dtypes.h
  int64_t greedy = 0;                  // tokens to continue the first nine of row 0 by
  int64_t train_steps = 0;
  double lr = 1e-3;
  double clip = 0;
};

struct ProbeSummary {
  double loss = 0;
  int64_t trained_tokens = 0;
  int64_t tensors_written = 0;
};

// Writes `logits` f32 [batch, tokens, vocab], `loss` [1], `grad.<checkpoint tensor>` or
// `lora_grad.<module>...`, `greedy_ids` i32 [1, 9 + greedy] and `train_losses` [steps].
Result<ProbeSummary> probe(const ProbeRequest& request, Device& device);

}  // namespace tenon
