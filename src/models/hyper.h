// Fills in hyper-connections, whose weights checkpoints keep as path + "fn", "base" and "scale".
#pragma once

#include <optional>
#include <string>

#include "models/model_spec.h"
#include "models/streams_spec.h"
#include "ops/sinkhorn.h"

namespace tenon {

struct HyperConnectionSizes {
  double norm_eps = 0, before_eps = 0, after_eps = 0, after_scale = 1;
  std::optional<SinkhornOptions> among;
};

// Around a layer; `spec` has its number of streams.
HyperConnectionSpec hyper_connection(const ModelSpec& spec, const std::string& path,
                                     const HyperConnectionSizes& sizes);
// Before the final norm: streams are read, nothing is written.
HyperConnectionSpec hyper_head(const ModelSpec& spec, const std::string& path,
                               const HyperConnectionSizes& sizes);

}  // namespace tenon
