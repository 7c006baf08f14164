// From a conversation to the text a model sees in training, and which bytes of it are trained on. The place
// of an answer comes from the template alone (its generation blocks, or what it renders with and without the
// answer), never from searching for markers in the text. Pure; tokenises nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/chat_template.h"
#include "text/conversation.h"
#include "text/tokenizer.h"

namespace tenon {

enum class TrainOn { answers, last, all };

// What to do with the earlier answers of a conversation whose template writes earlier turns differently once
// more turns follow (it drops their reasoning, say), so that no rendering holds them as a server would see
// them.
enum class RewrittenTurns { train_last, refuse };

std::optional<TrainOn> train_on_from_name(std::string_view name);  // "answers", "last", "all"

struct RenderSettings {
  const ChatTemplate* chat_template = nullptr;  // null: plain text rows only
  const Tokenizer* tokenizer = nullptr;         // null: no bos_token, eos_token, ... for the template
  const Json* extra_variables = nullptr;        // of the template, for every row; may be null
  RenderOptions options;
  TrainOn train_on = TrainOn::answers;
  RewrittenTurns rewritten_turns = RewrittenTurns::train_last;
};

// How the trained bytes were found.
enum class MaskSource { plain, generation_blocks, prefixes, whole_text };

std::string_view mask_source_name(MaskSource source);

struct RenderedExample {
  std::string text;
  std::vector<TextSpan> trained;  // in order, without overlap
  MaskSource mask = MaskSource::plain;
  bool continues = false;         // see Conversation
  int32_t answers = 0;            // assistant messages that may be trained on
  int32_t answers_rewritten = 0;  // of those, left out because the template rewrites earlier turns
  // The prompt a server would give ends otherwise than the text before the answer does here (a template that
  // opens a reasoning block in the generation prompt alone).
  bool prompt_differs = false;
  int32_t reasonings = 0;           // messages with reasoning fields
  int32_t reasonings_rendered = 0;  // of those, present in the text

  bool plain() const { return mask == MaskSource::plain; }
};

// Chat rows go through the template. The trained bytes of an answer run from the end of the generation prompt
// to the end of what the template writes for that message, its end-of-turn token included, its header not.
// Messages after the last trained answer are left out of the text. Plain rows are prompt + completion, the
// completion trained (with TrainOn::all also the prompt).
//
// Where the template has no generation blocks, answer i lies between render(messages[:i], generation prompt)
// and render(messages[:i + 1]). The first must be a beginning of the second. Where it is not
// (`prompt_differs`), the answer begins where the two part, or where its content begins if that is earlier
// (the place at which two renderings with different content part), at the begin of a token; that the header
// before it is in both is required. The second must be a beginning of the whole text at least to the end of
// the content (some templates end the last turn otherwise than the ones before: then what is the same is
// trained on, in whole tokens); where it is not, `rewritten_turns` decides.
//
// Errors: bad_argument (a chat row without a template; the template refused the messages), bad_file (turns
// are rewritten and RewrittenTurns::refuse), unsupported (a template whose answers cannot be told from the
// rest).
Result<RenderedExample> render_conversation(const Conversation& conversation, const RenderSettings& settings);

// The text that a server gives a model that is to answer `messages`: the same rendering as in training, with
// the generation prompt. Errors: as ChatTemplate::render.
Result<Rendered> render_prompt(const Json& messages, const RenderSettings& settings);

// What every rendering begins with, as in transformers' apply_chat_template: messages, tools and documents
// (null), add_generation_prompt (false) and, as far as the tokenizer has them and as it spells them,
// bos_token, eos_token, pad_token and unk_token. A null tokenizer gives none of those.
Json template_variables(const Tokenizer* tokenizer);

}  // namespace tenon
