// For tests: a tiny model, data and runs in folders, as the train command makes them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "io/test_folder.h"
#include "record/run_record.h"
#include "run/train/run_folder.h"
#include "run/train/train_in_folder.h"

namespace tenon {

class TinyRun : public testing::Test {
 protected:
  void SetUp() override;

  std::string model() const { return folder_ / "model"; }
  std::string run_path(std::string_view name = "run") const { return folder_ / name; }

  // `rows` chat rows into FOLDER/rows.jsonl; the path.
  std::string write_rows(int rows) const;

  // Small and fast, with everything on that a resumed run must restore: dropout, accumulation, evaluation, a
  // falling learning rate, and several epochs.
  TrainRecipe recipe(std::string_view run = "run") const;

  // What `tenon train` does, without a display. `stop_after` asks to stop after that step; 0 never does.
  static Result<TrainResult> begin(const TrainRecipe& recipe, int64_t stop_after = 0);
  // `tenon train --resume`, with settings changed by name.
  static Result<TrainResult> resume(const std::string& run, int64_t stop_after = 0,
                                    const std::function<void(TrainRecipe&)>& change = {});

  // In memory where that is possible: runs sync at every turn, and disks take milliseconds for it.
  TestFolder folder_{is_folder("/dev/shm") ? "/dev/shm/" : testing::TempDir()};
};

// What two runs must have in common to be the same to the bit.
struct RunBits {
  std::string adapter;             // bytes of the file
  std::string optimiser;           // bytes of the last checkpoint's tensors
  TrainProgress progress;          // of the last checkpoint
  std::vector<std::string> steps;  // loss, rate, norms and tokens of each step that counts, as bits
  std::vector<std::string> evals;
  bool operator==(const RunBits&) const = default;
};
Result<RunBits> bits_of(const std::string& run);

}  // namespace tenon
