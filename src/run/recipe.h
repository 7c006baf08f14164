// Everything that a training run can be told, as one value. recipe_options() declares each setting once; the
// command line (`--warmup-steps 10`), recipe files (`warmup-steps: 10`), help, ranges and the printed
// effective recipe all come from it. Names only: which files exist and what fits is found out by who uses
// them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/option.h"

namespace tenon {

// Text fields with a closed set of values hold one of the choices that recipe_options() lists. Relative paths
// are relative to the working folder, in recipe files too.
struct TrainRecipe {
  // Files
  std::string model;    // folder or GGUF file
  std::string adapter;  // to start from; empty begins a new one
  StringList data;      // sources, as text/data_sources.h reads them
  std::string out;      // run folder
  bool overwrite = false;

  // Data
  std::string train_on = "answers";
  std::string too_long = "error";
  int64_t max_tokens = 0;     // of a row; 0 is tokens_per_step
  std::string chat_template;  // file; empty is the model's own
  std::string clock;          // what a template that asks for the time is told; empty is now
  StringList columns;         // "key=column": columns under other names than a row format knows
  StringList eval_data;
  double eval_fraction = 0;
  int64_t eval_every = 0;  // optimiser steps; 0 is only at the end

  // Length and learning rate
  int64_t steps = 0;  // optimiser steps; 0 is as many as `epochs` take
  double epochs = 1;
  double lr = 2e-4;
  std::string schedule = "linear";
  int64_t warmup_steps = 0;
  int64_t tokens_per_step = 2048;  // slots of a micro-step
  int64_t accumulate = 1;          // micro-steps of an optimiser step
  int64_t seed = 0;

  // Adapter
  int64_t rank = 16;
  double alpha = 32;
  double dropout = 0;
  bool rslora = false;
  StringList targets = {"all-linear"};
  IntegerMap rank_pattern;  // module name -> rank

  // Optimiser
  double clip = 1;  // largest gradient norm; 0 is no clipping
  double weight_decay = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;

  // Checkpoints and health
  std::string checkpoint_every = "10min";  // as checkpoint_interval.h reads it
  int64_t keep = 2;                        // newest checkpoints
  bool keep_best = false;
  int64_t early_stop = 0;  // evaluations without a lower loss; 0 is never
  std::string on_spike = "warn";
  bool tensorboard = false;
  int64_t samples = 0;  // answers before and after, for the report

  // Machine
  std::string device = "cpu";
  std::string graphs = "on";
  std::string attention = "auto";
  std::string compute = "auto";
  int64_t threads = 0;  // 0 is every core
  ByteSize memory;      // 0 is no limit
  std::string recompute = "auto";
  StringList without;  // passes and kernels to leave out
  std::string weights = "auto";

  bool operator==(const TrainRecipe&) const = default;
};

// One option for every field, bound to `recipe`, which outlives them.
std::vector<Option> recipe_options(TrainRecipe& recipe);

// Sets what the YAML text names and leaves the rest. Errors: bad_file (not YAML), bad_argument (unknown key,
// with the nearest one; given twice; wrong value). The subject is "subject:line" or "subject:line: key".
Status parse_recipe(std::string_view yaml, std::string_view subject, TrainRecipe& recipe);

// parse_recipe() of a file. Errors also: not_found, io.
Status read_recipe(const std::string& path, TrainRecipe& recipe);

// Every field as YAML, in the order of recipe_options(); parse_recipe() reads the same recipe back.
std::string recipe_yaml(const TrainRecipe& recipe);

// What single fields cannot say: settings that contradict each other. Error: bad_argument ("--NAME").
Status check_recipe(const TrainRecipe& recipe);

// Whether these options (of text) are set: {"model", "data"}. Error: bad_argument that names the first
// missing.
Status require_recipe(const TrainRecipe& recipe, std::initializer_list<std::string_view> names);

}  // namespace tenon
