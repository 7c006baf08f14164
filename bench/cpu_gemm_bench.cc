// Speed of the CPU matrix product on the shapes of a small model, beside oneDNN's and the peak of the
// multiply-add units measured in the same run. Times are of the thread's processor clock with one thread, so
// that a busy machine disturbs them little.
//   cpu_gemm_bench [seconds per shape] [threads]
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#ifdef TENON_BENCH_DNNL
#include <dnnl.h>
#endif

#include "backend/cpu/cpu_ceilings.h"
#include "backend/cpu/gemm.h"
#include "base/check.h"
#include "base/threads.h"

namespace tenon {
namespace {

struct BenchShape {
  const char* what;
  int64_t m, n, k;
  bool trans_a, trans_b;
};

constexpr BenchShape kShapes[] = {
    {"square", 1024, 1024, 1024, false, true},      {"q_proj", 1024, 576, 576, false, true},
    {"up_proj", 1024, 1536, 576, false, true},      {"down_proj", 1024, 576, 1536, false, true},
    {"up_proj dx", 1024, 576, 1536, false, false},  {"down_proj dx", 1024, 1536, 576, false, false},
    {"long up_proj", 2048, 1536, 576, false, true}, {"head, a chunk", 512, 2048, 576, false, true},
    {"head dx", 512, 576, 2048, false, false},      {"lora down", 1024, 16, 576, false, true},
    {"lora up", 1024, 576, 16, false, true},        {"lora dh", 1024, 16, 576, false, false},
    {"lora da", 16, 576, 1024, true, false},        {"lora db", 576, 16, 1024, true, false},
    {"lora da 1536", 16, 1536, 1024, true, false},  {"lora r64 down", 1024, 64, 576, false, true},
    {"small, deep", 16, 16, 4096, true, false},     {"decode x 16", 16, 1536, 576, false, true},
};

double seconds_now(bool thread_clock) {
  timespec t;
  clock_gettime(thread_clock ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The best of the repetitions that fit `budget` seconds.
template <typename F>
double best_seconds(double budget, bool thread_clock, F&& work) {
  double best = 1e30, total = 0;
  for (int i = 0; i < 3 || total < budget; ++i) {
    const double start = seconds_now(thread_clock);
    work();
    const double taken = seconds_now(thread_clock) - start;
    best = std::min(best, taken);
    total += taken;
  }
  return best;
}

double peak_gflops(double budget) {
  constexpr int64_t kRounds = 1 << 18;
  float sink = 0;
  int64_t flops = 0;
  const double seconds =
      best_seconds(budget, true, [&] { flops = multiply_add_in_registers(kRounds, &sink); });
  CHECK(sink != 0);
  return static_cast<double>(flops) / seconds * 1e-9;
}

std::vector<float> random_floats(int64_t count) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(generator);
  return values;
}

void run_shape(const BenchShape& shape, double budget, ThreadPool& threads) {
  const auto [what, m, n, k, trans_a, trans_b] = shape;
  std::vector<float> a = random_floats(m * k), b = random_floats(k * n), out(static_cast<size_t>(m * n));
  const GemmSizes sizes{m, n, k, DType::f32, trans_b, DType::f32};
  const int64_t bytes = gemm_workspace_bytes(sizes, threads.size());
  auto* workspace =
      static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>(bytes + 64) / 64 * 64));
  Gemm g{.m = m, .n = n, .k = k};
  g.a = {reinterpret_cast<std::byte*>(a.data()), DType::f32, trans_a ? m : k, trans_a};
  g.b = {reinterpret_cast<std::byte*>(b.data()), DType::f32, trans_b ? k : n, trans_b};
  g.out = reinterpret_cast<std::byte*>(out.data());
  g.out_stride = n;
  const bool thread_clock = threads.size() == 1;
  const double peak = peak_gflops(budget / 4) * threads.size();
  const double seconds = best_seconds(budget, thread_clock, [&] {
    gemm(g, {workspace, static_cast<size_t>(bytes)}, threads);
  });
  const double gflops = 2e-9 * static_cast<double>(m * n * k) / seconds;
  fmt::print("{:14} {:5} x {:5} x {:5} {:7.1f} GF/s {:3.0f} % of {:.0f}", what, m, n, k, gflops,
             100 * gflops / peak, peak);
#ifdef TENON_BENCH_DNNL
  const double other = best_seconds(budget, thread_clock, [&] {
    dnnl_sgemm(trans_a ? 'T' : 'N', trans_b ? 'T' : 'N', m, n, k, 1.0f, a.data(), trans_a ? m : k, b.data(),
               trans_b ? k : n, 0.0f, out.data(), n);
  });
  fmt::print("   oneDNN {:7.1f}", 2e-9 * static_cast<double>(m * n * k) / other);
#endif
  fmt::print("   workspace {:.2f} MiB\n", static_cast<double>(bytes) / (1 << 20));
  std::free(workspace);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const double budget = argc > 1 ? std::atof(argv[1]) : 0.2;
  tenon::ThreadPool threads(argc > 2 ? std::atoi(argv[2]) : 1);
  for (const auto& shape : tenon::kShapes)
    if (argc < 4 || std::string_view(shape.what) == argv[3]) tenon::run_shape(shape, budget, threads);
}
