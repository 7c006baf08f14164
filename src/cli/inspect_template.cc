#include "cli/inspect_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/json.h"
#include "cli/facts.h"
#include "cli/terminal.h"
#include "io/json_file.h"
#include "io/write_file.h"
#include "run/model_text.h"
#include "text/template_check.h"
#include "text/unicode.h"

namespace tenon {
namespace {

constexpr std::string_view kExample =
    R"({"messages": [{"role": "user", "content": "What is two plus two?"},)"
    R"({"role": "assistant", "content": "Four."}, {"role": "user", "content": "And three more?"},)"
    R"({"role": "assistant", "content": "Seven."}]})";

// What templates are known to ask for besides messages.
constexpr std::array kKnownVariables = {"tools",       "documents",    "enable_thinking",
                                        "thinking",    "bos_token",    "reasoning_effort",
                                        "date_string", "strftime_now", "add_generation_prompt"};

Json variables_read(const ChatTemplate& chat_template) {
  Json names = Json::array();
  for (const char* name : kKnownVariables)
    if (chat_template.reads_variable(name)) names.push_back(name);
  return names;
}

// A data set, or a file with one conversation over several lines.
Result<Dataset> open_rows(const std::string& path) {
  if (path.empty()) return Dataset::from_bytes(std::string(kExample), "example.jsonl");
  constexpr int64_t kLargestConversation = 1 << 30;
  if (path.ends_with(".json")) {
    ASSIGN_OR_RETURN(const std::string text, read_file(path, kLargestConversation));
    const auto json = parse_json(text, path);
    if (json.ok() && json->is_object()) return Dataset::from_bytes(json->dump(), path);
  }
  return Dataset::open(path);
}

Result<Conversation> chosen_conversation(const TemplateQuestion& question) {
  Result<Dataset> dataset = open_rows(question.rows);
  if (!dataset.ok()) return std::move(dataset).error();
  if (question.row >= dataset->rows()) {
    return bad_argument(fmt::format("there are {} rows, counted from 0", dataset->rows()), "--row");
  }
  ASSIGN_OR_RETURN(Conversation conversation, dataset->conversation(question.row));
  if (!conversation.is_chat()) {
    return bad_argument("the rows are plain text and go through no template", question.rows,
                        "Give rows of messages, conversations or instructions.");
  }
  return conversation;
}

Json token_rows(const Tokenizer& tokenizer, const TemplateCheck& check) {
  const TokenizedExample& training = check.tokens.example;
  const size_t count = std::max(training.ids.size(), check.prompt_ids.size());
  const auto token = [&](const std::vector<int32_t>& ids, size_t at) -> Json {
    if (at >= ids.size()) return nullptr;
    const std::string bytes = tokenizer.token_bytes(ids[at]);
    const std::string_view spelled = tokenizer.token(ids[at]);
    return {{"id", ids[at]}, {"token", spelled}, {"text", is_valid_utf8(bytes) ? bytes : spelled}};
  };
  Json rows = Json::array();
  for (size_t i = 0; i < count; ++i) {
    rows.push_back({{"training", token(training.ids, i)},
                    {"prompt", token(check.prompt_ids, i)},
                    {"trained", i < training.labels.size() && training.labels[i] != kUntrained}});
  }
  return rows;
}

// The id and the text in quotes, control characters as escapes.
std::string printable_token(const Json& token) {
  if (token.is_null()) return {};
  return fmt::format("{} {}", token.at("id").get<int64_t>(), token.at("text").dump());
}

}  // namespace

Result<Json> template_answer(const TemplateQuestion& question) {
  ASSIGN_OR_RETURN(const Conversation conversation, chosen_conversation(question));
  ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::from_file(question.model));
  const bool with_tools = conversation.variables->contains("tools");
  ASSIGN_OR_RETURN(const ChatTemplate chat_template,
                   choose_chat_template(tokenizer, question.model, question.chat_template, with_tools));
  RowSettings settings;
  settings.render.chat_template = &chat_template;
  settings.render.tokenizer = &tokenizer;
  settings.render.train_on = train_on_from_name(question.train_on).value_or(TrainOn::answers);
  settings.render.options.clock_unix_seconds = static_cast<int64_t>(std::time(nullptr));
  settings.tokens = {&tokenizer, 1 << 24, TooLong::error};
  ASSIGN_OR_RETURN(const TemplateCheck check, check_template(conversation, settings));
  return Json{{"template", chat_template.name()},
              {"reads", variables_read(chat_template)},
              {"generation_blocks", chat_template.has_generation_blocks()},
              {"trained_text_known_by", mask_source_name(check.training.mask)},
              {"answers", check.training.answers},
              {"answers_not_trained", check.training.answers_rewritten},
              {"training_tokens", check.tokens.example.ids.size()},
              {"trained_tokens", check.tokens.example.trained_tokens()},
              {"prompt_tokens", check.prompt_ids.size()},
              {"answer_begins_at_token", check.answer_token},
              {"prompt_is_what_stands_before_the_answer", check.same()},
              {"first_difference_token", check.same() ? Json() : Json(check.same_tokens)},
              {"training_text", check.training.text},
              {"prompt_text", check.prompt},
              {"tokens", token_rows(tokenizer, check)}};
}

std::string template_text(const Json& answer) {
  Json facts = answer;
  for (const char* name : {"training_text", "prompt_text", "tokens"}) facts.erase(name);
  std::string out = facts_text(facts);
  Table table({{"token", Table::Align::right}, {""}, {"training"}, {"prompt of a server"}});
  size_t index = 0;
  for (const Json& row : answer.at("tokens")) {
    const bool same = row.at("training") == row.at("prompt");
    table.add_row({std::to_string(index++), row.at("trained").get<bool>() ? "*" : "",
                   printable_token(row.at("training")), same ? "=" : printable_token(row.at("prompt"))});
  }
  out += "\n" + table.text() + "\n* trained on; = the same token\n";
  if (answer.at("answers_not_trained").get<int64_t>() > 0) {
    out += "note: the template rewrites earlier turns, so only the last answer is trained on\n";
  }
  if (!answer.at("first_difference_token").is_null()) {
    out += fmt::format(
        "note: from token {} on, a server's prompt is not what stands before the answer in training: what is "
        "trained there is never asked for\n",
        answer.at("first_difference_token").get<int64_t>());
  }
  return out;
}

}  // namespace tenon
