#include "run/evaluate.h"

#include <cmath>

#include "run/programs.h"

namespace tenon {

double EvalResult::perplexity() const {
  return std::exp(loss);
}

void write_batch(Session& session, const MicroBatch& batch) {
  session.write(kIdsInput, batch.ids);
  session.write(kPositionsInput, batch.positions);
  session.write(kSequenceBeginInput, batch.sequence_begin);
  session.write(kLabelsInput, batch.labels);
}

Result<EvalResult> evaluate(Session& session, const Dataset& dataset, const StreamSettings& settings,
                            int64_t max_batches) {
  StreamSettings ordered = settings;
  ordered.shuffle = false;
  ASSIGN_OR_RETURN(DataStream stream, DataStream::open(dataset, ordered));
  EvalResult result;
  double loss_sum = 0;
  int64_t right = 0;
  for (int64_t i = 0; max_batches == 0 || i < max_batches; ++i) {
    ASSIGN_OR_RETURN(const MicroBatch batch, stream.next());
    write_batch(session, batch);
    RETURN_IF_ERROR(session.run(kEvaluate));
    for (float loss : session.output_f32(kEvaluate, kLossOutput)) loss_sum += loss;
    const std::vector<int32_t> predicted = session.output_i32(kEvaluate, kPredictedOutput);
    RETURN_IF_ERROR(session.status());
    for (size_t t = 0; t < predicted.size(); ++t) {
      right += batch.labels[t] != kUntrained && predicted[t] == batch.labels[t];
    }
    result.rows += static_cast<int64_t>(batch.rows.size());
    result.trained_tokens += batch.trained_tokens;
    if (batch.epoch_end) break;
  }
  const double trained = static_cast<double>(result.trained_tokens);
  result.loss = loss_sum / trained;
  result.token_accuracy = static_cast<double>(right) / trained;
  return result;
}

}  // namespace tenon
