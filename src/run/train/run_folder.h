// The folder of a run: recipe.yaml (effective), record.jsonl (every step), checkpoints/, adapter/ and best/.
// Made only once the job is ready to start, so that a refused run leaves nothing behind; from then on it can
// be resumed at every moment, whatever kills the process.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/folder.h"
#include "record/event_file.h"
#include "record/record_writer.h"
#include "run/train/resume.h"
#include "run/train/trainer.h"

namespace tenon {

// bad_argument where the folder exists with something in it and `overwrite` is false.
Status check_run_folder(const std::string& path, bool overwrite);

class RunFolder {
 public:
  // Makes the folder job.recipe.out (removing what an overwritten run left) and begins the record.
  static Result<RunFolder> create(const TrainJob& job);
  // Goes on with the run in job.recipe.out: checks that it is the same run, sets job.resume_from, and records
  // the resumption and settings that changed. Errors also: those of find_resume_point and check_same_run.
  static Result<RunFolder> resume(TrainJob& job);

  // Whether the resumed run had come to its end and nothing asks for more of it; the folder is then
  // unchanged.
  bool complete() const { return complete_; }
  int64_t resumed_step() const { return resumed_step_; }
  const std::string& path() const { return path_; }
  // What a person should know before it goes on.
  const std::vector<RecordNote>& notes() const { return notes_; }

  Status step(const StepReport& report);
  Status evaluated(int64_t step, const EvalResult& result);
  Status note(const RecordNote& note) { return record_.write(note); }
  // Writes a checkpoint and removes those that need not be kept; the path of the new one.
  Result<std::string> save(const TrainProgress& progress, Session& session);
  Status went_back(int64_t step, const std::string& file);
  // Writes the adapters and the last line of the record.
  Status finished(const TrainResult& result);
  // Writes the last line of a run that failed, where that is possible; a new run that was refused before its
  // first step leaves nothing behind. Gives the error, with what can be done to go on.
  Error failed(Error error);

 private:
  RunFolder(const TrainJob& job, FolderLock lock, RecordWriter record);
  void abandon();
  Status remove_old_checkpoints(const TrainProgress& progress);
  Status write_best(const TrainResult& result);
  Status write_events(int64_t step, std::span<const Scalar> scalars);

  std::string path_;
  std::string base_model_;
  std::vector<TrainedValue> trained_;
  double clip_ = 0;
  int64_t keep_ = 1;
  bool keep_best_ = false;
  bool tensorboard_ = false;
  int64_t rollback_every_ = 0;  // optimiser steps; 0: never goes back
  FolderLock lock_;
  RecordWriter record_;
  std::optional<EventFile> events_;
  bool complete_ = false;
  bool begun_ = false;  // there is something to go on from
  int64_t resumed_step_ = 0;
  std::vector<RecordNote> notes_;
};

}  // namespace tenon
