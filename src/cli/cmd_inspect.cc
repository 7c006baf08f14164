// `tenon inspect`: what a model, adapter, tokenizer or data set is.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/data_option.h"
#include "cli/facts.h"
#include "cli/inspect.h"
#include "cli/inspect_architecture.h"
#include "cli/inspect_dataset.h"
#include "cli/inspect_template.h"
#include "cli/inspect_tokenizer.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "io/folder.h"
#include "io/write_file.h"

namespace tenon {
namespace {

struct Arguments {
  StringList words;
  std::string path;      // what is inspected
  DatasetQuestion data;  // its sources are the same, where it is a data set
  TemplateQuestion chat_template;
  std::optional<std::string> text;
  std::optional<std::string> text_file;
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
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(a.path, WeightFiles::optional));
  Json facts = checkpoint_facts(checkpoint, a.tensors);
  facts["architecture"] = architecture_facts(checkpoint);
  facts["tokenizer"] = tokenizer_facts_of(a.path);
  return facts;
}

Result<Json> facts_of(const Arguments& a) {
  const std::string& path = a.path;
  if (is_folder(path) && is_file(join_path(path, "adapter_config.json"))) {
    ASSIGN_OR_RETURN(const Checkpoint adapter, Checkpoint::open_adapter(path));
    return adapter_facts(adapter, a.tensors);
  }
  if (is_folder(path) || path.ends_with(".gguf")) return model_facts(a);
  if (path.ends_with(".safetensors")) return safetensors_facts(path, a.tensors);
  ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::from_file(path));
  return Json{{"path", path}, {"tokenizer", tokenizer_facts(tokenizer)}};
}

bool is_dataset(const std::string& path) {
  return !is_folder(path) && !path.ends_with(".gguf") && !path.ends_with(".safetensors") &&
         !is_tokenizer_file(path);
}

Status inspect_rows(const Arguments& a) {
  if (a.json) {
    ASSIGN_OR_RETURN(const Json facts, dataset_report_facts(a.data));
    write_output(facts_json(facts));
    return {};
  }
  const bool colour = terminal_of(stdout).colour;
  const TrainedMarks marks = colour ? TrainedMarks{"\x1b[32m", "\x1b[0m"} : TrainedMarks{};
  ASSIGN_OR_RETURN(const std::string text, dataset_report_text(a.data, marks));
  write_output(text);
  return {};
}

Status inspect_tokenizer(const Arguments& a) {
  TokenizerQuestion question{a.words[1], a.words.size() > 2 ? a.words[2] : std::string(), a.text};
  if (a.text_file) {
    ASSIGN_OR_RETURN(question.text, read_file(*a.text_file));
  }
  if (question.text && question.other.empty()) {
    return bad_argument(
        "a text is for comparing two tokenizers", "inspect tokenizer",
        "Name a second tokenizer, or use tenon tokenize --offsets to see the tokens of a text.");
  }
  ASSIGN_OR_RETURN(const Json answer, tokenizer_answer(question));
  write_output(a.json ? facts_json(answer) : answer_text(answer));
  return {};
}

Status inspect_template(const Arguments& a) {
  TemplateQuestion question = a.chat_template;
  question.model = a.words[1];
  question.rows = StringList(a.words.begin() + 2, a.words.end());
  question.columns = a.data.columns;
  question.clock = a.data.clock;
  question.chat_template = a.data.chat_template;
  question.train_on = a.data.train_on;
  ASSIGN_OR_RETURN(const Json answer, template_answer(question));
  write_output(a.json ? facts_json(answer) : template_text(answer));
  return {};
}

Status inspect_data(const Arguments& a) {
  if (!a.data.model.empty()) return inspect_rows(a);
  ASSIGN_OR_RETURN(const Json facts, dataset_facts(a.data));
  write_output(a.json ? facts_json(facts) : facts_text(facts));
  if (!a.json) write_output("\nAdd --model PATH to see its tokens, what is trained on, and examples.\n");
  return {};
}

Status inspect(const Arguments& a) {
  if (is_dataset(a.path)) return inspect_data(a);
  ASSIGN_OR_RETURN(const Json facts, facts_of(a));
  write_output(a.json ? facts_json(facts) : facts_text(facts));
  return {};
}

