#include "cli/inspect_tokenizer.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
#include "cli/facts.h"
#include "cli/inspect.h"
#include "io/checkpoint.h"
#include "io/folder.h"
#include "io/json_file.h"
#include "models/family.h"
#include "models/gguf_config.h"
#include "text/tokenizer_audit.h"
#include "text/unicode.h"

namespace tenon {
namespace {

// Rows of the embedding that the model's configuration gives; none where there is no model beside.
std::optional<int64_t> embedding_rows(const std::string& path) {
  if (!is_folder(path) && !path.ends_with(".gguf")) return std::nullopt;
  const auto checkpoint = Checkpoint::open(path, WeightFiles::optional);
  if (!checkpoint.ok()) return std::nullopt;
  const auto config = checkpoint_config(*checkpoint);
  if (!config.ok()) return std::nullopt;
  const auto spec = read_model_spec(*config, path);
  return spec.ok() ? std::optional<int64_t>(spec->vocab) : std::nullopt;
}

// The side that tokenizer_config.json names for padding; empty where it names none.
std::string padding_side(const std::string& path) {
  const std::string folder = is_folder(path) ? path : parent_folder(path);
  const auto config = read_json_file(join_path(folder, "tokenizer_config.json"));
  if (!config.ok() || !config->is_object()) return {};
  const auto side = config->find("padding_side");
  return side != config->end() && side->is_string() ? side->get<std::string>() : std::string();
}

Json split_facts(const TokenizerAudit& audit) {
  Json splits = Json::array();
  for (const SplitExample& example : audit.splits) {
    splits.push_back({{"what", example.what},
                      {"text", example.text},
                      {"tokens", example.pieces.size()},
                      {"pieces", fmt::format("{}", fmt::join(example.pieces, "|"))}});
  }
  return splits;
}

Json marker_facts(const TokenizerAudit& audit) {
  Json markers = Json::array();
  for (const TemplateMarker& marker : audit.markers)
    markers.push_back({{"text", marker.text}, {"tokens", marker.tokens}});
  return markers;
}

Json cost_facts(const TokenizerAudit& audit) {
  Json costs = Json::array();
  for (const TokenCost& cost : audit.costs) {
    costs.push_back({{"language", cost.language},
                     {"bytes", cost.bytes},
                     {"tokens", cost.tokens},
                     {"bytes_per_token", std::round(100 * cost.bytes_per_token()) / 100}});
  }
  return costs;
}

Json named_tokens(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Json out = Json::array();
  for (const int32_t id : ids) {
    const std::string bytes = tokenizer.token_bytes(id);
    out.push_back(fmt::format("{} ({})", is_valid_utf8(bytes) ? bytes : tokenizer.token(id), id));
  }
  return out;
}

// What to mind, as sentences.
Json notes_of(const Tokenizer& tokenizer, const TokenizerAudit& audit, std::optional<int64_t> rows,
              const std::string& side) {
  const SpecialTokens& special = tokenizer.special();
  Json notes = Json::array();
  const auto note = [&](bool holds, std::string text) {
    if (holds) notes.push_back(std::move(text));
  };
  note(
      audit.pad_is_eos,
      "pad is also an end token: tools that ignore pad in the loss never teach the model to stop (Tenon does "
      "not pad, and trains on the end token)");
  note(audit.pad_is_missing, "there is no pad token: other tools need one added (Tenon does not pad)");
  note(special.eos.empty(), "there is no end token: a generation ends only at its limit");
  note(
      audit.template_writes_bos && special.add_bos,
      "the template writes the begin token and encoding adds one too: text from the template must be encoded "
      "without special tokens (Tenon does so), or it begins with two");
  note(side == "right",
       "tokenizer_config.json pads on the right: other tools must pad on the left to generate");
  note(audit.adds_space_before_text,
       "a space is put before a text: a text that is encoded in parts gives other tokens than the whole");
  note(audit.drops_spaces, "runs of spaces are not kept: code loses its indentation");
  note(!audit.keeps_any_bytes,
       "some text has no token: it becomes the unknown token or is lost, and costs seem lower than they are");
  std::string unknown;
  for (const TemplateMarker& marker : audit.markers) {
    if (marker.tokens > 1)
      unknown += fmt::format("{}{} ({} tokens)", unknown.empty() ? "" : ", ", marker.text, marker.tokens);
  }
  note(!unknown.empty(),
       fmt::format("the template writes marks that are no tokens of their own and are learned as text: {}",
                   unknown));
  note(rows && *rows < audit.ids,
       fmt::format("the embedding has {} rows, the tokenizer {} ids: the last ids cannot be used",
                   rows.value_or(0), audit.ids));
  return notes;
}

Json audit_facts(const std::string& path, const Tokenizer& tokenizer) {
  const TokenizerAudit audit = audit_tokenizer(tokenizer);
  const std::optional<int64_t> rows = embedding_rows(path);
  const std::string side = padding_side(path);
  Json facts = {{"path", path}, {"tokenizer", tokenizer_facts(tokenizer)}};
  facts["behaviour"] = {{"space_put_before_a_text", audit.adds_space_before_text},
                        {"keeps_runs_of_spaces", !audit.drops_spaces},
                        {"every_byte_has_a_token", audit.keeps_any_bytes},
                        {"template_writes_bos", audit.template_writes_bos},
                        {"padding_side", side.empty() ? Json() : Json(side)}};
  facts["entries"] = {{"ids", audit.ids},
                      {"embedding_rows", rows ? Json(*rows) : Json()},
                      {"rows_without_id", rows && *rows > audit.ids ? Json(*rows - audit.ids) : Json(0)},
                      {"ids_without_entry", audit.empty_ids},
                      {"special", audit.special},
                      {"kept_free", audit.reserved},
                      {"same_bytes_as_another", audit.same_text},
                      {"same_bytes_examples", named_tokens(tokenizer, audit.same_text_examples)},
                      {"never_given", audit.unreachable},
                      {"never_given_examples", named_tokens(tokenizer, audit.unreachable_examples)}};
  facts["splits"] = split_facts(audit);
  if (!audit.markers.empty()) facts["template_markers"] = marker_facts(audit);
  facts["languages"] = cost_facts(audit);
  facts["notes"] = notes_of(tokenizer, audit, rows, side);
  return facts;
}

Json difference_facts(const TokenizerQuestion& question, const Tokenizer& a, const Tokenizer& b) {
  std::vector<NamedText> texts;
  if (question.text) texts.push_back({"text", *question.text});
  const TokenizerDifference difference = compare_tokenizers(a, b, std::move(texts));
  Json ids = Json::array();
  for (const int32_t id : difference.id_examples)
    ids.push_back({{"id", id}, {"a", a.token(id)}, {"b", b.token(id)}});
  Json rows = Json::array();
  int64_t differing = 0;
  for (const TokenizerDifference::Text& text : difference.texts) {
    if (text.first_difference < 0) continue;
    ++differing;
    rows.push_back({{"text", text.name},
                    {"tokens_a", text.tokens_a},
                    {"tokens_b", text.tokens_b},
                    {"first_difference_token", text.first_difference},
                    {"at_byte", text.begin}});
  }
  return {{"a", question.path},
          {"b", question.other},
          {"same", difference.same()},
          {"ids_a", difference.ids_a},
          {"ids_b", difference.ids_b},
          {"ids_that_differ", difference.different_ids},
          {"id_examples", ids},
          {"texts", difference.texts.size()},
          {"texts_with_other_tokens", differing},
          {"text_examples", rows},
          {"notes", difference.settings}};
}

}  // namespace

Result<Json> tokenizer_answer(const TokenizerQuestion& question) {
  ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::from_file(question.path));
  if (question.other.empty()) return audit_facts(question.path, tokenizer);
  ASSIGN_OR_RETURN(const Tokenizer other, Tokenizer::from_file(question.other));
  return difference_facts(question, tokenizer, other);
}

std::string answer_text(const Json& answer) {
  Json facts = answer;
  facts.erase("notes");
  std::string text = facts_text(facts);
  for (const Json& note : answer.at("notes")) text += fmt::format("note: {}\n", note.get<std::string>());
  return text;
}

}  // namespace tenon
