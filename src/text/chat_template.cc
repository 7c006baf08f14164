// The public face of the evaluator: parses once, renders with a budget, turns failures into errors.
#include "text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/json.h"
#include "text/jinja_eval.h"
#include "text/jinja_json.h"
#include "text/jinja_lexer.h"
#include "text/jinja_parser.h"
#include "text/jinja_unicode.h"

namespace tenon {

struct ChatTemplate::State {
  std::string source;
  std::string name;
  jinja::Tree tree;
};

namespace {

constexpr size_t kMaxSourceBytes = 1 << 20;
constexpr int64_t kPasses = 128;  // how often a template may go over all of its variables, beyond max_steps

Error to_error(jinja::Failure failure, const std::string& name, jinja::Position at) {
  if (failure.at) at = *failure.at;
  std::string hint;
  if (failure.code == ErrorCode::over_budget)
    hint = "use another template, or raise the limits of the render";
  return Error{failure.code, std::move(failure.message), fmt::format("{}:{}:{}", name, at.line, at.column),
               std::move(hint)};
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<const State> state) : state_(std::move(state)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string source, std::string name) {
  if (source.size() > kMaxSourceBytes) return bad_file("the template is larger than 1 MiB", std::move(name));
  if (!jinja::is_utf8(source)) return bad_file("the template is not UTF-8", std::move(name));
  auto state = std::make_unique<State>();
  state->source = std::move(source);
  state->name = std::move(name);
  try {
    state->tree = jinja::parse_template(jinja::normalize_source(state->source));
  } catch (jinja::Failure& failure) {
    return to_error(std::move(failure), state->name, {});
  }
  return ChatTemplate(std::move(state));
}

Result<Rendered> ChatTemplate::render(const Json& variables, const RenderOptions& options) const {
  if (!variables.is_object())
    return bad_argument("the variables of a chat template are an object", state_->name);
  jinja::Runtime runtime;
  runtime.max_depth = options.max_depth;
  runtime.clock_unix_seconds = options.clock_unix_seconds;
  runtime.utc_offset_seconds = options.utc_offset_seconds;
  jinja::Position at;
  try {
    // The variables are the caller's; the budget is for what the template does with them.
    constexpr int64_t kPlenty = std::numeric_limits<int64_t>::max() / 2;
    runtime.steps_left = kPlenty;
    runtime.max_string_bytes = kPlenty;
    const jinja::Value context = jinja::from_json(runtime, variables);
    runtime.max_string_bytes = options.max_output_bytes;
    runtime.steps_left = options.max_steps + kPasses * (kPlenty - runtime.steps_left);
    jinja::Evaluator evaluator(state_->tree, runtime, context, options.max_output_bytes);
    try {
      evaluator.run();
    } catch (jinja::Failure&) {
      at = evaluator.position();
      throw;
    }
    Rendered out;
    out.text = evaluator.take_text();
    for (const auto& span : evaluator.take_spans()) {
      out.generation.push_back(TextSpan{static_cast<int64_t>(span.begin), static_cast<int64_t>(span.end)});
    }
    out.generation_exact = evaluator.spans_exact();
    return out;
  } catch (jinja::Failure& failure) {
    return to_error(std::move(failure), state_->name, at);
  }
}

bool ChatTemplate::has_generation_blocks() const {
  return state_->tree.has_generation;
}

bool ChatTemplate::reads_variable(std::string_view variable) const {
  const auto& names = state_->tree.variables;
  return std::find(names.begin(), names.end(), variable) != names.end();
}

const std::string& ChatTemplate::source() const {
  return state_->source;
}
const std::string& ChatTemplate::name() const {
  return state_->name;
}

}  // namespace tenon
