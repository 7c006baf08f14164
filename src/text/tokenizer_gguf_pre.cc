// What a GGUF file's tokenizer.ggml.pre stands for: the expressions of the tokenizer.json files that such
// models come from, each splitting the pieces of the one before.
#include <fmt/format.h>

#include <array>

#include "text/tokenizer_gguf.h"

namespace tenon {
namespace {

// clang-format off
enum class Rule {
  cl100k_3, digits_3_cl100k, cl100k_1, cl100k_1_nfc, cl100k_1_marks_nfc, seed_coder, cl100k_3_spaces, o200k, tekken,
  kimi, digits_grouped_o200k, exaone_moe, deepseek_v3, deepseek_llm, deepseek_coder, youtu, gpt2, digits_gpt2,
  falcon, general, bloom, bloom_digits, superbpe,
};

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100k3 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100k1 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100k1Marks = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100kAnyDigits = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100k3Spaces = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr std::string_view kSeedCoder = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k1 = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kKimi = R"(\p{Han}+|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kExaoneMoe = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kDigits3 = R"(\p{N}{1,3})";
constexpr std::string_view kDigitsGrouped = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr std::string_view kCjkKana = "[一-龥\u3040-ゟ゠-ヿ]+";
constexpr std::string_view kDeepseekWords =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kNewline = "[\r\n]";
constexpr std::string_view kCased =
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+";
constexpr std::string_view kPunctuated = "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+";
constexpr std::string_view kCjkHangul = "[一-龥\u0800-一가-\ud7ff]+";
constexpr std::string_view kYoutuScripts = "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-ゟ゠-ヿ]+";
constexpr std::string_view kFalconPunctuation = "[\\p{P}\\$\\+<=>\\^~\\|`]+";
constexpr std::string_view kGeneralPunctuation = "[\\p{P}\\$\\+<=>\\^~\\|]+";
constexpr std::string_view kBloom = " ?[^(\\s|.,!?…。，、।۔،)]+";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kDigits = R"(\p{N}+)";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";
constexpr std::string_view kThousands = R"((?=(\d{3})+(?!\d)))";

struct RuleRow {
  Rule rule;
  bool nfc;
  std::array<std::string_view, 6> expressions;
};

constexpr RuleRow kRules[] = {
    {Rule::cl100k_3, false, {kCl100k3}},
    {Rule::digits_3_cl100k, false, {kDigits3, kCl100kAnyDigits}},
    {Rule::cl100k_1, false, {kCl100k1}},
    {Rule::cl100k_1_nfc, true, {kCl100k1}},
    {Rule::cl100k_1_marks_nfc, true, {kCl100k1Marks}},
    {Rule::seed_coder, false, {kSeedCoder}},
    {Rule::cl100k_3_spaces, false, {kCl100k3Spaces}},
    {Rule::o200k, false, {kO200k}},
    {Rule::tekken, false, {kTekken}},
    {Rule::kimi, false, {kKimi}},
    {Rule::digits_grouped_o200k, false, {kDigitsGrouped, kO200k}},
    {Rule::exaone_moe, false, {kExaoneMoe}},
    {Rule::deepseek_v3, false, {kDigits3, kCjkKana, kDeepseekWords}},
    {Rule::deepseek_llm, false, {kNewline, kCased, kPunctuated, "\\s+$", kCjkHangul, kDigits}},
    {Rule::deepseek_coder, false, {kNewline, "\\s?\\p{L}+", "\\s?\\p{P}+", kCjkHangul, kDigit}},
    {Rule::youtu, false, {kYoutuScripts, kO200k1}},
    {Rule::gpt2, false, {kGpt2}},
    {Rule::digits_gpt2, false, {kDigit, kGpt2}},
    {Rule::falcon, false, {kFalconPunctuation, kGpt2, kThreeDigits}},
    {Rule::general, false, {kGeneralPunctuation, kGpt2, kDigits, kThreeDigits}},
    {Rule::bloom, false, {kBloom}},
    {Rule::bloom_digits, false, {kBloom, kDigit}},
    {Rule::superbpe, false, {kDigits, kThousands}},
};

struct PreRow {
  std::string_view name;
  Rule rule;
  GgufPreDefaults defaults;
};

constexpr PreRow kPres[] = {
#define TENON_GGUF_PRE(name, rule, ignore_merges, add_bos) {name, Rule::rule, {ignore_merges, add_bos}},
#include "text/gguf_pre_list.inc"
#undef TENON_GGUF_PRE
};
// clang-format on

Status add_rule(const RuleRow& row, TokenizerParts& parts) {
  if (row.nfc) parts.normaliser.emplace_back(NormaliseForm{true, false});
  for (std::string_view expression : row.expressions) {
    if (expression.empty()) break;
    // Single digits need no expression.
    if (expression == kDigit) {
      PretokeniseChars digits;
      digits.classes = kNumber;
      parts.pretokeniser.emplace_back(digits);
      continue;
    }
    ASSIGN_OR_RETURN(Pattern pattern, Pattern::regex(std::string(expression)));
    parts.pretokeniser.emplace_back(PretokeniseSplit{std::move(pattern), SplitBehaviour::isolated, false});
  }
  return {};
}

}  // namespace

Result<GgufPreDefaults> add_gguf_pretokeniser(std::string_view pre, TokenizerParts& parts) {
  for (const PreRow& row : kPres) {
    if (row.name != pre) continue;
    for (const RuleRow& rule : kRules) {
      if (rule.rule == row.rule) RETURN_IF_ERROR(add_rule(rule, parts));
    }
    parts.pretokeniser.emplace_back(PretokeniseByteLevel{false, true});
    return row.defaults;
  }
  return unsupported(fmt::format("pre-tokeniser \"{}\" is not known", pre), "tokenizer.ggml.pre",
                     "use the model's tokenizer.json beside it instead");
}

}  // namespace tenon
