// The state of a run between two optimiser steps, and the file that it is saved in: one safetensors file, so
// that a checkpoint is there as a whole or not at all. The tensors are what training changes (trained values
// and optimiser state); the metadata is the rest of the state. Knows nothing of folders and of when to save.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "passes/optimiser.h"
#include "run/session.h"
#include "run/train/health.h"
#include "text/dataset_stream.h"

namespace tenon {

// Everything that the next step depends on beside settings, files and tensors.
struct TrainProgress {
  int64_t step = 0;         // optimiser steps taken
  int64_t micro_steps = 0;  // counted by dropout
  DataState data;
  double first_loss = 0;
  double last_loss = 0;
  int64_t evaluated_step = -1;  // after which the last evaluation was made
  std::optional<double> best_loss;
  int64_t best_step = 0;
  int64_t evaluations_since_best = 0;
  LossHistory losses;
  int64_t setbacks = 0;  // steps thrown away or taken back in a row

  bool operator==(const TrainProgress&) const = default;
};

struct SavedState {
  TrainProgress progress;
  int64_t record_bytes = 0;  // of the run record when it was saved
};

// Errors: io.
Status save_state(const std::string& path, const SavedState& state, Session& session,
                  std::span<const TrainedValue> trained);

// Reads the metadata only. Errors: not_found, io, bad_file (not such a file).
Result<SavedState> read_state(const std::string& path);

// Writes the tensors of the file into the session. Errors: those of read_state; bad_file where a tensor is
// missing, left over or of another type, or where the bytes are not those that were saved (by their digest).
Status restore_state(const std::string& path, Session& session, std::span<const TrainedValue> trained);

// The adapter of a state: `adapter` with the values that the file holds. Errors: as restore_state.
Result<AdapterSet> adapter_of_state(const std::string& path, const AdapterSet& adapter);

}  // namespace tenon
