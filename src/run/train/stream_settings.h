// How a job reads its data.
#pragma once

#include "run/train/trainer.h"

namespace tenon {

// Settings of the stream over a part of job.data (the whole where nothing is set aside for evaluation). They
// point into `job`, which must outlive the stream.
StreamSettings stream_settings(const TrainJob& job, DataPart part);

}  // namespace tenon
