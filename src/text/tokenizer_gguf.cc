#include "text/tokenizer_gguf.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/gguf.h"
#include "text/bpe_merges.h"
#include "text/sentencepiece.h"
#include "text/tokenizer_config.h"

namespace tenon {
namespace {

std::string key(std::string_view name) {
  return fmt::format("tokenizer.ggml.{}", name);
}

// What is common to all kinds: the tokens, their types, and the optional fields.
struct Metadata {
  const GgufFile& file;
  std::vector<std::string_view> tokens;
  std::vector<int64_t> types;  // PieceKind by id; empty where the file has none

  bool flag(std::string_view name, bool missing) const {
    const GgufValue* value = file.find(key(name));
    return value ? value->boolean().value_or(missing) : missing;
  }
  // -1 where there is none or it is no id.
  int64_t id(std::string_view name, int64_t missing = -1) const {
    const GgufValue* value = file.find(key(name));
    const int64_t id = value ? value->integer().value_or(missing) : missing;
    return id >= 0 && id < static_cast<int64_t>(tokens.size()) ? id : -1;
  }
  PieceKind kind(size_t id) const {
    return id < types.size() ? static_cast<PieceKind>(types[id]) : PieceKind::normal;
  }
};

Result<Metadata> read_metadata(const GgufFile& file) {
  Metadata data{file, {}, {}};
  ASSIGN_OR_RETURN(data.tokens, file.strings(key("tokens")));
  if (data.tokens.size() > kMaxTokenId) return bad_file("vocabulary too large", key("tokens"));
  if (file.find(key("token_type"))) {
    ASSIGN_OR_RETURN(data.types, file.integers(key("token_type")));
    if (data.types.size() != data.tokens.size()) {
      return bad_file(fmt::format("{} types for {} tokens", data.types.size(), data.tokens.size()),
                      key("token_type"));
    }
  }
  return data;
}

void read_special_ids(const Metadata& data, SpecialTokens& special) {
  const auto optional = [](int64_t id) {
    return id < 0 ? std::nullopt : std::optional(static_cast<int32_t>(id));
  };
  special.bos = optional(data.id("bos_token_id", special.bos.value_or(-1)));
  special.pad = optional(data.id("padding_token_id", special.pad.value_or(-1)));
  special.unk = optional(data.id("unknown_token_id", special.unk.value_or(-1)));
  const int64_t eos = data.id("eos_token_id", special.eos.empty() ? -1 : special.eos.front());
  special.eos.clear();
  for (const int64_t id : {eos, data.id("eot_token_id"), data.id("eom_token_id")}) {
    if (id >= 0 && std::find(special.eos.begin(), special.eos.end(), id) == special.eos.end()) {
      special.eos.push_back(static_cast<int32_t>(id));
    }
  }
}

Status read_chat_templates(const GgufFile& file, SpecialTokens& special) {
  constexpr std::string_view kPrefix = "tokenizer.chat_template";
  for (const GgufEntry& entry : file.metadata) {
    if (!entry.key.starts_with(kPrefix)) continue;
    const std::string_view rest = entry.key.substr(kPrefix.size());
    const auto text = entry.value.string();
    if (!text || (!rest.empty() && rest.front() != '.')) continue;
    if (rest.empty()) {
      special.chat_templates.insert(special.chat_templates.begin(), {"default", std::string(*text)});
    } else {
      special.chat_templates.push_back({std::string(rest.substr(1)), std::string(*text)});
    }
  }
  return {};
}

void add_vocabulary(const Metadata& data, TokenizerParts& parts) {
  size_t text_bytes = 0;
  for (std::string_view token : data.tokens) text_bytes += token.size();
  parts.vocabulary.reserve(data.tokens.size(), text_bytes);
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    parts.vocabulary.add(data.tokens[i], static_cast<int32_t>(i));
    const PieceKind kind = data.kind(i);
    const bool special = kind == PieceKind::control || kind == PieceKind::unknown;
    if (data.tokens[i].empty() || (!special && kind != PieceKind::user_defined)) continue;
    AddedToken token;
    token.content = data.tokens[i];
    token.id = static_cast<int32_t>(i);
    token.special = special;
    parts.added.add(std::move(token));
  }
}

Status read_merges(const Metadata& data, const Vocabulary& vocabulary, BpeModel& bpe) {
  ASSIGN_OR_RETURN(const std::vector<std::string_view> merges, data.file.strings(key("merges")));
  bpe.merges.reserve(merges.size());
  MergeWriter writer(vocabulary, {}, bpe.merges);
  for (std::string_view line : merges) {
    // A token may itself begin with a space.
    const size_t space = line.find(' ', 1);
    if (space == std::string_view::npos) {
      return bad_file(fmt::format("merge \"{}\" is not two tokens with a space between", line),
                      key("merges"));
    }
    RETURN_IF_ERROR(writer.add(line.substr(0, space), line.substr(space + 1)));
  }
  return writer.flush();
}

Status read_byte_level_bpe(const Metadata& data, TokenizerParts& parts) {
  const GgufValue* pre = data.file.find(key("pre"));
  const auto pre_name = pre ? pre->string() : std::nullopt;
  if (!pre_name) {
    return unsupported("the file does not say how text is split into words", key("pre"),
                       "convert the model again with a current converter");
  }
  add_vocabulary(data, parts);
  BpeModel bpe;
  RETURN_IF_ERROR(read_merges(data, parts.vocabulary, bpe));
  ASSIGN_OR_RETURN(const GgufPreDefaults defaults, add_gguf_pretokeniser(*pre_name, parts));
  bpe.ignore_merges = defaults.ignore_merges;
  parts.model = std::move(bpe);
  parts.decoder.emplace_back(DecodeByteLevel{});
  read_special_ids(data, parts.special);
  set_added_specials(parts, data.flag("add_bos_token", defaults.add_bos), data.flag("add_eos_token", false));
  return {};
}

Status read_sentencepiece(const Metadata& data, SentencePieceModel::Kind kind, TokenizerParts& parts) {
  ASSIGN_OR_RETURN(const std::vector<float> scores, data.file.floats(key("scores")));
  if (scores.size() != data.tokens.size()) {
    return bad_file(fmt::format("{} scores for {} tokens", scores.size(), data.tokens.size()), key("scores"));
  }
  const bool is_bpe = kind == SentencePieceModel::Kind::bpe;
  SentencePieceModel model;
  model.kind = kind;
  model.raw_user_defined = true;
  model.add_prefix = data.flag("add_space_prefix", true);
  model.remove_extra_spaces = data.flag("remove_extra_whitespaces", false);
  model.unk = data.id("unknown_token_id", is_bpe ? 0 : 2);
  model.bos = data.id("bos_token_id", is_bpe ? 1 : -1);
  model.eos = data.id("eos_token_id", is_bpe ? 2 : 1);
  model.pad = data.id("padding_token_id");
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    model.pieces.push_back({data.tokens[i], scores[i], data.kind(i)});
    model.byte_fallback = model.byte_fallback || data.kind(i) == PieceKind::byte;
  }
  std::string charsmap;
  if (const GgufValue* map = data.file.find(key("precompiled_charsmap"))) {
    charsmap.assign(reinterpret_cast<const char*>(map->raw.data()), map->raw.size());
    model.charsmap = charsmap;
  }
  RETURN_IF_ERROR(build_sentencepiece(model, parts));
  read_special_ids(data, parts.special);
  set_added_specials(parts, data.flag("add_bos_token", is_bpe), data.flag("add_eos_token", !is_bpe));
  return {};
}

