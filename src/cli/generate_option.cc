#include "cli/generate_option.h"

#include <utility>

#include "cli/data_option.h"

namespace tenon {

void add_generate_options(Command& command, GenerateOptions& o) {
  const std::vector<Option> options = {
      {"model", &o.model, "Model folder or GGUF file", "PATH", {}, {}, false, true},
      {"adapter", &o.adapter, "Adapter folder in PEFT format", "FOLDER"},
      {"template", &o.chat_template, "Template file to use in place of the model's own", "FILE"},
      clock_option(&o.clock),
      {"max-new", &o.max_new, "Most tokens of a reply", "N", {}, at_least(1)},
      {"context",
       &o.context,
       "Tokens of prompt and reply together; the cache is planned for them",
       "N",
       {},
       at_least(2)},
      {"temperature", &o.sampling.temperature, "0 takes the most likely token", {}, {}, at_least(0)},
      {"top-k", &o.sampling.top_k, "Draw from the k most likely tokens; 0: from all", "N", {}, at_least(0)},
      {"top-p",
       &o.sampling.top_p,
       "Draw from the most likely tokens that reach this share",
       {},
       {},
       between(0, 1)},
      {"seed", &o.seed, "Of the draws", "N"},
      {"without", &o.without, "Passes and kernels to leave out"},
      weights_option(&o.weights),
  };
  command.options.insert(command.options.end(), options.begin(), options.end());
  add_device_options(command, o.device);
}

Result<std::unique_ptr<OpenedGenerator>> open_generator(GenerateOptions& options) {
  options.sampling.seed = static_cast<uint64_t>(options.seed);
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, open_device(options.device));
  ASSIGN_OR_RETURN(Model model, open_model(options.model));
  ASSIGN_OR_RETURN(ModelText text, open_text(model, options.chat_template, options.clock));
  GeneratorSettings settings;
  settings.compute = compute_dtype(options.device, device->facts());
  settings.without = options.without;
  settings.weights = choose_weight_dtypes(model, options.weights, device->facts());
  settings.context_tokens = options.context;
  std::unique_ptr<OpenedGenerator> opened(
      new OpenedGenerator{std::move(device), std::move(model), std::move(text), std::nullopt, nullptr});
  if (!options.adapter.empty()) {
    ASSIGN_OR_RETURN(opened->adapter,
                     read_adapter(options.adapter, forward_program(opened->model.spec, 1, settings)));
  }
  const AdapterSet* adapter = opened->adapter ? &*opened->adapter : nullptr;
  ASSIGN_OR_RETURN(opened->generator, Generator::open(opened->model, adapter, *opened->device, settings));
  return opened;
}

}  // namespace tenon
