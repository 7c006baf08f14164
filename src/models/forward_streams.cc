// Builds blocks around several residual streams (AltUp of Gemma 3n): stream 0 is the active one.
#include <cmath>
#include <numbers>

#include "models/layers.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/columns.h"
#include "ops/normalise.h"
#include "ops/scale.h"

namespace tenon {
namespace {

using Context = ForwardContext;
using Streams = std::vector<ValueId>;

// The root of the mean square of rows, f32 [tokens, 1].
ValueId magnitude(Context& c, ValueId x) {
  const double n = static_cast<double>(c.b.shape(x)[1]);
  const ValueId squares = row_dot(c.b, x, x, DType::f32, Shape{c.tokens(), 1});
  return activation(c.b, scale(c.b, squares, 1 / n), ActivationKind::sqrt);
}

// x as long as `magnitude` says, row by row.
ValueId with_magnitude(Context& c, ValueId x, ValueId wanted) {
  return mul_column(c.b, normalise(c.b, x, NormaliseKind::rms, 1e-12), wanted);
}

// tanh of what the router says of a stream, [tokens, streams].
ValueId modalities(Context& c, const AltUpSpec& spec, ValueId x) {
  const ValueId normed = scale(c.b, apply(c, spec.router_norm, x), 1 / static_cast<double>(c.spec.hidden));
  return activation(c.b, apply(c, spec.router, normed), ActivationKind::tanh);
}

Streams predict(Context& c, const AltUpSpec& spec, const Streams& x) {
  const ValueId coefficients = apply(c, spec.prediction, modalities(c, spec, x[0]));
  const int64_t count = static_cast<int64_t>(x.size());
  Streams out;
  for (int64_t to = 0; to < count; ++to) {
    ValueId sum = x[static_cast<size_t>(to)];
    for (int64_t from = 0; from < count; ++from) {
      const ValueId column = slice_columns(c.b, coefficients, to * count + from, 1);
      sum = add(c.b, sum, mul_column(c.b, x[static_cast<size_t>(from)], column));
    }
    out.push_back(sum);
  }
  return out;
}

Streams correct(Context& c, const AltUpSpec& spec, const Streams& predicted, ValueId activated) {
  const ValueId coefficients = apply(c, spec.correction, modalities(c, spec, activated));
  const ValueId innovation = add(c.b, activated, scale(c.b, predicted[0], -1));
  Streams out;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const ValueId column = slice_columns(c.b, coefficients, static_cast<int64_t>(i), 1);
    const ValueId step = add(c.b, innovation, mul_column(c.b, innovation, column));
    out.push_back(add(c.b, predicted[i], step));
  }
  return out;
}

}  // namespace

std::vector<ValueId> open_streams(ForwardContext& c, ValueId x) {
  const ValueId wanted = magnitude(c, x);
  Streams streams = {x};
  for (const LinearSpec& projection : c.spec.stream_in)
    streams.push_back(with_magnitude(c, apply(c, projection, x), wanted));
  return streams;
}

ValueId close_streams(ForwardContext& c, const std::vector<ValueId>& streams) {
  const ValueId wanted = magnitude(c, streams[0]);
  ValueId sum = streams[0];
  for (size_t i = 1; i < streams.size(); ++i)
    sum = add(c.b, sum, with_magnitude(c, apply(c, c.spec.stream_out[i - 1], streams[i]), wanted));
  return scale(c.b, sum, 1 / static_cast<double>(streams.size()));
}

std::vector<ValueId> apply_altup(ForwardContext& c, const BlockSpec& block, int32_t layer,
                                 const std::vector<ValueId>& streams) {
  const AltUpSpec& spec = *block.altup;
  const Streams predicted = predict(c, spec, streams);
  const ValueId normed = apply(c, block.mixer_norm, predicted[0]);
  const ValueId low_rank =
      apply(c, spec.laurel_norm, apply(c, spec.laurel_up, apply(c, spec.laurel_down, normed)));
  const ValueId mixed = apply(c, block.mixer_post_norm, apply_mixer(c, block.mixer, layer, normed));
  ValueId x = add(c.b, add(c.b, predicted[0], mixed), add(c.b, normed, low_rank));
  x = scale(c.b, x, std::numbers::sqrt2 / 2);
  const ValueId fed = apply_feed_forward(c, block.feed_forward, layer, apply(c, block.feed_forward_norm, x));
  x = add(c.b, x, apply(c, block.feed_forward_post_norm, fed));
  Streams out = correct(c, spec, predicted, x);
  if (!block.per_layer) return out;
  ValueId first = out[0];
  if (!spec.output_scale.empty())
    first = mul_row(c.b, first, weight_vector(c, spec.output_scale, Shape{c.spec.hidden}));
  const ValueId own = per_layer_output(c, *block.per_layer, layer, first);
  for (size_t i = 1; i < out.size(); ++i) out[i] = add(c.b, out[i], own);
  return out;
}

}  // namespace tenon
