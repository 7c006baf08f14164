// The folder of a run: recipe.yaml (effective), record.jsonl (every step), adapter/. Made only once the job
// is ready to start, so that a refused run leaves nothing behind.
#pragma once

#include <string>

#include "base/error.h"
#include "io/folder.h"
#include "record/record_writer.h"
#include "run/train/trainer.h"

namespace tenon {

// bad_argument where the folder exists with something in it and `overwrite` is false.
Status check_run_folder(const std::string& path, bool overwrite);

class RunFolder {
 public:
  // Makes the folder (removing what an overwritten run left) and begins the record.
  static Result<RunFolder> create(const TrainJob& job);

  Status step(const StepReport& report);
  Status evaluated(int64_t step, const EvalResult& result);
  // Writes the adapter and the last line of the record.
  Status finished(const TrainResult& result);
  // Writes the last line of a run that failed.
  Status failed(const Error& error);

 private:
  RunFolder(std::string path, std::string base_model, double clip, FolderLock lock, RecordWriter record);

  std::string path_;
  std::string base_model_;
  double clip_ = 0;
  FolderLock lock_;
  RecordWriter record_;
};

}  // namespace tenon
