// Feed-forwards that every token passes, as plain data.
#pragma once

#include <string>

#include "models/layer_spec.h"

namespace tenon {

// down(activation(gate(x)) * up(x)), or down(activation(up(x))) where nothing gates.
struct MlpSpec {
  LinearSpec gate, up, down;
  LinearSpec gate_up;  // one projection in place of gate and up, where gate_up.out > 0: gate first
  Activation activation = Activation::silu;
  std::string activation_path;  // of an activation with weights
  NormSpec inner_norm;          // before down
  double limit = 0;             // gate is cut at limit from above, up to +- limit; 0: not
  double swish = 0;             // > 0: the activation is x * sigmoid(swish * x)
  double up_offset = 0;         // added to up
  double gate_cutoff = 0;  // > 0: what is below the mean of the gate plus this many deviations is zero, and
                           // the rest is measured from there
  // > 0: gate and up are softly capped, but not in the gate's sigmoid.
  double gate_softcap = 0, up_softcap = 0;
  std::string output_scale;  // weight [1] that multiplies what comes out; empty: none

  bool gated() const { return gate.present() || gate_up.present(); }
};

// Channel mixing of RWKV-4, whose layers read x mixed with the token before as those of TimeMixSpec do:
// sigmoid(receptance) * value(relu(key)^2).
struct ChannelMixSpec {
  std::string path;
  LinearSpec key, value, receptance;
};

}  // namespace tenon
