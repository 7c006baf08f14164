#include "text/tokenizer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json.h"
#include "io/folder.h"
#include "io/json_file.h"
#include "io/write_file.h"

namespace tenon {
namespace {

// The object in the file; an empty one where there is no file.
Result<Json> read_object(const std::string& folder, std::string_view name) {
  const std::string path = join_path(folder, name);
  if (!is_file(path)) return Json::object();
  ASSIGN_OR_RETURN(Json json, read_json_file(path));
  if (!json.is_object()) return bad_file("is not a JSON object", path);
  return json;
}

// "text", or {"content": "text"}; empty for anything else.
std::string token_text(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end()) return {};
  if (at->is_string()) return at->get<std::string>();
  return at->is_object() && at->contains("content") && at->at("content").is_string()
             ? at->at("content").get<std::string>()
             : std::string();
}

bool flag(const Json& object, const char* key, bool missing) {
  const auto at = object.find(key);
  return at != object.end() && at->is_boolean() ? at->get<bool>() : missing;
}

void add_token(TokenizerParts& parts, AddedToken token) {
  if (!token.content.empty() && parts.added.find(token.content) < 0) parts.added.add(std::move(token));
}

Result<int32_t> checked_id(std::string_view text, const std::string& subject) {
  int64_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0 || id > kMaxTokenId) {
    return bad_file(fmt::format("\"{}\" is not a token id", text), subject);
  }
  return static_cast<int32_t>(id);
}

// An id or a list of ids, appended to `out` without doubles.
void append_ids(const Json& object, const char* key, std::vector<int32_t>& out) {
  const auto at = object.find(key);
  if (at == object.end()) return;
  for (const Json& value : at->is_array() ? *at : Json::array({*at})) {
    if (!value.is_number_integer()) continue;
    const auto id = value.get<int64_t>();
    if (id < 0 || id > kMaxTokenId) continue;
    if (std::find(out.begin(), out.end(), id) == out.end()) out.push_back(static_cast<int32_t>(id));
  }
}

void read_template_member(const Json& config, std::vector<ChatTemplateText>& out) {
  const auto at = config.find("chat_template");
  if (at == config.end()) return;
  if (at->is_string()) {
    out.push_back({"default", at->get<std::string>()});
    return;
  }
  if (!at->is_array()) return;
  for (const Json& entry : *at) {
    if (!entry.is_object()) continue;
    const std::string text = token_text(entry, "template");
    const std::string name = token_text(entry, "name");
    if (!text.empty()) out.push_back({name.empty() ? "default" : name, text});
  }
}

void put_template(std::vector<ChatTemplateText>& out, std::string name, std::string text) {
  std::erase_if(out, [&](const ChatTemplateText& old) { return old.name == name; });
  const bool is_default = name == "default";
  out.insert(is_default ? out.begin() : out.end(), {std::move(name), std::move(text)});
}

// Files beside the configuration win over it, as in transformers.
Status read_chat_templates(const std::string& folder, const Json& config, SpecialTokens& special) {
  read_template_member(config, special.chat_templates);
  ASSIGN_OR_RETURN(const Json old_style, read_object(folder, "chat_template.json"));
  std::vector<ChatTemplateText> from_json;
  read_template_member(old_style, from_json);
  for (ChatTemplateText& found : from_json) {
    put_template(special.chat_templates, std::move(found.name), std::move(found.text));
  }
  const std::string file = join_path(folder, "chat_template.jinja");
  if (is_file(file)) {
    ASSIGN_OR_RETURN(std::string text, read_file(file));
    put_template(special.chat_templates, "default", std::move(text));
  }
  const std::string more = join_path(folder, "additional_chat_templates");
  if (!is_folder(more)) return {};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, list_folder(more));
  for (const std::string& name : names) {
    if (!name.ends_with(".jinja")) continue;
    ASSIGN_OR_RETURN(std::string text, read_file(join_path(more, name)));
    put_template(special.chat_templates, name.substr(0, name.size() - 6), std::move(text));
  }
  return {};
}

std::optional<int32_t> id_of(const TokenizerParts& parts, const std::string& text) {
  const int32_t id = text.empty() ? -1 : parts.find(text);
  return id < 0 ? std::nullopt : std::optional(id);
}

// Classes whose fast form builds the post-processor from add_bos_token and add_eos_token.
bool config_decides_specials(const Json& config) {
  const std::string name = token_text(config, "tokenizer_class");
  return name.starts_with("LlamaTokenizer") || name.starts_with("CodeLlamaTokenizer") ||
         name.starts_with("GemmaTokenizer") || name.starts_with("CohereTokenizer");
}

}  // namespace

