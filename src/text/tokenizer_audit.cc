#include "text/tokenizer_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "text/unicode.h"

namespace tenon {
namespace {

constexpr size_t kExamples = 5;
constexpr EncodeOptions kBare = {.add_special = false, .parse_special = false};

constexpr std::array<NamedText, 53> kLanguages = {{
#define TENON_LANGUAGE(name, text) {name, text},
#include "text/language_samples.inc"
#undef TENON_LANGUAGE
}};

constexpr std::array<NamedText, 4> kSplitTexts = {{{"number", "12345678"},
                                                   {"decimal number", "3.14159"},
                                                   {"Chinese", "今天天气很好"},
                                                   {"code", "    return x"}}};

std::vector<std::string> pieces_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> pieces;
  for (const int32_t id : tokenizer.encode(text, kBare)) {
    std::string bytes = tokenizer.token_bytes(id);
    pieces.push_back(is_valid_utf8(bytes) ? std::move(bytes) : std::string(tokenizer.token(id)));
  }
  return pieces;
}

void find_behaviour(const Tokenizer& tokenizer, TokenizerAudit& audit) {
  const auto bytes_of = [&](std::string_view text) {
    std::string bytes;
    for (const int32_t id : tokenizer.encode(text, kBare)) bytes += tokenizer.token_bytes(id);
    return bytes;
  };
  audit.adds_space_before_text = bytes_of("word").starts_with(' ');
  audit.drops_spaces = bytes_of("a  b").find("a  b") == std::string::npos;
  audit.keeps_any_bytes = bytes_of("\xff\xfe").ends_with("\xff\xfe");
  const SpecialTokens& special = tokenizer.special();
  audit.pad_is_missing = !special.pad;
  audit.pad_is_eos =
      special.pad && std::find(special.eos.begin(), special.eos.end(), *special.pad) != special.eos.end();
  for (const NamedText& example : kSplitTexts) {
    audit.splits.push_back({example.name, std::string(example.text), pieces_of(tokenizer, example.text)});
  }
}

bool is_reserved_name(std::string_view token) {
  for (const std::string_view name : {"unused", "reserved", "placeholder", "[PAD", "extra_id"}) {
    const size_t at = token.find(name);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = token.substr(at + name.size());
    if (std::any_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; })) return true;
  }
  return false;
}

// Whether the text of an entry gives it: at the begin of a text, of a line, or inside a word.
bool is_reachable(const Tokenizer& tokenizer, int32_t id, const std::string& bytes) {
  for (const char* before : {"", "\n", "a"}) {
    const std::vector<int32_t> ids = tokenizer.encode(before + bytes, {.add_special = false});
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) return true;
  }
  return false;
}

void find_odd_entries(const Tokenizer& tokenizer, TokenizerAudit& audit) {
  std::unordered_map<std::string, int32_t> first_with;
  const auto note = [](int64_t& count, std::vector<int32_t>& examples, int32_t id) {
    if (++count <= static_cast<int64_t>(kExamples)) examples.push_back(id);
  };
  for (int32_t id = 0; id < audit.ids; ++id) {
    const std::string_view token = tokenizer.token(id);
    if (token.empty()) {
      ++audit.empty_ids;
      continue;
    }
    ++audit.entries;
    audit.special += tokenizer.is_special(id);
    if (is_reserved_name(token)) {
      ++audit.reserved;
      continue;
    }
    if (tokenizer.is_special(id)) continue;
    std::string bytes = tokenizer.token_bytes(id);
    if (!bytes.empty() && is_valid_utf8(bytes) && !is_reachable(tokenizer, id, bytes)) {
      note(audit.unreachable, audit.unreachable_examples, id);
    }
    if (!first_with.try_emplace(std::move(bytes), id).second)
      note(audit.same_text, audit.same_text_examples, id);
  }
}

void find_markers(const Tokenizer& tokenizer, TokenizerAudit& audit) {
  const SpecialTokens& special = tokenizer.special();
  const auto chosen = std::find_if(special.chat_templates.begin(), special.chat_templates.end(),
                                   [](const ChatTemplateText& t) { return t.name == "default"; });
  if (chosen == special.chat_templates.end()) return;
  audit.template_writes_bos =
      chosen->text.find("bos_token") != std::string::npos ||
      (special.bos && chosen->text.find(tokenizer.token(*special.bos)) != std::string::npos);
  for (std::string& marker : template_markers(chosen->text)) {
    const auto ids = tokenizer.encode(marker, {.add_special = false});
    const bool whole =
        std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return tokenizer.token(id) == marker; });
    audit.markers.push_back({std::move(marker), whole ? 1 : std::ssize(ids)});
  }
  std::stable_partition(audit.markers.begin(), audit.markers.end(),
                        [](const TemplateMarker& marker) { return marker.tokens == 1; });
}

