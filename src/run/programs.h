// Puts passes together into the programs of a job: what train, eval, generate and probe run. Pure; every
// program is verified after every pass.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/program.h"
#include "models/forward.h"
#include "models/model_spec.h"
#include "ops/adamw.h"
#include "passes/adapters.h"
#include "passes/optimiser.h"
#include "run/weight_dtypes.h"

namespace tenon {

// Passes that may be left out by name (`--without`).
inline constexpr const char* kFuseAddendPass = "fuse_addend";
inline constexpr const char* kFuseLossGradientPass = "fuse_loss_gradient";
inline constexpr const char* kFuseLowRankPass = "fuse_low_rank";
inline constexpr const char* kRecomputeCheapPass = "recompute_cheap";
inline constexpr std::string_view kOptionalPasses[] = {kFuseAddendPass, kFuseLossGradientPass,
                                                       kFuseLowRankPass, kRecomputeCheapPass};

struct ProgramSettings {
  DType compute = DType::f32;
  std::vector<std::string> without;  // passes and kernels not to use
  WeightDTypes weights = {};         // of matrices that are not kept in the compute dtype

  bool uses(std::string_view pass) const;
};

inline constexpr const char* kTrainStep = "train_step";
inline constexpr const char* kOptimiserStep = "optimiser_step";
inline constexpr const char* kEvaluate = "evaluate";
inline constexpr const char* kLogits = "logits";
inline constexpr const char* kPrefill = "prefill";
inline constexpr const char* kDecode = "decode";

// Outputs and inputs beside those of models/forward.h.
inline constexpr const char* kLossOutput = "loss";            // f32 [tokens], 0 where not trained
inline constexpr const char* kPredictedOutput = "predicted";  // i32 [tokens]
inline constexpr const char* kLogitsOutput = "logits_out";    // f32 [rows, vocab]
inline constexpr const char* kLossSeedInput =
    "loss_seed";  // f32 [1]: 1 / trained tokens of the optimiser step

// The forward program over packed sequences without loss: for matching adapters and counting.
Program forward_program(const ModelSpec& spec, int64_t tokens, const ProgramSettings& settings);

struct TrainSettings : ProgramSettings {
  int64_t tokens = 0;  // of a micro-step
  double dropout = 0;
  int32_t recompute_blocks = 0;
  AdamWOptions adamw;
};

struct TrainPrograms {
  Program train_step;      // adds to the gradient sums
  Program optimiser_step;  // updates the adapter and clears the sums
  Program evaluate;        // loss and predictions, without dropout
  std::vector<TrainedValue> trained;
};
TrainPrograms train_programs(const ModelSpec& spec, const std::vector<AdapterModule>& modules,
                             const TrainSettings& settings);

// Loss and predictions only.
Program evaluate_program(const ModelSpec& spec, const std::vector<AdapterModule>& modules, int64_t tokens,
                         const ProgramSettings& settings);

// Logits of every token, the loss, and on request gradients of the mean loss: of every weight, or of the
// adapter.
enum class ProbeGradients : uint8_t { none, weights, adapter };
inline constexpr const char* kGradientPrefix = "grad.";  // of outputs: "grad." + value name
Program probe_program(const ModelSpec& spec, const std::vector<AdapterModule>& modules, int64_t tokens,
                      ProbeGradients gradients, const ProgramSettings& settings);

// One run of cached decoding: `tokens` new tokens, logits of `rows` of them. Inputs sized by tokens or rows
// carry the program's name and a dot before their own, since programs of several sizes are planned together.
struct DecodeSettings : ProgramSettings {
  CacheOptions cache;
  int64_t tokens = 1;
  int64_t rows = 1;
};
Program decode_program(const ModelSpec& spec, const std::vector<AdapterModule>& modules, std::string name,
                       const DecodeSettings& settings);

}  // namespace tenon
