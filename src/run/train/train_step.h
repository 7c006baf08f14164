// One optimiser step in its parts: reading its micro-batches, forward and backward, then either the optimiser
// or throwing the gradients away. Owns no decision.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "run/train/health.h"
#include "run/train/trainer.h"

namespace tenon {

class TrainStep {
 public:
  // All must outlive it.
  TrainStep(const TrainJob& job, Session& session, DataStream& stream)
      : job_(job), session_(session), stream_(stream) {}

  // Reads the micro-batches of the next step: trained_tokens, used_tokens, data_seconds.
  Status read(StepReport& report);
  // Adds the gradients of the batches to their sums: loss, compute_seconds. `micro_steps` were made before.
  Status forward_backward(StepReport& report, int64_t micro_steps);
  // Updates the adapter and clears the sums: gradient_norm, optimiser_seconds.
  Status optimise(StepReport& report);
  // Clears the sums and leaves everything else: gradient_norm, skipped.
  void discard(StepReport& report);

  // Measures the first micro-step and the optimiser of the next step, kernel by kernel. `out` must outlive
  // it.
  void time_next(std::vector<KernelSeconds>* out) { timing_ = out; }

  // Of the sums, before optimise() or discard().
  std::vector<LayerNorms> layer_norms() const;

  // "3, 17, 20 and 4 more": the rows of the batches, counted from 1.
  std::string rows_text() const;
  // What is not finite after an optimise() whose gradient norm is not: "the gradient of X". Computes the
  // gradients again, which optimise() consumed.
  Result<std::string> name_not_finite(int64_t micro_steps);

 private:
  Status run_micro_steps(int64_t micro_steps, double& loss_sum);
  Status run_timed(const char* program);

  const TrainJob& job_;
  Session& session_;
  DataStream& stream_;
  std::vector<MicroBatch> batches_;
  std::vector<KernelSeconds>* timing_ = nullptr;
};

}  // namespace tenon
