// A template from anyone, over a fixed conversation.
#include "text/chat_template_fuzz_check.h"

#include "base/json.h"
#include "text/chat_template.h"
#include "text/jinja_unicode.h"

namespace tenon {
namespace {

Json conversation(std::string_view content) {
  Json out;
  out["messages"] = {
      {{"role", "system"}, {"content", "Be brief."}},
      {{"role", "user"}, {"content", std::string(content)}},
      {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {{{"id", "a"}, {"n", 1.5}}}}}};
  out["tools"] = {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", Json::object()}}}}};
  out["add_generation_prompt"] = true;
  out["bos_token"] = "<s>";
  out["n"] = 7;
  out["x"] = nullptr;
  return out;
}

}  // namespace

void fuzz_chat_template(std::string_view bytes) {
  const size_t zero = bytes.find('\0');
  const std::string_view content = zero == bytes.npos ? "Hi é👋" : bytes.substr(zero + 1);
  const auto parsed = ChatTemplate::parse(std::string(bytes.substr(0, zero)), "fuzz");
  if (!parsed.ok()) return;
  RenderOptions options;
  options.clock_unix_seconds = 1722000000;
  options.max_steps = 20'000;
  options.max_output_bytes = 1 << 16;
  options.max_depth = 500;
  const auto variables = conversation(content);
  const auto first = parsed->render(variables, options);
  const auto second = parsed->render(variables, options);
  CHECK(first.ok() == second.ok());
  if (!first.ok()) return;
  CHECK(first->text == second->text);
  CHECK(jinja::is_utf8(first->text));
  for (const TextSpan& span : first->generation) {
    CHECK(span.begin >= 0 && span.begin <= span.end && span.end <= static_cast<int64_t>(first->text.size()));
  }
}

}  // namespace tenon
