// Hands out work to the threads of one region as they ask for it, so that a thread that the machine holds up
// is not waited for. For work whose results do not depend on who does it, nor on where it is cut: then the
// bits do not either.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/checked_math.h"
#include "base/threads.h"

namespace tenon {

class WorkQueue {
 public:
  explicit WorkQueue(int64_t count) : count_(count) {}

  // The next of `count` units, or `count` where there are no more.
  int64_t take() { return std::min(next_.fetch_add(1, std::memory_order_relaxed), count_); }

  // The next of them at once: `most`, and towards the end fewer, so that `threads` are done at about the same
  // time. Always a multiple of `granularity`, the end apart; empty where there are no more.
  Range take_several(int64_t most, int64_t granularity, int threads) {
    int64_t begin = next_.load(std::memory_order_relaxed), end;
    do {
      const int64_t share = round_up((count_ - begin) / (2 * threads), granularity);
      end = std::min(count_, begin + std::clamp(share, std::min(most, 4 * granularity), most));
    } while (begin < count_ && !next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
    return {std::min(begin, count_), end};
  }

 private:
  const int64_t count_;
  std::atomic<int64_t> next_{0};
};

}  // namespace tenon
