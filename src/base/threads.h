// One pool of workers that runs the same function on every thread and waits. The split of work is static, so
// the same thread count gives the same bits. Workers spin briefly between calls and then sleep; run() never
// allocates.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace tenon {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// Part `index` of `parts` nearly equal parts of [0, count), cut at multiples of `granularity`.
Range split_range(int64_t count, int parts, int index, int64_t granularity = 1);

class ThreadPool {
 public:
  // `threads` >= 1 in all; the caller of run() is thread 0.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls work(thread) once on each of size() threads and returns when all are done. Not reentrant; one
  // caller at a time. `work` must not throw.
  void run(FunctionRef<void(int thread)> work);

  // Splits [0, count) over the threads (at multiples of `granularity`) and calls body(range) where it is not
  // empty.
  void parallel_for(int64_t count, int64_t granularity, FunctionRef<void(Range)> body);

 private:
  void worker_loop(int thread);

  std::vector<std::thread> workers_;
  std::atomic<uint32_t> generation_{0};
  std::atomic<int32_t> pending_{0};
  std::atomic<bool> stop_{false};
  const FunctionRef<void(int)>* work_ = nullptr;
};

// Cores this process may run on.
int available_threads();

}  // namespace tenon
