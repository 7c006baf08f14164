// Loss and accuracy of a model, with or without an adapter, on a data set. The loss is the mean over all
// trained tokens of the set, so it does not depend on how rows are packed.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "run/session.h"
#include "text/dataset_stream.h"

namespace tenon {

struct EvalResult {
  int64_t rows = 0;
  int64_t trained_tokens = 0;
  double loss = 0;            // mean over trained tokens
  double token_accuracy = 0;  // share of trained tokens whose most likely prediction is right

  double perplexity() const;
};

// Writes a micro-batch into a session's inputs.
void write_batch(Session& session, const MicroBatch& batch);

// One pass over `settings.part` in file order, through the program kEvaluate. `max_batches` 0: all of them.
Result<EvalResult> evaluate(Session& session, const Dataset& dataset, const StreamSettings& settings,
                            int64_t max_batches = 0);

}  // namespace tenon
