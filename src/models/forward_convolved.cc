// Builds attention whose queries and keys pass two causal convolutions beside a mean of both, and half of
// whose values come a token late.
#include <fmt/format.h>

#include <cmath>

#include "models/attend.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/causal_conv.h"
#include "ops/columns.h"
#include "ops/matmul.h"
#include "ops/normalise.h"
#include "ops/permute.h"
#include "ops/reshape.h"
#include "ops/scale.h"

namespace tenon {
namespace {

using Context = ForwardContext;

// A convolution that mixes the channels of each head: matrices [dim, dim] by tap and head.
class HeadConvolution {
 public:
  HeadConvolution(Context& c, const ConvolvedAttentionSpec& a)
      : c_(c), a_(a), channels_((a.heads + a.kv_heads) * a.head_dim) {
    const ValueId stored = weight_matrix(c, a.mix_path + ".weight", Shape{channels_, a.head_dim, a.mix_taps});
    const ValueId flat = reshape(c.b, stored, Shape{channels_ * a.head_dim, a.mix_taps});
    by_tap_ = reshape(c.b, permute(c.b, flat, {1, 0}), Shape{1, a.mix_taps * channels_ * a.head_dim});
  }

  // x [rows, channels] through the matrices of a tap.
  ValueId apply_tap(int64_t tap, ValueId x) const {
    const int64_t dim = a_.head_dim, heads = channels_ / dim;
    std::vector<ValueId> parts;
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t begin = (tap * channels_ + h * dim) * dim;
      const ValueId matrix = reshape(c_.b, slice_columns(c_.b, by_tap_, begin, dim * dim), Shape{dim, dim});
      const ValueId part = slice_columns(c_.b, x, h * dim, dim);
      parts.push_back(matmul(c_.b, part, matrix, {.trans_b = true, .out_dtype = c_.b.dtype(x)}));
    }
    return parts.size() == 1 ? parts[0] : concat_columns(c_.b, parts);
  }

  int64_t channels() const { return channels_; }

 private:
  Context& c_;
  const ConvolvedAttentionSpec& a_;
  int64_t channels_;
  ValueId by_tap_;
};

// Both convolutions of x [tokens, channels]. What the first adds as its bias counts for tokens before the
// sequence too, so that it is a constant after the second.
ValueId convolve_heads(Context& c, const ConvolvedAttentionSpec& a, int32_t layer, ValueId x) {
  ConvSpec first = a.conv;
  first.bias = false;
  x = convolve(c, first, layer, x);
  const HeadConvolution second(c, a);
  ValueId bias = reshape(c.b, weight_vector(c, a.conv.path + ".bias", Shape{second.channels()}),
                         Shape{1, second.channels()});
  if (c.options.compute != DType::f32) bias = cast(c.b, bias, c.options.compute);
  ValueId out, constant;
  for (int64_t tap = 0; tap < a.mix_taps; ++tap) {
    const int64_t by = a.mix_taps - 1 - tap;
    const ValueId part = second.apply_tap(tap, delayed(c, layer, fmt::format("delay_{}", by), by, x));
    const ValueId moved = second.apply_tap(tap, bias);
    out = out.valid() ? add(c.b, out, part) : part;
    constant = constant.valid() ? add(c.b, constant, moved) : moved;
  }
  const ValueId row = reshape(c.b, as_f32(c, constant), Shape{second.channels()});
  out = add_row(c.b, out, row);
  return add_row(c.b, out, weight_vector(c, a.mix_path + ".bias", Shape{second.channels()}));
}

// Heads [tokens, heads, dim] of length sqrt(dim).
ValueId of_unit_scale(Context& c, ValueId x, int64_t heads, int64_t dim) {
  const ValueId unit =
      normalise(c.b, reshape(c.b, x, Shape{c.tokens(), heads, dim}), NormaliseKind::l2, 1e-14);
  return scale(c.b, unit, std::sqrt(static_cast<double>(dim)));
}

}  // namespace

ValueId delayed(ForwardContext& c, int32_t layer, const std::string& part, int64_t by, ValueId x) {
  if (by == 0) return x;
  const int64_t width = c.b.shape(x)[1];
  std::vector<float> taps(static_cast<size_t>(by + 1), 0);
  taps[0] = 1;
  const ValueId row = c.b.add_constant(fmt::format("delay.{}", by), Shape{1, by + 1}, taps);
  const ValueId weights = reshape(c.b, repeat_columns(c.b, row, width), Shape{width, by + 1});
  if (!c.options.cache) return causal_conv(c.b, x, weights, c.sequence_begin);
  const Type type{c.b.dtype(x), Shape{c.options.cache->streams, by, width}};
  const ValueId state = c.b.add_static(Role::cache, fmt::format("cache.{}.{}", layer, part), type);
  return causal_conv_cached(c.b, x, weights, {state, c.stream, c.positions});
}

ValueId apply_convolved_attention(ForwardContext& c, const ConvolvedAttentionSpec& a, int32_t layer,
                                  ValueId x) {
  const int64_t dim = a.head_dim, group = a.heads / a.kv_heads;
  const int64_t q_width = a.heads * dim, k_width = a.kv_heads * dim, tokens = c.tokens();
  const ValueId q = apply(c, a.q, x), k = apply(c, a.k, x);
  const ValueId spread =
      reshape(c.b, repeat_columns(c.b, reshape(c.b, k, Shape{tokens * a.kv_heads, dim}), group),
              Shape{tokens, q_width});
  const ValueId q_mean = scale(c.b, add(c.b, q, spread), 0.5);
  const ValueId summed =
      fold_columns(c.b, reshape(c.b, q_mean, Shape{tokens * a.kv_heads, group * dim}), group);
  const ValueId k_mean =
      scale(c.b, reshape(c.b, summed, Shape{tokens, k_width}), 1 / static_cast<double>(group));
  const ValueId mixed = convolve_heads(c, a, layer, concat_columns(c.b, {q, k}));
  ValueId queries = add(c.b, slice_columns(c.b, mixed, 0, q_width), q_mean);
  ValueId keys = add(c.b, slice_columns(c.b, mixed, q_width, k_width), k_mean);
  queries = of_unit_scale(c, queries, a.heads, dim);
  const ValueId scales = reshape(c.b, weight_vector(c, a.key_scale, Shape{a.kv_heads}), Shape{a.kv_heads, 1});
  const ValueId row = reshape(c.b, repeat_columns(c.b, scales, dim), Shape{k_width});
  keys = mul_row(c.b, reshape(c.b, of_unit_scale(c, keys, a.kv_heads, dim), Shape{tokens, k_width}), row);
  const ValueId late = delayed(c, layer, "late_values", 1, apply(c, a.v_late, x));
  const ValueId values = concat_columns(c.b, {apply(c, a.v, x), late});
  const Shape by_head{tokens, a.kv_heads, dim};
  const ValueId out = attend(c, a.attend, layer, rotate(c, a.rope, queries),
                             rotate(c, a.rope, reshape(c.b, keys, by_head)), reshape(c.b, values, by_head));
  return apply(c, a.o, reshape(c.b, out, Shape{tokens, q_width}));
}

}  // namespace tenon
