#include "base/threads.h"

#include <sched.h>

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace tenon {
namespace {

constexpr int kSpins = 2000;  // 40 to 100 microseconds: longer than the gap between two kernels of one step

inline void pause_cpu() {
  __builtin_ia32_pause();
}

}  // namespace

Range split_range(int64_t count, int parts, int index, int64_t granularity) {
  const int64_t units = ceil_div(count, granularity);
  const int64_t begin = units * index / parts * granularity;
  const int64_t end = units * (index + 1) / parts * granularity;
  return {std::min(begin, count), std::min(end, count)};
}

ThreadPool::ThreadPool(int threads) {
  CHECK(threads >= 1);
  workers_.reserve(threads - 1);
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { worker_loop(i); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run(FunctionRef<void(int)> work) {
  if (workers_.empty()) return work(0);
  work_ = &work;
  pending_.store(static_cast<int32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  work(0);
  int32_t left;
  for (int spin = 0; (left = pending_.load(std::memory_order_acquire)) != 0; ++spin) {
    if (spin < kSpins) {
      pause_cpu();
    } else {
      pending_.wait(left, std::memory_order_acquire);
    }
  }
}

void ThreadPool::parallel_for(int64_t count, int64_t granularity, FunctionRef<void(Range)> body) {
  if (count <= granularity || workers_.empty()) {
    if (count > 0) body({0, count});
    return;
  }
  run([&](int thread) {
    const Range range = split_range(count, size(), thread, granularity);
    if (range.size() > 0) body(range);
  });
}

void ThreadPool::worker_loop(int thread) {
  uint32_t seen = 0;
  while (true) {
    for (int spin = 0; generation_.load(std::memory_order_acquire) == seen; ++spin) {
      if (spin < kSpins) {
        pause_cpu();
      } else {
        generation_.wait(seen, std::memory_order_acquire);
      }
    }
    ++seen;
    if (stop_) return;
    (*work_)(thread);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

int available_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace tenon
