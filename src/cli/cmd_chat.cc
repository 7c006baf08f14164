// tenon chat: a conversation in the terminal, streamed.
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "base/json.h"
#include "cli/command.h"
#include "cli/generate_option.h"
#include "cli/terminal.h"
#include "run/prompt.h"

namespace tenon {
namespace {

struct ChatArguments {
  GenerateOptions options;
  std::string system;
};

// One turn: the whole conversation is rendered again, as the template may rewrite earlier turns, and fed from
// the start.
Result<std::string> reply_to(const Json& messages, OpenedGenerator& opened, const GenerateOptions& o) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids, chat_prompt(opened.text, messages));
  const int64_t room = o.context - static_cast<int64_t>(ids.size());
  if (room < 1)
    return bad_argument("the conversation fills the context", "--context", "Start again, or raise it.");
  opened.generator->reset();
  StreamDecoder decoder(opened.text.tokenizer, /*skip_special=*/true);
  std::string text;
  const auto show = [&](const std::string& piece) {
    text += piece;
    std::fputs(piece.c_str(), stdout);
    std::fflush(stdout);
  };
  ASSIGN_OR_RETURN(const Reply reply, generate(*opened.generator, ids, std::min(o.max_new, room),
                                               opened.text.tokenizer.special().eos, o.sampling,
                                               [&](int32_t id) { show(decoder.push(id)); }));
  show(decoder.finish());
  std::fputs(reply.ended ? "\n" : " [cut at --max-new]\n", stdout);
  return text;
}

Status run_chat(ChatArguments& a) {
  ASSIGN_OR_RETURN(const std::unique_ptr<OpenedGenerator> opened, open_generator(a.options));
  if (!opened->text.chat_template) return chat_prompt(opened->text, Json::array()).error();
  const Terminal terminal = terminal_of(stdout);
  const std::string you = styled(terminal, Style::bold, "you> ");
  const std::string model = styled(terminal, Style::green, "model> ");
  Json messages = Json::array();
  if (!a.system.empty()) messages.push_back({{"role", "system"}, {"content", a.system}});
  if (terminal.interactive) std::puts("An empty line or Ctrl-D ends the conversation.");
  std::string line;
  while (true) {
    std::fputs(you.c_str(), stdout);
    std::fflush(stdout);
    if (!std::getline(std::cin, line) || line.empty()) break;
    messages.push_back({{"role", "user"}, {"content", line}});
    std::fputs(model.c_str(), stdout);
    ASSIGN_OR_RETURN(const std::string reply, reply_to(messages, *opened, a.options));
    messages.push_back({{"role", "assistant"}, {"content", reply}});
  }
  std::puts("");
  return {};
}

}  // namespace

Command chat_command() {
  const auto a = std::make_shared<ChatArguments>();
  Command command;
  command.name = "chat";
  command.summary = "Talk with a model in the terminal";
  command.example = "tenon chat --model MODEL --adapter RUN/adapter --temperature 0.7";
  command.options = {{"system", &a->system, "System message"}};
  add_generate_options(command, a->options);
  command.run = [a] { return run_chat(*a); };
  return command;
}

}  // namespace tenon
