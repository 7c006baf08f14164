#include "models/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "base/json.h"

namespace tenon {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 24;
// Bytes of a stacked weight of two such parts are below 2^63.
constexpr double kLargestProduct = static_cast<double>(int64_t{1} << 58);
constexpr const char* kConfigHint = "Take the config.json that was published with the checkpoint.";

}  // namespace

ConfigReader::ConfigReader(const Json& object, std::string subject)
    : object_(&object), subject_(std::move(subject)), own_(std::make_unique<ReadKeys>()), read_(own_.get()) {
  CHECK(object.is_object());
}

ConfigReader::ConfigReader(const Json& object, std::string subject, ReadKeys& read)
    : object_(&object), subject_(std::move(subject)), read_(&read) {}

std::string ConfigReader::name_of(std::string_view key) const {
  const auto at = aliases_.find(key);
  return at == aliases_.end() ? std::string(key) : at->second;
}

void ConfigReader::alias(std::string_view key, std::string_view name) {
  aliases_.insert_or_assign(std::string(key), std::string(name));
}

void ConfigReader::add_unread(const Json& object, const ReadKeys& read, const std::string& prefix,
                              std::vector<UnreadKey>& out) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_null()) continue;
    const auto nested = read.nested.find(key);
    if (nested != read.nested.end()) {
      add_unread(value, *nested->second, prefix + key + ".", out);
    } else if (!read.names.contains(key)) {
      out.push_back({prefix + key, &value});
    }
  }
}

std::vector<UnreadKey> ConfigReader::unread() const {
  std::vector<UnreadKey> out;
  add_unread(*object_, *read_, "", out);
  return out;
}

const Json* ConfigReader::find(std::string_view key) const {
  const std::string name = name_of(key);
  read_->names.insert(name);
  const auto at = object_->find(name);
  return at == object_->end() || at->is_null() ? nullptr : &*at;
}

const Json* ConfigReader::find_required(std::string_view key) {
  const Json* value = find(key);
  if (!value) {
    fail(bad_file(
        fmt::format("the key '{}' is missing", key), subject_,
        "The configuration of this architecture must have it; download the file again or add the key."));
  }
  return value;
}

void ConfigReader::wrong_kind(std::string_view key, std::string_view wanted) {
  fail(bad_file(fmt::format("the key '{}' must be {}, but is {}", key, wanted, find(key)->dump()), subject_,
                kConfigHint));
}

bool ConfigReader::has(std::string_view key) const {
  return find(key) != nullptr;
}

int64_t ConfigReader::integer(std::string_view key) {
  const Json* value = find_required(key);
  if (!value) return 0;
  if (value->is_number_integer()) return value->get<int64_t>();
  wrong_kind(key, "an integer");
  return 0;
}

int64_t ConfigReader::positive(std::string_view key) {
  if (const auto supposed = supposed_.find(key); supposed != supposed_.end() && !has(key))
    return supposed->second;
  const Json* value = find_required(key);
  if (!value) return 1;
  const int64_t size = value->is_number_integer() ? value->get<int64_t>() : 0;
  if (size < 1) {
    wrong_kind(key, "a positive integer");
    return 1;
  }
  sizes_.insert_or_assign(std::string(key), size);
  const bool plausible = size <= kLargestSize && countable();
  require(plausible, key, "is implausibly large");
  return plausible ? size : 1;
}

bool ConfigReader::countable() const {
  std::array<double, 4> largest = {1, 1, 1, 1};  // descending but for the last
  for (const auto& [key, size] : sizes_) {
    largest[3] = static_cast<double>(size);
    std::sort(largest.begin(), largest.end(), std::greater<>());
  }
  return largest[0] * largest[1] * largest[2] <= kLargestProduct;
}

int64_t ConfigReader::positive_or(std::string_view key, int64_t otherwise) {
  return has(key) || supposed_.contains(key) ? positive(key) : otherwise;
}

double ConfigReader::number(std::string_view key) {
  const Json* value = find_required(key);
  if (!value) return 0;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  wrong_kind(key, "a finite number");
  return 0;
}

double ConfigReader::number_or(std::string_view key, double otherwise) {
  return has(key) ? number(key) : otherwise;
}

bool ConfigReader::flag_or(std::string_view key, bool otherwise) {
  const Json* value = find(key);
  if (!value) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  wrong_kind(key, "true or false");
  return otherwise;
}

std::string ConfigReader::text_or(std::string_view key, std::string_view otherwise) {
  const Json* value = find(key);
  if (!value) return std::string(otherwise);
  if (value->is_string()) return value->get<std::string>();
  wrong_kind(key, "a string");
  return std::string(otherwise);
}

std::vector<std::string> ConfigReader::texts_or_empty(std::string_view key) {
  std::vector<std::string> out;
  const Json* value = find(key);
  if (!value) return out;
  if (!value->is_array()) wrong_kind(key, "an array of strings");
  for (const Json& item : *value) {
    if (!item.is_string()) {
      wrong_kind(key, "an array of strings");
      return {};
    }
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<double> ConfigReader::numbers_or_empty(std::string_view key) {
  std::vector<double> out;
  const Json* value = find(key);
  if (!value) return out;
  if (!value->is_array()) wrong_kind(key, "an array of numbers");
  for (const Json& item : *value) {
    const auto spelled = item.is_object() ? item.find("__float__") : item.end();
    if (item.is_object() && spelled != item.end() && *spelled == "Infinity") {
      out.push_back(INFINITY);
      continue;
    }
    if (!item.is_number()) {
      wrong_kind(key, "an array of numbers");
      return {};
    }
    out.push_back(item.get<double>());
  }
  return out;
}

bool ConfigReader::is_object(std::string_view key) const {
  const Json* value = find(key);
  return value && value->is_object();
}

bool ConfigReader::is_text(std::string_view key) const {
  const Json* value = find(key);
  return value && value->is_string();
}

bool ConfigReader::is_list(std::string_view key) const {
  const Json* value = find(key);
  return value && value->is_array();
}

std::optional<ConfigReader> ConfigReader::object(std::string_view key) {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_object()) {
    std::unique_ptr<ReadKeys>& nested = read_->nested[name_of(key)];
    if (!nested) nested = std::make_unique<ReadKeys>();
    return ConfigReader(*value, fmt::format("{}: {}", subject_, key), *nested);
  }
  wrong_kind(key, "an object");
  return std::nullopt;
}

void ConfigReader::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

void ConfigReader::require(bool condition, std::string_view key, std::string message) {
  if (!condition) fail(bad_file(fmt::format("the key '{}' {}", key, message), subject_, kConfigHint));
}

Status ConfigReader::status() const {
  return error_ ? Status(*error_) : Status();
}

}  // namespace tenon
