// `tenon render`: the exact text that a chat template makes of a conversation.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/iso_time.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/streams.h"
#include "io/json_file.h"
#include "io/write_file.h"
#include "run/model_text.h"
#include "text/chat_template.h"
#include "text/conversation_render.h"
#include "text/tokenizer.h"

namespace tenon {
namespace {

struct Arguments {
  std::string path;
  std::string conversation;
  std::string chat_template;
  bool generation_prompt = false;
  StringList set;
  std::optional<std::string> clock;
  bool json = false;
};

Result<Json> read_conversation(const std::string& path) {
  std::string text;
  if (path == "-") {
    ASSIGN_OR_RETURN(text, read_standard_input());
  } else {
    ASSIGN_OR_RETURN(text, read_file(path));
  }
  ASSIGN_OR_RETURN(Json conversation, parse_json(text, path == "-" ? "standard input" : path));
  if (!conversation.is_object() || !conversation.contains("messages"))
    return bad_file("is not an object with \"messages\"", path,
                    R"(Write {"messages": [{"role": "user", "content": "Hello"}]}.)");
  return conversation;
}

// "key=value"; the value is JSON where it reads as such, else text.
Status set_variable(std::string_view assignment, Json& variables) {
  const size_t equals = assignment.find('=');
  if (equals == 0 || equals == std::string_view::npos)
    return bad_argument(fmt::format("'{}' is not of the form key=value", assignment), "--set");
  const std::string_view text = assignment.substr(equals + 1);
  auto value = parse_json(text, {});
  variables[std::string(assignment.substr(0, equals))] = value.ok() ? std::move(*value) : Json(text);
  return {};
}

// What every rendering has, then what the file and the command line add.
Result<Json> all_variables(const Arguments& a, const Tokenizer* tokenizer, const Json& conversation) {
  Json variables = template_variables(tokenizer);
  for (const auto& [key, value] : conversation.items()) variables[key] = value;
  if (a.generation_prompt) variables["add_generation_prompt"] = true;
  for (const std::string& assignment : a.set) RETURN_IF_ERROR(set_variable(assignment, variables));
  return variables;
}

Status render(const Arguments& a) {
  RenderOptions options;
  if (a.clock) {
    auto time = parse_iso_time(*a.clock);
    if (!time.ok()) return std::move(time).error().within("--clock");
    options.clock_unix_seconds = time->unix_seconds;
    options.utc_offset_seconds = time->utc_offset_seconds;
  }
  ASSIGN_OR_RETURN(const Json conversation, read_conversation(a.conversation));
  const bool template_alone = a.path.ends_with(".jinja") || a.path.ends_with(".jinja2");
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  if (template_alone) {
    ASSIGN_OR_RETURN(chat_template, read_chat_template(a.path));
  } else {
    ASSIGN_OR_RETURN(tokenizer, Tokenizer::from_file(a.path));
    const bool with_tools = conversation.contains("tools") && !conversation["tools"].is_null();
    ASSIGN_OR_RETURN(chat_template, choose_chat_template(*tokenizer, a.path, a.chat_template, with_tools));
  }
  ASSIGN_OR_RETURN(const Json variables, all_variables(a, tokenizer ? &*tokenizer : nullptr, conversation));
  auto rendered = chat_template->render(variables, options);
  if (!rendered.ok()) {
    Error error = std::move(rendered).error();
    if (error.code == ErrorCode::over_budget)
      error.code = ErrorCode::bad_file;  // a runaway template, not memory
    return error;
  }
  write_output(a.json ? Json(rendered->text).dump() + "\n" : rendered->text);
  return {};
}

}  // namespace

Command render_command() {
  auto a = std::make_shared<Arguments>();
  return {
      .name = "render",
      .summary = "Print what the chat template makes of a conversation",
      .details =
          "The conversation is a JSON object with \"messages\" and, where they are wanted, \"tools\", "
          "\"documents\" and any other variable of the template. The text is printed byte for byte, "
          "without a line end of its own.",
      .example =
          "tenon render models/small conversation.json --generation-prompt\n"
          "tenon render template.jinja conversation.json --set bos_token='<s>' --set enable_thinking=false",
      .positionals = {{"PATH", &a->path, "Model folder, GGUF file, tokenizer.json or .jinja file"},
                      {"CONVERSATION", &a->conversation, "JSON file; - is standard input"}},
      .options = {{"generation-prompt", &a->generation_prompt, "End with what asks the model for an answer"},
                  {"template", &a->chat_template, "Chat template to use instead of the model's own", "FILE"},
                  {.name = "set",
                   .target = &a->set,
                   .help =
                       "Set a variable of the template; the value is JSON where it reads as such, else text",
                   .value_name = "KEY=VALUE",
                   .repeatable = true},
                  {"clock", &a->clock, "The time that the template sees, such as 2024-07-26T12:34:56Z",
                   "TIME"},
                  {"json", &a->json, "Print a JSON string"}},
      .prepare = {},
      .run = [a] { return render(*a); },
  };
}

}  // namespace tenon
