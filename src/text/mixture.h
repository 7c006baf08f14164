// Which rows an epoch holds where sources are mixed by weights: a pure function of (row counts, weights,
// seed, epoch), so that nothing is stored and a position is a number. Never reads rows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon {

struct MixtureSource {
  int64_t rows = 0;  // >= 1
  std::optional<double> weight;
  int64_t first_row = 0;   // in the data set; set by Mixture
  int64_t epoch_rows = 0;  // its share of an epoch; set by Mixture
};

// Rows are numbered through the sources in order. Without weights an epoch is every row once, and slot s is
// row s. With weights an epoch still has as many rows as all sources together, and source i fills its share
// of them: the total times its weight over all weights, rounded down, what is left going to the largest
// remainders (the earlier source first), but at least 1. The source goes through its rows again and again,
// each pass in an order of its own, and the next epoch goes on where this one stopped: the k-th row it gives
// in epoch e is number n = e * share + k of that sequence, row Permutation(mix, n / rows, rows)(n % rows) of
// the source, where mix = seed + (i + 1) * 0x9e3779b97f4a7c15.
class Mixture {
 public:
  // All sources have a weight or none has.
  explicit Mixture(std::vector<MixtureSource> sources);

  int64_t rows() const { return rows_; }              // of all sources
  int64_t epoch_rows() const { return epoch_rows_; }  // slots of an epoch
  bool weighted() const { return weighted_; }
  const std::vector<MixtureSource>& sources() const { return sources_; }

  // The source of a row, by its place in sources().
  size_t source_of(int64_t row) const;

  // The row in a slot, 0 <= slot < epoch_rows(). `shuffle` false: each pass in file order.
  int64_t row(uint64_t seed, int64_t epoch, int64_t slot, bool shuffle) const;

 private:
  std::vector<MixtureSource> sources_;
  std::vector<int64_t> slot_begins_;
  int64_t rows_ = 0;
  int64_t epoch_rows_ = 0;
  bool weighted_ = false;
};

}  // namespace tenon
