// `tenon detokenize`: token ids to text.
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "text/tokenizer.h"

namespace tenon {
namespace {

struct Arguments {
  std::string path;
  StringList ids;
  std::optional<std::string> jsonl;
  bool skip_special = false;
  bool json = false;
};

constexpr std::string_view kBetween = " \t\r\n,[]";

// Whole numbers between spaces, commas and brackets: what tokenize prints, in either form.
Result<std::vector<int32_t>> parse_ids(std::string_view text, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) return ids;
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    text.remove_prefix(word.size());
    int64_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size())
      return bad_argument(fmt::format("'{}' is not a token id", word));
    if (id < 0 || id >= tokenizer.vocab_size())
      return bad_argument(
          fmt::format("id {} is outside the vocabulary of {} tokens", id, tokenizer.vocab_size()));
    ids.push_back(static_cast<int32_t>(id));
  }
}

Status detokenize_lines(const Arguments& a, const Tokenizer& tokenizer) {
  return for_each_line(*a.jsonl, [&](std::string_view line, int64_t) -> Status {
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids, parse_ids(line, tokenizer));
    write_output(Json(tokenizer.decode(ids, a.skip_special)).dump() + "\n");
    flush_output();
    return {};
  });
}

// Text as soon as the ids on standard input make it certain.
Status detokenize_input(const Arguments& a, const Tokenizer& tokenizer) {
  StreamDecoder decoder(tokenizer, a.skip_special);
  RETURN_IF_ERROR(for_each_piece_of_input(kBetween, [&](std::string_view words) -> Status {
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids, parse_ids(words, tokenizer));
    for (const int32_t id : ids) write_output(decoder.push(id));
    flush_output();
    return {};
  }));
  write_output(decoder.finish());
  return {};
}

Status detokenize_all(const Arguments& a, const Tokenizer& tokenizer) {
  std::string typed = fmt::format("{}", fmt::join(a.ids, " "));
  if (a.ids.empty()) {
    ASSIGN_OR_RETURN(typed, read_standard_input());
  }
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids, parse_ids(typed, tokenizer));
  const std::string text = tokenizer.decode(ids, a.skip_special);
  write_output(a.json ? Json(text).dump() + "\n" : text);
  return {};
}

Status detokenize(const Arguments& a) {
  ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::from_file(a.path));
  if (a.jsonl) {
    if (!a.ids.empty()) return bad_argument("ids and --jsonl cannot both be given", "detokenize");
    return detokenize_lines(a, tokenizer);
  }
  Status status = a.ids.empty() && !a.json ? detokenize_input(a, tokenizer) : detokenize_all(a, tokenizer);
  if (!status.ok()) return std::move(status).error().within("detokenize");
  if (!a.json && terminal_of(stdout).interactive) write_output("\n");
  return {};
}

}  // namespace

Command detokenize_command() {
  auto a = std::make_shared<Arguments>();
  return {
      .name = "detokenize",
      .summary = "Print the text of token ids",
      .details =
          "The ids are arguments or standard input, between spaces or commas. The text is printed as it "
          "stands, without a line end of its own; ids that come in through a pipe become text as they come.",
      .example = "tenon detokenize models/small 19556 665\ntenon tokenize m --text hi | tenon detokenize m",
      .positionals = {{"PATH", &a->path, "Model folder, GGUF file, tokenizer.json or SentencePiece model"},
                      {"ID", &a->ids, "Token ids", false}},
      .options = {{"jsonl", &a->jsonl,
                   "Take one list of ids a line and print JSON strings; - is standard input", "FILE"},
                  {"skip-special", &a->skip_special, "Leave special tokens out"},
                  {"json", &a->json, "Print a JSON string"}},
      .prepare = {},
      .run = [a] { return detokenize(*a); },
  };
}

}  // namespace tenon
