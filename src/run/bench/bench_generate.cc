#include "run/bench/bench_generate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "base/checked_math.h"
#include "base/process_memory.h"
#include "base/threads.h"
#include "io/page_cache.h"
#include "models/cache_layout.h"
#include "models/rope.h"
#include "run/session.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kPageTokens = 16;
constexpr int64_t kMostPrefill = 512;  // tokens of one run

// One run of a program: token t of stream `stream[t]` at `position[t]`; padding has stream -1.
struct RunInputs {
  std::vector<int32_t> ids, positions, slots, stream, rows;
};

class Bench {
 public:
  Bench(const BenchModel& model, const GenerateBenchSettings& settings)
      : model_(model),
        settings_(settings),
        prefill_tokens_(std::min(settings.prompt, kMostPrefill)),
        pages_(ceil_div(settings.prompt + settings.new_tokens, kPageTokens)),
        rings_(ring_sizes(model.spec, cache_options())) {}

  std::vector<Program> programs() const {
    std::vector<Program> out;
    out.push_back(program(kPrefill, prefill_tokens_, 1));
    out.push_back(program(kDecode, settings_.streams, settings_.streams));
    return out;
  }

  Status open(Plan plan, Device& device) {
    ASSIGN_OR_RETURN(session_, open_bench_session(std::move(plan), model_, nullptr, device));
    std::vector<int32_t> table(static_cast<size_t>(pages_ * settings_.streams));
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(i);
    session_->write(kPageTableInput, table);
    for (int64_t ring : rings_)
      session_->write(ring_input(kPageTableInput, ring), ring_page_table(cache_options(), ring));
    return {};
  }

  Status prefill(uint64_t seed) {
    random_.seed(seed);
    for (int64_t stream = 0; stream < settings_.streams; ++stream) {
      for (int64_t begin = 0; begin < settings_.prompt; begin += prefill_tokens_) {
        RunInputs run;
        const int64_t count = std::min(prefill_tokens_, settings_.prompt - begin);
        for (int64_t i = 0; i < prefill_tokens_; ++i) add_token(run, i < count ? stream : -1, begin + i);
        run.rows = {static_cast<int32_t>(count - 1)};
        RETURN_IF_ERROR(launch(kPrefill, run));
      }
    }
    return {};
  }

  Status decode() {
    for (int64_t i = 0; i < settings_.new_tokens; ++i) {
      RunInputs run;
      for (int64_t stream = 0; stream < settings_.streams; ++stream) {
        add_token(run, stream, settings_.prompt + i);
        run.rows.push_back(static_cast<int32_t>(stream));
      }
      RETURN_IF_ERROR(launch(kDecode, run));
    }
    return {};
  }

  Session& session() { return *session_; }
  int64_t prefill_runs() const { return settings_.streams * ceil_div(settings_.prompt, prefill_tokens_); }

 private:
  CacheOptions cache_options() const {
    CacheOptions cache;
    cache.streams = settings_.streams;
    cache.page_tokens = kPageTokens;
    cache.max_pages = pages_;
    cache.pages = pages_ * settings_.streams;
    cache.run_tokens = prefill_tokens_;
    cache.dtype = settings_.compute;
    return cache;
  }

  Program program(const char* name, int64_t tokens, int64_t rows) const {
    DecodeSettings decode;
    static_cast<ProgramSettings&>(decode) = settings_;
    decode.cache = cache_options();
    decode.tokens = tokens;
    decode.rows = rows;
    return decode_program(model_.spec, {}, name, decode);
  }

  void add_token(RunInputs& run, int64_t stream, int64_t position) {
    const bool padding = stream < 0;
    const auto vocab = static_cast<uint64_t>(model_.spec.vocab);
    run.ids.push_back(padding ? 0 : static_cast<int32_t>(random_() % vocab));
    run.positions.push_back(padding ? 0 : static_cast<int32_t>(position));
    run.slots.push_back(padding ? -1 : static_cast<int32_t>(stream * pages_ * kPageTokens + position));
    run.stream.push_back(static_cast<int32_t>(stream));
  }

