#include "models/layers.h"

#include <algorithm>

#include "ops/activation.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/columns.h"
#include "ops/matmul.h"
#include "ops/mul.h"
#include "ops/normalise.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/scale.h"
#include "ops/silu.h"

namespace tenon {

ValueId weight_matrix(ForwardContext& c, const std::string& name, Shape shape) {
  return c.b.add_static(Role::weight, name, {c.options.matrix_dtype(name), shape});
}

ValueId weight_vector(ForwardContext& c, const std::string& name, Shape shape) {
  return c.b.add_static(Role::weight, name, {DType::f32, shape});
}

ValueId add_indices(Builder& builder, std::string name, std::vector<float> values) {
  Program& program = builder.program();
  const size_t before = program.values.size();
  const Type type{DType::i32, Shape{static_cast<int64_t>(values.size())}};
  const ValueId id = builder.add_static(Role::constant, std::move(name), type);
  if (program.values.size() > before) program.constants.push_back({id, std::move(values)});
  return id;
}

ValueId apply(ForwardContext& c, const LinearSpec& spec, ValueId x) {
  const std::string& owner = spec.weight_path.empty() ? spec.path : spec.weight_path;
  const ValueId weight = weight_matrix(c, owner + spec.weight_name, Shape{spec.out, spec.in});
  const ValueId bias = spec.bias ? weight_vector(c, owner + ".bias", Shape{spec.out}) : ValueId{};
  c.b.set_name(spec.path);
  ValueId y = linear(c.b, x, weight, bias);
  if (!spec.low_rank.empty()) y = add(c.b, y, apply(c, spec.low_rank[1], apply(c, spec.low_rank[0], x)));
  return apply(c, spec.channels, times(c, y, spec.scale));
}

ValueId channel_factors(ForwardContext& c, const ChannelScaleSpec& spec, int64_t channels) {
  const ValueId factors = times(c, weight_vector(c, spec.weight, Shape{channels}), spec.factor);
  return spec.squared ? mul(c.b, factors, factors) : factors;
}

ValueId apply(ForwardContext& c, const ChannelScaleSpec& spec, ValueId x) {
  return spec.weight.empty() ? x : mul_row(c.b, x, channel_factors(c, spec, c.b.shape(x)[-1]));
}

namespace {

NormaliseKind normalise_kind(NormKind kind) {
  if (kind == NormKind::l2) return NormaliseKind::l2;
  return kind == NormKind::rms ? NormaliseKind::rms : NormaliseKind::layer;
}

// x [..., heads, width] times its weight, each row at most `limit` long: times min(limit / length, 1).
// Lengths begin at 1e-15, where the factor is 1 and its gradient zero.
ValueId clipped(ForwardContext& c, const NormSpec& spec, ValueId x) {
  const Shape shape = c.b.shape(x);
  const int64_t rows = shape.elements() / spec.width;
  if (spec.weight) {
    const int64_t weights = std::max<int64_t>(spec.heads, 1) * spec.width;
    const Shape stored = spec.heads > 0 ? Shape{spec.heads, spec.width} : Shape{spec.width};
    const ValueId row = reshape(c.b, weight_vector(c, spec.path + ".weight", stored), Shape{weights});
    x = mul_row(c.b, reshape(c.b, x, Shape{shape.elements() / weights, weights}), row);
  }
  x = reshape(c.b, x, Shape{rows, spec.width});
  ValueId squares = row_dot(c.b, x, x, DType::f32, Shape{rows, 1});
  squares = activation(c.b, squares, ActivationKind::clamp, 1e-30, 1e30);
  const ValueId length = activation(c.b, squares, ActivationKind::sqrt);
  const ValueId reach = scale(c.b, activation(c.b, length, ActivationKind::reciprocal), spec.limit);
  const ValueId factor = activation(c.b, reach, ActivationKind::clamp, 0, 1);
  return reshape(c.b, mul_column(c.b, x, factor), shape);
}

ValueId apply_ungated(ForwardContext& c, const NormSpec& spec, ValueId x) {
  const Shape shape = c.b.shape(x);
  const Shape weight_shape = spec.heads > 0 ? Shape{spec.heads, spec.width} : Shape{spec.width};
  const int64_t weights = weight_shape.elements();
  const bool plain_rms =
      spec.kind == NormKind::rms && spec.weight && !spec.bias && spec.heads == 0 && spec.groups == 1;
  if (plain_rms) {
    const ValueId weight = weight_vector(c, spec.path + ".weight", weight_shape);
    c.b.set_name(spec.path);
    return rms_norm(c.b, x, weight, spec.eps, spec.weight_offset);
  }
  c.b.set_name(spec.path);
  if (spec.kind == NormKind::clip) return clipped(c, spec, x);
  if (spec.groups > 1) {
    const int64_t group = spec.width / spec.groups;
    x = reshape(c.b, x, Shape{shape.elements() / group, group});
  }
  x = normalise(c.b, x, normalise_kind(spec.kind), spec.eps);
  if (!spec.weight && !spec.bias) return spec.groups > 1 ? reshape(c.b, x, shape) : x;
  x = reshape(c.b, x, Shape{shape.elements() / weights, weights});
  if (spec.weight) {
    const ValueId weight = weight_vector(c, spec.path + ".weight", weight_shape);
    const ValueId row = spec.heads > 0 ? reshape(c.b, weight, Shape{weights}) : weight;
    x = mul_row(c.b, x, row, spec.weight_offset);
  }
  if (spec.bias) x = add_row(c.b, x, weight_vector(c, spec.path + ".bias", Shape{spec.width}));
  return reshape(c.b, x, shape);
}

}  // namespace

ValueId apply(ForwardContext& c, const NormSpec& spec, ValueId x) {
  if (spec.kind == NormKind::none) return x;
  const ValueId y = apply_ungated(c, spec, x);
  if (spec.gate.empty()) return y;
  const ValueId open = apply(c, spec.gate[1], silu(c.b, apply(c, spec.gate[0], y)));
  return mul(c.b, y, activation(c.b, open, ActivationKind::sigmoid));
}

ValueId as_f32(ForwardContext& c, ValueId x) {
  return c.b.dtype(x) == DType::f32 ? x : cast(c.b, x, DType::f32);
}

ValueId times_scalar(ForwardContext& c, ValueId x, ValueId scalar) {
  const int64_t width = c.b.shape(x)[-1];
  const ValueId row = repeat_columns(c.b, reshape(c.b, scalar, Shape{1, 1}), width);
  return mul_row(c.b, x, reshape(c.b, row, Shape{width}));
}

ValueId times(ForwardContext& c, ValueId x, double factor) {
  return factor == 1 ? x : scale(c.b, x, factor);
}

}  // namespace tenon
