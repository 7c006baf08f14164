// tenon kernels: what this machine computes with.
#include <cstdio>
#include <memory>
#include <set>

#include "base/json.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/terminal.h"
#include "ops/op_cases.h"
#include "ops/op_list.h"

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

Status run_kernels(const KernelsArguments& a) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, open_device(a.device));
  const DeviceFacts& facts = device->facts();
  std::string features;
  for (const std::string& feature : facts.features) features += (features.empty() ? "" : " ") + feature;
  Json rows = Json::array();
  Table table({{"op"}, {"kernel"}, {"dtypes"}, {"deterministic"}});
  for (const OpDef* op : all_ops()) {
    for (const KernelDef& kernel : device->kernels()) {
      if (kernel.op != op->name) continue;
      const std::string dtypes = served_dtypes(kernel, facts);
      table.add_row(
          {std::string(op->name), std::string(kernel.name), dtypes, kernel.deterministic ? "yes" : "no"});
      rows.push_back({{"op", op->name},
                      {"kernel", kernel.name},
                      {"dtypes", dtypes},
                      {"deterministic", kernel.deterministic}});
    }
  }
  if (a.json) {
    const Json out = {{"device", facts.name}, {"features", facts.features}, {"kernels", rows}};
    std::printf("%s\n", out.dump().c_str());
  } else {
    std::printf("%s, %d threads, %s\n\n%s", facts.name.c_str(), facts.threads, features.c_str(),
                table.text().c_str());
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
