#include "backend/cpu/cpu_ceilings.h"

#include "backend/cpu/gemm_bf16_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/cpu_ceilings.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "backend/cpu/simd-inl.h"
#include "base/threads.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// Chains of dependent multiply-adds: enough of them to fill two units of a latency of up to six cycles, few
// enough for the registers of every target. Each begins elsewhere, or a compiler makes one of them all.
constexpr int kChains = 12;

// Returns flops of `count` rounds; the sum goes to `sink` so that nothing is left out.
int64_t multiply_add(int64_t count, float* sink) {
  const DF d;
  VF sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(d, 0.5f + *sink + static_cast<float>(i));
  const VF x = hn::Set(d, 0.999f), y = hn::Set(d, 1e-3f);
  for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = hn::MulAdd(sum, x, y);
  }
  VF total = sums[0];
  for (int i = 1; i < kChains; ++i) total = hn::Add(total, sums[i]);
  *sink += sum_of(total);
  return count * kChains * 2 * static_cast<int64_t>(kLanes);
}

void read_floats(const float* from, int64_t count, float* sink) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  VF s0 = hn::Zero(DF()), s1 = s0, s2 = s0, s3 = s0;
  for (int64_t i = 0; i + 4 * kStep <= count; i += 4 * kStep) {
    s0 = hn::Add(s0, load(from + i));
    s1 = hn::Add(s1, load(from + i + kStep));
    s2 = hn::Add(s2, load(from + i + 2 * kStep));
    s3 = hn::Add(s3, load(from + i + 3 * kStep));
  }
  *sink += sum_of(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(multiply_add);
HWY_EXPORT(read_floats);

constexpr int64_t kRounds = 1 << 20;
constexpr int64_t kFloats = 64 << 20;
constexpr int64_t kTiles = 4096;
constexpr int64_t kTileDepth = 256;  // operands of a tile stay in the first cache
constexpr int kRepetitions = 8;

// The shortest of the repetitions, on all threads at once.
template <typename F>
double shortest_seconds(ThreadPool& threads, F&& work) {
  using Clock = std::chrono::steady_clock;
  double shortest = 1e300;
  for (int i = 0; i < kRepetitions; ++i) {
    const Clock::time_point begin = Clock::now();
    threads.run(work);
    shortest = std::min(shortest, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return shortest;
}

// Flops of kTiles tiles of the best unit for bf16 that the machine has; 0 where it has none.
int64_t multiply_bf16(const DeviceFacts& facts, float* sink) {
  const bool tiles = facts.has("amx_bf16"), pairs = facts.has("avx512_bf16");
  if (!facts.has("avx512") || (!tiles && !pairs)) return 0;
  alignas(64) uint16_t a[kBf16TileRows * kTileDepth] = {};
  alignas(64) uint32_t b[kTileDepth / 2 * kBf16PanelColumns] = {};
  alignas(64) float sums[kBf16TileRows * kBf16PanelColumns];
  const Bf16Segment segment{a, kTileDepth, b, kTileDepth};
  const Bf16Tile multiply = tiles ? multiply_bf16_tiles : multiply_bf16_pairs;
  if (tiles) begin_bf16_tiles();
  for (int64_t i = 0; i < kTiles; ++i) multiply({&segment, 1}, sums);
  if (tiles) end_bf16_tiles();
  *sink += sums[0];
  return kTiles * kTileDepth * kBf16PanelColumns * 2 * (tiles ? kBf16TileRows : kBf16DotRows);
}

}  // namespace

int64_t multiply_add_in_registers(int64_t count, float* sink) {
  return HWY_DYNAMIC_DISPATCH(multiply_add)(count, sink);
}

void measure_cpu_ceilings(DeviceFacts& facts) {
  ThreadPool threads(facts.threads);
  struct alignas(64) PerThread {
    float sink = 0;
    int64_t flops = 0;
  };
  std::vector<PerThread> own(static_cast<size_t>(facts.threads));
  const double arithmetic = shortest_seconds(threads, [&](int thread) {
    PerThread& mine = own[static_cast<size_t>(thread)];
    mine.flops = multiply_add_in_registers(kRounds, &mine.sink);
  });
  const auto gflops = [&](double seconds) {
    double flops = 0;
    for (const PerThread& each : own) flops += static_cast<double>(each.flops);
    return flops / seconds * 1e-9;
  };
  facts.gflops_f32 = gflops(arithmetic);
  const double in_bf16 = shortest_seconds(threads, [&](int thread) {
    PerThread& mine = own[static_cast<size_t>(thread)];
    mine.flops = multiply_bf16(facts, &mine.sink);
  });
  facts.gflops_bf16 = std::max(facts.gflops_f32, gflops(in_bf16));
  std::vector<float> memory(static_cast<size_t>(kFloats), 1.0f);
  const double reading = shortest_seconds(threads, [&](int thread) {
    const Range part = split_range(kFloats, facts.threads, thread, 1024);
    HWY_DYNAMIC_DISPATCH(read_floats)
    (memory.data() + part.begin, part.size(), &own[static_cast<size_t>(thread)].sink);
  });
  facts.gigabytes_per_second = static_cast<double>(kFloats) * 4 / reading * 1e-9;
}

}  // namespace tenon
#endif
