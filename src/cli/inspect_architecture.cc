#include "cli/inspect_architecture.h"

#include <set>

#include "base/json.h"
#include "models/family.h"
#include "models/gguf_config.h"
#include "models/weight_map.h"
#include "run/generator.h"

namespace tenon {
namespace {

// Linear layers by the last part of their names: what an adapter's targets may be.
Json target_names(const ModelSpec& spec) {
  std::set<std::string> names;
  for (const AdapterModule& module : linear_modules(forward_program(spec, 1, {}))) {
    names.insert(module.module.substr(module.module.rfind('.') + 1));
  }
  return Json(names);
}

// Bytes of the 16-bit cache that one more token of a long context takes.
int64_t cache_bytes_per_token(const ModelSpec& spec) {
  GeneratorSettings settings;
  settings.compute = DType::bf16;
  const auto cache_bytes = [&](int64_t context) {
    settings.context_tokens = context;
    int64_t bytes = 0;
    const std::vector<Program> programs = generator_programs(spec, {}, settings);
    for (const Value& value : programs.front().values) {
      if (value.role == Role::cache && !value.producer.valid()) bytes += value.type.bytes();
    }
    return bytes;
  };
  return (cache_bytes(2048) - cache_bytes(1024)) / 1024;
}

}  // namespace

Json architecture_facts(const Checkpoint& checkpoint) {
  const auto spec = checkpoint_spec(checkpoint);
  if (!spec.ok()) return {{"supported", spec.error().text()}};
  int64_t parameters = 0;
  for (const WeightNeed& need : weights_needed(*spec)) parameters += need.shape.elements();
  Json facts = {{"supported", "yes"},
                {"name", spec->architecture},
                {"family", spec->family},
                {"parameters", parameters},
                {"blocks", spec->blocks.size()},
                {"hidden", spec->hidden},
                {"vocabulary", spec->vocab},
                {"tied_head", spec->tied},
                {"positions", spec->max_positions},
                {"cache_bytes_per_token_16_bit", cache_bytes_per_token(*spec)},
                {"adapter_targets", target_names(*spec)}};
  if (checkpoint.tensors().empty()) return facts;
  const auto weights = map_weights(*spec, checkpoint);
  if (!weights.ok()) {
    facts["supported"] = weights.error().text();
  } else if (!weights->unused.empty()) {
    for (const UnusedTensor& tensor : weights->unused)
      facts["tensors_not_read"][tensor.why].push_back(tensor.name);
  }
  return facts;
}

}  // namespace tenon
