#include "run/report/run_facts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/json.h"
#include "io/write_file.h"
#include "plan/report.h"
#include "run/programs.h"
#include "run/train/run_paths.h"

namespace tenon {
namespace {

constexpr size_t kMostPlaces = 400;
constexpr size_t kMostValues = 10;

int64_t total(const BytesByUse& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

// The largest step of each of at most kMostPlaces runs of steps, so that no peak is lost.
std::vector<size_t> places(const std::vector<BytesByUse>& timeline) {
  std::vector<size_t> out;
  const size_t every = std::max<size_t>(1, (timeline.size() + kMostPlaces - 1) / kMostPlaces);
  for (size_t begin = 0; begin < timeline.size(); begin += every) {
    size_t best = begin;
    for (size_t i = begin; i < std::min(timeline.size(), begin + every); ++i) {
      if (total(timeline[i]) > total(timeline[best])) best = i;
    }
    out.push_back(best);
  }
  return out;
}

std::string op_text(const Program& program, size_t step) {
  const Op& op = program.ops[step];
  return std::string(op.def->name) + (op.name.empty() ? "" : " " + op.name);
}

std::string text_of(const Json& json) {
  return json.dump();
}

Json parsed(const std::string& text) {
  return Json::parse_or_null(text);
}

}  // namespace

std::string memory_facts(const Plan& plan) {
  const ProgramPlan* step = plan.find(kTrainStep);
  if (step == nullptr) return {};
  const MemoryReport report = memory_report(plan);
  const std::vector<BytesByUse> timeline = memory_timeline(*step);
  Json uses = Json::array(), at = Json::array(), live = Json::array(), values = Json::array();
  for (size_t use = 0; use < kMemoryUses; ++use) uses.push_back(memory_use_name(static_cast<MemoryUse>(use)));
  for (const size_t place : places(timeline)) {
    at.push_back(place);
    live.push_back(timeline[place]);
  }
  for (const LiveValue& value : report.live_at_peak) {
    if (values.size() == kMostValues) break;
    values.push_back({{"name", value.name},
                      {"op", value.op},
                      {"type", value.type},
                      {"use", memory_use_name(value.use)},
                      {"bytes", value.bytes}});
  }
  const auto by_total = [](const BytesByUse& a, const BytesByUse& b) { return total(a) < total(b); };
  const auto peak = std::max_element(timeline.begin(), timeline.end(), by_total);
  return text_of({{"uses", uses},
                  {"at", at},
                  {"live", live},
                  {"static", report.static_bytes},
                  {"peak_op", op_text(step->program, static_cast<size_t>(peak - timeline.begin()))},
                  {"live_at_peak", values},
                  {"arena_bytes", report.arena_bytes},
                  {"work_bytes", report.work_bytes},
                  {"lower_bound_bytes", report.lower_bound_bytes},
                  {"external_bytes", report.external_bytes}});
}

std::string data_facts(const DataReport& report) {
  return text_of({{"part_rows", report.part_rows},
                  {"scanned_rows", report.scanned_rows},
                  {"tokens", report.tokens},
                  {"trained_tokens", report.trained_tokens},
                  {"longest_tokens", report.longest_tokens},
                  {"cut", report.cut},
                  {"skipped", report.skipped},
                  {"untrainable", report.untrainable},
                  {"length_histogram", report.length_histogram}});
}

std::string kernel_facts(const std::vector<KernelSeconds>& kernels) {
  Json out = Json::array();
  for (const KernelSeconds& each : kernels) {
    out.push_back({{"program", each.program},
                   {"kernel", each.kernel},
                   {"calls", each.calls},
                   {"seconds", each.seconds}});
  }
  return text_of(out);
}

std::string sample_facts(const std::vector<Sample>& samples) {
  Json out = Json::array();
  for (const Sample& each : samples) {
    out.push_back({{"prompt", each.prompt},
                   {"expected", each.expected},
                   {"before", each.before},
                   {"after", each.after}});
  }
  return text_of(out);
}

std::vector<Sample> parse_samples(const std::string& json) {
  std::vector<Sample> samples;
  const Json list = parsed(json);
  if (!list.is_array()) return samples;
  for (const Json& each : list) {
    if (!each.is_object()) return {};
    Sample sample;
    sample.prompt = each.value("prompt", std::string());
    sample.expected = each.value("expected", std::string());
    sample.before = each.value("before", std::string());
    sample.after = each.value("after", std::string());
    samples.push_back(std::move(sample));
  }
  return samples;
}

RunFacts read_facts(const std::string& run) {
  RunFacts facts;
  const Result<std::string> text = read_file(run_facts_path(run));
  const Json json = text.ok() ? parsed(*text) : Json();
  const auto take = [&](const char* key, std::string& out) {
    if (json.is_object() && json.contains(key)) out = text_of(json.at(key));
  };
  take("memory", facts.memory);
  take("data", facts.data);
  take("kernels", facts.kernels);
  take("samples", facts.samples);
  return facts;
}

Status write_facts(const std::string& run, const RunFacts& facts) {
  Json json = Json::object();
  const auto put = [&](const char* key, const std::string& text) {
    if (!text.empty()) json[key] = parsed(text);
  };
  put("memory", facts.memory);
  put("data", facts.data);
  put("kernels", facts.kernels);
  put("samples", facts.samples);
  return write_file_atomic(run_facts_path(run), text_of(json) + "\n");
}

}  // namespace tenon
