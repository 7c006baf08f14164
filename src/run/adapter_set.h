// Adapters in PEFT's format (adapter_config.json and adapter_model.safetensors): reading, checking against
// the model, starting fresh, and writing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/program.h"
#include "passes/adapters.h"

namespace tenon {

// The adapted layers of a model and their values, by the names that programs use (AdapterModule::a_name,
// b_name).
struct AdapterSet {
  AdapterOptions options;  // as chosen or as the file says
  double dropout = 0;
  std::vector<AdapterModule> modules;
  std::map<std::string, std::vector<float>> values;
};

// PEFT's start: A uniform in +-1/sqrt(in) (Kaiming with a = sqrt(5)), B zero. A pure function of the seed and
// names.
AdapterSet new_adapter(std::vector<AdapterModule> modules, const AdapterOptions& options, double dropout,
                       uint64_t seed);

// Reads an adapter for the model whose forward program is given. Errors: bad_file listing what is missing and
// what is unexpected where keys or shapes do not match the model; unsupported for a kind of adapter that is
// not LoRA or a setting that changes its arithmetic (DoRA, biases, fan_in_fan_out, trained modules), by name.
Result<AdapterSet> read_adapter(const std::string& folder, const Program& forward);

// Writes both files into `folder`, which is made if missing. `base_model` is recorded as the base's name.
Status write_adapter(const std::string& folder, const AdapterSet& adapter, const std::string& base_model);

}  // namespace tenon
