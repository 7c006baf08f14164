// tenon bench: how fast training, generation and single kernels are on this machine, beside its ceilings.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/json.h"
#include "cli/ceilings.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "run/bench/bench_generate.h"
#include "run/bench/bench_kernels.h"
#include "run/bench/bench_train.h"
#include "run/session.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchArguments {
  Clock::time_point start;  // of the program, as good as
  std::string work;
  std::string model;
  std::string random;  // a config.json
  TrainBenchSettings train;
  GenerateBenchSettings generate;
  KernelBenchSettings kernels;
  StringList without;
  std::string attention = "auto";
  std::string weights = "auto";
  DeviceArguments device;
  bool times_kernels = false;
  bool json = false;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double shortest(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

double rounded(double value, double scale) {
  return std::round(value * scale) / scale;
}

double gibibytes(int64_t bytes) {
  return rounded(static_cast<double>(bytes) / (1 << 30), 1000);
}

double gflops(int64_t flops, double seconds) {
  return rounded(static_cast<double>(flops) / seconds * 1e-9, 10);
}

double ceiling_gflops(const DeviceFacts& facts, DType compute) {
  return rounded(compute == DType::bf16 ? facts.gflops_bf16 : facts.gflops_f32, 10);
}

double share(double of, double ceiling) {
  return ceiling > 0 ? rounded(of / ceiling, 1000) : 0;
}

Json kernel_json(const KernelTime& time, const DeviceFacts& ceilings) {
  return {{"op", time.op},
          {"kernel", time.kernel},
          {"types", time.types},
          {"calls", time.calls},
          {"seconds", time.seconds},
          {"gflops", gflops(time.flops, time.seconds)},
          {"gigabytes_per_second", rounded(static_cast<double>(time.bytes) / time.seconds * 1e-9, 10)},
          {"share_of_ceiling", share(least_seconds(time, ceilings), time.seconds)}};
}

std::string kernel_table(const std::vector<KernelTime>& times, const DeviceFacts& ceilings) {
  using Align = Table::Align;
  Table table({{"ms", Align::right},
               {"of all", Align::right},
               {"calls", Align::right},
               {"GFLOP/s", Align::right},
               {"GB/s", Align::right},
               {"of ceiling", Align::right},
               {"kernel"},
               {"types"}});
  double total = 0;
  for (const KernelTime& time : times) total += time.seconds;
  for (const KernelTime& time : times) {
    table.add_row({fmt::format("{:.2f}", time.seconds * 1e3),
                   fmt::format("{:.1f}%", 100 * time.seconds / total), std::to_string(time.calls),
                   fmt::format("{:.1f}", gflops(time.flops, time.seconds)),
                   fmt::format("{:.1f}", static_cast<double>(time.bytes) / time.seconds * 1e-9),
                   fmt::format("{:.0f}%", 100 * least_seconds(time, ceilings) / time.seconds), time.kernel,
                   time.types});
  }
  return table.text();
}

// One fact a line, the name with spaces.
std::string fact_lines(const Json& facts) {
  std::string out;
  for (const auto& [name, value] : facts.items()) {
    if (value.is_array()) continue;
    std::string label = name;
    std::replace(label.begin(), label.end(), '_', ' ');
    out += fmt::format("{:30} {}\n", label, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return out;
}

void print(const BenchArguments& a, const Json& facts, const std::vector<KernelTime>& kernels,
           const DeviceFacts& ceilings) {
  if (a.json) {
    Json line = facts;
    if (!kernels.empty()) {
      line["kernels"] = Json::array();
      for (const KernelTime& time : kernels) line["kernels"].push_back(kernel_json(time, ceilings));
    }
    write_output(line.dump() + "\n");
    return;
  }
  write_output(fact_lines(facts));
  if (!kernels.empty()) write_output("\n" + kernel_table(kernels, ceilings));
}

Result<BenchModel> open_model_of(const BenchArguments& a) {
  if (a.model.empty() == a.random.empty()) {
    return bad_argument("either a model or a configuration for random weights is to run", "--model",
                        "Name a folder or a GGUF file with --model, or a config.json with --random.");
  }
  return a.random.empty() ? open_bench_model(a.model) : random_bench_model(a.random);
}

WeightDTypes weights_of(const BenchModel& model, const BenchArguments& a, const DeviceFacts& facts) {
  return model.model ? choose_weight_dtypes(*model.model, a.weights, facts) : WeightDTypes();
}

Status run_train(BenchArguments& a, Device& device) {
  ASSIGN_OR_RETURN(const BenchModel model, open_model_of(a));
  TrainBenchSettings& settings = a.train;
  settings.compute = compute_dtype(a.device, device.facts());
  settings.without = a.without;
  choose_attention(a.attention, settings.without);
  settings.weights = weights_of(model, a, device.facts());
  settings.times_kernels = a.times_kernels;
  ASSIGN_OR_RETURN(const TrainBench bench, bench_train(model, device, settings));
  ASSIGN_OR_RETURN(const DeviceFacts ceilings, measured_facts(device));
  const double seconds = median(bench.step_seconds);
  const double tokens = static_cast<double>(bench.tokens);
  const double reached = gflops(bench.flops, seconds);
  const double ceiling = ceiling_gflops(ceilings, settings.compute);
  const auto since_start = [&](Clock::time_point at) {
    return rounded(std::chrono::duration<double>(at - a.start).count(), 1000);
  };
  const Json facts = {{"tool", "tenon"},
                      {"dtype", dtype_name(settings.compute)},
                      {"batch", settings.batch},
                      {"seq", settings.seq},
                      {"rank", settings.rank},
                      {"weights", a.weights},
                      {"threads", ceilings.threads},
                      {"checkpointing", settings.recompute},
                      {"tokens_per_second", rounded(tokens / seconds, 10)},
                      {"best_tokens_per_second", rounded(tokens / shortest(bench.step_seconds), 10)},
                      {"start_to_first_step_seconds", since_start(bench.first_step_done)},
                      {"before_first_step_seconds", since_start(bench.first_step_began)},
                      {"planning_seconds", since_start(bench.planned)},
                      {"allocation_seconds", rounded(bench.load.allocation_seconds, 1000)},
                      {"weights_load_seconds", rounded(bench.load.seconds, 1000)},
                      {"peak_rss_gib", gibibytes(bench.peak_resident_bytes)},
                      {"arena_gib", gibibytes(bench.arena_bytes)},
                      {"mapped_gib", gibibytes(bench.external_bytes)},
                      {"context_gib", gibibytes(bench.memory.context_bytes)},
                      {"device_used_gib", gibibytes(bench.memory.used_bytes)},
                      {"device_grown_bytes", bench.grown_bytes},
                      {"gflops", reached},
                      {"ceiling_gflops", ceiling},
                      {"share_of_ceiling", share(reached, ceiling)},
                      {"ceiling_gigabytes_per_second", rounded(ceilings.gigabytes_per_second, 10)},
                      {"device", ceilings.name},
                      {"losses", bench.losses}};
  print(a, facts, bench.kernels, ceilings);
  return {};
}

// Loading beside the speed at which the files' bytes can be had, and the memory of a device with its own.
Json device_facts_of(const GenerateBench& bench) {
  const double loaded =
      bench.load.seconds > 0 ? static_cast<double>(bench.load.bytes) / bench.load.seconds : 0;
  Json out = {{"loaded_gib", gibibytes(bench.load.bytes)},
              {"load_gigabytes_per_second", rounded(loaded * 1e-9, 100)},
              {"context_gib", gibibytes(bench.memory.context_bytes)},
              {"device_used_gib", gibibytes(bench.memory.used_bytes)},
              {"device_grown_bytes", bench.grown_bytes}};
  if (bench.page_cache_bytes_per_second > 0) {
    out["page_cache_gigabytes_per_second"] = rounded(bench.page_cache_bytes_per_second * 1e-9, 100);
    out["load_share_of_page_cache"] = share(loaded, bench.page_cache_bytes_per_second);
  }
  return out;
}

Status run_generate(BenchArguments& a, Device& device) {
  ASSIGN_OR_RETURN(const BenchModel model, open_model_of(a));
  GenerateBenchSettings& settings = a.generate;
  settings.compute = compute_dtype(a.device, device.facts());
  settings.without = a.without;
  settings.weights = weights_of(model, a, device.facts());
  settings.times_kernels = a.times_kernels;
  ASSIGN_OR_RETURN(const GenerateBench bench, bench_generate(model, device, settings));
  ASSIGN_OR_RETURN(const DeviceFacts ceilings, measured_facts(device));
  const double prefill = median(bench.prefill_seconds), decode = median(bench.decode_seconds);
  const double streams = static_cast<double>(settings.streams);
  const double prefill_gflops = gflops(bench.prefill_flops, prefill);
  const double ceiling = ceiling_gflops(ceilings, settings.compute);
  const double weight_gigabytes = static_cast<double>(bench.decode_weight_bytes) *
                                  static_cast<double>(settings.new_tokens) / decode * 1e-9;
  Json facts = {
      {"tool", "tenon"},
      {"dtype", dtype_name(settings.compute)},
      {"prompt", settings.prompt},
      {"new", settings.new_tokens},
      {"streams", settings.streams},
      {"type", a.weights == "as-stored" || a.weights == "auto" ? "as-is" : a.weights},
      {"threads", ceilings.threads},
      {"prefill_tokens_per_second", rounded(static_cast<double>(settings.prompt) * streams / prefill, 10)},
      {"decode_tokens_per_second", rounded(static_cast<double>(settings.new_tokens) * streams / decode, 10)},
      {"best_prefill_tokens_per_second",
       rounded(static_cast<double>(settings.prompt) * streams / shortest(bench.prefill_seconds), 10)},
      {"best_decode_tokens_per_second",
       rounded(static_cast<double>(settings.new_tokens) * streams / shortest(bench.decode_seconds), 10)},
      {"peak_rss_gib", gibibytes(bench.peak_resident_bytes)},
      {"arena_gib", gibibytes(bench.arena_bytes)},
      {"mapped_gib", gibibytes(bench.external_bytes)},
      {"weight_bytes", bench.decode_weight_bytes},
      {"load_seconds", rounded(bench.load_seconds, 1000)},
      {"allocation_seconds", rounded(bench.load.allocation_seconds, 1000)},
      {"weights_load_seconds", rounded(bench.load.seconds, 1000)},
      {"prefill_gflops", prefill_gflops},
      {"ceiling_gflops", ceiling},
      {"prefill_share_of_ceiling", share(prefill_gflops, ceiling)},
      {"decode_weights_gigabytes_per_second", rounded(weight_gigabytes, 10)},
      {"ceiling_gigabytes_per_second", rounded(ceilings.gigabytes_per_second, 10)},
      {"decode_share_of_ceiling", share(weight_gigabytes, ceilings.gigabytes_per_second)},
      {"device", ceilings.name}};
  if (!device.reads_host_memory()) facts.update(device_facts_of(bench));
  std::vector<KernelTime> kernels = bench.decode_kernels;
  kernels.insert(kernels.end(), bench.prefill_kernels.begin(), bench.prefill_kernels.end());
  print(a, facts, kernels, ceilings);
  return {};
}

// One line of JSON a case, in the order of the runs, without times.
Status count_kernels(BenchArguments& a, Device& device) {
  ASSIGN_OR_RETURN(const std::vector<KernelBenchCase> cases, bench_kernels(device, a.kernels));
  for (const KernelBenchCase& each : cases) {
    const Json line = {{"what", each.what},        {"op", each.time.op},       {"kernel", each.time.kernel},
                       {"types", each.time.types}, {"flops", each.time.flops}, {"bytes", each.time.bytes}};
    write_output(line.dump() + "\n");
  }
  return {};
}

std::string case_table(const std::vector<KernelBenchCase>& cases, const DeviceFacts& ceilings) {
  using Align = Table::Align;
  Table table({{"op"},
               {"case"},
               {"us", Align::right},
               {"GFLOP/s", Align::right},
               {"GB/s", Align::right},
               {"of ceiling", Align::right},
               {"kernel"},
               {"types"}});
  for (const KernelBenchCase& each : cases) {
    const KernelTime& time = each.time;
    table.add_row({time.op, each.what, fmt::format("{:.1f}", time.seconds * 1e6),
                   fmt::format("{:.1f}", gflops(time.flops, time.seconds)),
                   fmt::format("{:.1f}", static_cast<double>(time.bytes) / time.seconds * 1e-9),
                   fmt::format("{:.0f}%", 100 * least_seconds(time, ceilings) / time.seconds), time.kernel,
                   time.types});
  }
  return table.text();
}

Status run_kernels(BenchArguments& a, Device& device) {
  a.kernels.without = a.without;
  if (a.kernels.once) return count_kernels(a, device);
  ASSIGN_OR_RETURN(const std::vector<KernelBenchCase> cases, bench_kernels(device, a.kernels));
  ASSIGN_OR_RETURN(const DeviceFacts ceilings, measured_facts(device));
  Json facts = {{"tool", "tenon"},
                {"threads", ceilings.threads},
                {"ceiling_gflops", ceiling_gflops(ceilings, DType::f32)},
                {"ceiling_gigabytes_per_second", rounded(ceilings.gigabytes_per_second, 10)},
                {"device", ceilings.name}};
  if (!a.json) {
    write_output(fact_lines(facts) + "\n" + case_table(cases, ceilings));
    return {};
  }
  facts["kernels"] = Json::array();
  for (const KernelBenchCase& each : cases) {
    Json row = kernel_json(each.time, ceilings);
    row["what"] = each.what;
    facts["kernels"].push_back(std::move(row));
  }
  write_output(facts.dump() + "\n");
  return {};
}

Status run_bench(BenchArguments& a) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, open_device(a.device));
  if (a.work == "train") return run_train(a, *device);
  if (a.work == "generate") return run_generate(a, *device);
  if (a.work == "kernels") return run_kernels(a, *device);
  return bad_argument(fmt::format("'{}' cannot be measured", a.work), "WORK",
                      "Say train, generate or kernels.");
}

std::vector<Option> bench_options(BenchArguments& a) {
  return {
      {"model", &a.model, "Model folder or GGUF file, for train and generate", "PATH"},
      {"random", &a.random, "In place of --model: random weights for the model of a config.json", "CONFIG"},
      {"batch", &a.train.batch, "train: sequences of a step", "N", {}, at_least(1)},
      {"seq", &a.train.seq, "train: tokens of a sequence", "N", {}, at_least(2)},
      {"rank", &a.train.rank, "train: rank of the adapter", "N", {}, at_least(1)},
      {"warmup", &a.train.warmup, "train: steps before those that are timed", "N", {}, at_least(0)},
      {"steps", &a.train.steps, "train: steps that are timed", "N", {}, at_least(1)},
      {"checkpointing", &a.train.recompute, "train: compute every block again in the backward pass"},
      {"prompt", &a.generate.prompt, "generate: tokens of a prompt", "N", {}, at_least(1)},
      {"new", &a.generate.new_tokens, "generate: tokens decoded after it", "N", {}, at_least(1)},
      {"streams", &a.generate.streams, "generate: sequences decoded side by side", "N", {}, at_least(1)},
      {"repeat", &a.generate.repeat, "generate: repetitions that are timed", "N", {}, at_least(1)},
      {"op", &a.kernels.only, "kernels: the op to measure; all of them where it is not given", "NAME"},
      {"seconds", &a.kernels.seconds, "kernels: time spent on each case", {}, {}, at_least(0)},
      {"once", &a.kernels.once, "kernels: one run a case and no times, for counting instructions"},
      {"kernel-times", &a.times_kernels, "train, generate: also list where the time goes"},
      {"without", &a.without, "Passes and kernels to leave out"},
      {"attention", &a.attention, "train: kernels of attention, by the end of their name", "NAME"},
      weights_option(&a.weights),
      {"json", &a.json, "Print one line of JSON"},
  };
}

}  // namespace

Command bench_command() {
  const auto a = std::make_shared<BenchArguments>();
  a->start = Clock::now();
  Command command;
  command.name = "bench";
  command.summary = "Measure the speed of training, generation or single kernels";
  command.details =
      "Runs on random tokens, through the programs, plan and kernels that train and generate use, and sets "
      "the result beside what the machine can do at best, measured in the same run.";
  command.example =
      "tenon bench train --model MODEL --batch 4 --seq 512 --rank 16 --steps 6 --threads 2\n"
      "tenon bench generate --model MODEL --prompt 512 --new 128 --streams 1 --threads 2 --json\n"
      "tenon bench train --device cuda --random config.json --rank 64 --batch 2 --seq 2048\n"
      "tenon bench kernels --op matmul";
  command.positionals = {{"WORK", &a->work, "train, generate or kernels"}};
  command.options = bench_options(*a);
  add_device_options(command, a->device);
  command.run = [a] { return run_bench(*a); };
  return command;
}

}  // namespace tenon
