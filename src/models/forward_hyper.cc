// Builds the reading and writing of several residual streams around a layer (hyper-connections). The streams
// of a token stand side by side: [tokens, streams * hidden].
#include <fmt/format.h>

#include "models/layers.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/columns.h"
#include "ops/matmul.h"
#include "ops/mix_rows.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/scale.h"
#include "ops/silu.h"
#include "ops/sinkhorn.h"

namespace tenon {
namespace {

using Context = ForwardContext;

ValueId by_stream(Context& c, ValueId x) {
  return reshape(c.b, x, Shape{c.tokens(), c.spec.streams, c.spec.hidden});
}

ValueId side_by_side(Context& c, ValueId x) {
  return reshape(c.b, x, Shape{c.tokens(), c.spec.streams * c.spec.hidden});
}

// y [tokens, hidden] times each token's weight of each stream, side by side.
ValueId to_streams(Context& c, ValueId y, ValueId weights) {
  const ValueId column = reshape(c.b, weights, Shape{c.tokens(), c.spec.streams, 1});
  return side_by_side(c, mix_rows(c.b, reshape(c.b, y, Shape{c.tokens(), 1, c.spec.hidden}), column));
}

ValueId add_constant_to(Context& c, ValueId x, double constant) {
  if (constant == 0) return x;
  const int64_t width = c.b.shape(x)[1];
  const std::vector<float> row(static_cast<size_t>(width), static_cast<float>(constant));
  return add_row(c.b, x, c.b.add_constant(fmt::format("row.{}.{}", constant, width), Shape{width}, row));
}

struct OpenStreams {
  Context& c;
  ValueId x;

  StreamsRead operator()(const std::monostate&) const { CHECK(false, "streams that are not read"); }

  StreamsRead operator()(const HyperConnectionSpec& s) const {
    const int64_t n = c.spec.streams;
    const ValueId weight = weight_vector(c, s.mix.path + s.mix.weight_name, Shape{s.mix.out, s.mix.in});
    const ValueId normed = as_f32(c, apply(c, s.norm, x));
    const ValueId logits = scaled(s, matmul(c.b, normed, weight, {.trans_b = true}));
    const auto part = [&](int64_t begin, int64_t count) { return slice_columns(c.b, logits, begin, count); };
    const auto open = [&](ValueId w) { return activation(c.b, w, ActivationKind::sigmoid); };
    const ValueId before = add_constant_to(c, open(part(0, n)), s.before_eps);
    StreamsRead out;
    out.x = reshape(c.b, mix_rows(c.b, by_stream(c, x), reshape(c.b, before, Shape{c.tokens(), 1, n})),
                    Shape{c.tokens(), c.spec.hidden});
    if (s.mix.out == n) return out;
    out.after = add_constant_to(c, times(c, open(part(n, n)), s.after_scale), s.after_eps);
    out.kept = x;
    if (s.among) {
      const ValueId matrix = reshape(c.b, part(2 * n, n * n), Shape{c.tokens(), n, n});
      out.kept = side_by_side(c, mix_rows(c.b, by_stream(c, x), sinkhorn(c.b, matrix, *s.among), true));
    }
    return out;
  }

  // Each part of the logits times its scale, plus base.
  ValueId scaled(const HyperConnectionSpec& s, ValueId logits) const {
    const int64_t n = c.spec.streams, width = s.mix.out;
    std::vector<int64_t> parts = {n};
    if (width > n) parts.push_back(n);
    if (s.among) parts.push_back(n * n);
    const int64_t count = static_cast<int64_t>(parts.size());
    const ValueId scales = reshape(c.b, weight_vector(c, s.scale, Shape{count}), Shape{1, count});
    std::vector<ValueId> row;
    for (int64_t i = 0; i < count; ++i)
      row.push_back(repeat_columns(c.b, slice_columns(c.b, scales, i, 1), parts[static_cast<size_t>(i)]));
    const ValueId joined = row.size() == 1 ? row[0] : concat_columns(c.b, row);
    logits = mul_row(c.b, logits, reshape(c.b, joined, Shape{width}));
    return add_row(c.b, logits, weight_vector(c, s.base, Shape{width}));
  }

  StreamsRead operator()(const GatedStreamsSpec& s) const {
    const double share = 1 / static_cast<double>(c.spec.streams);
    const ValueId normed = apply(c, s.norm, x);
    const ValueId low = silu(c.b, times(c, apply(c, s.down, normed), share));
    const ValueId open = activation(c.b, apply(c, s.up, low), ActivationKind::sigmoid);
    StreamsRead out;
    out.x = times(c, fold_columns(c.b, mul(c.b, open, normed), c.spec.streams), share);
    if (!s.inject.present()) return out;
    const ValueId logits = times(c, as_f32(c, apply(c, s.inject, normed)), share);
    out.after = times(c, activation(c.b, logits, ActivationKind::sigmoid), 2);
    out.kept = x;
    return out;
  }
};

}  // namespace

StreamsRead read_streams(ForwardContext& c, const StreamsSpec& spec, ValueId streams) {
  return std::visit(OpenStreams{c, streams}, spec);
}

ValueId write_streams(ForwardContext& c, const StreamsRead& read, ValueId y) {
  return add(c.b, read.kept, to_streams(c, y, read.after));
}

}  // namespace tenon
