#include "text/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "text/permutation.h"

namespace tenon {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

// Fills epoch_rows by largest remainders.
void share_out(std::vector<MixtureSource>& sources, int64_t total) {
  double weights = 0;
  for (const MixtureSource& source : sources) weights += *source.weight;
  std::vector<double> remainders;
  int64_t left = total;
  for (MixtureSource& source : sources) {
    const double exact = static_cast<double>(total) * (*source.weight / weights);
    source.epoch_rows = static_cast<int64_t>(std::floor(exact));
    remainders.push_back(exact - std::floor(exact));
    left -= source.epoch_rows;
  }
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  for (size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++sources[order[i]].epoch_rows;
  for (MixtureSource& source : sources) source.epoch_rows = std::max<int64_t>(source.epoch_rows, 1);
}

// The last entry of `begins` that is at most `at`.
size_t part_of(const std::vector<int64_t>& begins, int64_t at) {
  return static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), at) - begins.begin()) - 1;
}

}  // namespace

Mixture::Mixture(std::vector<MixtureSource> sources) : sources_(std::move(sources)) {
  CHECK(!sources_.empty());
  for (MixtureSource& source : sources_) {
    CHECK(source.rows >= 1);
    CHECK(source.weight.has_value() == sources_[0].weight.has_value());
    source.first_row = rows_;
    source.epoch_rows = source.rows;
    rows_ += source.rows;
  }
  weighted_ = sources_[0].weight.has_value();
  if (weighted_) share_out(sources_, rows_);
  for (const MixtureSource& source : sources_) {
    slot_begins_.push_back(epoch_rows_);
    epoch_rows_ += source.epoch_rows;
  }
}

size_t Mixture::source_of(int64_t row) const {
  size_t source = 0;
  while (source + 1 < sources_.size() && row >= sources_[source + 1].first_row) ++source;
  return source;
}

int64_t Mixture::row(uint64_t seed, int64_t epoch, int64_t slot, bool shuffle) const {
  if (!weighted_) return slot;
  const size_t i = part_of(slot_begins_, slot);
  const MixtureSource& source = sources_[i];
  const int64_t number = epoch * source.epoch_rows + (slot - slot_begins_[i]);
  const int64_t at = number % source.rows;
  if (!shuffle) return source.first_row + at;
  const auto pass = static_cast<uint64_t>(number / source.rows);
  return source.first_row + Permutation(seed + (i + 1) * kGolden, pass, source.rows)(at);
}

}  // namespace tenon
