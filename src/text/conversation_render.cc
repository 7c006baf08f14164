#include "text/conversation_render.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"

namespace tenon {
namespace {

constexpr std::array<const char*, 3> kReasoningKeys = {"reasoning_content", "reasoning", "thinking"};

size_t common_prefix(std::string_view a, std::string_view b) {
  const size_t limit = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(limit), b.begin()).first - a.begin());
}

// Renders beginnings of one conversation.
class Renderer {
 public:
  Renderer(const Conversation& conversation, const RenderSettings& settings)
      : settings_(settings), variables_(template_variables(settings.tokenizer)) {
    if (settings.extra_variables) variables_.update(*settings.extra_variables);
    variables_.update(*conversation.variables);
    messages_ = std::move(variables_["messages"]);
  }

  const Json& messages() const { return messages_; }

  Result<Rendered> full(size_t count, bool generation_prompt) {
    return render(first(count), generation_prompt);
  }

  Result<std::string> text(size_t count, bool generation_prompt) {
    ASSIGN_OR_RETURN(Rendered rendered, full(count, generation_prompt));
    return std::move(rendered.text);
  }

  // The first `count` messages, the content of the last one with one character more at its begin or end.
  // Nothing where it has no text or the template refuses.
  std::optional<std::string> text_with_more(size_t count, bool at_end) {
    Json part = first(count);
    Json& content = part.back()["content"];
    if (!content.is_string() || content.text().empty()) return std::nullopt;
    std::string& words = content.text();
    const char old = at_end ? words.back() : words.front();
    words.insert(at_end ? words.size() : 0, 1, old == 'x' ? 'y' : 'x');
    Result<Rendered> rendered = render(std::move(part), false);
    if (!rendered.ok()) return std::nullopt;
    return std::move(rendered->text);
  }

  // The place at or before `at` where a token of `text` begins; none where there is no tokenizer to tell.
  std::optional<size_t> token_begin(std::string_view text, size_t at) const {
    if (!settings_.tokenizer) return std::nullopt;
    size_t begin = 0;
    for (const TokenSpan& token : settings_.tokenizer->encode_spans(text, {.add_special = false})) {
      if (static_cast<size_t>(token.begin) > at) break;
      begin = static_cast<size_t>(token.end) <= at ? static_cast<size_t>(token.end)
                                                   : static_cast<size_t>(token.begin);
    }
    return begin;
  }

 private:
  Json first(size_t count) const {
    Json part = Json::array();
    for (size_t i = 0; i < count; ++i) part.push_back(messages_[i]);
    return part;
  }

  Result<Rendered> render(Json messages, bool generation_prompt) {
    variables_["messages"] = std::move(messages);
    variables_["add_generation_prompt"] = generation_prompt;
    return settings_.chat_template->render(variables_, settings_.options);
  }

  const RenderSettings& settings_;
  Json variables_;
  Json messages_;
};

// The bytes of answer `index` (an assistant message) in the rendering of the messages up to and with it.
struct AnswerPlace {
  std::string text;  // that rendering
  TextSpan span;
  bool prompt_differs = false;
};

bool has_word(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") != std::string_view::npos;
}

Result<AnswerPlace> place_answer(Renderer& renderer, size_t index) {
  ASSIGN_OR_RETURN(const std::string prompt, renderer.text(index, true));
  AnswerPlace place;
  ASSIGN_OR_RETURN(place.text, renderer.text(index + 1, false));
  size_t begin = common_prefix(prompt, place.text);
  if (begin < prompt.size()) {
    place.prompt_differs = true;
    if (const auto other = renderer.text_with_more(index + 1, false)) {
      begin = std::min(begin, common_prefix(*other, place.text));
    }
    begin = renderer.token_begin(place.text, begin).value_or(begin);
    ASSIGN_OR_RETURN(const std::string context, renderer.text(index, false));
    const size_t header = common_prefix(context, place.text);
    if (begin <= header || !has_word(std::string_view(place.text).substr(header, begin - header))) {
      return unsupported(
          "the template writes an answer in another way than its generation prompt begins one",
          "messages[" + std::to_string(index) + "]",
          "Give a template with generation blocks around the answers, or train on all of the text.");
    }
  }
  place.span = {static_cast<int64_t>(begin), static_cast<int64_t>(place.text.size())};
  return place;
}

