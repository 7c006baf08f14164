#include "text/rows_ahead.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace tenon {
namespace {

// Between two reports of progress: milliseconds of work for a thread.
constexpr int64_t kRowsOfAThread = 256;

// The row in a place of the first epoch, or every row once where the whole part is read.
class Places {
 public:
  Places(const Dataset& dataset, const StreamSettings& settings, int64_t slots)
      : mixture_(dataset.mixture()),
        settings_(settings),
        order_(settings.seed, 0, dataset.mixture().epoch_rows()),
        whole_(slots >= dataset.mixture().epoch_rows()),
        count_(whole_ ? dataset.rows() : std::max<int64_t>(slots, 0)) {}

  int64_t count() const { return count_; }
  int64_t row(int64_t place) const {
    if (whole_) return place;
    const int64_t slot = settings_.shuffle ? order_(place) : place;
    return mixture_.row(settings_.seed, 0, slot, settings_.shuffle);
  }

 private:
  const Mixture& mixture_;
  const StreamSettings& settings_;
  Permutation order_;
  bool whole_;
  int64_t count_;
};

std::optional<Error> first_error(const Dataset& dataset, const StreamSettings& settings, const Places& places,
                                 Range range) {
  for (int64_t place = range.begin; place < range.end; ++place) {
    const int64_t row = places.row(place);
    if (!in_data_part(settings, row)) continue;
    Result<LoadedRow> loaded = load_row(dataset, row, settings.rows);
    if (!loaded.ok()) return std::move(loaded).error();
  }
  return std::nullopt;
}

}  // namespace

Status read_rows_ahead(const Dataset& dataset, const StreamSettings& settings, int64_t slots,
                       ThreadPool& threads, FunctionRef<void(int64_t done, int64_t total)> progress) {
  const Places places(dataset, settings, slots);
  const int64_t block = kRowsOfAThread * threads.size();
  std::vector<std::optional<Error>> errors(static_cast<size_t>(threads.size()));
  for (int64_t begin = 0; begin < places.count(); begin += block) {
    const int64_t end = std::min(begin + block, places.count());
    threads.run([&](int thread) {
      const Range part = split_range(end - begin, threads.size(), thread);
      errors[static_cast<size_t>(thread)] =
          first_error(dataset, settings, places, {begin + part.begin, begin + part.end});
    });
    for (std::optional<Error>& error : errors) {
      if (error) return std::move(*error);
    }
    progress(end, places.count());
  }
  return {};
}

}  // namespace tenon
