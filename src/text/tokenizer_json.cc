#include "text/tokenizer_json.h"

namespace tenon {
namespace {

constexpr size_t kMaxSteps = 64;

Status read_stages(JsonValue root, TokenizerParts& parts) {
  const auto model = json_member(root, "model");
  if (!model) return bad_file("no \"model\"", {}, "is this a tokenizer.json of the tokenizers library?");
  RETURN_IF_ERROR(read_json_model(*model, parts));
  if (const auto added = json_member(root, "added_tokens"))
    RETURN_IF_ERROR(read_json_added_tokens(*added, parts));
  if (const auto stage = json_member(root, "normalizer")) {
    RETURN_IF_ERROR(read_json_normaliser(*stage, parts.normaliser));
  }
  if (const auto stage = json_member(root, "pre_tokenizer")) {
    RETURN_IF_ERROR(read_json_pretokeniser(*stage, parts.pretokeniser));
  }
  if (const auto stage = json_member(root, "post_processor")) {
    RETURN_IF_ERROR(read_json_postprocessor(*stage, parts.postprocessor));
  }
  if (const auto stage = json_member(root, "decoder")) {
    RETURN_IF_ERROR(read_json_decoder(*stage, parts.decoder));
  } else {
    parts.decoder.emplace_back(DecodeJoin{});
  }
  // Steps run one inside the other.
  for (const size_t count : {parts.normaliser.size(), parts.pretokeniser.size(), parts.decoder.size()}) {
    if (count > kMaxSteps)
      return unsupported(fmt::format("a stage has {} steps, more than {}", count, kMaxSteps));
  }
  return {};
}

}  // namespace

Status read_json_added_tokens(JsonValue tokens, TokenizerParts& parts) {
  simdjson::dom::array array;
  if (tokens.get(array)) return bad_file("\"added_tokens\" is not a list");
  for (JsonValue element : array) {
    AddedToken token;
    ASSIGN_OR_RETURN(token.content, json_field<std::string>(element, "content", {}));
    ASSIGN_OR_RETURN(const int64_t id, json_field<int64_t>(element, "id", -1));
    ASSIGN_OR_RETURN(token.special, json_field(element, "special", false));
    ASSIGN_OR_RETURN(token.single_word, json_field(element, "single_word", false));
    ASSIGN_OR_RETURN(token.lstrip, json_field(element, "lstrip", false));
    ASSIGN_OR_RETURN(token.rstrip, json_field(element, "rstrip", false));
    ASSIGN_OR_RETURN(token.normalized, json_field(element, "normalized", !token.special));
    if (id < 0 || id > kMaxTokenId) {
      return bad_file(fmt::format("added token \"{}\" has the id {}", token.content, id));
    }
    token.id = static_cast<int32_t>(id);
    if (!token.content.empty()) parts.added.add(std::move(token));
  }
  return {};
}

Result<std::unique_ptr<TokenizerParts>> read_tokenizer_json(std::string_view text, const std::string& name) {
  simdjson::dom::parser parser;
  JsonValue root;
  const simdjson::padded_string padded(text);
  if (const auto error = parser.parse(padded).get(root)) {
    return bad_file(fmt::format("is not JSON: {}", simdjson::error_message(error)), name);
  }
  auto parts = std::make_unique<TokenizerParts>();
  if (Status status = read_stages(root, *parts); !status.ok()) return std::move(status).error().within(name);
  return parts;
}

Result<Tokenizer> Tokenizer::from_json(std::string_view tokenizer_json, std::string name) {
  ASSIGN_OR_RETURN(auto parts, read_tokenizer_json(tokenizer_json, name));
  finish_parts(*parts);
  return Tokenizer(std::move(parts));
}

}  // namespace tenon
