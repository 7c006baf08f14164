#include "cli/device_option.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "backend/cpu/cpu_device.h"
#include "backend/cpu/kernel_list.h"
#include "base/threads.h"
#include "io/write_file.h"
#include "run/train/train_plan.h"

#ifdef TENON_WITH_CUDA
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/kernel_list.h"
#endif

namespace tenon {
namespace {

#ifdef TENON_WITH_CUDA
Result<std::unique_ptr<Device>> open_gpu(int index, bool graphs) {
  return open_cuda_device({.index = index, .graphs = graphs});
}
Result<std::span<const KernelDef>> gpu_kernels() {
  return cuda::all_kernels();
}
#else
Error no_backend() {
  return unsupported("this build has no CUDA backend", "--device cuda", "Build with -DTENON_CUDA=ON.");
}
Result<std::unique_ptr<Device>> open_gpu(int, bool) {
  return no_backend();
}
Result<std::span<const KernelDef>> gpu_kernels() {
  return no_backend();
}
#endif

// N of "cuda:N", 0 of "cuda".
Result<int> gpu_index(std::string_view device) {
  if (device == "cuda") return 0;
  int index = 0;
  const std::string_view digits = device.substr(std::min<size_t>(device.size(), 5));
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (!device.starts_with("cuda:") || failure != std::errc() || end != digits.data() + digits.size() ||
      index < 0) {
    return bad_argument(fmt::format("'{}' is not a device", device), "--device",
                        "Devices are cpu, cuda and cuda:N.");
  }
  return index;
}

class DescribedDevice : public Device {
 public:
  DescribedDevice(DeviceFacts facts, std::span<const KernelDef> kernels)
      : facts_(std::move(facts)), kernels_(kernels) {}

  const DeviceFacts& facts() const override { return facts_; }
  std::span<const KernelDef> kernels() const override { return kernels_; }
  bool reads_host_memory() const override { return facts_.kind == DeviceKind::cpu; }
  Result<std::unique_ptr<DeviceBuffer>> allocate(int64_t) override { return absent(); }
  Status upload(std::byte*, std::span<const std::byte>) override { return absent(); }
  Status download(std::span<std::byte>, const std::byte*) override { return absent(); }
  Result<std::unique_ptr<Launches>> prepare(std::span<const KernelDef* const>,
                                            std::span<KernelCall>) override {
    return absent();
  }

 private:
  Error absent() const {
    return device_error("it is described by a file of facts and runs nothing", facts_.name);
  }

  DeviceFacts facts_;
  std::span<const KernelDef> kernels_;
};

}  // namespace

void add_device_options(Command& command, DeviceArguments& arguments) {
  command.options.push_back(
      {"device", &arguments.device, "Where to run: cpu, cuda, or cuda:N for GPU N", "DEVICE"});
  command.options.push_back({"compute",
                             &arguments.compute,
                             "Precision of activations; auto is bf16 where the device computes it natively",
                             {},
                             {"auto", "f32", "bf16"}});
  command.options.push_back(
      {"threads", &arguments.threads, "Threads; 0 is every core", "N", {}, at_least(0)});
  command.options.push_back({"graphs",
                             &arguments.graphs,
                             "CUDA graphs; off waits for each kernel, so that a failure names it",
                             {},
                             {"on", "off"}});
}

Option weights_option(std::string* target) {
  return {"weights",
          target,
          "Matrices in memory: as-stored leaves quantised ones in the file as they are; auto does on a CPU",
          {},
          {"auto", "as-stored", "bf16", "q8_0", "f32"}};
}

Result<std::unique_ptr<Device>> open_device(const DeviceArguments& arguments) {
  if (arguments.device != "cpu") {
    ASSIGN_OR_RETURN(const int index, gpu_index(arguments.device));
    return open_gpu(index, arguments.graphs == "on");
  }
  return make_cpu_device(arguments.threads > 0 ? static_cast<int>(arguments.threads) : available_threads());
}

Result<std::unique_ptr<Device>> described_device(const std::string& facts_file) {
  ASSIGN_OR_RETURN(const std::string text, read_file(facts_file));
  ASSIGN_OR_RETURN(DeviceFacts facts, parse_device_facts(text, facts_file));
  std::span<const KernelDef> kernels = cpu_kernels();
  if (facts.kind == DeviceKind::cuda) {
    ASSIGN_OR_RETURN(kernels, gpu_kernels());
  }
  return std::unique_ptr<Device>(std::make_unique<DescribedDevice>(std::move(facts), kernels));
}

DType compute_dtype(const DeviceArguments& arguments, const DeviceFacts& facts) {
  return resolve_compute(arguments.compute, facts);
}

}  // namespace tenon
