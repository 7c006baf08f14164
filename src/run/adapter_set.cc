#include "run/adapter_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>

#include "base/hash.h"
#include "base/json.h"
#include "base/threads.h"
#include "io/checkpoint.h"
#include "io/dequantise.h"
#include "io/folder.h"
#include "io/safetensors.h"
#include "io/write_file.h"
#include "ops/philox.h"

namespace tenon {
namespace {

constexpr int kMostThreads = 8;                            // that draw the numbers of a new adapter
constexpr std::string_view kPrefix = "base_model.model.";  // PEFT wraps the model twice

std::string list_names(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < 6; ++i) out += fmt::format("{}{}", i ? ", " : "", names[i]);
  if (names.size() > 6) out += fmt::format(" and {} more", names.size() - 6);
  return out;
}

// Settings under which an adapter is not y + scale * B A x. Absent, null, false, empty and the given value
// are fine.
Status refuse_other_kinds(const Json& config, const std::string& subject) {
  const std::string kind = config.value("peft_type", std::string("LORA"));
  if (kind != "LORA")
    return unsupported(fmt::format("the adapter kind '{}' is not supported", kind), subject, "LORA is.");
  for (const char* key : {"use_dora", "lora_bias", "use_qalora", "use_bdlora", "modules_to_save",
                          "trainable_token_indices", "layer_replication", "alora_invocation_tokens"}) {
    const auto at = config.find(key);
    if (at == config.end() || at->is_null() || *at == Json(false) || (at->is_structured() && at->empty()))
      continue;
    return unsupported(fmt::format("the setting '{}' = {} is not supported", key, at->dump()), subject,
                       "Train the adapter without it.");
  }
  const std::string bias = config.value("bias", std::string("none"));
  if (bias != "none")
    return unsupported(fmt::format("the setting 'bias' = \"{}\" is not supported", bias), subject);
  return {};
}

template <typename T>
void read_pattern(const Json& config, const char* key, std::map<std::string, T>& out) {
  const auto at = config.find(key);
  if (at == config.end() || !at->is_object()) return;
  for (const auto& [pattern, value] : at->items()) out[pattern] = value.template get<T>();
}

// PEFT takes patterns as regular expressions; module names and their ends are understood here.
Status check_pattern(std::string_view pattern, const std::string& subject) {
  if (pattern.starts_with(".*\\.")) pattern.remove_prefix(4);
  if (pattern.find_first_of("*+?()[]{}|^$\\") == std::string_view::npos) return {};
  return unsupported(fmt::format("the pattern '{}' is not supported", pattern), subject,
                     "Name modules, or their ends.");
}

Result<AdapterOptions> read_options(const Json& config, const std::string& subject) {
  AdapterOptions options;
  try {
    options.rank = config.at("r").get<int64_t>();
    options.alpha = config.at("lora_alpha").get<double>();
    options.rslora = config.value("use_rslora", false);
    read_pattern(config, "rank_pattern", options.rank_pattern);
    read_pattern(config, "alpha_pattern", options.alpha_pattern);
    for (const auto& [pattern, value] : options.rank_pattern)
      RETURN_IF_ERROR(check_pattern(pattern, subject));
    for (const auto& [pattern, value] : options.alpha_pattern)
      RETURN_IF_ERROR(check_pattern(pattern, subject));
    const Json& targets = config.at("target_modules");
    if (targets.is_string()) {
      options.targets = {targets.get<std::string>()};
    } else {
      for (const Json& target : targets) options.targets.push_back(target.get<std::string>());
    }
  } catch (const JsonError& e) {
    return bad_file(fmt::format("a setting is missing or of the wrong kind ({})", e.what()), subject,
                    "r, lora_alpha and target_modules must be there.");
  }
  return options;
}

// The layers that the tensors name, with their ranks: what is in the file decides, the settings only give
// scales.
Result<std::vector<AdapterModule>> modules_of_file(const Checkpoint& file, const Program& forward,
                                                   const AdapterOptions& options) {
  std::vector<AdapterModule> modules;
  std::vector<std::string> missing;
  std::set<std::string> expected;
  for (AdapterModule module : linear_modules(forward)) {
    const std::string a = std::string(kPrefix) + module.a_name();
    const std::string b = std::string(kPrefix) + module.b_name();
    const CheckpointTensor* ta = file.find(a);
    const CheckpointTensor* tb = file.find(b);
    if (!ta && !tb) continue;
    expected.insert({a, b});
    if (!ta) missing.push_back(a);
    if (!tb) missing.push_back(b);
    if (!ta || !tb) continue;
    module.rank = ta->shape.rank() == 2 ? ta->shape[0] / std::max<int64_t>(module.experts, 1) : 0;
    if (ta->shape != module.a_shape() || tb->shape != module.b_shape() || module.rank < 1) {
      return bad_file(fmt::format("the shapes {} and {} do not fit a layer of {} inputs and {} outputs",
                                  ta->shape.text(), tb->shape.text(), module.in, module.out),
                      fmt::format("{}: {}", file.path(), a),
                      "The adapter was trained on another base model.");
    }
    double alpha = options.alpha;
    for (const auto& [pattern, value] : options.alpha_pattern) {
      if (names_module(pattern, module.module)) alpha = value;
    }
    const double rank = static_cast<double>(module.rank);
    module.scale = alpha / (options.rslora ? std::sqrt(rank) : rank);
    modules.push_back(std::move(module));
  }
  std::vector<std::string> unexpected;
  for (const CheckpointTensor& tensor : file.tensors()) {
    if (!expected.contains(tensor.name)) unexpected.push_back(tensor.name);
  }
  if (!missing.empty() || !unexpected.empty() || modules.empty()) {
    return bad_file(fmt::format("its keys do not match the model; missing: {}; unexpected: {}",
                                missing.empty() ? "none" : list_names(missing),
                                unexpected.empty() ? "none" : list_names(unexpected)),
                    file.path(), "Keys are base_model.model.<module>.lora_A.weight and .lora_B.weight.");
  }
  return modules;
}

Json config_json(const AdapterSet& adapter, const std::string& base_model) {
  const AdapterOptions& options = adapter.options;
  std::set<std::string> targets, parameters;
  for (const AdapterModule& module : adapter.modules) {
    (module.experts > 0 ? parameters : targets).insert(module.module.substr(module.module.rfind('.') + 1));
  }
  const bool by_name = !options.targets.empty() && options.targets[0] != "all-linear";
  Json config;
  config["peft_type"] = "LORA";
  config["task_type"] = "CAUSAL_LM";
  config["base_model_name_or_path"] = base_model;
  config["inference_mode"] = true;
  config["r"] = options.rank;
  config["lora_alpha"] = options.alpha;
  config["lora_dropout"] = adapter.dropout;
  config["use_rslora"] = options.rslora;
  config["bias"] = "none";
  config["fan_in_fan_out"] = false;
  config["init_lora_weights"] = true;
  config["modules_to_save"] = nullptr;
  if (!parameters.empty()) config["target_parameters"] = parameters;
  config["rank_pattern"] = options.rank_pattern;
  config["alpha_pattern"] = options.alpha_pattern;
  if (by_name) {
    config["target_modules"] = options.targets;
  } else {
    config["target_modules"] = targets;
  }
  return config;
}

// Numbers drawn at once: philox4x32 lane by lane, in a form that compilers make vectors of.
constexpr size_t kLanes = 8;
using Words = std::array<uint32_t, kLanes>;

// The first word that philox4x32 gives for the counters {first + lane, 0, 0, 0}.
Words philox_words(uint32_t first, uint64_t key) {
  Words c0, c1{}, c2{}, c3{};
  for (size_t lane = 0; lane < kLanes; ++lane) c0[lane] = first + static_cast<uint32_t>(lane);
  std::array<uint32_t, 2> keys = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  for (int round = 0; round < kPhiloxRounds; ++round, keys = next_philox_key(keys)) {
    for (size_t lane = 0; lane < kLanes; ++lane) philox_round(c0[lane], c1[lane], c2[lane], c3[lane], keys);
  }
  return c0;
}

// Numbers of a uniform distribution over (-bound, bound); number i is a function of `key` and i alone.
void fill_uniform(std::span<float> out, uint64_t key, double bound) {
  for (size_t i = 0; i < out.size(); i += kLanes) {
    const Words words = philox_words(static_cast<uint32_t>(i), key);
    for (size_t lane = 0; lane < std::min(kLanes, out.size() - i); ++lane)
      out[i + lane] = static_cast<float>((2.0 * (words[lane] + 0.5) / 4294967296.0 - 1.0) * bound);
  }
}

}  // namespace

