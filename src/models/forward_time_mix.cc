// Builds the layers of RWKV-4, which read each token mixed with the one before it. In decoding that token and
// the sums of the time mixing are the stream's state.
#include <fmt/format.h>

#include "models/layers.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/causal_conv.h"
#include "ops/columns.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/scale.h"
#include "ops/wkv.h"

namespace tenon {
namespace {

using Context = ForwardContext;

// x less the token before it, which is zero where a sequence begins.
ValueId change(Context& c, int32_t layer, const char* part, ValueId x) {
  const int64_t width = c.b.shape(x)[1];
  const ValueId taps = c.b.add_constant("change", Shape{1, 2}, {-1.0f, 1.0f});
  const ValueId weight = reshape(c.b, repeat_columns(c.b, taps, width), Shape{width, 2});
  if (!c.options.cache) return causal_conv(c.b, x, weight, c.sequence_begin);
  const Shape state{c.options.cache->streams, 1, width};
  return causal_conv_cached(c.b, x, weight, stream_state(c, layer, part, c.b.dtype(x), state));
}

// x * mix + before * (1 - mix), where changed = x - before.
ValueId mixed(Context& c, const std::string& name, ValueId x, ValueId changed) {
  const int64_t width = c.b.shape(x)[1];
  const ValueId mix = reshape(c.b, weight_vector(c, name, Shape{1, 1, width}), Shape{width});
  return add(c.b, x, mul_row(c.b, changed, mix, -1));
}

}  // namespace

ValueId apply_time_mix(ForwardContext& c, const TimeMixSpec& s, int32_t layer, ValueId x) {
  const ValueId changed = change(c, layer, "time_mix", x);
  const int64_t channels = s.key.out;
  WkvInputs inputs;
  inputs.k = apply(c, s.key, mixed(c, s.path + ".time_mix_key", x, changed));
  inputs.v = apply(c, s.value, mixed(c, s.path + ".time_mix_value", x, changed));
  c.b.set_name(s.path + ".time_decay");
  const ValueId rate =
      activation(c.b, weight_vector(c, s.path + ".time_decay", Shape{channels}), ActivationKind::exp);
  inputs.decay = scale(c.b, rate, -1);
  inputs.bonus = weight_vector(c, s.path + ".time_first", Shape{channels});
  const ValueId open =
      activation(c.b, apply(c, s.receptance, mixed(c, s.path + ".time_mix_receptance", x, changed)),
                 ActivationKind::sigmoid);
  c.b.set_name(fmt::format("layer {} WKV", layer));
  const auto state = [&] {
    return stream_state(c, layer, "state", DType::f32, Shape{c.options.cache->streams, kWkvState, channels});
  };
  const ValueId out = c.options.cache ? wkv_cached(c.b, inputs, state()) : wkv(c.b, inputs, c.sequence_begin);
  return apply(c, s.out, mul(c.b, open, out));
}

ValueId apply_channel_mix(ForwardContext& c, const ChannelMixSpec& s, int32_t layer, ValueId x) {
  const ValueId changed = change(c, layer, "channel_mix", x);
  const ValueId key =
      activation(c.b, apply(c, s.key, mixed(c, s.path + ".time_mix_key", x, changed)), ActivationKind::relu2);
  const ValueId open =
      activation(c.b, apply(c, s.receptance, mixed(c, s.path + ".time_mix_receptance", x, changed)),
                 ActivationKind::sigmoid);
  return mul(c.b, open, apply(c, s.value, key));
}

}  // namespace tenon
