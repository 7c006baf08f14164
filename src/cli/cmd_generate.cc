// tenon generate: replies to one prompt, or to each prompt of a file.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/json.h"
#include "cli/command.h"
#include "cli/generate_option.h"
#include "io/write_file.h"
#include "run/prompt.h"
#include "text/dataset_file.h"

namespace tenon {
namespace {

struct GenerateArguments {
  GenerateOptions options;
  std::optional<std::string> prompt;
  std::string prompts;  // file
  std::string field = "prompt";
  bool raw = false;
  bool json = false;
};

Result<std::vector<std::string>> read_prompts(const GenerateArguments& a) {
  if (a.prompt) return std::vector<std::string>{*a.prompt};
  if (a.prompts.empty())
    return bad_argument("there is no prompt", "--prompt", "Give --prompt TEXT or --prompts FILE.");
  ASSIGN_OR_RETURN(const DatasetFile file, DatasetFile::open(a.prompts));
  std::vector<std::string> prompts;
  for (int64_t row = 0; row < file.rows(); ++row) {
    const Json object = Json::parse_or_null(file.row(row));
    if (!object.is_object() || !object.contains(a.field) || !object[a.field].is_string()) {
      return bad_file(fmt::format("the row is not an object with a string '{}'", a.field), file.where(row),
                      "Name the key that holds the prompt with --field.");
    }
    prompts.push_back(object[a.field].get<std::string>());
  }
  return prompts;
}

Status answer(const GenerateArguments& a, OpenedGenerator& opened, const std::string& prompt) {
  using Clock = std::chrono::steady_clock;
  std::vector<int32_t> ids;
  if (a.raw) {
    ids = opened.text.tokenizer.encode(prompt);
  } else {
    ASSIGN_OR_RETURN(ids, user_prompt(opened.text, prompt));
  }
  opened.generator->reset();
  StreamDecoder decoder(opened.text.tokenizer, /*skip_special=*/true);
  std::string text;
  const auto on_token = [&](int32_t id) {
    const std::string piece = decoder.push(id);
    text += piece;
    if (a.json) return;
    std::fputs(piece.c_str(), stdout);
    std::fflush(stdout);
  };
  const Clock::time_point begin = Clock::now();
  const int64_t room = a.options.context - static_cast<int64_t>(ids.size());
  const int64_t limit = std::min(a.options.max_new, room);
  ASSIGN_OR_RETURN(const Reply reply,
                   generate(*opened.generator, ids, limit, opened.text.tokenizer.special().eos,
                            a.options.sampling, on_token));
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const std::string rest = decoder.finish();
  text += rest;
  if (!a.json) {
    std::printf("%s\n", rest.c_str());
    return {};
  }
  const Json line = {{"prompt", prompt},
                     {"text", text},
                     {"prompt_tokens", ids.size()},
                     {"new_tokens", reply.ids.size()},
                     {"finish_reason", reply.ended ? "stop" : "length"},
                     {"seconds", seconds}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
  return {};
}

Status run_generate(GenerateArguments& a) {
  ASSIGN_OR_RETURN(const std::vector<std::string> prompts, read_prompts(a));
  ASSIGN_OR_RETURN(const std::unique_ptr<OpenedGenerator> opened, open_generator(a.options));
  for (const std::string& prompt : prompts) RETURN_IF_ERROR(answer(a, *opened, prompt));
  return {};
}

}  // namespace

Command generate_command() {
  const auto a = std::make_shared<GenerateArguments>();
  Command command;
  command.name = "generate";
  command.summary = "Reply to a prompt, or to every prompt of a file";
  command.details =
      "The prompt is one user message, rendered by the model's chat template; with --raw it is continued as "
      "it is.";
  command.example =
      "tenon generate --model MODEL --prompt 'What is a tenon?'\n"
      "tenon generate --model MODEL --adapter RUN/adapter --prompts questions.jsonl --field question --json";
  command.options = {
      {"prompt", &a->prompt, "The prompt"},
      {"prompts", &a->prompts, "File of rows that hold a prompt each", "FILE"},
      {"field", &a->field, "Key of the prompt in those rows", "NAME"},
      {"raw", &a->raw, "Continue the text as it is, without a chat template"},
      {"json", &a->json, "Print one JSON object a prompt"},
  };
  add_generate_options(command, a->options);
  command.run = [a] { return run_generate(*a); };
  return command;
}

}  // namespace tenon
