#include "text/tokenizer_plain.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "text/base64.h"
#include "text/bpe_merges.h"
#include "text/byte_level.h"
#include "text/tokenizer_gguf.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"

namespace tenon {
namespace {

using Parts = std::unique_ptr<TokenizerParts>;

// Tokens in the order of their ranks; id = rank + offset.
Status add_ranked_tokens(const std::vector<std::string>& tokens, int32_t offset, TokenizerParts& parts) {
  BpeModel bpe;
  bpe.ignore_merges = true;
  for (size_t rank = 0; rank < tokens.size(); ++rank) {
    parts.vocabulary.add(to_byte_level(tokens[rank]), static_cast<int32_t>(rank) + offset);
  }
  // Two neighbours merge where together they are a token, the lowest rank first.
  for (size_t rank = 0; rank < tokens.size(); ++rank) {
    const std::string spelled = to_byte_level(tokens[rank]);
    const int32_t id = static_cast<int32_t>(rank) + offset;
    const char* end = spelled.data() + spelled.size();
    for (size_t cut = 0;;) {
      cut += static_cast<size_t>(decode_char(spelled.data() + cut, end).bytes);
      if (cut >= spelled.size()) break;
      const int32_t left = parts.vocabulary.find(std::string_view(spelled).substr(0, cut));
      const int32_t right = left < 0 ? -1 : parts.vocabulary.find(std::string_view(spelled).substr(cut));
      if (right >= 0) bpe.merges.add(left, right, static_cast<uint32_t>(rank), id);
    }
  }
  parts.model = std::move(bpe);
  parts.decoder.emplace_back(DecodeByteLevel{});
  return {};
}

struct KnownRanks {
  size_t count;
  std::string_view pre;  // as in text/gguf_pre_list.inc
};
constexpr KnownRanks kKnownRanks[] = {
    {50256, "gpt-2"},  {50280, "gpt-2"},    {100256, "dbrx"},   {128000, "dbrx"},
    {151643, "qwen2"}, {163584, "kimi-k2"}, {199998, "gpt-4o"},
};

Result<std::vector<std::string>> read_rank_lines(std::string_view text) {
  std::vector<std::string> tokens;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (row.empty()) continue;
    const size_t space = row.find(' ');
    uint32_t rank = 0;
    const char* digits = row.data() + std::min(space + 1, row.size());
    if (space == std::string_view::npos ||
        std::from_chars(digits, row.data() + row.size(), rank).ec != std::errc()) {
      return bad_file(fmt::format("line {} is not a token and its rank", line));
    }
    if (rank != tokens.size())
      return bad_file(fmt::format("line {} has the rank {}, not {}", line, rank, tokens.size()));
    ASSIGN_OR_RETURN(std::string token, decode_base64(row.substr(0, space)));
    tokens.push_back(std::move(token));
  }
  if (tokens.size() > kMaxTokenId) return bad_file("vocabulary too large");
  return tokens;
}

Status fill_from_ranks(std::string_view text, TokenizerParts& parts) {
  ASSIGN_OR_RETURN(const std::vector<std::string> tokens, read_rank_lines(text));
  for (const KnownRanks& known : kKnownRanks) {
    if (known.count != tokens.size()) continue;
    RETURN_IF_ERROR(add_gguf_pretokeniser(known.pre, parts));
    return add_ranked_tokens(tokens, 0, parts);
  }
  return unsupported(
      fmt::format("a vocabulary of {} ranks is not a known one, and the file does not say how text "
                  "is split into words",
                  tokens.size()),
      {}, "use the model's tokenizer.json");
}

Status fill_from_tekken(JsonValue root, TokenizerParts& parts) {
  const auto config = json_member(root, "config");
  simdjson::dom::array vocab;
  if (!config || root["vocab"].get(vocab)) return bad_file("no \"config\" or \"vocab\"");
  ASSIGN_OR_RETURN(std::string pattern, json_field<std::string>(*config, "pattern", {}));
  ASSIGN_OR_RETURN(const int64_t specials, json_field<int64_t>(*config, "default_num_special_tokens", 1000));
  ASSIGN_OR_RETURN(const int64_t size, json_field<int64_t>(*config, "default_vocab_size", -1));
  if (specials < 0 || specials > kMaxTokenId) return bad_file("default_num_special_tokens is wrong");
  std::vector<std::string> tokens;
  for (JsonValue entry : vocab) {
    if (size >= 0 && static_cast<int64_t>(tokens.size()) + specials >= size) break;
    ASSIGN_OR_RETURN(const std::string text, json_field<std::string>(entry, "token_bytes", {}));
    ASSIGN_OR_RETURN(std::string bytes, decode_base64(text));
    tokens.push_back(std::move(bytes));
  }
  if (static_cast<int64_t>(tokens.size()) + specials > kMaxTokenId) return bad_file("vocabulary too large");
  simdjson::dom::array named;
  if (!root["special_tokens"].get(named)) {
    for (JsonValue entry : named) {
      AddedToken token;
      ASSIGN_OR_RETURN(token.content, json_field<std::string>(entry, "token_str", {}));
      ASSIGN_OR_RETURN(const int64_t rank, json_field<int64_t>(entry, "rank", -1));
      if (rank < 0 || rank >= specials)
        return bad_file(fmt::format("special token \"{}\" has a wrong rank", token.content));
      token.id = static_cast<int32_t>(rank);
      token.special = true;
      if (!token.content.empty()) parts.added.add(std::move(token));
    }
  }
  ASSIGN_OR_RETURN(Pattern words, Pattern::regex(std::move(pattern)));
  parts.pretokeniser.emplace_back(PretokeniseSplit{std::move(words), SplitBehaviour::isolated, false});
  parts.pretokeniser.emplace_back(PretokeniseByteLevel{false, true});
  return add_ranked_tokens(tokens, static_cast<int32_t>(specials), parts);
}

Status add_merge_lines(std::string_view text, const Vocabulary& vocabulary, BpeModel& bpe) {
  MergeWriter writer(vocabulary, {}, bpe.merges);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) {
      return bad_file(fmt::format("merge \"{}\" is not two tokens with a space between", line));
    }
    RETURN_IF_ERROR(writer.add(line.substr(0, space), line.substr(space + 1)));
  }
  return writer.flush();
}

