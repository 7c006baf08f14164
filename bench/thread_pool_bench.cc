// What a parallel region costs beside its work: the time from calling a pool of 1 to N threads to their being
// done with nothing, one region after the other and after pauses in which the workers fell asleep.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/threads.h"

namespace {

using Clock = std::chrono::steady_clock;

double median_microseconds(tenon::ThreadPool& threads, int regions, std::chrono::microseconds pause) {
  std::vector<double> times;
  for (int i = 0; i < regions; ++i) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const Clock::time_point begin = Clock::now();
    threads.run([](int) {});
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + regions / 2, times.end());
  return times[static_cast<size_t>(regions) / 2];
}

}  // namespace

int main() {
  std::printf("threads  microseconds a region, one after the other  after a pause\n");
  for (int count = 1; count <= tenon::available_threads(); count *= 2) {
    tenon::ThreadPool threads(count);
    const double busy = median_microseconds(threads, 20000, std::chrono::microseconds(0));
    std::printf("%7d  %43.2f  %13.1f\n", count, busy,
                median_microseconds(threads, 200, std::chrono::microseconds(2000)));
  }
}
