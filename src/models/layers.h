// What the builders of a forward Program share: the context of one program, and linear layers and norms. For
// models/ alone.
#pragma once

#include <string>
#include <vector>

#include "models/forward.h"
#include "models/model_spec.h"

namespace tenon {

// What every layer of one program shares.
struct ForwardContext {
  Builder& b;
  const ModelSpec& spec;
  const ForwardOptions& options;
  std::vector<ValueId> rope_tables;   // one for each of the spec's ropes
  ValueId sequence_begin;             // packed
  ValueId slots, stream, page_table;  // cached
  ValueId positions;

  int64_t tokens() const { return options.tokens; }
};

ValueId weight_matrix(ForwardContext& c, const std::string& name, Shape shape);  // in the weights' dtype
ValueId weight_vector(ForwardContext& c, const std::string& name, Shape shape);  // f32
ValueId apply(ForwardContext& c, const LinearSpec& spec, ValueId x);
ValueId apply(ForwardContext& c, const NormSpec& spec, ValueId x);
// x itself where the factor is 1.
ValueId times(ForwardContext& c, ValueId x, double factor);

ValueId apply_mixer(ForwardContext& c, const MixerSpec& spec, int32_t layer, ValueId x);
ValueId apply_mlp(ForwardContext& c, const MlpSpec& spec, ValueId x);
// The activation of gate and up, side by side projections already done; gate is invalid where nothing gates.
ValueId activate(ForwardContext& c, const MlpSpec& spec, ValueId gate, ValueId up);
ValueId apply_feed_forward(ForwardContext& c, const FeedForwardSpec& spec, ValueId x);

}  // namespace tenon