AdapterSet new_adapter(std::vector<AdapterModule> modules, const AdapterOptions& options, double dropout,
                       uint64_t seed) {
  AdapterSet set{options, dropout, std::move(modules), {}};
  std::vector<std::span<float>> a(set.modules.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const AdapterModule& module = set.modules[i];
    const auto zeros = [](const Shape& shape) {
      return std::vector<float>(static_cast<size_t>(shape.elements()), 0.0f);
    };
    a[i] = set.values[module.a_name()] = zeros(module.a_shape());
    set.values[module.b_name()] = zeros(module.b_shape());
  }
  ThreadPool threads(std::min(available_threads(), kMostThreads));
  threads.parallel_for(static_cast<int64_t>(a.size()), 1, [&](Range range) {
    for (auto i = static_cast<size_t>(range.begin); i < static_cast<size_t>(range.end); ++i) {
      const AdapterModule& module = set.modules[i];
      const double bound = 1.0 / std::sqrt(static_cast<double>(module.in));
      fill_uniform(a[i], hash_bytes(module.a_name(), seed ^ kHashSeed), bound);
    }
  });
  return set;
}

Result<AdapterSet> read_adapter(const std::string& folder, const Program& forward) {
  ASSIGN_OR_RETURN(const Checkpoint file, Checkpoint::open_adapter(folder));
  const std::string subject = folder + "/adapter_config.json";
  RETURN_IF_ERROR(refuse_other_kinds(file.config(), subject));
  AdapterSet set;
  ASSIGN_OR_RETURN(set.options, read_options(file.config(), subject));
  set.dropout = file.config().value("lora_dropout", 0.0);
  ASSIGN_OR_RETURN(set.modules, modules_of_file(file, forward, set.options));
  for (const AdapterModule& module : set.modules) {
    for (const std::string& name : {module.a_name(), module.b_name()}) {
      const CheckpointTensor& tensor = *file.find(std::string(kPrefix) + name);
      if (!dtype_info(tensor.dtype).is_float) {
        return bad_file(fmt::format("values of type {} are not floating point", dtype_name(tensor.dtype)),
                        tensor.name);
      }
      std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
      dequantise_row(tensor.dtype, file.bytes(tensor).data(), values.data(), tensor.shape.elements());
      for (float value : values) {
        if (!std::isfinite(value))
          return bad_file("a value is not finite", fmt::format("{}: {}", folder, tensor.name));
      }
      set.values[name] = std::move(values);
    }
  }
  return set;
}

Status write_adapter(const std::string& folder, const AdapterSet& adapter, const std::string& base_model) {
  RETURN_IF_ERROR(make_folders(folder));
  std::vector<TensorSpec> specs;
  for (const AdapterModule& module : adapter.modules) {
    specs.push_back({std::string(kPrefix) + module.a_name(), DType::f32, module.a_shape()});
    specs.push_back({std::string(kPrefix) + module.b_name(), DType::f32, module.b_shape()});
  }
  ASSIGN_OR_RETURN(TensorFileWriter writer,
                   create_safetensors(folder + "/adapter_model.safetensors", specs, {{"format", "pt"}}));
  for (const AdapterModule& module : adapter.modules) {
    for (const std::string& name : {module.a_name(), module.b_name()}) {
      const auto bytes = std::as_bytes(std::span(adapter.values.at(name)));
      RETURN_IF_ERROR(writer.append(std::string(kPrefix) + name, bytes));
    }
  }
  RETURN_IF_ERROR(writer.commit());
  return write_file_atomic(folder + "/adapter_config.json", config_json(adapter, base_model).dump(2) + "\n");
}

}  // namespace tenon