// The part of an earlier answer that stands in the whole text as in `place`: all of it, or all of its content
// and what follows that is the same. Nothing where its content or what precedes it is written otherwise.
std::optional<TextSpan> span_in_whole(Renderer& renderer, const AnswerPlace& place, size_t index,
                                      std::string_view whole) {
  if (whole.starts_with(place.text)) return place.span;
  const auto more = renderer.text_with_more(index + 1, true);
  if (!more) return std::nullopt;
  const std::string_view text = place.text;
  const size_t tail =
      common_prefix(std::string(text.rbegin(), text.rend()), std::string(more->rbegin(), more->rend()));
  const size_t same = common_prefix(text, whole);
  if (same + tail < text.size()) return std::nullopt;
  const auto end = renderer.token_begin(whole, same);
  if (!end || *end + tail < text.size()) return std::nullopt;
  return TextSpan{place.span.begin, static_cast<int64_t>(*end)};
}

// Assistant messages to train on, in order.
std::vector<size_t> answers_of(const Json& messages, int64_t first) {
  std::vector<size_t> answers;
  for (size_t i = static_cast<size_t>(first); i < messages.size(); ++i)
    if (is_trainable_answer(messages[i])) answers.push_back(i);
  return answers;
}

size_t count_assistant_messages(const Json& messages, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) found += messages[i].value("role", "") == "assistant";
  return found;
}

void count_reasonings(const Json& messages, RenderedExample& out) {
  for (const Json& message : messages) {
    for (const char* key : kReasoningKeys) {
      const auto it = message.find(key);
      if (it == message.end() || !it->is_string()) continue;
      std::string_view words = it->text();
      while (!words.empty() && std::string_view(" \t\r\n").find(words.front()) != std::string_view::npos)
        words.remove_prefix(1);
      while (!words.empty() && std::string_view(" \t\r\n").find(words.back()) != std::string_view::npos)
        words.remove_suffix(1);
      if (words.empty()) continue;
      ++out.reasonings;
      out.reasonings_rendered += out.text.find(words) != std::string::npos;
      break;
    }
  }
}

// True with `out` filled where the template's generation blocks say which bytes are which answer.
Result<bool> mask_by_generation_blocks(Renderer& renderer, const std::vector<size_t>& answers,
                                       TrainOn train_on, RenderedExample& out) {
  const size_t count = answers.back() + 1;
  ASSIGN_OR_RETURN(Rendered rendered, renderer.full(count, false));
  if (!rendered.generation_exact) return false;
  const size_t assistants = count_assistant_messages(renderer.messages(), count);
  const bool all_trained = train_on == TrainOn::answers && assistants == answers.size();
  if (!all_trained && rendered.generation.size() != assistants) return false;
  if (all_trained) {
    out.trained = std::move(rendered.generation);
  } else {
    for (const size_t answer : answers) {
      out.trained.push_back(rendered.generation[count_assistant_messages(renderer.messages(), answer)]);
    }
    if (train_on == TrainOn::last) out.trained.erase(out.trained.begin(), out.trained.end() - 1);
  }
  std::erase_if(out.trained, [](const TextSpan& span) { return span.begin == span.end; });
  out.text = std::move(rendered.text);
  out.mask = MaskSource::generation_blocks;
  return true;
}

