// Speed of reading a data set on one thread, before anything is tokenised: finding the rows of the files, and
// parsing each into a conversation. Times are of the thread's processor clock.
//   dataset_bench FILE...
#include <fmt/core.h>
#include <time.h>

#include <string>
#include <vector>

#include "text/dataset.h"

namespace tenon {
namespace {

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int run(const std::vector<std::string>& files) {
  const double begin = cpu_seconds();
  const auto dataset = Dataset::open(files);
  if (!dataset.ok()) {
    fmt::print(stderr, "{}\n", dataset.error().text());
    return 2;
  }
  const double opened = cpu_seconds();
  size_t messages = 0;
  for (int64_t row = 0; row < dataset->rows(); ++row) {
    const auto conversation = dataset->conversation(row);
    if (!conversation.ok()) {
      fmt::print(stderr, "{}\n", conversation.error().text());
      return 2;
    }
    messages += conversation->is_chat();
  }
  const double read = cpu_seconds();
  const double megabytes = 1e-6 * static_cast<double>(dataset->size_bytes());
  fmt::print(
      "{{\"rows\":{},\"chat_rows\":{},\"megabytes\":{:.1f},\"open_mb_s\":{:.1f},\"rows_mb_s\":{:.1f},\"both_"
      "mb_"
      "s\":{:.1f}}}\n",
      dataset->rows(), messages, megabytes, megabytes / (opened - begin), megabytes / (read - opened),
      megabytes / (read - begin));
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: dataset_bench FILE...\n");
    return 2;
  }
  return tenon::run({argv + 1, argv + argc});
}