Result<std::string> read_tokenizer_class(const std::string& folder) {
  ASSIGN_OR_RETURN(const Json config, read_object(folder, "tokenizer_config.json"));
  return token_text(config, "tokenizer_class");
}

Status read_extra_tokens(const std::string& folder, TokenizerParts& parts) {
  ASSIGN_OR_RETURN(const Json config, read_object(folder, "tokenizer_config.json"));
  const auto decoder = config.find("added_tokens_decoder");
  if (decoder != config.end() && decoder->is_object()) {
    for (const auto& [key, value] : decoder->items()) {
      AddedToken token;
      ASSIGN_OR_RETURN(token.id, checked_id(key, join_path(folder, "tokenizer_config.json")));
      token.content = token_text(*decoder, key.c_str());
      token.special = flag(value, "special", false);
      token.single_word = flag(value, "single_word", false);
      token.lstrip = flag(value, "lstrip", false);
      token.rstrip = flag(value, "rstrip", false);
      token.normalized = flag(value, "normalized", !token.special);
      add_token(parts, std::move(token));
    }
  }
  ASSIGN_OR_RETURN(const Json added, read_object(folder, "added_tokens.json"));
  for (const auto& [content, id] : added.items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > kMaxTokenId) {
      return bad_file(fmt::format("added token \"{}\" has no usable id", content),
                      join_path(folder, "added_tokens.json"));
    }
    AddedToken token;
    token.content = content;
    token.id = id.get<int32_t>();
    add_token(parts, std::move(token));
  }
  return {};
}

Status read_special_tokens(const std::string& folder, TokenizerParts& parts) {
  ASSIGN_OR_RETURN(const Json config, read_object(folder, "tokenizer_config.json"));
  ASSIGN_OR_RETURN(const Json map, read_object(folder, "special_tokens_map.json"));
  ASSIGN_OR_RETURN(const Json generation, read_object(folder, "generation_config.json"));
  ASSIGN_OR_RETURN(const Json model, read_object(folder, "config.json"));
  SpecialTokens& special = parts.special;
  const auto named = [&](const char* key) {
    const std::string text = token_text(config, key);
    return id_of(parts, text.empty() ? token_text(map, key) : text);
  };
  const auto bos = named("bos_token");
  if (bos) special.bos = bos;
  if (const auto pad = named("pad_token")) special.pad = pad;
  if (const auto unk = named("unk_token")) special.unk = unk;
  const auto eos = named("eos_token");
  if (eos) {
    std::erase(special.eos, *eos);
    special.eos.insert(special.eos.begin(), *eos);
  }
  append_ids(generation, "eos_token_id", special.eos);
  append_ids(model, "eos_token_id", special.eos);
  if (config_decides_specials(config) &&
      (config.contains("add_bos_token") || config.contains("add_eos_token"))) {
    set_added_specials(parts, flag(config, "add_bos_token", true), flag(config, "add_eos_token", false));
  } else {
    note_added_specials(parts);
  }
  return read_chat_templates(folder, config, special);
}

void note_added_specials(TokenizerParts& parts) {
  SpecialTokens& special = parts.special;
  special.add_bos = special.add_eos = false;
  for (const PostprocessStep& step : parts.postprocessor) {
    const auto* wrap = std::get_if<PostprocessTemplate>(&step);
    if (!wrap || wrap->items.empty()) continue;
    const auto& first = wrap->items.front();
    const auto& last = wrap->items.back();
    special.add_bos = special.add_bos || (first && first == special.bos);
    special.add_eos = special.add_eos ||
                      (last && std::find(special.eos.begin(), special.eos.end(), *last) != special.eos.end());
  }
}

void set_added_specials(TokenizerParts& parts, bool add_bos, bool add_eos) {
  SpecialTokens& special = parts.special;
  std::erase_if(parts.postprocessor, [](const PostprocessStep& step) {
    return std::holds_alternative<PostprocessTemplate>(step);
  });
  special.add_bos = add_bos && special.bos;
  special.add_eos = add_eos && !special.eos.empty();
  PostprocessTemplate wrap;
  if (special.add_bos) wrap.items.emplace_back(*special.bos);
  wrap.items.emplace_back(std::nullopt);
  if (special.add_eos) wrap.items.emplace_back(special.eos.front());
  if (wrap.items.size() > 1) parts.postprocessor.emplace_back(std::move(wrap));
}

}  // namespace tenon