Status mask_by_prefixes(Renderer& renderer, const std::vector<size_t>& answers,
                        const RenderSettings& settings, RenderedExample& out) {
  ASSIGN_OR_RETURN(AnswerPlace last, place_answer(renderer, answers.back()));
  out.mask = MaskSource::prefixes;
  out.prompt_differs = last.prompt_differs;
  out.text = std::move(last.text);
  for (size_t i = 0; settings.train_on == TrainOn::answers && i + 1 < answers.size(); ++i) {
    const Result<AnswerPlace> place = place_answer(renderer, answers[i]);
    const std::optional<TextSpan> span =
        place.ok() ? span_in_whole(renderer, *place, answers[i], out.text) : std::nullopt;
    if (span) {
      out.trained.push_back(*span);
      out.prompt_differs |= place->prompt_differs;
    } else {
      ++out.answers_rewritten;
    }
  }
  if (out.answers_rewritten > 0) {
    if (settings.rewritten_turns == RewrittenTurns::refuse) {
      return bad_file("the template rewrites earlier turns, so the earlier answers cannot be trained on",
                      settings.chat_template->name(),
                      "Train on the last answer of each conversation alone (--train-on last).");
    }
    out.answers_rewritten = static_cast<int32_t>(answers.size()) - 1;
    out.trained.clear();
  }
  out.trained.push_back(last.span);
  return {};
}

RenderedExample render_plain(const Conversation& conversation, TrainOn train_on) {
  RenderedExample out;
  out.text = conversation.prompt + conversation.completion;
  const size_t begin = train_on == TrainOn::all ? 0 : conversation.prompt.size();
  out.answers = 1;
  out.continues = conversation.continues;
  if (begin < out.text.size()) {
    out.trained.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(out.text.size())});
  }
  return out;
}

}  // namespace

std::optional<TrainOn> train_on_from_name(std::string_view name) {
  if (name == "answers") return TrainOn::answers;
  if (name == "last") return TrainOn::last;
  if (name == "all") return TrainOn::all;
  return std::nullopt;
}

std::string_view mask_source_name(MaskSource source) {
  switch (source) {
    case MaskSource::plain:
      return "plain text";
    case MaskSource::generation_blocks:
      return "the template's generation blocks";
    case MaskSource::prefixes:
      return "renderings with and without each answer";
    case MaskSource::whole_text:
      return "the whole text";
  }
  CHECK(false, "unknown mask source");
}

Json template_variables(const Tokenizer* tokenizer) {
  Json variables = {
      {"messages", nullptr}, {"tools", nullptr}, {"documents", nullptr}, {"add_generation_prompt", false}};
  if (!tokenizer) return variables;
  const SpecialTokens& special = tokenizer->special();
  const auto add = [&](const char* name, std::optional<int32_t> id) {
    if (id) variables[name] = tokenizer->token(*id);
  };
  add("bos_token", special.bos);
  add("eos_token", special.eos.empty() ? std::nullopt : std::optional(special.eos.front()));
  add("pad_token", special.pad);
  add("unk_token", special.unk);
  return variables;
}

Result<Rendered> render_prompt(const Json& messages, const RenderSettings& settings) {
  Json variables = template_variables(settings.tokenizer);
  if (settings.extra_variables) variables.update(*settings.extra_variables);
  variables["messages"] = messages;
  variables["add_generation_prompt"] = true;
  return settings.chat_template->render(variables, settings.options);
}

Result<RenderedExample> render_conversation(const Conversation& conversation,
                                            const RenderSettings& settings) {
  if (!conversation.is_chat()) return render_plain(conversation, settings.train_on);
  if (!settings.chat_template) {
    return bad_argument("the model has no chat template, and the rows are conversations", {},
                        "Name a chat template, or give rows of prompt and completion or of text.");
  }
  Renderer renderer(conversation, settings);
  const Json& messages = renderer.messages();
  RenderedExample out;
  const std::vector<size_t> answers = answers_of(messages, conversation.first_answer_message);
  out.answers = static_cast<int32_t>(answers.size());
  if (settings.train_on == TrainOn::all || answers.empty()) {
    ASSIGN_OR_RETURN(out.text, renderer.text(messages.size(), false));
    out.mask = MaskSource::whole_text;
    if (settings.train_on == TrainOn::all) out.trained = {{0, static_cast<int64_t>(out.text.size())}};
  } else {
    bool found = false;
    if (settings.chat_template->has_generation_blocks()) {
      ASSIGN_OR_RETURN(found, mask_by_generation_blocks(renderer, answers, settings.train_on, out));
    }
    if (!found) RETURN_IF_ERROR(mask_by_prefixes(renderer, answers, settings, out));
  }
  count_reasonings(messages, out);
  return out;
}

}  // namespace tenon