  Status launch(const std::string& name, const RunInputs& run) {
    const std::string prefix = name + ".";
    session_->write(prefix + kIdsInput, run.ids);
    session_->write(prefix + kPositionsInput, run.positions);
    session_->write(prefix + kSlotsInput, run.slots);
    session_->write(prefix + kStreamInput, run.stream);
    for (int64_t ring : rings_) {
      std::vector<int32_t> slots = run.slots;
      for (size_t i = 0; i < slots.size(); ++i) {
        if (slots[i] >= 0) slots[i] = ring_slot(cache_options(), ring, run.stream[i], run.positions[i]);
      }
      session_->write(prefix + ring_input(kSlotsInput, ring), slots);
    }
    if (depends_on_length(model_.spec)) {
      std::vector<int32_t> lengths = run.positions;
      for (int32_t& length : lengths) ++length;
      session_->write(prefix + kSequenceLengthInput, lengths);
    }
    session_->write(prefix + kRowsInput, run.rows);
    RETURN_IF_ERROR(session_->run(name));
    session_->output_f32(name, kLogitsOutput);
    return session_->status();
  }

  const BenchModel& model_;
  const GenerateBenchSettings& settings_;
  int64_t prefill_tokens_;
  int64_t pages_;               // of a stream
  std::vector<int64_t> rings_;  // models/cache_layout.h
  std::unique_ptr<Session> session_;
  std::mt19937_64 random_;
};

// Every weight once, the rows of an embedding table apart.
int64_t weight_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const StaticValue& value : plan.statics) {
    if (value.role == Role::weight) bytes += value.type.bytes();
  }
  return bytes;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// How fast the bytes that a device with memory of its own loads can come at best.
Result<double> loading_ceiling(const BenchModel& model, const Device& device) {
  constexpr int64_t kMostBytes = int64_t{8} << 30;
  if (!model.model || device.reads_host_memory()) return 0.0;
  return page_cache_bytes_per_second(model.model->checkpoint.files(),
                                     std::min(kMostLoadingThreads, available_threads()), kMostBytes);
}

}  // namespace

Result<GenerateBench> bench_generate(const BenchModel& model, Device& device,
                                     const GenerateBenchSettings& settings) {
  Bench bench(model, settings);
  ASSIGN_OR_RETURN(Plan plan, plan_bench(bench.programs(), model, device, settings.without));
  GenerateBench out;
  out.prefill_flops = program_flops(plan.find(kPrefill)->program) * bench.prefill_runs();
  out.decode_flops = program_flops(plan.find(kDecode)->program) * settings.new_tokens;
  out.decode_weight_bytes = weight_bytes(plan);
  out.arena_bytes = plan.arena_bytes();
  out.external_bytes = plan.external_bytes;
  ASSIGN_OR_RETURN(out.page_cache_bytes_per_second, loading_ceiling(model, device));
  const Clock::time_point opening = Clock::now();
  RETURN_IF_ERROR(bench.open(std::move(plan), device));
  out.load_seconds = seconds_since(opening);
  out.load = bench.session().executor().load_report();
  int64_t used_before = 0;
  for (int64_t i = 0; i <= settings.repeat; ++i) {
    Clock::time_point begin = Clock::now();
    RETURN_IF_ERROR(bench.prefill(static_cast<uint64_t>(i)));
    const double prefill = seconds_since(begin);
    begin = Clock::now();
    RETURN_IF_ERROR(bench.decode());
    if (i == 0) {
      used_before = device.memory_use().used_bytes;
      continue;
    }
    out.prefill_seconds.push_back(prefill);
    out.decode_seconds.push_back(seconds_since(begin));
  }
  out.peak_resident_bytes = peak_resident_bytes();
  out.memory = device.memory_use();
  out.grown_bytes = out.memory.used_bytes - used_before;
  if (settings.times_kernels) {
    Session& session = bench.session();
    ASSIGN_OR_RETURN(out.decode_kernels, time_kernels(session.executor(), *session.plan().find(kDecode), 5));
    ASSIGN_OR_RETURN(out.prefill_kernels,
                     time_kernels(session.executor(), *session.plan().find(kPrefill), 2));
  }
  return out;
}

}  // namespace tenon