// Words carry a mark in front, where tokenizer.json marks what continues a word.
Status read_wordpiece(const Metadata& data, TokenizerParts& parts) {
  add_vocabulary(data, parts);
  WordPieceModel model;
  model.prefix.clear();
  model.word_prefix = "\xe2\x96\x81";
  model.unk = static_cast<int32_t>(data.id("unknown_token_id", 100));
  if (model.unk < 0) return bad_file("no unknown token", key("unknown_token_id"));
  DecodeWordPiece decode;
  decode.word_prefix = model.word_prefix;
  parts.model = std::move(model);
  parts.decoder.emplace_back(std::move(decode));
  NormaliseBert normalise;
  normalise.lowercase = normalise.strip_accents = data.flag("normalizer.lowercase", true);
  parts.normaliser.emplace_back(normalise);
  PretokeniseChars spaces, punctuation;
  spaces.classes = kSpace;
  spaces.behaviour = SplitBehaviour::removed;
  punctuation.classes = kPunctuation;
  punctuation.ascii_punctuation = true;
  parts.pretokeniser.emplace_back(spaces);
  parts.pretokeniser.emplace_back(punctuation);
  read_special_ids(data, parts.special);
  const int64_t cls = data.id("cls_token_id", data.id("bos_token_id", 101));
  // The format's own spelling of the key.
  const int64_t sep = data.id("seperator_token_id", data.id("eos_token_id", 102));
  PostprocessTemplate wrap;
  if (cls >= 0 && data.flag("add_bos_token", true)) wrap.items.emplace_back(static_cast<int32_t>(cls));
  wrap.items.emplace_back(std::nullopt);
  if (sep >= 0 && data.flag("add_eos_token", true)) wrap.items.emplace_back(static_cast<int32_t>(sep));
  parts.postprocessor.emplace_back(std::move(wrap));
  note_added_specials(parts);
  return {};
}

Status read_kind(const Metadata& data, std::string_view kind, TokenizerParts& parts) {
  if (kind == "gpt2") return read_byte_level_bpe(data, parts);
  if (kind == "llama") return read_sentencepiece(data, SentencePieceModel::Kind::bpe, parts);
  if (kind == "t5") return read_sentencepiece(data, SentencePieceModel::Kind::unigram, parts);
  if (kind == "bert") return read_wordpiece(data, parts);
  return unsupported(fmt::format("tokenizer of kind \"{}\" is not implemented", kind), key("model"));
}

}  // namespace

Result<std::unique_ptr<TokenizerParts>> read_tokenizer_gguf(std::span<const std::byte> bytes,
                                                            const std::string& name) {
  auto parts = std::make_unique<TokenizerParts>();
  const auto read = [&]() -> Status {
    ASSIGN_OR_RETURN(const GgufFile file, parse_gguf(bytes));
    ASSIGN_OR_RETURN(const std::string_view kind, file.string(key("model")));
    ASSIGN_OR_RETURN(const Metadata data, read_metadata(file));
    RETURN_IF_ERROR(read_kind(data, kind, *parts));
    return read_chat_templates(file, parts->special);
  };
  if (Status status = read(); !status.ok()) return std::move(status).error().within(name);
  return parts;
}

}  // namespace tenon
