// Reading rows before a run does, so that one that cannot be read, rendered or tokenised is found at once and
// not hours later. Keeps nothing of them.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/function_ref.h"
#include "base/threads.h"
#include "text/dataset_stream.h"

namespace tenon {

// Loads the rows of settings.part that lie in the first `slots` places of the first epoch's order; every row
// of the part where an epoch has no more places than that. `progress` is told how many of how many places are
// done, from the calling thread. Errors: those of load_row; of the first such row in the order that was read,
// whatever the number of threads.
Status read_rows_ahead(const Dataset& dataset, const StreamSettings& settings, int64_t slots,
                       ThreadPool& threads, FunctionRef<void(int64_t done, int64_t total)> progress);

}  // namespace tenon
