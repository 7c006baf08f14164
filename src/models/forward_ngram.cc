// Builds the embedding of hashed n-grams that joins the residual streams.
#include <fmt/format.h>

#include <cmath>

#include "models/layers.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/columns.h"
#include "ops/detach.h"
#include "ops/embedding.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/scale.h"
#include "ops/silu.h"

namespace tenon {
namespace {

using Context = ForwardContext;

// Rows of the table for each token, side by side.
ValueId embed_ngrams(Context& c, const NgramSpec& s, int32_t layer) {
  const int64_t heads = static_cast<int64_t>(s.hash.sizes.size());
  ValueId rows;
  if (c.options.cache) {
    const Type type{DType::i32,
                    Shape{c.options.cache->streams, static_cast<int64_t>(s.hash.multipliers.size()) - 1}};
    const ValueId state = c.b.add_static(Role::cache, fmt::format("cache.{}.ngram_ids", layer), type);
    rows = ngram_ids_cached(c.b, c.ids, {state, c.stream, c.positions}, s.hash);
  } else {
    rows = ngram_ids(c.b, c.ids, c.sequence_begin, s.hash);
  }
  const ValueId table = weight_matrix(c, s.table, Shape{s.table_rows, s.width / heads});
  const ValueId flat = reshape(c.b, rows, Shape{c.tokens() * heads});
  return reshape(c.b, embedding(c.b, table, flat, c.options.compute), Shape{c.tokens(), s.width});
}

// sign(x) * sqrt(max(|x|, 1e-6)), of f32.
ValueId signed_root(Context& c, ValueId x) {
  const ValueId above = activation(c.b, x, ActivationKind::relu);
  const ValueId below = activation(c.b, scale(c.b, x, -1), ActivationKind::relu);
  const ValueId size = activation(c.b, add(c.b, above, below), ActivationKind::clamp, 1e-6, 1e30);
  const ValueId sign = activation(c.b, scale(c.b, detach(c.b, x), 1e20), ActivationKind::clamp, -1, 1);
  return mul(c.b, activation(c.b, size, ActivationKind::sqrt), sign);
}

}  // namespace

ValueId apply_ngram(ForwardContext& c, const NgramSpec& s, int32_t layer, ValueId streams) {
  const int64_t n = c.spec.streams, hidden = c.spec.hidden, rows = c.tokens() * n;
  const ValueId embedded = embed_ngrams(c, s, layer);
  const auto by_stream = [&](ValueId x) { return reshape(c.b, x, Shape{rows, hidden}); };
  const ValueId key = by_stream(apply(c, s.key_norm, apply(c, s.key, embedded)));
  const ValueId query = by_stream(apply(c, s.query_norm, streams));
  const ValueId product = scale(c.b, row_dot(c.b, key, query, DType::f32, Shape{rows, 1}),
                                1 / std::sqrt(static_cast<double>(hidden)));
  const ValueId open = activation(c.b, signed_root(c, product), ActivationKind::sigmoid);
  const ValueId value = by_stream(repeat_columns(c.b, apply(c, s.value, embedded), n));
  const ValueId gated = reshape(c.b, mul_column(c.b, value, open), Shape{c.tokens(), n * hidden});
  const ValueId mixed = convolve(c, s.conv, layer, apply(c, s.conv_norm, gated), "ngram_conv", s.dilation);
  return add(c.b, gated, silu(c.b, mixed));
}

}  // namespace tenon