bool is_marker_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '|' ||
         c == '/' || c == '-' || static_cast<unsigned char>(c) >= 0x80;
}

std::string token_name(const Tokenizer& tokenizer, std::optional<int32_t> id) {
  return id ? fmt::format("{} ({})", tokenizer.token(*id), *id) : "none";
}

std::string token_names(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::string out;
  for (const int32_t id : ids) out += (out.empty() ? "" : ", ") + token_name(tokenizer, id);
  return out.empty() ? "none" : out;
}

void compare_settings(const Tokenizer& a, const Tokenizer& b, std::vector<std::string>& out) {
  const auto add = [&](std::string_view name, const std::string& left, const std::string& right) {
    if (left != right) out.push_back(fmt::format("{}: {} / {}", name, left, right));
  };
  const SpecialTokens &x = a.special(), &y = b.special();
  const auto yes = [](bool value) { return std::string(value ? "yes" : "no"); };
  add("bos", token_name(a, x.bos), token_name(b, y.bos));
  add("eos", token_names(a, x.eos), token_names(b, y.eos));
  add("pad", token_name(a, x.pad), token_name(b, y.pad));
  add("unk", token_name(a, x.unk), token_name(b, y.unk));
  add("adds bos", yes(x.add_bos), yes(y.add_bos));
  add("adds eos", yes(x.add_eos), yes(y.add_eos));
}

TokenizerDifference::Text compare_text(const Tokenizer& a, const Tokenizer& b, const NamedText& text) {
  const std::vector<TokenSpan> left = a.encode_spans(text.text);
  const std::vector<TokenSpan> right = b.encode_spans(text.text);
  TokenizerDifference::Text out{text.name, std::ssize(left), std::ssize(right), -1, 0};
  const size_t both = std::min(left.size(), right.size());
  size_t at = 0;
  while (at < both && left[at].id == right[at].id) ++at;
  if (at == both && left.size() == right.size()) return out;
  out.first_difference = static_cast<int64_t>(at);
  const std::vector<TokenSpan>& longer = left.size() > right.size() ? left : right;
  out.begin = longer[at].begin;
  return out;
}

}  // namespace

std::vector<NamedText> language_samples() {
  return {kLanguages.begin(), kLanguages.end()};
}

std::vector<std::string> template_markers(std::string_view source) {
  std::vector<std::string> found;
  for (size_t at = 0; at < source.size(); ++at) {
    const char close = source[at] == '<' ? '>' : source[at] == '[' ? ']' : '\0';
    if (close == '\0') continue;
    size_t end = at + 1;
    while (end < source.size() && is_marker_char(source[end])) ++end;
    if (end == source.size() || source[end] != close || end < at + 2) continue;
    const std::string_view marker = source.substr(at, end + 1 - at);
    // Square brackets hold subscripts too; a marker is in capitals.
    const bool subscript = close == ']' && std::any_of(marker.begin(), marker.end(), [](char c) {
                             return (c >= 'a' && c <= 'z') || c == '-' || c == '|' || (c >= '0' && c <= '9');
                           });
    if (!subscript && std::find(found.begin(), found.end(), marker) == found.end())
      found.emplace_back(marker);
    at = end;
  }
  return found;
}

TokenizerAudit audit_tokenizer(const Tokenizer& tokenizer) {
  TokenizerAudit audit;
  audit.ids = tokenizer.vocab_size();
  find_behaviour(tokenizer, audit);
  find_odd_entries(tokenizer, audit);
  find_markers(tokenizer, audit);
  for (const NamedText& sample : kLanguages) {
    const std::vector<int32_t> ids = tokenizer.encode(sample.text, kBare);
    audit.costs.push_back({sample.name, std::ssize(sample.text), std::ssize(ids)});
  }
  std::stable_sort(audit.costs.begin(), audit.costs.end(), [](const TokenCost& a, const TokenCost& b) {
    return a.bytes_per_token() > b.bytes_per_token();
  });
  return audit;
}

bool TokenizerDifference::same() const {
  return different_ids == 0 && settings.empty() &&
         std::all_of(texts.begin(), texts.end(), [](const Text& text) { return text.first_difference < 0; });
}

TokenizerDifference compare_tokenizers(const Tokenizer& a, const Tokenizer& b, std::vector<NamedText> texts) {
  TokenizerDifference out;
  out.ids_a = a.vocab_size();
  out.ids_b = b.vocab_size();
  for (int32_t id = 0; id < std::max(out.ids_a, out.ids_b); ++id) {
    if (a.token_bytes(id) == b.token_bytes(id)) continue;
    if (++out.different_ids <= static_cast<int64_t>(kExamples)) out.id_examples.push_back(id);
  }
  compare_settings(a, b, out.settings);
  if (texts.empty()) texts = language_samples();
  for (const NamedText& text : texts) out.texts.push_back(compare_text(a, b, text));
  return out;
}

}  // namespace tenon
