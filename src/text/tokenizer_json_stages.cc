// The normaliser, pre-tokeniser, post-processor and decoder of a tokenizer.json.
#include <algorithm>

#include "text/base64.h"
#include "text/tokenizer_json.h"

namespace tenon {
namespace {

using simdjson::dom::array;
using simdjson::dom::object;

// Calls read for each element of the list `key`.
template <typename F>
Status read_sequence(JsonValue element, std::string_view key, F&& read) {
  const auto list = json_member(element, key);
  array elements;
  if (!list || list->get(elements)) return bad_file(fmt::format("\"{}\" of a Sequence is missing", key));
  for (JsonValue part : elements) RETURN_IF_ERROR(read(part));
  return {};
}

// {"String": ...} or {"Regex": ...}, or a bare string.
Result<Pattern> read_pattern(JsonValue element) {
  const auto pattern = json_member(element, "pattern");
  std::string_view text;
  if (pattern && !pattern->get(text)) return Pattern::literal(std::string(text));
  if (pattern) {
    ASSIGN_OR_RETURN(const std::string literal, json_field<std::string>(*pattern, "String", {}));
    if (json_member(*pattern, "String")) return Pattern::literal(literal);
    ASSIGN_OR_RETURN(std::string regex, json_field<std::string>(*pattern, "Regex", {}));
    if (json_member(*pattern, "Regex")) return Pattern::regex(std::move(regex));
  }
  return bad_file("\"pattern\" is neither a String nor a Regex");
}

Result<SplitBehaviour> read_behaviour(JsonValue element) {
  ASSIGN_OR_RETURN(const std::string name, json_field<std::string>(element, "behavior", "Isolated"));
  if (name == "Removed") return SplitBehaviour::removed;
  if (name == "Isolated") return SplitBehaviour::isolated;
  if (name == "MergedWithPrevious") return SplitBehaviour::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehaviour::merged_with_next;
  if (name == "Contiguous") return SplitBehaviour::contiguous;
  return unsupported(fmt::format("split behaviour \"{}\" is not implemented", name));
}

Result<NormaliseStep> read_bert_normaliser(JsonValue element) {
  NormaliseBert step;
  ASSIGN_OR_RETURN(step.clean_text, json_field(element, "clean_text", true));
  ASSIGN_OR_RETURN(step.split_cjk, json_field(element, "handle_chinese_chars", true));
  ASSIGN_OR_RETURN(step.lowercase, json_field(element, "lowercase", true));
  ASSIGN_OR_RETURN(step.strip_accents, json_field(element, "strip_accents", step.lowercase));
  return NormaliseStep(step);
}

Result<NormaliseStep> read_normaliser_step(JsonValue element, const std::string& type) {
  if (type == "NFC") return NormaliseStep(NormaliseForm{true, false});
  if (type == "NFD") return NormaliseStep(NormaliseForm{false, false});
  if (type == "NFKC") return NormaliseStep(NormaliseForm{true, true});
  if (type == "NFKD") return NormaliseStep(NormaliseForm{false, true});
  if (type == "Lowercase") return NormaliseStep(NormaliseLowercase{});
  if (type == "StripAccents") return NormaliseStep(NormaliseStripAccents{});
  if (type == "Nmt") return NormaliseStep(NormaliseNmt{});
  if (type == "ByteLevel") return NormaliseStep(NormaliseBytes{});
  if (type == "BertNormalizer") return read_bert_normaliser(element);
  if (type == "Strip") {
    NormaliseStrip step;
    ASSIGN_OR_RETURN(step.left, json_field(element, "strip_left", true));
    ASSIGN_OR_RETURN(step.right, json_field(element, "strip_right", true));
    return NormaliseStep(step);
  }
  if (type == "Prepend") {
    ASSIGN_OR_RETURN(std::string text, json_field<std::string>(element, "prepend", {}));
    return NormaliseStep(NormalisePrepend{std::move(text)});
  }
  if (type == "Replace") {
    ASSIGN_OR_RETURN(Pattern pattern, read_pattern(element));
    ASSIGN_OR_RETURN(std::string content, json_field<std::string>(element, "content", {}));
    return NormaliseStep(NormaliseReplace{std::move(pattern), std::move(content)});
  }
  if (type == "Precompiled") {
    ASSIGN_OR_RETURN(const std::string map, json_field<std::string>(element, "precompiled_charsmap", {}));
    ASSIGN_OR_RETURN(const std::string bytes, decode_base64(map));
    ASSIGN_OR_RETURN(Charsmap charsmap, Charsmap::parse(bytes));
    return NormaliseStep(NormaliseCharsmap{std::move(charsmap)});
  }
  return unsupported(fmt::format("normalizer of type \"{}\" is not implemented", type));
}

Result<PretokeniseStep> read_metaspace(JsonValue element) {
  PretokeniseMetaspace step;
  ASSIGN_OR_RETURN(step.mark, json_field<std::string>(element, "replacement", step.mark));
  ASSIGN_OR_RETURN(const bool add_prefix, json_field(element, "add_prefix_space", true));
  ASSIGN_OR_RETURN(const std::string scheme,
                   json_field<std::string>(element, "prepend_scheme", add_prefix ? "always" : "never"));
  ASSIGN_OR_RETURN(step.split, json_field(element, "split", true));
  using Prepend = PretokeniseMetaspace::Prepend;
  if (scheme == "always") {
    step.prepend = Prepend::always;
  } else if (scheme == "first") {
    step.prepend = Prepend::first;
  } else if (scheme == "never") {
    step.prepend = Prepend::never;
  } else {
    return unsupported(fmt::format("Metaspace prepend_scheme \"{}\" is not implemented", scheme));
  }
  if (step.mark.empty()) return bad_file("Metaspace has an empty replacement");
  return PretokeniseStep(std::move(step));
}

PretokeniseChars chars_step(CharClass classes, SplitBehaviour behaviour) {
  PretokeniseChars step;
  step.classes = classes;
  step.behaviour = behaviour;
  return step;
}

Result<PretokeniseStep> read_pretokeniser_step(JsonValue element, const std::string& type) {
  if (type == "WhitespaceSplit") return PretokeniseStep(chars_step(kSpace, SplitBehaviour::removed));
  if (type == "Whitespace") return PretokeniseStep(PretokeniseWhitespace{});
  if (type == "Metaspace") return read_metaspace(element);
  if (type == "Split") {
    ASSIGN_OR_RETURN(Pattern pattern, read_pattern(element));
    ASSIGN_OR_RETURN(const SplitBehaviour behaviour, read_behaviour(element));
    ASSIGN_OR_RETURN(const bool invert, json_field(element, "invert", false));
    return PretokeniseStep(PretokeniseSplit{std::move(pattern), behaviour, invert});
  }
  if (type == "Digits") {
    ASSIGN_OR_RETURN(const bool individual, json_field(element, "individual_digits", false));
    return PretokeniseStep(
        chars_step(kNumber, individual ? SplitBehaviour::isolated : SplitBehaviour::contiguous));
  }
  if (type == "Punctuation") {
    ASSIGN_OR_RETURN(const SplitBehaviour behaviour, read_behaviour(element));
    PretokeniseChars step = chars_step(kPunctuation, behaviour);
    step.ascii_punctuation = true;
    return PretokeniseStep(step);
  }
  if (type == "CharDelimiterSplit") {
    ASSIGN_OR_RETURN(const std::string text, json_field<std::string>(element, "delimiter", {}));
    if (text.empty()) return bad_file("CharDelimiterSplit has no delimiter");
    PretokeniseChars step = chars_step(0, SplitBehaviour::removed);
    step.character = decode_char(text.data(), text.data() + text.size()).value;
    return PretokeniseStep(step);
  }
  if (type == "FixedLength") {
    PretokeniseFixedLength step;
    ASSIGN_OR_RETURN(step.chars, json_field<int64_t>(element, "length", 5));
    if (step.chars < 1) return bad_file("FixedLength has a length below 1");
    return PretokeniseStep(step);
  }
  return unsupported(fmt::format("pre_tokenizer of type \"{}\" is not implemented", type));
}

// ByteLevel is two steps where it has a regular expression of its own.
Status read_byte_level(JsonValue element, Pretokeniser& steps) {
  ASSIGN_OR_RETURN(const bool add_prefix, json_field(element, "add_prefix_space", true));
  ASSIGN_OR_RETURN(const bool use_regex, json_field(element, "use_regex", true));
  if (add_prefix && use_regex) steps.emplace_back(PretokeniseByteLevel{true, false});
  if (use_regex) {
    ASSIGN_OR_RETURN(Pattern pattern, Pattern::regex(std::string(kGpt2Expression)));
    steps.emplace_back(PretokeniseSplit{std::move(pattern), SplitBehaviour::isolated, false});
  }
  steps.emplace_back(PretokeniseByteLevel{add_prefix && !use_regex, true});
  return {};
}

Result<PostprocessTemplate> read_template(JsonValue element) {
  PostprocessTemplate step;
  const auto single = json_member(element, "single");
  array items;
  if (!single || single->get(items)) return bad_file("TemplateProcessing without a list \"single\"");
  const auto specials = json_member(element, "special_tokens");
  for (JsonValue item : items) {
    if (json_member(item, "Sequence")) {
      step.items.emplace_back(std::nullopt);
      continue;
    }
    const auto special = json_member(item, "SpecialToken");
    if (!special) return bad_file("TemplateProcessing has an item that is neither Sequence nor SpecialToken");
    ASSIGN_OR_RETURN(const std::string name, json_field<std::string>(*special, "id", {}));
    const auto entry = specials ? json_member(*specials, name) : std::nullopt;
    array ids;
    if (!entry || (*entry)["ids"].get(ids)) {
      return bad_file(fmt::format("TemplateProcessing does not say the ids of \"{}\"", name));
    }
    for (JsonValue value : ids) {
      int64_t id = -1;
      if (value.get(id) || id < 0 || id > kMaxTokenId)
        return bad_file(fmt::format("id of \"{}\" is wrong", name));
      step.items.emplace_back(static_cast<int32_t>(id));
    }
  }
  return step;
}

// ["[SEP]", 102]
Result<int32_t> read_pair_id(JsonValue element, std::string_view key) {
  const auto pair = json_member(element, key);
  array items;
  int64_t id = -1;
  if (!pair || pair->get(items) || items.at(1).get(id) || id < 0 || id > kMaxTokenId) {
    return bad_file(fmt::format("\"{}\" is not a token and its id", key));
  }
  return static_cast<int32_t>(id);
}

Status read_bert_like(JsonValue element, const std::string& type, Postprocessor& steps) {
  ASSIGN_OR_RETURN(const int32_t cls, read_pair_id(element, "cls"));
  ASSIGN_OR_RETURN(const int32_t sep, read_pair_id(element, "sep"));
  if (type == "RobertaProcessing") {
    ASSIGN_OR_RETURN(const bool trim, json_field(element, "trim_offsets", true));
    ASSIGN_OR_RETURN(const bool add_prefix, json_field(element, "add_prefix_space", true));
    if (trim) steps.emplace_back(PostprocessTrim{add_prefix});
  }
  steps.emplace_back(PostprocessTemplate{{cls, std::nullopt, sep}});
  return {};
}

Result<DecodeStep> read_decoder_step(JsonValue element, const std::string& type) {
  if (type == "ByteLevel") return DecodeStep(DecodeByteLevel{});
  if (type == "ByteFallback") return DecodeStep(DecodeByteFallback{});
  if (type == "Fuse") return DecodeStep(DecodeFuse{});
  if (type == "Metaspace") {
    ASSIGN_OR_RETURN(const PretokeniseStep read, read_metaspace(element));
    const auto& space = std::get<PretokeniseMetaspace>(read);
    return DecodeStep(DecodeMetaspace{space.mark, space.prepend != PretokeniseMetaspace::Prepend::never});
  }
  if (type == "WordPiece") {
    DecodeWordPiece step;
    ASSIGN_OR_RETURN(step.prefix, json_field<std::string>(element, "prefix", "##"));
    ASSIGN_OR_RETURN(step.cleanup, json_field(element, "cleanup", true));
    return DecodeStep(std::move(step));
  }
  if (type == "BPEDecoder") {
    ASSIGN_OR_RETURN(std::string suffix, json_field<std::string>(element, "suffix", "</w>"));
    return DecodeStep(DecodeBpe{std::move(suffix)});
  }
  if (type == "CTC") {
    DecodeCtc step;
    ASSIGN_OR_RETURN(step.pad, json_field<std::string>(element, "pad_token", "<pad>"));
    ASSIGN_OR_RETURN(step.word_delimiter, json_field<std::string>(element, "word_delimiter_token", "|"));
    ASSIGN_OR_RETURN(step.cleanup, json_field(element, "cleanup", true));
    return DecodeStep(std::move(step));
  }
  if (type == "Replace") {
    ASSIGN_OR_RETURN(Pattern pattern, read_pattern(element));
    ASSIGN_OR_RETURN(std::string content, json_field<std::string>(element, "content", {}));
    return DecodeStep(DecodeReplace{std::move(pattern), std::move(content)});
  }
  if (type == "Strip") {
    DecodeStrip step;
    ASSIGN_OR_RETURN(step.content, json_field<std::string>(element, "content", " "));
    ASSIGN_OR_RETURN(step.start, json_field<int64_t>(element, "start", 0));
    ASSIGN_OR_RETURN(step.stop, json_field<int64_t>(element, "stop", 0));
    if (step.content.empty()) return bad_file("decoder Strip has no content");
    return DecodeStep(std::move(step));
  }
  return unsupported(fmt::format("decoder of type \"{}\" is not implemented", type));
}

}  // namespace

Status read_json_normaliser(JsonValue element, Normaliser& steps) {
  const std::string type = json_type(element);
  if (type == "Sequence") {
    return read_sequence(element, "normalizers",
                         [&](JsonValue part) { return read_json_normaliser(part, steps); });
  }
  ASSIGN_OR_RETURN(NormaliseStep step, read_normaliser_step(element, type));
  steps.push_back(std::move(step));
  return {};
}

Status read_json_pretokeniser(JsonValue element, Pretokeniser& steps) {
  const std::string type = json_type(element);
  if (type == "Sequence") {
    return read_sequence(element, "pretokenizers",
                         [&](JsonValue part) { return read_json_pretokeniser(part, steps); });
  }
  if (type == "ByteLevel") return read_byte_level(element, steps);
  if (type == "BertPreTokenizer") {
    steps.emplace_back(chars_step(kSpace, SplitBehaviour::removed));
    PretokeniseChars punctuation = chars_step(kPunctuation, SplitBehaviour::isolated);
    punctuation.ascii_punctuation = true;
    steps.emplace_back(punctuation);
    return {};
  }
  ASSIGN_OR_RETURN(PretokeniseStep step, read_pretokeniser_step(element, type));
  steps.push_back(std::move(step));
  return {};
}

Status read_json_postprocessor(JsonValue element, Postprocessor& steps) {
  const std::string type = json_type(element);
  if (type == "Sequence") {
    return read_sequence(element, "processors",
                         [&](JsonValue part) { return read_json_postprocessor(part, steps); });
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") return read_bert_like(element, type, steps);
  if (type == "ByteLevel") {
    ASSIGN_OR_RETURN(const bool trim, json_field(element, "trim_offsets", true));
    ASSIGN_OR_RETURN(const bool add_prefix, json_field(element, "add_prefix_space", true));
    if (trim) steps.emplace_back(PostprocessTrim{add_prefix});
    return {};
  }
  if (type == "TemplateProcessing") {
    ASSIGN_OR_RETURN(PostprocessTemplate step, read_template(element));
    steps.emplace_back(std::move(step));
    return {};
  }
  return unsupported(fmt::format("post_processor of type \"{}\" is not implemented", type));
}

Status read_json_decoder(JsonValue element, Decoder& steps) {
  const std::string type = json_type(element);
  if (type == "Sequence") {
    return read_sequence(element, "decoders", [&](JsonValue part) { return read_json_decoder(part, steps); });
  }
  ASSIGN_OR_RETURN(DecodeStep step, read_decoder_step(element, type));
  steps.push_back(std::move(step));
  return {};
}

}  // namespace tenon
