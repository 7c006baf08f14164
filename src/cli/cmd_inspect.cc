// `tenon inspect`: what a model, adapter, tokenizer or data set is.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/facts.h"
#include "cli/inspect.h"
#include "cli/inspect_architecture.h"
#include "cli/inspect_dataset.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "io/folder.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  DatasetQuestion data;  // its path is what is inspected
  bool tensors = false;
  bool json = false;
};

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_tokenizer_file(std::string_view path) {
  return file_name(path) == "tokenizer.json" || path.ends_with(".model") || path.ends_with(".tiktoken");
}

Result<Json> model_facts(const Arguments& a) {
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(a.data.path, WeightFiles::optional));
  Json facts = checkpoint_facts(checkpoint, a.tensors);
  facts["architecture"] = architecture_facts(checkpoint);
  facts["tokenizer"] = tokenizer_facts_of(a.data.path);
  return facts;
}

Result<Json> facts_of(const Arguments& a) {
  const std::string& path = a.data.path;
  if (is_folder(path) && is_file(join_path(path, "adapter_config.json"))) {
    ASSIGN_OR_RETURN(const Checkpoint adapter, Checkpoint::open_adapter(path));
    return adapter_facts(adapter, a.tensors);
  }
  if (is_folder(path) || path.ends_with(".gguf")) return model_facts(a);
  if (path.ends_with(".safetensors")) return safetensors_facts(path, a.tensors);
  if (is_tokenizer_file(path)) {
    ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::from_file(path));
    return Json{{"path", path}, {"tokenizer", tokenizer_facts(tokenizer)}};
  }
  return dataset_facts(path);
}

bool is_dataset(const std::string& path) {
  return !is_folder(path) && !path.ends_with(".gguf") && !path.ends_with(".safetensors") &&
         !is_tokenizer_file(path);
}

Status inspect_rows(const Arguments& a) {
  ASSIGN_OR_RETURN(const DataReport report, dataset_report(a.data));
  if (a.json) {
    write_output(facts_json(report_facts(report)));
    return {};
  }
  const bool colour = terminal_of(stdout).colour;
  write_output(report_text(report, colour ? TrainedMarks{"\x1b[32m", "\x1b[0m"} : TrainedMarks{}));
  return {};
}

Status inspect(const Arguments& a) {
  if (is_dataset(a.data.path) && !a.data.model.empty()) return inspect_rows(a);
  ASSIGN_OR_RETURN(const Json facts, facts_of(a));
  write_output(a.json ? facts_json(facts) : facts_text(facts));
  if (is_dataset(a.data.path) && !a.json)
    write_output("\nAdd --model PATH to see its tokens, what is trained on, and examples.\n");
  return {};
}

}  // namespace

Command inspect_command() {
  auto a = std::make_shared<Arguments>();
  return {
      .name = "inspect",
      .summary = "Say what a model, adapter, tokenizer or data set is",
      .details =
          "Of a data set with --model: rows, their lengths in tokens, rows cut or left out, begin and end "
          "tokens, "
          "and three examples with the trained text marked.",
      .example =
          "tenon inspect models/small\ntenon inspect train.jsonl --model models/small --max-tokens 1024",
      .positionals =
          {{"PATH", &a->data.path,
            "Model folder, GGUF or safetensors file, adapter folder, tokenizer file, or data set"}},
      .options = {{"json", &a->json, "Print JSON"},
                  {"tensors", &a->tensors, "List every tensor"},
                  {.name = "model",
                   .target = &a->data.model,
                   .help = "Model whose tokenizer and template to use",
                   .value_name = "PATH",
                   .group = "data sets"},
                  {.name = "template",
                   .target = &a->data.chat_template,
                   .help = "Chat template to use instead of the model's own",
                   .value_name = "FILE",
                   .group = "data sets"},
                  {.name = "train-on",
                   .target = &a->data.train_on,
                   .help = "Tokens that the loss would count",
                   .choices = {"answers", "last", "all"},
                   .group = "data sets"},
                  {.name = "too-long",
                   .target = &a->data.too_long,
                   .help = "What happens to rows of more than --max-tokens tokens",
                   .choices = {"error", "cut", "skip"},
                   .group = "data sets"},
                  {.name = "max-tokens",
                   .target = &a->data.max_tokens,
                   .help = "Longest row in tokens",
                   .range = between(1, 1 << 24),
                   .group = "data sets"},
                  {.name = "rows",
                   .target = &a->data.max_rows,
                   .help = "Rows to read, chosen at random; 0 is all",
                   .range = at_least(0),
                   .group = "data sets"}},
      .prepare = {},
      .run = [a] { return inspect(*a); },
  };
}

}  // namespace tenon
