// `tenon tokenize`: text to token ids.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/streams.h"
#include "io/json_file.h"
#include "io/write_file.h"
#include "text/tokenizer.h"

namespace tenon {
namespace {

struct Arguments {
  std::string path;
  std::optional<std::string> text;
  std::optional<std::string> file;
  std::optional<std::string> jsonl;
  bool special = false;
  bool literal = false;
  bool offsets = false;
  bool json = false;
};

// "[1,2,3]"
std::string ids_json(std::span<const int32_t> ids) {
  return fmt::format("[{}]", fmt::join(ids, ","));
}

Status tokenize_lines(const Arguments& a, const Tokenizer& tokenizer, EncodeOptions options) {
  return for_each_line(*a.jsonl, [&](std::string_view line, int64_t) -> Status {
    const auto value = parse_json(line, {});
    if (!value.ok() || !value->is_string())
      return bad_file("is not a JSON string", {},
                      "Each line holds one text in quotes, as json.dumps writes it.");
    write_output(ids_json(tokenizer.encode(value->text(), options)) + "\n");
    return {};
  });
}

void print_offsets(const Arguments& a, const Tokenizer& tokenizer, std::string_view text,
                   EncodeOptions options) {
  Json list = Json::array();
  for (const TokenSpan& span : tokenizer.encode_spans(text, options)) {
    const std::string token(tokenizer.token(span.id));
    if (a.json)
      list.push_back({{"id", span.id}, {"begin", span.begin}, {"end", span.end}, {"token", token}});
    else
      write_output(fmt::format("{}\t{}\t{}\t{}\n", span.id, span.begin, span.end, token));
  }
  if (a.json) write_output(list.dump() + "\n");
}

Status tokenize(const Arguments& a) {
  if (a.text.has_value() + a.file.has_value() + a.jsonl.has_value() > 1)
    return bad_argument("only one of --text, --file and --jsonl can be given", "tokenize");
  if (a.jsonl && a.offsets) return bad_argument("--offsets does not go with --jsonl", "tokenize");
  ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::from_file(a.path));
  const EncodeOptions options{.add_special = a.special, .parse_special = !a.literal};
  if (a.jsonl) return tokenize_lines(a, tokenizer, options);
  std::string text;
  if (a.text) {
    text = *a.text;
  } else if (a.file) {
    ASSIGN_OR_RETURN(text, read_file(*a.file));
  } else {
    ASSIGN_OR_RETURN(text, read_standard_input());
  }
  if (a.offsets) {
    print_offsets(a, tokenizer, text, options);
    return {};
  }
  const std::vector<int32_t> ids = tokenizer.encode(text, options);
  write_output((a.json ? ids_json(ids) : fmt::format("{}", fmt::join(ids, " "))) + "\n");
  return {};
}

}  // namespace

Command tokenize_command() {
  auto a = std::make_shared<Arguments>();
  return {
      .name = "tokenize",
      .summary = "Print the token ids of a text",
      .details =
          "The text is that of --text, of --file, or standard input, all of it as it stands. With --jsonl "
          "each line of the file is a JSON string and gives one line, a JSON array of ids.",
      .example =
          "tenon tokenize models/small --text 'Hello there'\ntenon tokenize tokenizer.json --jsonl "
          "texts.jsonl",
      .positionals = {{"PATH", &a->path, "Model folder, GGUF file, tokenizer.json or SentencePiece model"}},
      .options = {{"text", &a->text, "The text"},
                  {"file", &a->file, "Take the text from a file", "FILE"},
                  {"jsonl", &a->jsonl, "Take one text a line, as JSON strings; - is standard input", "FILE"},
                  {"special", &a->special,
                   "Add the tokens that the model expects around a text, such as BOS"},
                  {"literal", &a->literal, "Text that spells a special token stays text"},
                  {"offsets", &a->offsets, "Print one token a line: id, first byte, end byte, token"},
                  {"json", &a->json, "Print JSON"}},
      .prepare = {},
      .run = [a] { return tokenize(*a); },
  };
}

}  // namespace tenon
