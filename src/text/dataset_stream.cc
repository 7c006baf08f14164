#include "text/dataset_stream.h"

#include <string>
#include <utility>

namespace tenon {

bool in_data_part(const StreamSettings& settings, int64_t row) {
  if (settings.part == DataPart::all) return true;
  return in_eval_split(settings.seed, row, settings.eval_fraction) == (settings.part == DataPart::eval);
}

DataStream::DataStream(const Dataset& dataset, const StreamSettings& settings)
    : dataset_(&dataset), settings_(settings), order_(settings.seed, 0, dataset.mixture().epoch_rows()) {}

Result<DataStream> DataStream::open(const Dataset& dataset, const StreamSettings& settings) {
  const TokenSettings& tokens = settings.rows.tokens;
  CHECK(tokens.tokenizer, "a stream needs a tokenizer");
  if (tokens.max_tokens < 2)
    return bad_argument("fewer than 2 tokens leave nothing to predict", "max tokens");
  if (settings.tokens_per_step < tokens.max_tokens) {
    return bad_argument("a row may have " + std::to_string(tokens.max_tokens) +
                            " tokens, a step has room for " + std::to_string(settings.tokens_per_step),
                        "tokens per step", "Raise the tokens of a step or lower the longest row.");
  }
  if (!(settings.eval_fraction >= 0.0 && settings.eval_fraction < 1.0)) {
    return bad_argument("the share of rows for evaluation must be at least 0 and below 1", "eval fraction");
  }
  RETURN_IF_ERROR(check_trainable(dataset));
  DataStream stream(dataset, settings);
  for (int64_t row = 0; row < dataset.rows(); ++row)
    if (in_data_part(settings, row)) return stream;
  return bad_argument("no row of the data set falls into this part", dataset.name(),
                      "Change the evaluation share, or give more rows.");
}

void DataStream::begin_epoch(int64_t epoch) {
  state_ = {epoch, 0};
  order_ = Permutation(settings_.seed, static_cast<uint64_t>(epoch), epoch_rows());
  epoch_has_row_ = false;
  epoch_seen_whole_ = true;
}

Status DataStream::seek(DataState state) {
  if (state.epoch < 0 || state.cursor < 0 || state.cursor > epoch_rows()) {
    return bad_argument("position " + std::to_string(state.cursor) + " of epoch " +
                            std::to_string(state.epoch) + " is not in a data set of " +
                            std::to_string(epoch_rows()) + " rows an epoch",
                        dataset_->name(), "The data changed since the position was saved.");
  }
  begin_epoch(state.epoch);
  state_ = state;
  epoch_seen_whole_ = state.cursor == 0;
  pending_.reset();
  return {};
}

Status DataStream::find_pending() {
  if (pending_) return {};
  for (int64_t cursor = state_.cursor; cursor < epoch_rows(); ++cursor) {
    const int64_t slot = settings_.shuffle ? order_(cursor) : cursor;
    const int64_t row = dataset_->mixture().row(settings_.seed, state_.epoch, slot, settings_.shuffle);
    if (!in_data_part(settings_, row)) continue;
    ASSIGN_OR_RETURN(LoadedRow loaded, load_row(*dataset_, row, settings_.rows));
    TokenizedRow& tokens = loaded.tokens;
    if (tokens.skipped) {
      ++counts_.skipped;
    } else if (tokens.example.trained_tokens() == 0) {
      ++counts_.untrainable;
    } else {
      pending_ = Candidate{cursor, row, std::move(tokens.example), tokens.cut};
      return {};
    }
    state_.cursor = cursor + 1;
  }
  state_.cursor = epoch_rows();
  return {};
}

Result<MicroBatch> DataStream::next(int64_t row_limit) {
  CHECK(row_limit >= 1);
  MicroBatch batch = empty_batch(settings_.tokens_per_step);
  RETURN_IF_ERROR(find_pending());
  while (!pending_) {
    if (epoch_seen_whole_ && !epoch_has_row_) {
      return bad_file("no row has a token to train on (" + std::to_string(counts_.skipped) + " too long, " +
                          std::to_string(counts_.untrainable) + " without an answer inside the limit of " +
                          std::to_string(settings_.rows.tokens.max_tokens) + " tokens)",
                      dataset_->name(), "Raise the limit of tokens, or look at the rendered rows.");
    }
    begin_epoch(state_.epoch + 1);
    RETURN_IF_ERROR(find_pending());
  }
  while (pending_ && static_cast<int64_t>(batch.rows.size()) < row_limit &&
         append_example(batch, pending_->example, pending_->row)) {
    epoch_has_row_ = true;
    counts_.rows += 1;
    counts_.cut += pending_->cut;
    counts_.tokens += batch.rows.back().tokens;
    counts_.trained_tokens += batch.rows.back().trained_tokens;
    state_.cursor = pending_->cursor + 1;
    pending_.reset();
    RETURN_IF_ERROR(find_pending());
  }
  batch.epoch_end = !pending_;
  return batch;
}

}  // namespace tenon
