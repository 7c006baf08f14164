// The post-processor stage: what stands around the text's tokens, and which spans lose the spaces at their
// ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "text/token_sink.h"

namespace tenon {

// The tokens of one text: fixed ids, and the text's own in the place of nullopt.
struct PostprocessTemplate {
  std::vector<std::optional<int32_t>> items;
};
// Spans of byte-level tokens leave out the spaces at their ends.
struct PostprocessTrim {
  bool add_prefix_space = true;  // one space at the start was added, and has no place in the text
};

using PostprocessStep = std::variant<PostprocessTemplate, PostprocessTrim>;
using Postprocessor = std::vector<PostprocessStep>;

// `input` is the text encoded. `token` gives the text of an id; empty for added tokens, whose text is what
// they matched.
void postprocess(const Postprocessor& steps, bool add_special, std::string_view input,
                 FunctionRef<std::string_view(int32_t)> token, TokenSink& tokens);

}  // namespace tenon