// The word before the path says what to look at; without one the path does.
Status inspect_words(Arguments& a) {
  const std::string& first = a.words.front();
  const bool is_kind = (first == "tokenizer" || first == "template" || first == "data") && a.words.size() > 1;
  const size_t most = !is_kind ? 1 : first == "tokenizer" ? 3 : a.words.size();
  if (a.words.size() > most)
    return bad_argument(fmt::format("unexpected argument '{}'", a.words[most]), "inspect",
                        "See 'tenon inspect --help'.");
  if (is_kind && first == "tokenizer") return inspect_tokenizer(a);
  if (is_kind && first == "template") return inspect_template(a);
  a.path = a.words.back();
  a.data.sources = StringList(a.words.begin() + (is_kind ? 1 : 0), a.words.end());
  return is_kind ? inspect_data(a) : inspect(a);
}

std::vector<Option> inspect_options(Arguments& a) {
  return {{"json", &a.json, "Print JSON"},
          {"tensors", &a.tensors, "List every tensor"},
          {.name = "model",
           .target = &a.data.model,
           .help = "Model whose tokenizer and template to use",
           .value_name = "PATH",
           .group = "data sets"},
          {.name = "template",
           .target = &a.data.chat_template,
           .help = "Chat template to use instead of the model's own",
           .value_name = "FILE",
           .group = "data sets"},
          {.name = "train-on",
           .target = &a.data.train_on,
           .help = "Tokens that the loss would count",
           .choices = {"answers", "last", "all"},
           .group = "data sets"},
          {.name = "too-long",
           .target = &a.data.too_long,
           .help = "What happens to rows of more than --max-tokens tokens",
           .choices = {"error", "cut", "skip"},
           .group = "data sets"},
          {.name = "max-tokens",
           .target = &a.data.max_tokens,
           .help = "Longest row in tokens",
           .range = between(1, 1 << 24),
           .group = "data sets"},
          {.name = "rows",
           .target = &a.data.max_rows,
           .help = "Rows to read, chosen at random; 0 is all",
           .range = at_least(0),
           .group = "data sets"},
          {.name = "show",
           .target = &a.data.examples,
           .help = "Rows to show with the trained text marked",
           .range = at_least(0),
           .group = "data sets"},
          {.name = "eval-data",
           .target = &a.data.eval_data,
           .help = "Rows to look for in the data: what an evaluation asks, training should not hold",
           .value_name = "FILE",
           .repeatable = true,
           .group = "data sets"},
          columns_option(&a.data.columns, "data sets"),
          clock_option(&a.data.clock, "data sets"),
          {.name = "row",
           .target = &a.chat_template.row,
           .help = "Row to show, counted from 0",
           .range = at_least(0),
           .group = "templates"},
          {.name = "text",
           .target = &a.text,
           .help = "Text to compare two tokenizers on, in place of a paragraph in 53 languages",
           .group = "tokenizers"},
          {.name = "file",
           .target = &a.text_file,
           .help = "The same from a file",
           .value_name = "FILE",
           .group = "tokenizers"}};
}

}  // namespace

Command inspect_command() {
  auto a = std::make_shared<Arguments>();
  return {
      .name = "inspect",
      .summary = "Say what a model, adapter, tokenizer or data set is",
      .details =
          "Of a data set with --model: rows, their lengths in tokens, rows cut or left out, begin and "
          "end tokens, and examples with the trained text marked.\n\n"
          "inspect tokenizer A says what to know before tuning: what it puts around a text, how it "
          "cuts, entries that no text gives, tokens a text costs by language; with B, where the two "
          "differ. inspect template MODEL sets the training text of a conversation beside the prompt "
          "that a server would give, token by token.",
      .example =
          "tenon inspect models/small\ntenon inspect train.jsonl --model models/small --max-tokens 1024\n"
          "tenon inspect tokenizer models/small\ntenon inspect tokenizer models/small small.gguf\n"
          "tenon inspect template models/small train.jsonl --row 3",
      .positionals = {{"PATH", &a->words,
                       "Model folder, GGUF or safetensors file, adapter folder, tokenizer file, or data set; "
                       "or tokenizer A [B], template MODEL [ROWS...], data ROWS..."}},
      .options = inspect_options(*a),
      .prepare = {},
      .run = [a] { return inspect_words(*a); },
  };
}

}  // namespace tenon
