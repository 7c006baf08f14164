// Chat templates: the Jinja that ships with a checkpoint, from messages to the prompt text.
// Renders byte for byte what Python's jinja2 renders in an immutable sandbox with trim_blocks, lstrip_blocks,
// break and continue, {% generation %} blocks, raise_exception, strftime_now and a tojson that keeps
// non-ASCII. Never reads files, the environment or the clock; never calls out; every render is bounded by
// RenderOptions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace tenon {

// What a render may use. A template that passes a budget is refused with over_budget.
struct RenderOptions {
  // What strftime_now() prints, in seconds since 1970-01-01 UTC. A template that asks for the time is refused
  // when this is empty, so that no prompt depends on the moment by accident.
  std::optional<int64_t> clock_unix_seconds;
  int64_t utc_offset_seconds = 0;  // the time zone in which strftime_now() prints

  // Nodes evaluated, plus one for each two elements or 16 bytes copied; a hostile template is stopped in
  // about 100 ms. Long conversations add to it: 128 more for each value and each 16 bytes of the variables.
  int64_t max_steps = 1'500'000;
  int64_t max_output_bytes = 8ll << 20;  // of the text, and of any one string on the way
  int64_t max_depth = 1000;              // nested evaluations: expressions, blocks, macro calls
};

// Bytes [begin, end) of Rendered::text.
struct TextSpan {
  int64_t begin = 0;
  int64_t end = 0;
  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};

struct Rendered {
  std::string text;                  // UTF-8
  std::vector<TextSpan> generation;  // what {% generation %} blocks wrote, in order; empty if there are none
  // False when a generation block wrote into a value (inside a macro, a block set or a filter block), so that
  // its place in the text is not known and `generation` lacks it. A caller that trains on the spans refuses
  // then.
  bool generation_exact = true;
};

// A parsed template. Immutable: any number of threads may render at once.
class ChatTemplate {
 public:
  // `name` is what errors call the template. Errors: bad_file (syntax; subject "name:line:column"; more than
  // a mebibyte), unsupported (include, import, extends, block: a chat template is one file), over_budget
  // (nesting).
  static Result<ChatTemplate> parse(std::string source, std::string name);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // `variables` is an object: messages, tools, documents, add_generation_prompt, bos_token, ... Key order is
  // kept. Errors: bad_argument (the template refused the input: raise_exception, an operation on an undefined
  // value, a type error; the message is the template's or the one jinja2 gives), over_budget, unsupported (an
  // integer past 64 bits). The subject is "name:line:column".
  Result<Rendered> render(const Json& variables, const RenderOptions& options = {}) const;

  // True if the template has {% generation %} blocks, so that Rendered::generation means something.
  bool has_generation_blocks() const;

  // True if some statement or expression reads this name as a variable that the template does not itself set;
  // for example "tools" or "enable_thinking".
  bool reads_variable(std::string_view variable) const;

  const std::string& source() const;
  const std::string& name() const;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace tenon