template <typename F>
Result<Parts> read_named(const std::string& name, F&& fill) {
  auto parts = std::make_unique<TokenizerParts>();
  if (Status status = fill(*parts); !status.ok()) return std::move(status).error().within(name);
  return parts;
}

}  // namespace

bool looks_like_tiktoken(std::string_view text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), size_t{200}));
  const size_t space = line.find(' ');
  return space != std::string_view::npos && line.substr(space + 1) == "0" &&
         decode_base64(line.substr(0, space)).ok();
}

Result<Parts> read_tiktoken(std::string_view text, const std::string& name) {
  return read_named(name, [&](TokenizerParts& parts) { return fill_from_ranks(text, parts); });
}

Result<Parts> read_tekken(std::string_view text, const std::string& name) {
  return read_named(name, [&](TokenizerParts& parts) -> Status {
    simdjson::dom::parser parser;
    JsonValue root;
    if (parser.parse(simdjson::padded_string(text)).get(root)) return bad_file("is not JSON");
    return fill_from_tekken(root, parts);
  });
}

Result<Parts> read_vocab_and_merges(std::string_view vocab, std::string_view merges,
                                    std::string_view tokenizer_class, const std::string& name) {
  return read_named(name, [&](TokenizerParts& parts) -> Status {
    if (tokenizer_class.ends_with("Fast")) tokenizer_class.remove_suffix(4);
    const bool gpt2 = tokenizer_class.empty() || tokenizer_class == "GPT2Tokenizer";
    const bool qwen2 = tokenizer_class == "Qwen2Tokenizer";
    if (!gpt2 && !qwen2) {
      return unsupported(fmt::format("vocab.json of a {} is not implemented", tokenizer_class), {},
                         "use the model's tokenizer.json");
    }
    simdjson::dom::parser parser;
    JsonValue root;
    if (parser.parse(simdjson::padded_string(vocab)).get(root)) return bad_file("is not JSON");
    RETURN_IF_ERROR(read_json_vocabulary(root, parts.vocabulary));
    BpeModel bpe;
    RETURN_IF_ERROR(add_merge_lines(merges, parts.vocabulary, bpe));
    parts.model = std::move(bpe);
    RETURN_IF_ERROR(add_gguf_pretokeniser(gpt2 ? "gpt-2" : "qwen2", parts));
    parts.decoder.emplace_back(DecodeByteLevel{});
    return {};
  });
}

}  // namespace tenon
