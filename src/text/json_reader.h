// Reading fields of a parsed tokenizer.json. A missing field has a default; a field of the wrong type is an
// error that names it.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tenon {

using JsonValue = simdjson::dom::element;

// The member, or nothing where it is missing, null, or `object` is no object.
inline std::optional<JsonValue> json_member(JsonValue object, std::string_view key) {
  JsonValue value;
  if (object.get_object().error() || object[key].get(value) || value.is_null()) return std::nullopt;
  return value;
}

template <typename T>
Result<T> json_field(JsonValue object, std::string_view key, T missing) {
  const auto value = json_member(object, key);
  if (!value) return missing;
  if constexpr (std::is_same_v<T, std::string>) {
    std::string_view text;
    if (!value->get(text)) return std::string(text);
  } else {
    T out;
    if (!value->get(out)) return out;
  }
  return bad_file(fmt::format("\"{}\" has the wrong type", key));
}

// "type" of an element of the pipeline; empty where there is none.
inline std::string json_type(JsonValue object) {
  std::string_view type;
  if (object.get_object().error() || object["type"].get(type)) return {};
  return std::string(type);
}

}  // namespace tenon
