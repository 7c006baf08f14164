#include "exec/load_statics.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/threads.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& data) {
  return std::as_bytes(std::span(data));
}

// Kernels read elements at addresses that their type allows.
int64_t element_alignment(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::i8:
    case DType::u8:
      return 1;
    default:
      return 2;  // halves, and the f16 scales of blocks
  }
}

struct Loading {
  const Plan& plan;
  Device& device;
  std::byte* arena;
  const StaticSource& source;
  LoadReport& report;
  PlacedStatics places = {};
  std::vector<std::byte> staging = {};                // of weights that are made on the host
  std::vector<const StaticValue*> device_loads = {};  // in the order that the device was given them

  Status run();
  Status bind_external(const StaticValue& value);
  Status load_in_host_memory(std::vector<const StaticValue*> values);
  Status load_value(const StaticValue& value);
  Status load_by_device(const StaticValue& value, std::span<const StoredPart> parts);
  Status finish();
  Status load_constants();
};

Status Loading::run() {
  const Clock::time_point begin = Clock::now();
  std::vector<const StaticValue*> by_host;
  for (const StaticValue& value : plan.statics) {
    if (value.external) {
      RETURN_IF_ERROR(bind_external(value));
      continue;
    }
    places[value.name] = {&value, arena == nullptr ? nullptr : arena + value.offset};
    if (value.role != Role::weight && value.role != Role::adapter) continue;
    if (in_host_memory(device))
      by_host.push_back(&value);
    else
      RETURN_IF_ERROR(load_value(value));
  }
  RETURN_IF_ERROR(load_in_host_memory(std::move(by_host)));
  RETURN_IF_ERROR(finish());
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return load_constants();
}

Status Loading::bind_external(const StaticValue& value) {
  CHECK(source.external != nullptr, "external weights without a source");
  ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, source.external(value));
  if (static_cast<int64_t>(bytes.size()) != value.type.bytes()) {
    return bad_argument(
        fmt::format("{} bytes given where {} has {}", bytes.size(), value.type.text(), value.type.bytes()),
        value.name);
  }
  if (reinterpret_cast<uintptr_t>(bytes.data()) %
      static_cast<uintptr_t>(element_alignment(value.type.dtype))) {
    return unsupported("its bytes in the mapped file are not aligned to its elements", value.name,
                       "Load it into memory instead.");
  }
  places[value.name] = {&value, const_cast<std::byte*>(bytes.data())};
  return {};
}

// Threads take the largest of what is left; of several errors the first in the order of the plan is given.
Status Loading::load_in_host_memory(std::vector<const StaticValue*> values) {
  if (values.empty()) return {};
  CHECK(source.load != nullptr, "weights without a source");
  for (const StaticValue* value : values) report.bytes += value->type.bytes();
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return values[i]->type.bytes(); });
  std::vector<Status> statuses(values.size());
  std::atomic<size_t> next = 0;
  ThreadPool threads(std::max(1, device.facts().threads));
  threads.run([&](int) {
    for (size_t taken = next++; taken < order.size(); taken = next++) {
      const StaticValue& value = *values[order[taken]];
      const auto size = static_cast<size_t>(value.type.bytes());
      statuses[order[taken]] = source.load(value, {places.at(value.name).data, size});
    }
  });
  for (const Status& status : statuses) RETURN_IF_ERROR(status);
  return {};
}

// Of a device with memory of its own.
Status Loading::load_value(const StaticValue& value) {
  if (source.parts) {
    const std::vector<StoredPart> parts = source.parts(value);
    if (!parts.empty()) return load_by_device(value, parts);
  }
  CHECK(source.load != nullptr, "weights without a source");
  const auto size = static_cast<size_t>(value.type.bytes());
  report.bytes += value.type.bytes();
  staging.resize(std::max(staging.size(), size));
  RETURN_IF_ERROR(source.load(value, {staging.data(), size}));
  return device.upload(places.at(value.name).data, {staging.data(), size});
}

Status Loading::load_by_device(const StaticValue& value, std::span<const StoredPart> parts) {
  device_loads.push_back(&value);
  return device.load(places.at(value.name).data, value.type.dtype, parts);
}

Status Loading::finish() {
  staging = {};
  if (device_loads.empty()) return {};
  ASSIGN_OR_RETURN(const Loaded by_device, device.finish_loading());
  report.bytes += by_device.bytes;
  if (!by_device.not_finite) return {};
  CHECK(source.not_finite != nullptr, "stored tensors without a source");
  const auto [load, element] = *by_device.not_finite;
  return source.not_finite(*device_loads.at(static_cast<size_t>(load)), element);
}

Status Loading::load_constants() {
  for (const ProgramPlan& planned : plan.programs) {
    for (const Constant& constant : planned.program.constants) {
      const Value& value = planned.program.value(constant.value);
      const PlacedStatic& at = places.at(value.name);
      if (constant.data.empty()) continue;
      if (value.type.dtype == DType::i32) {
        const std::vector<int32_t> indices(constant.data.begin(), constant.data.end());
        RETURN_IF_ERROR(device.upload(at.data, bytes_of(indices)));
      } else {
        RETURN_IF_ERROR(device.upload(at.data, bytes_of(constant.data)));
      }
    }
  }
  return {};
}

}  // namespace

Result<PlacedStatics> load_statics(const Plan& plan, Device& device, std::byte* arena,
                                   const StaticSource& source, LoadReport& report) {
  Loading loading{plan, device, arena, source, report};
  RETURN_IF_ERROR(loading.run());
  return std::move(loading.places);
}

}  // namespace tenon
