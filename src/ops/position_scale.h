// A factor for each token by its position: out[t] f32 = constant + beta * log(offset + floor((positions[t] +
// shift) / period)), or (offset + (positions[t] + shift) / period)^beta where `power`. Queries are scaled so
// for long contexts, with constant 1 and offset 1.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& position_scale_op();
struct PositionScale {
  double constant = 1;
  double beta = 0;
  double offset = 1;
  int64_t shift = 0;
  int64_t period = 1;
  bool power = false;
  bool operator==(const PositionScale&) const = default;
};
ValueId position_scale(Builder& builder, ValueId positions, const PositionScale& scale);

}  // namespace tenon
