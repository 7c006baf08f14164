#include "cli/device_option.h"

#include "backend/cpu/cpu_device.h"
#include "base/threads.h"
#include "run/train/train_plan.h"

namespace tenon {

void add_device_options(Command& command, DeviceArguments& arguments) {
  command.options.push_back({"device", &arguments.device, "Where to run", {}, {"cpu"}});
  command.options.push_back({"compute",
                             &arguments.compute,
                             "Precision of activations; auto is bf16 where the device computes it natively",
                             {},
                             {"auto", "f32", "bf16"}});
  command.options.push_back(
      {"threads", &arguments.threads, "Threads; 0 is every core", "N", {}, at_least(0)});
}

Option weights_option(std::string* target) {
  return {"weights",
          target,
          "Matrices in memory: as-stored leaves quantised ones in the file as they are",
          {},
          {"as-stored", "bf16", "q8_0", "f32"}};
}

Result<std::unique_ptr<Device>> open_device(const DeviceArguments& arguments) {
  return make_cpu_device(arguments.threads > 0 ? static_cast<int>(arguments.threads) : available_threads());
}

DType compute_dtype(const DeviceArguments& arguments, const DeviceFacts& facts) {
  return resolve_compute(arguments.compute, facts);
}

}  // namespace tenon
