// tenon eval: loss, perplexity and token accuracy on a data set.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "base/json.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "run/evaluate.h"
#include "run/programs.h"

namespace tenon {
namespace {

struct EvalArguments {
  std::string model, adapter, data, chat_template;
  std::string train_on = "answers";
  std::string too_long = "error";
  int64_t tokens_per_step = 2048;
  int64_t max_tokens = 0;
  StringList without;
  std::string weights = "auto";
  DeviceArguments device;
  bool json = false;
};

StreamSettings eval_settings(const EvalArguments& a, const ModelText& text) {
  StreamSettings settings;
  settings.rows.render.chat_template = text.chat_template ? &*text.chat_template : nullptr;
  settings.rows.render.tokenizer = &text.tokenizer;
  settings.rows.render.train_on = *train_on_from_name(a.train_on);
  settings.rows.tokens.tokenizer = &text.tokenizer;
  settings.rows.tokens.max_tokens = static_cast<int32_t>(a.max_tokens > 0 ? a.max_tokens : a.tokens_per_step);
  settings.rows.tokens.too_long = *too_long_from_name(a.too_long);
  settings.tokens_per_step = static_cast<int32_t>(a.tokens_per_step);
  return settings;
}

void print_result(const EvalArguments& a, const EvalResult& result) {
  if (a.json) {
    const Json line = {{"loss", result.loss},
                       {"perplexity", result.perplexity()},
                       {"token_accuracy", result.token_accuracy},
                       {"rows", result.rows},
                       {"trained_tokens", result.trained_tokens}};
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::printf("loss %.4f  perplexity %.3f  token accuracy %.1f%%  (%lld rows, %lld tokens)\n", result.loss,
                result.perplexity(), 100 * result.token_accuracy, static_cast<long long>(result.rows),
                static_cast<long long>(result.trained_tokens));
  }
}

Status run_eval(EvalArguments& a) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, open_device(a.device));
  ASSIGN_OR_RETURN(const Model model, open_model(a.model));
  ASSIGN_OR_RETURN(const ModelText text, open_text(model, a.chat_template));
  ASSIGN_OR_RETURN(const Dataset data, Dataset::open(a.data));
  const ProgramSettings settings{compute_dtype(a.device, device->facts()), a.without,
                                 choose_weight_dtypes(model, a.weights, device->facts())};
  std::optional<AdapterSet> adapter;
  if (!a.adapter.empty()) {
    ASSIGN_OR_RETURN(adapter, read_adapter(a.adapter, forward_program(model.spec, 1, settings)));
  }
  const std::vector<AdapterModule> modules = adapter ? adapter->modules : std::vector<AdapterModule>{};
  std::vector<Program> programs = {evaluate_program(model.spec, modules, a.tokens_per_step, settings)};
  ASSIGN_OR_RETURN(Plan plan, plan_programs(std::move(programs), model, *device, settings.without));
  ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                   Session::open(std::move(plan), model, adapter ? &*adapter : nullptr, *device));
  ASSIGN_OR_RETURN(const EvalResult result, evaluate(*session, data, eval_settings(a, text)));
  print_result(a, result);
  return {};
}

}  // namespace

Command eval_command() {
  const auto a = std::make_shared<EvalArguments>();
  Command command;
  command.name = "eval";
  command.summary = "Measure loss, perplexity and token accuracy on a data set";
  command.details = "The loss is the mean over all trained tokens of the set, whatever --tokens-per-step is.";
  command.example = "tenon eval --model MODEL --adapter RUN/adapter --data heldout.jsonl";
  command.options = {
      {"model", &a->model, "Model folder or GGUF file", "PATH", {}, {}, false, true},
      {"data", &a->data, "Data set", "FILE", {}, {}, false, true},
      {"adapter", &a->adapter, "Adapter folder in PEFT format", "FOLDER"},
      {"template", &a->chat_template, "Template file to use in place of the model's own", "FILE"},
      {"train-on", &a->train_on, "What counts", {}, {"answers", "last", "all"}},
      {"too-long", &a->too_long, "What to do with longer rows", {}, {"error", "cut", "skip"}},
      {"tokens-per-step", &a->tokens_per_step, "Tokens of one run", "N", {}, between(1, 1 << 24)},
      {"max-tokens", &a->max_tokens, "Of a row; 0: as many as a run takes", "N", {}, at_least(0)},
      {"without", &a->without, "Passes and kernels to leave out"},
      {"json", &a->json, "Print one line of JSON"},
  };
  add_device_options(command, a->device);
  command.run = [a] { return run_eval(*a); };
  return command;
}

}  // namespace tenon
