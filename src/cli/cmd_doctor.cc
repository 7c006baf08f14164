// tenon doctor: what this machine offers.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <chrono>
#include <ctime>
#include <memory>

#include "base/json.h"
#include "cli/ceilings.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/streams.h"

namespace tenon {
namespace {

struct DoctorArguments {
  std::string what;
  DeviceArguments device;
};

std::string source_text() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format(
      "tenon doctor env, {:%Y-%m-%d}: rates measured with its own kernels, memory as it is free.",
      fmt::gmtime(now));
}

Status run_doctor(const DoctorArguments& a) {
  if (a.what != "env") {
    return bad_argument(fmt::format("'{}' cannot be examined", a.what), "WHAT", "Say env.");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, open_device(a.device));
  ASSIGN_OR_RETURN(const DeviceFacts facts, measured_facts(*device));
  Json json = Json::parse(device_facts_json(facts));
  json["source"] = source_text();
  write_output(json.dump(2) + "\n");
  return {};
}

}  // namespace

Command doctor_command() {
  const auto a = std::make_shared<DoctorArguments>();
  Command command;
  command.name = "doctor";
  command.summary = "Write down what this machine offers";
  command.details =
      "env prints the facts of the device in the form of facts/*.json: what `tenon plan --facts` takes to "
      "plan for this machine on another one.";
  command.example =
      "tenon doctor env > here.json\n"
      "tenon doctor env --device cuda > gpu.json";
  command.positionals = {{"WHAT", &a->what, "env"}};
  add_device_options(command, a->device);
  command.run = [a] { return run_doctor(*a); };
  return command;
}

}  // namespace tenon
