// DeviceFacts as JSON. "source" says where the numbers come from, for people. Unknown keys are refused, so
// that a misspelt fact is not taken for a missing one.
#include "device/device_facts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"

namespace tenon {
namespace {

constexpr std::string_view kHint = "facts/ has files of this form for some machines.";

Error malformed(std::string message, std::string_view name) {
  return bad_file(std::move(message), std::string(name), std::string(kHint));
}

Result<double> number(const Json& json, std::string_view key, std::string_view name) {
  const auto entry = json.find(key);
  if (entry == json.end()) return 0.0;
  if (!entry->is_number() || entry->get<double>() < 0) {
    return malformed(std::string(key) + " is not a number of at least 0", name);
  }
  return entry->get<double>();
}

Result<int64_t> positive_integer(const Json& json, std::string_view key, int64_t most,
                                 std::string_view name) {
  const auto entry = json.find(key);
  if (entry == json.end()) return malformed(std::string(key) + " is missing", name);
  if (!entry->is_number_integer() || entry->get<uint64_t>() == 0 ||
      entry->get<uint64_t>() > static_cast<uint64_t>(most)) {
    return malformed(std::string(key) + " is not an integer from 1 to " + std::to_string(most), name);
  }
  return entry->get<int64_t>();
}

Result<std::string> text(const Json& json, std::string_view key, std::string_view name) {
  const auto entry = json.find(key);
  if (entry == json.end() || !entry->is_string())
    return malformed(std::string(key) + " is not a string", name);
  return entry->get<std::string>();
}

Status check_keys(const Json& json, std::string_view name) {
  constexpr std::array<std::string_view, 9> kKeys = {
      "kind",         "name",       "features",    "threads",
      "memory_bytes", "gflops_f32", "gflops_bf16", "gigabytes_per_second",
      "source"};
  for (const auto& [key, value] : json.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
      return malformed("unknown key " + key, name);
  }
  return {};
}

}  // namespace

bool DeviceFacts::has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

std::string device_facts_json(const DeviceFacts& facts) {
  Json json;
  json["kind"] = facts.kind == DeviceKind::cpu ? "cpu" : "cuda";
  json["name"] = facts.name;
  json["features"] = facts.features;
  json["threads"] = facts.threads;
  json["memory_bytes"] = facts.memory_bytes;
  json["gflops_f32"] = facts.gflops_f32;
  json["gflops_bf16"] = facts.gflops_bf16;
  json["gigabytes_per_second"] = facts.gigabytes_per_second;
  return json.dump(2) + "\n";
}

Result<DeviceFacts> parse_device_facts(std::string_view json_text, std::string_view name) {
  const Json json = Json::parse_or_null(json_text);
  if (!json.is_object()) return malformed("not a JSON object of device facts", name);
  RETURN_IF_ERROR(check_keys(json, name));
  DeviceFacts facts;
  ASSIGN_OR_RETURN(const std::string kind, text(json, "kind", name));
  if (kind != "cpu" && kind != "cuda") return malformed("kind is neither \"cpu\" nor \"cuda\"", name);
  facts.kind = kind == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
  ASSIGN_OR_RETURN(facts.name, text(json, "name", name));
  if (const auto features = json.find("features"); features != json.end()) {
    if (!features->is_array()) return malformed("features is not a list of strings", name);
    for (const Json& feature : *features) {
      if (!feature.is_string()) return malformed("features is not a list of strings", name);
      facts.features.push_back(feature.get<std::string>());
    }
  }
  ASSIGN_OR_RETURN(const int64_t threads, positive_integer(json, "threads", 1 << 16, name));
  facts.threads = static_cast<int32_t>(threads);
  ASSIGN_OR_RETURN(facts.memory_bytes, positive_integer(json, "memory_bytes", int64_t{1} << 56, name));
  ASSIGN_OR_RETURN(facts.gflops_f32, number(json, "gflops_f32", name));
  ASSIGN_OR_RETURN(facts.gflops_bf16, number(json, "gflops_bf16", name));
  ASSIGN_OR_RETURN(facts.gigabytes_per_second, number(json, "gigabytes_per_second", name));
  return facts;
}

}  // namespace tenon
