#include "run/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "run/checkpoint_interval.h"

namespace tenon {
namespace {

void add_file_options(TrainRecipe& r, std::vector<Option>& options) {
  constexpr std::string_view kGroup = "files";
  options.insert(options.end(), {
                                    {.name = "model",
                                     .target = &r.model,
                                     .help = "Model folder or GGUF file",
                                     .value_name = "PATH",
                                     .group = kGroup},
                                    {.name = "adapter",
                                     .target = &r.adapter,
                                     .help = "Adapter folder to start from",
                                     .value_name = "PATH",
                                     .group = kGroup},
                                    {.name = "data",
                                     .target = &r.data,
                                     .help = "Training data: files, folders or patterns, each with "
                                             ":WEIGHT where they are mixed",
                                     .value_name = "FILE",
                                     .repeatable = true,
                                     .group = kGroup},
                                    {.name = "out",
                                     .target = &r.out,
                                     .help = "Run folder to write",
                                     .value_name = "FOLDER",
                                     .group = kGroup},
                                    {.name = "overwrite",
                                     .target = &r.overwrite,
                                     .help = "Replace a run folder that already holds a run",
                                     .group = kGroup},
                                });
}

void add_data_options(TrainRecipe& r, std::vector<Option>& options) {
  constexpr std::string_view kGroup = "data";
  options.insert(
      options.end(),
      {
          {.name = "train-on",
           .target = &r.train_on,
           .help = "Tokens that the loss counts: of every answer, of the last one, or all",
           .choices = {"answers", "last", "all"},
           .group = kGroup},
          {.name = "too-long",
           .target = &r.too_long,
           .help = "What happens to rows of more than --max-tokens tokens",
           .choices = {"error", "cut", "skip"},
           .group = kGroup},
          {.name = "max-tokens",
           .target = &r.max_tokens,
           .help = "Longest row in tokens; 0 is --tokens-per-step",
           .range = at_least(0),
           .group = kGroup},
          {.name = "template",
           .target = &r.chat_template,
           .help = "Chat template to use instead of the model's own",
           .value_name = "FILE",
           .group = kGroup},
          {.name = "clock",
           .target = &r.clock,
           .help = "The time that the chat template is told where it asks; the start of the run if "
                   "not given",
           .value_name = "TIME",
           .group = kGroup},
          {.name = "columns",
           .target = &r.columns,
           .help = "Columns under other names than a row format knows",
           .value_name = "KEY=COLUMN,...",
           .group = kGroup},
          {.name = "eval-data",
           .target = &r.eval_data,
           .help = "Data to evaluate on",
           .value_name = "FILE",
           .repeatable = true,
           .group = kGroup},
          {.name = "eval-fraction",
           .target = &r.eval_fraction,
           .help = "Part of the rows kept for evaluation",
           .range = fraction(),
           .group = kGroup},
          {.name = "eval-every",
           .target = &r.eval_every,
           .help = "Optimiser steps between evaluations; 0 is only at the end",
           .range = at_least(0),
           .group = kGroup},
      });
}

void add_schedule_options(TrainRecipe& r, std::vector<Option>& options) {
  constexpr std::string_view kGroup = "length and learning rate";
  constexpr double kMostTokens = 1 << 24;
  options.insert(
      options.end(),
      {
          {.name = "steps",
           .target = &r.steps,
           .help = "Optimiser steps; 0 is as many as --epochs take",
           .range = at_least(0),
           .group = kGroup},
          {.name = "epochs",
           .target = &r.epochs,
           .help = "Passes over the data, where --steps is 0",
           .range = above(0),
           .group = kGroup},
          {.name = "lr", .target = &r.lr, .help = "Peak learning rate", .range = above(0), .group = kGroup},
          {.name = "schedule",
           .target = &r.schedule,
           .help = "Learning rate after the warm-up",
           .choices = {"constant", "linear", "cosine"},
           .group = kGroup},
          {.name = "warmup-steps",
           .target = &r.warmup_steps,
           .help = "Optimiser steps in which the learning rate rises",
           .range = at_least(0),
           .group = kGroup},
          {.name = "tokens-per-step",
           .target = &r.tokens_per_step,
           .help = "Token slots of a micro-step, which rows are packed into",
           .range = between(2, kMostTokens),
           .group = kGroup},
          {.name = "accumulate",
           .target = &r.accumulate,
           .help = "Micro-steps of an optimiser step",
           .range = at_least(1),
           .group = kGroup},
          {.name = "seed",
           .target = &r.seed,
           .help = "Seed of the row order, the adapter and dropout",
           .range = at_least(0),
           .group = kGroup},
      });
}

void add_adapter_options(TrainRecipe& r, std::vector<Option>& options) {
  constexpr std::string_view kGroup = "adapter";
  constexpr double kHighestRank = 65536;
  options.insert(
      options.end(),
      {
          {.name = "rank",
           .target = &r.rank,
           .help = "Rank of the adapter",
           .range = between(1, kHighestRank),
           .group = kGroup},
          {.name = "alpha",
           .target = &r.alpha,
           .help = "Scale: alpha / rank multiplies the adapter",
           .range = above(0),
           .group = kGroup},
          {.name = "dropout",
           .target = &r.dropout,
           .help = "Dropout before the adapter",
           .range = fraction(),
           .group = kGroup},
          {.name = "rslora", .target = &r.rslora, .help = "Scale by alpha / sqrt(rank)", .group = kGroup},
          {.name = "targets",
           .target = &r.targets,
           .help = "Modules that get an adapter: all-linear, or names",
           .group = kGroup},
          {.name = "rank-pattern",
           .target = &r.rank_pattern,
           .help = "Other ranks for some modules",
           .range = between(1, kHighestRank),
           .group = kGroup},
      });
}

void add_optimiser_options(TrainRecipe& r, std::vector<Option>& options) {
  constexpr std::string_view kGroup = "optimiser (AdamW)";
  options.insert(options.end(), {
                                    {.name = "clip",
                                     .target = &r.clip,
                                     .help = "Largest norm of the gradient; 0 is no clipping",
                                     .range = at_least(0),
                                     .group = kGroup},
                                    {.name = "weight-decay",
                                     .target = &r.weight_decay,
                                     .help = "Weight decay",
                                     .range = at_least(0),
                                     .group = kGroup},
                                    {.name = "beta1",
                                     .target = &r.beta1,
                                     .help = "Decay of the first moment",
                                     .range = fraction(),
                                     .group = kGroup},
                                    {.name = "beta2",
                                     .target = &r.beta2,
                                     .help = "Decay of the second moment",
                                     .range = fraction(),
                                     .group = kGroup},
                                    {.name = "eps",
                                     .target = &r.eps,
                                     .help = "Added to the root of the second moment",
                                     .range = above(0),
                                     .group = kGroup},
                                });
}

void add_checkpoint_options(TrainRecipe& r, std::vector<Option>& options) {
  constexpr std::string_view kGroup = "checkpoints and health";
  options.insert(
      options.end(),
      {
          {.name = "checkpoint-every",
           .target = &r.checkpoint_every,
           .help = "Save the run every N optimiser steps or Tmin minutes; 0 is only when it ends "
                   "or is stopped",
           .value_name = "N|Tmin",
           .group = kGroup},
          {.name = "keep",
           .target = &r.keep,
           .help = "Newest checkpoints to keep",
           .range = at_least(1),
           .group = kGroup},
          {.name = "keep-best",
           .target = &r.keep_best,
           .help = "Keep the state with the lowest evaluation loss, and write its adapter to best/",
           .group = kGroup},
          {.name = "early-stop",
           .target = &r.early_stop,
           .help = "End after so many evaluations in a row without a lower loss; 0 is never",
           .value_name = "PATIENCE",
           .range = at_least(0),
           .group = kGroup},
          {.name = "on-spike",
           .target = &r.on_spike,
           .help = "When the loss jumps: say so, throw the step away, go back to the last "
                   "checkpoint, or stop",
           .choices = {"warn", "skip", "rollback", "stop"},
           .group = kGroup},
          {.name = "tensorboard",
           .target = &r.tensorboard,
           .help = "Write TensorBoard event files into the run folder",
           .group = kGroup},
          {.name = "samples",
           .target = &r.samples,
           .help = "Answers to that many rows before and after training, for the report",
           .range = between(0, 20),
           .group = kGroup},
      });
}

void add_machine_options(TrainRecipe& r, std::vector<Option>& options) {
  constexpr std::string_view kGroup = "machine";
  constexpr double kMostThreads = 4096;
  options.insert(options.end(),
                 {
                     {.name = "device",
                      .target = &r.device,
                      .help = "Where to run: cpu, cuda, or cuda:N for GPU N",
                      .value_name = "DEVICE",
                      .group = kGroup},
                     {.name = "graphs",
                      .target = &r.graphs,
                      .help = "CUDA graphs; off waits for each kernel, so that a failure names it",
                      .choices = {"on", "off"},
                      .group = kGroup},
                     {.name = "attention",
                      .target = &r.attention,
                      .help = "Kernels of attention, by the end of their name (`tenon kernels`); refused "
                              "where they do not serve the model",
                      .value_name = "NAME",
                      .group = kGroup},
                     {.name = "compute",
                      .target = &r.compute,
                      .help = "Precision of the arithmetic; auto is bf16 where the device has it",
                      .choices = {"auto", "f32", "bf16"},
                      .group = kGroup},
                     {.name = "threads",
                      .target = &r.threads,
                      .help = "Threads; 0 is every core",
                      .range = between(0, kMostThreads),
                      .group = kGroup},
                     {.name = "memory",
                      .target = &r.memory,
                      .help = "Memory that the run may take, such as 8GiB; 0 is no limit",
                      .group = kGroup},
                     {.name = "recompute",
                      .target = &r.recompute,
                      .help = "Gradient checkpointing: auto keeps what fits --memory",
                      .choices = {"none", "blocks", "auto"},
                      .group = kGroup},
                     {.name = "weights",
                      .target = &r.weights,
                      .help = "Matrices in memory: as-stored leaves quantised ones in the file as they are; "
                              "auto does on a CPU",
                      .choices = {"auto", "as-stored", "bf16", "q8_0", "f32"},
                      .group = kGroup},
                     {.name = "without",
                      .target = &r.without,
                      .help = "Passes and kernels to leave out",
                      .group = kGroup},
                 });
}

Error contradiction(std::string_view name, std::string message, std::string hint = {}) {
  return bad_argument(std::move(message), fmt::format("--{}", name), std::move(hint));
}

}  // namespace

std::vector<Option> recipe_options(TrainRecipe& recipe) {
  std::vector<Option> options;
  add_file_options(recipe, options);
  add_data_options(recipe, options);
  add_schedule_options(recipe, options);
  add_adapter_options(recipe, options);
  add_optimiser_options(recipe, options);
  add_checkpoint_options(recipe, options);
  add_machine_options(recipe, options);
  return options;
}

namespace {

Status check_checkpoints(const TrainRecipe& recipe) {
  ASSIGN_OR_RETURN(const CheckpointInterval interval, parse_checkpoint_interval(recipe.checkpoint_every));
  const bool evaluates = !recipe.eval_data.empty() || recipe.eval_fraction > 0;
  if (recipe.keep_best && !evaluates)
    return contradiction("keep-best", "there is nothing to evaluate on",
                         "Add --eval-data or --eval-fraction.");
  if (recipe.early_stop > 0 && (!evaluates || recipe.eval_every == 0))
    return contradiction("early-stop", "the run is not evaluated on its way",
                         "Add --eval-every, and --eval-data or --eval-fraction.");
  if (recipe.on_spike == "rollback" && interval.steps == 0)
    return contradiction("on-spike", "rollback needs checkpoints at fixed steps to go back to",
                         "Write --checkpoint-every N with a number of steps.");
  return {};
}

}  // namespace

Status check_recipe(const TrainRecipe& recipe) {
  TrainRecipe copy = recipe;
  for (const Option& option : recipe_options(copy)) {
    Status status = check_option(option);
    if (status.ok()) continue;
    Error error = std::move(status).error();
    error.subject.insert(0, "--");
    return error;
  }
  if (!recipe.eval_data.empty() && recipe.eval_fraction > 0)
    return contradiction("eval-data", "cannot stand together with --eval-fraction",
                         "Evaluate on a file or on a part of the training data, not both.");
  if (recipe.eval_every > 0 && recipe.eval_data.empty() && recipe.eval_fraction == 0)
    return contradiction("eval-every", "there is nothing to evaluate on",
                         "Add --eval-data or --eval-fraction.");
  if (recipe.steps > 0 && recipe.warmup_steps > recipe.steps)
    return contradiction("warmup-steps", fmt::format("{} is more than the {} --steps of the run",
                                                     recipe.warmup_steps, recipe.steps));
  if (recipe.max_tokens > recipe.tokens_per_step)
    return contradiction("max-tokens",
                         fmt::format("a row of {} tokens does not fit into the {} of --tokens-per-step",
                                     recipe.max_tokens, recipe.tokens_per_step),
                         "Raise --tokens-per-step or lower --max-tokens.");
  RETURN_IF_ERROR(check_checkpoints(recipe));
  if (recipe.targets.empty())
    return contradiction("targets", "names no module", "Write all-linear for all of them.");
  if (recipe.targets.size() > 1 &&
      std::find(recipe.targets.begin(), recipe.targets.end(), "all-linear") != recipe.targets.end())
    return contradiction("targets", "all-linear already takes every module, so it stands alone");
  return {};
}

Status require_recipe(const TrainRecipe& recipe, std::initializer_list<std::string_view> names) {
  TrainRecipe copy = recipe;
  const std::vector<Option> options = recipe_options(copy);
  for (const std::string_view name : names) {
    const Option* option = find_option(options, name);
    CHECK(option != nullptr, name);
    if (option_text(*option).empty())
      return bad_argument("is missing", fmt::format("--{}", name),
                          fmt::format("Add --{} {}, or {}: in the recipe.", name, option->value_name, name));
  }
  return {};
}

}  // namespace tenon
