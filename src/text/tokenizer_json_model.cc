// The "model" of a tokenizer.json: vocabulary, merges, scores.

#include "text/bpe_merges.h"
#include "text/tokenizer_json.h"

namespace tenon {
namespace {

using simdjson::dom::array;
using simdjson::dom::object;

Result<int32_t> unknown_id(JsonValue model, const Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(const std::string token, json_field<std::string>(model, "unk_token", {}));
  return token.empty() ? -1 : vocabulary.find(token);
}

Status read_vocabulary(JsonValue model, Vocabulary& vocabulary) {
  const auto vocab = json_member(model, "vocab");
  if (!vocab) return bad_file("the model has no \"vocab\"");
  return read_json_vocabulary(*vocab, vocabulary);
}

Result<bool> split_merge(JsonValue element, std::string_view& left, std::string_view& right) {
  std::string_view line;
  if (!element.get(line)) {
    if (line.starts_with("#version")) return false;
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
      return bad_file(fmt::format("merge \"{}\" is not two tokens with a space between", line));
    }
    left = line.substr(0, space);
    right = line.substr(space + 1);
    return true;
  }
  array pair;
  if (element.get(pair) || pair.size() != 2 || pair.at(0).get(left) || pair.at(1).get(right)) {
    return bad_file("a merge is neither a string nor a pair of strings");
  }
  return true;
}

Status read_merges(JsonValue model, const Vocabulary& vocabulary, BpeModel& bpe) {
  const auto merges = json_member(model, "merges");
  array list;
  if (!merges || merges->get(list)) return bad_file("\"merges\" of the model is missing or not a list");
  size_t count = 0;
  for ([[maybe_unused]] JsonValue element : list) ++count;
  bpe.merges.reserve(count);
  MergeWriter writer(vocabulary, bpe.prefix, bpe.merges);
  for (JsonValue element : list) {
    std::string_view left, right;
    ASSIGN_OR_RETURN(const bool is_merge, split_merge(element, left, right));
    if (is_merge) RETURN_IF_ERROR(writer.add(left, right));
  }
  return writer.flush();
}

Status read_bpe(JsonValue model, TokenizerParts& parts) {
  BpeModel bpe;
  RETURN_IF_ERROR(read_vocabulary(model, parts.vocabulary));
  ASSIGN_OR_RETURN(bpe.prefix, json_field<std::string>(model, "continuing_subword_prefix", {}));
  ASSIGN_OR_RETURN(bpe.suffix, json_field<std::string>(model, "end_of_word_suffix", {}));
  ASSIGN_OR_RETURN(bpe.fuse_unk, json_field(model, "fuse_unk", false));
  ASSIGN_OR_RETURN(bpe.byte_fallback, json_field(model, "byte_fallback", false));
  ASSIGN_OR_RETURN(bpe.ignore_merges, json_field(model, "ignore_merges", false));
  ASSIGN_OR_RETURN(bpe.unk, unknown_id(model, parts.vocabulary));
  ASSIGN_OR_RETURN(const double dropout, json_field(model, "dropout", 0.0));
  if (dropout != 0) return unsupported(fmt::format("BPE dropout ({}) is not implemented", dropout));
  RETURN_IF_ERROR(read_merges(model, parts.vocabulary, bpe));
  parts.model = std::move(bpe);
  return {};
}

Status read_unigram(JsonValue model, TokenizerParts& parts) {
  UnigramModel unigram;
  const auto vocab = json_member(model, "vocab");
  array entries;
  if (!vocab || vocab->get(entries)) return bad_file("\"vocab\" of the model is missing or not a list");
  if (entries.size() > kMaxTokenId) return bad_file("vocabulary too large");
  int32_t id = 0;
  for (JsonValue entry : entries) {
    array pair;
    std::string_view text;
    double score = 0;
    if (entry.get(pair) || pair.size() != 2 || pair.at(0).get(text) || pair.at(1).get(score)) {
      return bad_file(fmt::format("entry {} of the vocabulary is not a token and its score", id));
    }
    parts.vocabulary.add(text, id++);
    unigram.scores.push_back(score);
  }
  ASSIGN_OR_RETURN(const int64_t unk, json_field<int64_t>(model, "unk_id", -1));
  if (unk >= id) return bad_file(fmt::format("unk_id {} is outside the vocabulary", unk));
  unigram.unk = unk < 0 ? -1 : static_cast<int32_t>(unk);
  ASSIGN_OR_RETURN(unigram.byte_fallback, json_field(model, "byte_fallback", false));
  finish_unigram(unigram, parts.vocabulary, {});
  parts.model = std::move(unigram);
  return {};
}

Status read_wordpiece(JsonValue model, TokenizerParts& parts) {
  WordPieceModel pieces;
  RETURN_IF_ERROR(read_vocabulary(model, parts.vocabulary));
  ASSIGN_OR_RETURN(const std::string unk, json_field<std::string>(model, "unk_token", "[UNK]"));
  ASSIGN_OR_RETURN(pieces.prefix, json_field<std::string>(model, "continuing_subword_prefix", "##"));
  ASSIGN_OR_RETURN(pieces.max_chars, json_field<int64_t>(model, "max_input_chars_per_word", 100));
  pieces.unk = parts.vocabulary.find(unk);
  if (pieces.unk < 0) return bad_file(fmt::format("unknown token \"{}\" is not in the vocabulary", unk));
  parts.model = std::move(pieces);
  return {};
}

Status read_wordlevel(JsonValue model, TokenizerParts& parts) {
  WordLevelModel words;
  RETURN_IF_ERROR(read_vocabulary(model, parts.vocabulary));
  ASSIGN_OR_RETURN(words.unk, unknown_id(model, parts.vocabulary));
  parts.model = words;
  return {};
}

// Old files leave the type out.
std::string guess_type(JsonValue model) {
  if (json_member(model, "merges")) return "BPE";
  if (json_member(model, "unk_id")) return "Unigram";
  return json_member(model, "continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

}  // namespace

Status read_json_vocabulary(JsonValue vocab, Vocabulary& vocabulary) {
  object entries;
  if (vocab.get(entries)) return bad_file("the vocabulary is not an object of tokens and ids");
  size_t count = 0;
  size_t text_bytes = 0;
  for (const auto& entry : entries) {
    ++count;
    text_bytes += entry.key.size();
  }
  vocabulary.reserve(count, text_bytes);
  for (const auto& entry : entries) {
    int64_t id = -1;
    if (entry.value.get(id) || id < 0 || id > kMaxTokenId) {
      return bad_file(fmt::format("token \"{}\" has no usable id", entry.key));
    }
    if (!vocabulary.add(entry.key, static_cast<int32_t>(id))) {
      return bad_file(fmt::format("two tokens have the id {}", id), {},
                      "one of them is \"" + std::string(entry.key) + "\"");
    }
  }
  return {};
}

Status read_json_model(JsonValue model, TokenizerParts& parts) {
  std::string type = json_type(model);
  if (type.empty()) type = guess_type(model);
  if (type == "BPE") return read_bpe(model, parts);
  if (type == "Unigram") return read_unigram(model, parts);
  if (type == "WordPiece") return read_wordpiece(model, parts);
  if (type == "WordLevel") return read_wordlevel(model, parts);
  return unsupported(fmt::format("model of type \"{}\" is not implemented", type));
}

}  // namespace tenon
