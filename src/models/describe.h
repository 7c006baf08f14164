// A model's layers in words, for tables.
#pragma once

#include <string>

#include "models/model_spec.h"

namespace tenon {

// "12 attention, 36 gated delta", in the order in which they first come; "-" where there is none.
std::string mixers_text(const ModelSpec& spec);
// "1 dense, 47 experts".
std::string feed_forwards_text(const ModelSpec& spec);

}  // namespace tenon
