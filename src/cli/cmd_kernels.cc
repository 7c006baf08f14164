// tenon kernels: what this machine computes with.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <set>

#include "base/json.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/terminal.h"
#include "ops/op_cases.h"
#include "ops/op_list.h"

#ifdef TENON_WITH_CUDA
#include "backend/cuda/kernel_resources.h"
#endif

namespace tenon {
namespace {

struct KernelsArguments {
  DeviceArguments device;
  bool json = false;
};

// The dtypes of a kernel's first input among the op's cases that it serves here.
std::string served_dtypes(const KernelDef& kernel, const DeviceFacts& facts) {
  std::set<std::string_view> names;
  for (const OpCase& each : op_cases()) {
    if (each.op->name != kernel.op) continue;
    const std::vector<Type> inputs = each.input_types();
    const OpSite site{*each.op, each.attrs, inputs, each.outputs};
    if (kernel.serves(site, facts)) names.insert(dtype_name(inputs.at(0).dtype));
  }
  std::string out;
  for (std::string_view name : names) out += (out.empty() ? "" : " ") + std::string(name);
  return out;
}

// The kernels that serve nothing on this machine, which lacks what they need.
std::string unused_text(const Json& names) {
  if (names.empty()) return {};
  std::string out = "\nNot on this machine:";
  for (const Json& name : names) out += " " + name.get<std::string>();
  return out + "\n";
}

#ifdef TENON_WITH_CUDA
// Functions of the GPU's machine code: a table for people, rows for JSON.
std::string resources_text() {
  using Align = Table::Align;
  Table table({{"function"},
               {"arch"},
               {"registers", Align::right},
               {"shared bytes", Align::right},
               {"stack bytes", Align::right}});
  for (const cuda::KernelResources& each : cuda::kernel_resources()) {
    table.add_row({std::string(each.function), std::string(each.architecture), std::to_string(each.registers),
                   std::to_string(each.shared_bytes), std::to_string(each.stack_bytes)});
  }
  return cuda::kernel_resources().empty() ? std::string() : "\n" + table.text();
}

Json resources_json() {
  Json rows = Json::array();
  for (const cuda::KernelResources& each : cuda::kernel_resources()) {
    rows.push_back({{"function", each.function},
                    {"arch", each.architecture},
                    {"registers", each.registers},
                    {"shared_bytes", each.shared_bytes},
                    {"stack_bytes", each.stack_bytes}});
  }
  return rows;
}
#else
std::string resources_text() {
  return {};
}
Json resources_json() {
  return Json::array();
}
#endif

Status run_kernels(const KernelsArguments& a) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, open_device(a.device));
  const DeviceFacts& facts = device->facts();
  std::string features;
  for (const std::string& feature : facts.features) features += (features.empty() ? "" : " ") + feature;
  Json rows = Json::array(), unused = Json::array();
  Table table({{"op"}, {"kernel"}, {"dtypes"}, {"deterministic"}});
  for (const OpDef* op : all_ops()) {
    for (const KernelDef& kernel : device->kernels()) {
      if (kernel.op != op->name) continue;
      const std::string dtypes = served_dtypes(kernel, facts);
      if (dtypes.empty()) {
        unused.push_back(kernel.name);
        continue;
      }
      table.add_row(
          {std::string(op->name), std::string(kernel.name), dtypes, kernel.deterministic ? "yes" : "no"});
      rows.push_back({{"op", op->name},
                      {"kernel", kernel.name},
                      {"dtypes", dtypes},
                      {"deterministic", kernel.deterministic}});
    }
  }
  const bool gpu = facts.kind == DeviceKind::cuda;
  if (a.json) {
    Json out = {
        {"device", facts.name}, {"features", facts.features}, {"kernels", rows}, {"not_here", unused}};
    if (gpu) out["resources"] = resources_json();
    std::printf("%s\n", out.dump().c_str());
  } else {
    const std::string threads = gpu ? "" : fmt::format("{} threads, ", facts.threads);
    std::printf("%s, %s%s\n\n%s%s%s", facts.name.c_str(), threads.c_str(), features.c_str(),
                table.text().c_str(), unused_text(unused).c_str(), gpu ? resources_text().c_str() : "");
  }
  return {};
}

}  // namespace

Command kernels_command() {
  const auto a = std::make_shared<KernelsArguments>();
  Command command;
  command.name = "kernels";
  command.summary = "List the kernels of this machine by op and dtype";
  command.example = "tenon kernels --json";
  command.options = {{"json", &a->json, "Print JSON"}};
  add_device_options(command, a->device);
  command.run = [a] { return run_kernels(*a); };
  return command;
}

}  // namespace tenon
