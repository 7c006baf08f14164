// What a run was and what it did, as typed events: one JSON object a line. Append-only, so that a killed run
// leaves everything but perhaps its last line. Knows nothing of programs, plans and devices beyond their
// names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tenon {

// Floating-point fields read back with the bits they were written with (a NaN as the NaN).
using NamedNumbers = std::vector<std::pair<std::string, double>>;

// First line: everything that decides the run.
struct RecordHeader {
  std::string kind;                   // "train", "evaluate"
  std::string build;                  // version and commit
  std::string device;                 // processor name
  std::vector<std::string> features;  // instruction sets
  int64_t threads = 0;
  std::map<std::string, std::string> digests;  // of files that were read, by what they are ("base", "data")
  uint64_t seed = 0;
  std::string recipe;         // the settings in full, as text
  std::string plan_hash;      // sixteen hexadecimal digits
  std::string attention;      // the kernels that serve it, ", " between
  int64_t planned_bytes = 0;  // of both arenas
  int64_t mapped_bytes = 0;   // of files that steps read where they lie
  int64_t started_unix_seconds = 0;
  bool operator==(const RecordHeader&) const = default;
};

// One optimiser step.
struct RecordStep {
  int64_t step = 0;  // from 1
  double loss = 0;   // mean over trained tokens
  int64_t trained_tokens = 0;
  double learning_rate = 0;
  double gradient_norm = 0;          // before clipping
  double clipped_gradient_norm = 0;  // after
  double tokens_per_second = 0;      // of all tokens
  NamedNumbers seconds;              // by phase ("forward_backward", "optimiser", "data")
  int64_t resident_bytes = 0;        // of the process, after the step
  bool skipped = false;              // its gradients were thrown away
  bool operator==(const RecordStep&) const = default;
};

struct RecordEval {
  int64_t step = 0;  // after which it was made
  double loss = 0;
  int64_t tokens = 0;
  NamedNumbers metrics;
  bool operator==(const RecordEval&) const = default;
};

// The run goes on from a saved state: what the record says of later steps happened, but does not count.
struct RecordResume {
  int64_t step = 0;
  std::string checkpoint;  // file name; empty where it begins anew
  std::string reason;      // "resumed", or why training went back by itself
  std::string build;       // what goes on, as in the header
  std::string device;
  std::string recipe;  // the settings from here on, in full; empty: as before
  int64_t started_unix_seconds = 0;
  bool operator==(const RecordResume&) const = default;
};

// Something about the health of the run that a person should know.
struct RecordNote {
  int64_t step = 0;     // 0: about the settings
  std::string kind;     // "loss_spike"
  std::string message;  // what is wrong, and what to do
  std::string action;   // what the run did about it: "warn", "skip", "rollback", "stop"
  bool operator==(const RecordNote&) const = default;
};

// Last line. A record without one is of a run that was killed.
struct RecordEnd {
  std::string status;               // "finished", "early_stop", "failed", "cancelled"
  int64_t allocated_bytes = 0;      // arenas as allocated; equals planned_bytes
  int64_t observed_peak_bytes = 0;  // of the process (VmHWM)
  int64_t allocations_in_steps = 0;
  std::string error;
  bool operator==(const RecordEnd&) const = default;
};

// A record read back.
struct RunRecord {
  RecordHeader header;
  std::vector<RecordStep> steps;  // those that count
  std::vector<RecordEval> evals;  // likewise
  std::vector<RecordNote> notes;  // likewise
  std::vector<RecordResume> resumes;
  std::optional<RecordEnd> end;
  bool cut_last_line = false;  // the last line was not whole and is left out

  // The settings in force: of the last resumption that changed them, else of the header.
  const std::string& recipe() const;
};

// One line without its newline. Text that is not UTF-8 has its bad bytes replaced.
std::string record_line(const RecordHeader& event);
std::string record_line(const RecordStep& event);
std::string record_line(const RecordEval& event);
std::string record_line(const RecordNote& event);
std::string record_line(const RecordResume& event);
std::string record_line(const RecordEnd& event);

// Fails with bad_file (naming the line) where a line other than the last is not an event, or the first is not
// a header. Events of kinds that this build does not know are passed over.
Result<RunRecord> parse_record(std::string_view text, std::string_view name);
Result<RunRecord> read_record(const std::string& path);

}  // namespace tenon
