// A device for the tests of exec/: host memory, kernels that run the references of the ops that random
// programs use, scratch that they fill with junk, failures on demand.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/half.h"
#include "device/device.h"
#include "plan/random_program.h"

namespace tenon {

inline double load_element(const TensorView& view, int64_t index) {
  if (view.type.dtype == DType::bf16) return bf16_to_f32(reinterpret_cast<const uint16_t*>(view.data)[index]);
  CHECK(view.type.dtype == DType::f32);
  return reinterpret_cast<const float*>(view.data)[index];
}

inline void store_element(const TensorView& view, int64_t index, double value) {
  const auto narrow = static_cast<float>(value);
  if (view.type.dtype == DType::bf16) {
    reinterpret_cast<uint16_t*>(view.data)[index] = f32_to_bf16(narrow);
  } else {
    reinterpret_cast<float*>(view.data)[index] = narrow;
  }
}

// Reads all inputs before it writes, so it may run in place; allocates nothing.
template <const OpDef& (*op)()>
void run_reference(const KernelCall& call) {
  static std::array<std::array<double, 8192>, 6> buffers;
  std::array<ReferenceTensor, 6> tensors;
  size_t count = 0;
  const auto bind = [&](const TensorView& view) {
    CHECK(count < buffers.size() && view.type.elements() <= 8192);
    tensors[count] = {view.type, buffers[count].data()};
    ++count;
  };
  for (const TensorView& input : call.inputs) {
    bind(input);
    for (int64_t i = 0; i < input.type.elements(); ++i) tensors[count - 1].data[i] = load_element(input, i);
  }
  for (const TensorView& output : call.outputs) bind(output);
  if (!call.workspace.empty()) std::memset(call.workspace.data(), 0x3f, call.workspace.size());
  const std::span<const ReferenceTensor> all(tensors.data(), count);
  op().reference({*call.attrs, all.first(call.inputs.size()), all.subspan(call.inputs.size())});
  for (size_t o = 0; o < call.outputs.size(); ++o) {
    const TensorView& output = call.outputs[o];
    for (int64_t i = 0; i < output.type.elements(); ++i) {
      store_element(output, i, all[call.inputs.size() + o].data[i]);
    }
  }
}

template <const OpDef& (*op)()>
KernelDef reference_kernel() {
  return {
      .op = op().name,
      .name = op().name,
      .serves = [](const OpSite&, const DeviceFacts&) { return true; },
      .workspace_bytes = [](const OpSite& site, const DeviceFacts&) { return site.outputs[0].bytes() + 1; },
      .run = run_reference<op>};
}

class FakeBuffer : public DeviceBuffer {
 public:
  explicit FakeBuffer(int64_t bytes)
      : DeviceBuffer(static_cast<std::byte*>(
                         ::operator new (static_cast<size_t>(bytes), std::align_val_t{kArenaAlignment})),
                     bytes) {
    std::memset(data(), 0, static_cast<size_t>(bytes));
  }
  ~FakeBuffer() override { ::operator delete (data(), std::align_val_t{kArenaAlignment}); }
};

class FakeDevice : public Device {
 public:
  explicit FakeDevice(DeviceKind kind = DeviceKind::cpu)
      : kernels_{reference_kernel<accumulate_op>(), reference_kernel<add_op>(),
                 reference_kernel<cast_op>(),       reference_kernel<matmul_op>(),
                 reference_kernel<mul_op>(),        reference_kernel<silu_op>(),
                 reference_kernel<swiglu_op>(),     reference_kernel<swiglu_grad_op>()} {
    facts_.kind = kind;
    facts_.name = "fake";
    facts_.memory_bytes = int64_t{1} << 30;
  }

  const DeviceFacts& facts() const override { return facts_; }
  std::span<const KernelDef> kernels() const override { return kernels_; }
  bool reads_host_memory() const override { return reads_host_memory_; }

  Result<std::unique_ptr<DeviceBuffer>> allocate(int64_t bytes) override {
    if (allocated_bytes_ + bytes > facts_.memory_bytes) return device_error("out of memory", "fake");
    allocated_bytes_ += bytes;
    return std::unique_ptr<DeviceBuffer>(new FakeBuffer(bytes));
  }
  Status upload(std::byte* to_device, std::span<const std::byte> from_host) override {
    std::memcpy(to_device, from_host.data(), from_host.size());
    return {};
  }
  Status download(std::span<std::byte> to_host, const std::byte* from_device) override {
    std::memcpy(to_host.data(), from_device, to_host.size());
    return {};
  }
  Result<std::unique_ptr<Launches>> prepare(std::span<const KernelDef* const> kernels,
                                            std::span<KernelCall> calls) override {
    return std::unique_ptr<Launches>(new FakeLaunches{*this, kernels, calls});
  }

  int64_t allocated_bytes() const { return allocated_bytes_; }
  void set_memory_bytes(int64_t bytes) { facts_.memory_bytes = bytes; }
  void set_reads_host_memory(bool reads) { reads_host_memory_ = reads; }
  void fail_runs() { fail_ = true; }
  void allocate_in_next_run() { allocate_ = true; }
  void skip(std::string_view op) { skipped_ = op; }  // its kernels write nothing

 private:
  struct FakeLaunches : Launches {
    FakeLaunches(FakeDevice& d, std::span<const KernelDef* const> k, std::span<KernelCall> c)
        : device(d), kernels(k), calls(c) {}
    Status run(std::span<double> timings_seconds) override {
      if (device.fail_) return device_error("lost", "fake");
      if (device.allocate_) ::operator delete(::operator new(1));
      device.allocate_ = false;
      for (size_t i = 0; i < calls.size(); ++i) {
        if (kernels[i]->op != device.skipped_) kernels[i]->run(calls[i]);
        if (!timings_seconds.empty()) timings_seconds[i] = 1.0 + static_cast<double>(i);
      }
      return {};
    }
    FakeDevice& device;
    std::span<const KernelDef* const> kernels;
    std::span<KernelCall> calls;
  };

  DeviceFacts facts_;
  std::vector<KernelDef> kernels_;
  int64_t allocated_bytes_ = 0;
  bool reads_host_memory_ = true;
  bool fail_ = false;
  bool allocate_ = false;
  std::string_view skipped_;
};

}  // namespace tenon
