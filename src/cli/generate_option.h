// What generate and chat share: the options of a generator, and opening one.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/device_option.h"
#include "run/generator.h"
#include "run/model.h"

namespace tenon {

struct GenerateOptions {
  std::string model;
  std::string adapter;
  std::string chat_template;
  std::string clock;
  int64_t max_new = 256;
  int64_t context = 2048;
  SamplingSettings sampling;
  int64_t seed = 0;
  StringList without;
  std::string weights = "auto";
  DeviceArguments device;
};

void add_generate_options(Command& command, GenerateOptions& options);

struct OpenedGenerator {
  std::unique_ptr<Device> device;
  Model model;
  ModelText text;
  std::optional<AdapterSet> adapter;
  std::unique_ptr<Generator> generator;
};

// Opens the model, its text side and the adapter, and prepares the generator. Sets options.sampling.seed.
Result<std::unique_ptr<OpenedGenerator>> open_generator(GenerateOptions& options);

}  // namespace tenon
