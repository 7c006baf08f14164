// A whole run with its folder: what `tenon train` does but for showing it.
#pragma once

#include "base/error.h"
#include "run/train/run_folder.h"
#include "run/train/trainer.h"

namespace tenon {

// Runs the job; everything that happens goes into its folder: the record, checkpoints, adapters, the facts of
// the report and, however the run ends, the report. `display` sees each event first; its `save`, `timed` and
// `went_back` are not used. Errors: as run_training, and io; they say how the run can go on.
Result<TrainResult> train_in_folder(TrainJob& job, Device& device, RunFolder& folder,
                                    const TrainObserver& display);

}  // namespace tenon
