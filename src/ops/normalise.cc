#include "ops/normalise.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}};
constexpr InputRule kGradInputs[] = {{"x"}, {"dy"}};
constexpr std::string_view kNames[] = {"rms", "layer", "l2", "sum", "softmax"};

NormaliseKind kind_of(const Attrs& attrs) {
  const auto at = std::find(std::begin(kNames), std::end(kNames), attrs.text("kind"));
  CHECK(at != std::end(kNames), attrs.text("kind"));
  return static_cast<NormaliseKind>(at - std::begin(kNames));
}

Attrs attrs_of(NormaliseKind kind, double eps) {
  return {{"kind", std::string(kNames[static_cast<size_t>(kind)])}, {"eps", eps}};
}

double sum_of(const double* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

double dot(const double* a, const double* b, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += a[i] * b[i];
  return total;
}

// y of a row, and the factor that y was scaled by (all kinds but softmax).
double row_values(NormaliseKind kind, double eps, const double* x, int64_t n, double* y) {
  if (kind == NormaliseKind::softmax) {
    const double largest = *std::max_element(x, x + n);
    for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i] - largest);
    const double total = sum_of(y, n);
    for (int64_t i = 0; i < n; ++i) y[i] /= total;
    return 1;
  }
  const double count = static_cast<double>(n);
  const double mean = kind == NormaliseKind::layer ? sum_of(x, n) / count : 0;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - mean;
  double factor = 0;
  if (kind == NormaliseKind::sum) {
    factor = 1 / (sum_of(x, n) + eps);
  } else {
    const double squares = dot(y, y, n);
    factor = 1 / std::sqrt((kind == NormaliseKind::l2 ? squares : squares / count) + eps);
  }
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
  return factor;
}

// dx of a row from its y, its factor and dy; dx may be y.
void row_gradient(NormaliseKind kind, const double* y, double factor, const double* dy, int64_t n,
                  double* dx) {
  const double count = static_cast<double>(n);
  const double along = dot(dy, y, n);
  switch (kind) {
    case NormaliseKind::softmax:
      for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - along);
      return;
    case NormaliseKind::sum:
      for (int64_t i = 0; i < n; ++i) dx[i] = factor * (dy[i] - along);
      return;
    case NormaliseKind::l2:
      for (int64_t i = 0; i < n; ++i) dx[i] = factor * (dy[i] - y[i] * along);
      return;
    case NormaliseKind::rms:
    case NormaliseKind::layer: {
      const double mean = kind == NormaliseKind::layer ? sum_of(dy, n) / count : 0;
      for (int64_t i = 0; i < n; ++i) dx[i] = factor * (dy[i] - mean - y[i] * along / count);
      return;
    }
  }
}

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(expect(site, site.inputs[0].shape.rank() >= 1, "x has no innermost axis"));
  return infer_elementwise(site);
}

InferredTypes infer_grad(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kGradInputs));
  RETURN_IF_ERROR(expect(site, site.inputs[0].shape.rank() >= 1, "x has no innermost axis"));
  return infer_elementwise(site);
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  return {normalise_grad(site.builder, site.op.inputs[0], site.output_gradients[0], kind_of(site.op.attrs),
                         site.op.attrs.real("eps"))};
}

void reference(const ReferenceCall& call) {
  const Shape& shape = call.inputs[0].type.shape;
  const int64_t n = shape[-1];
  for (int64_t r = 0; n > 0 && r < shape.elements() / n; ++r) {
    row_values(kind_of(call.attrs), call.attrs.real("eps"), call.inputs[0].data + r * n, n,
               call.outputs[0].data + r * n);
  }
}

void reference_grad(const ReferenceCall& call) {
  const Shape& shape = call.inputs[0].type.shape;
  const int64_t n = shape[-1];
  const NormaliseKind kind = kind_of(call.attrs);
  for (int64_t r = 0; n > 0 && r < shape.elements() / n; ++r) {
    double* dx = call.outputs[0].data + r * n;  // holds y until it is dx
    const double factor = row_values(kind, call.attrs.real("eps"), call.inputs[0].data + r * n, n, dx);
    row_gradient(kind, dx, factor, call.inputs[1].data + r * n, n, dx);
  }
}

}  // namespace

const OpDef& normalise_op() {
  static constexpr OpDef def{.name = "normalise",
                             .infer = infer,
                             .gradient = gradient,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 6); },
                             .reference = reference};
  return def;
}

const OpDef& normalise_grad_op() {
  static constexpr OpDef def{.name = "normalise_grad",
                             .infer = infer_grad,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 12); },
                             .reference = reference_grad};
  return def;
}

ValueId normalise(Builder& builder, ValueId x, NormaliseKind kind, double eps) {
  return builder.emit_one(normalise_op(), {x}, attrs_of(kind, eps));
}

ValueId normalise_grad(Builder& builder, ValueId x, ValueId dy, NormaliseKind kind, double eps) {
  return builder.emit_one(normalise_grad_op(), {x, dy}, attrs_of(kind, eps));
}

}  // namespace tenon
