// Micro-batches from a data set, without end, in an order that is a pure function of (seed, epoch, row counts
// and weights): slot s of the epoch's order is Permutation(seed, epoch)(s), and Mixture says which row is in
// a slot. A position is two counters, and a stream set to a saved position gives the same batches as the one
// that went on. Rows are tokenised when they are needed; memory is one batch and one row. Not thread-safe per
// object; the data set, tokenizer and template must outlive it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/error.h"
#include "text/dataset.h"
#include "text/packing.h"
#include "text/permutation.h"

namespace tenon {

enum class DataPart { all, train, eval };

struct StreamSettings {
  RowSettings rows;             // rows.tokens.max_tokens <= tokens_per_step
  int32_t tokens_per_step = 0;  // slots of a micro-batch
  uint64_t seed = 0;            // of the order and of the split
  bool shuffle = true;          // false: file order in every epoch
  double eval_fraction = 0;     // [0, 1): the share of rows that DataPart::train leaves to DataPart::eval
  DataPart part = DataPart::all;
};

// Whether the row belongs to settings.part.
bool in_data_part(const StreamSettings& settings, int64_t row);

// A position: all that a resumed run needs. `cursor` counts positions in the order of the whole data set,
// rows of the other part and unusable rows included (see Mixture: an epoch may hold a row twice).
struct DataState {
  int64_t epoch = 0;
  int64_t cursor = 0;
  friend bool operator==(const DataState&, const DataState&) = default;
};

// What became of the rows since the stream was opened.
struct DataCounts {
  int64_t rows = 0;         // used
  int64_t cut = 0;          // of those, cut at max_tokens
  int64_t skipped = 0;      // too long, left out
  int64_t untrainable = 0;  // no trained token (left): left out
  int64_t tokens = 0;
  int64_t trained_tokens = 0;
};

class DataStream {
 public:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  // Errors: bad_argument (a setting out of its range; a part that holds no row).
  static Result<DataStream> open(const Dataset& dataset, const StreamSettings& settings);

  // The next rows of the epoch, in order, until the next one does not fit, `row_limit` rows are in, or the
  // epoch ends (epoch_end; the next call begins the next epoch). Never empty. Errors: those of load_row;
  // bad_file (a whole epoch without one row to train on).
  Result<MicroBatch> next(int64_t row_limit = kNoLimit);

  DataState state() const { return state_; }
  // Goes to a saved position. Error: bad_argument (a position the data set does not have).
  Status seek(DataState state);

  const DataCounts& counts() const { return counts_; }

 private:
  struct Candidate {
    int64_t cursor = 0;  // its position in the order
    int64_t row = 0;
    TokenizedExample example;
    bool cut = false;
  };

  DataStream(const Dataset& dataset, const StreamSettings& settings);
  // The first usable row from state_.cursor on, kept in pending_; none where the epoch ends first.
  Status find_pending();
  void begin_epoch(int64_t epoch);
  int64_t epoch_rows() const { return dataset_->mixture().epoch_rows(); }

  const Dataset* dataset_;
  StreamSettings settings_;
  DataState state_;
  Permutation order_;
  DataCounts counts_;
  bool epoch_has_row_ = false;  // of the rows seen since the epoch began or seek()
  bool epoch_seen_whole_ = true;
  std::optional<Candidate> pending_;
};

}  // namespace tenon
