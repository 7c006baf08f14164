// tenon merge: an adapter folded into its base model.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/bytes.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/terminal.h"
#include "run/merge.h"

namespace tenon {
namespace {

struct MergeArguments {
  MergeRequest request;
  DeviceArguments device;
  ByteSize shard_size{int64_t{5} << 30};
  bool no_check = false;
  bool json = false;
};

Status run_merge(MergeArguments& a) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, open_device(a.device));
  a.request.check = !a.no_check;
  a.request.shard_bytes = a.shard_size.bytes;
  std::unique_ptr<ProgressBar> bar;
  a.request.progress = [&](int64_t done, int64_t total) {
    if (a.json) return;
    if (!bar) bar = std::make_unique<ProgressBar>(stderr, "weight", total);
    bar->update(done, "");
  };
  ASSIGN_OR_RETURN(const MergeResult result, merge_adapter(a.request, *device));
  bar.reset();
  if (a.json) {
    const Json line = {{"out", a.request.out},
                       {"weights", result.weights},
                       {"merged", result.merged},
                       {"shards", result.shards},
                       {"bytes", result.bytes},
                       {"checked", a.request.check},
                       {"base_distance", result.base_distance},
                       {"merged_distance", result.merged_distance}};
    std::printf("%s\n", line.dump().c_str());
    return {};
  }
  std::printf("%lld of %lld weights merged into %s (%lld files, %s)\n", static_cast<long long>(result.merged),
              static_cast<long long>(result.weights), a.request.out.c_str(),
              static_cast<long long>(result.shards), format_bytes(result.bytes).c_str());
  if (a.request.check) {
    std::printf("Checked: logits are %.1e from the live adapter's; the base model's are %.1e away.\n",
                result.merged_distance, result.base_distance);
  }
  return {};
}

}  // namespace

Command merge_command() {
  const auto a = std::make_shared<MergeArguments>();
  Command command;
  command.name = "merge";
  command.summary = "Fold an adapter into its base model";
  command.details =
      "Writes a Hugging Face folder in safetensors, one weight in memory at a time, and compares its "
      "logits with the live adapter's before it takes its name.";
  command.example = "tenon merge --model MODEL --adapter RUN/adapter --out MERGED";
  command.options = {
      {"model", &a->request.model, "Model folder or GGUF file", "PATH", {}, {}, false, true},
      {"adapter", &a->request.adapter, "Adapter folder in PEFT format", "FOLDER", {}, {}, false, true},
      {"out", &a->request.out, "Folder to make", "FOLDER", {}, {}, false, true},
      {"dtype",
       &a->request.dtype,
       "Of the matrices; auto: as stored, bf16 for quantised ones",
       {},
       {"auto", "f32", "f16", "bf16"}},
      {"shard-size", &a->shard_size, "Most bytes of one file"},
      {"no-check", &a->no_check, "Leave out the comparison of logits, which needs memory for the model"},
      {"json", &a->json, "Print one line of JSON"},
  };
  add_device_options(command, a->device);
  command.run = [a] { return run_merge(*a); };
  return command;
}

}  // namespace tenon
