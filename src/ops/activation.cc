#include "ops/activation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}};
constexpr InputRule kGradInputs[] = {{"x"}, {"dy"}};

constexpr std::string_view kNames[] = {
    "relu",          "relu2", "gelu",    "gelu_tanh", "swish",        "sigmoid",    "tanh",       "softplus",
    "sqrt_softplus", "clamp", "softcap", "exp",       "negative_exp", "complement", "reciprocal", "sqrt"};

struct Function {
  ActivationKind kind;
  double a, b;
};

Attrs attrs_of(const Function& f) {
  return {{"kind", std::string(kNames[static_cast<size_t>(f.kind)])}, {"a", f.a}, {"b", f.b}};
}

Function function_of(const Attrs& attrs) {
  const auto at = std::find(std::begin(kNames), std::end(kNames), attrs.text("kind"));
  CHECK(at != std::end(kNames), attrs.text("kind"));
  return {static_cast<ActivationKind>(at - std::begin(kNames)), attrs.real("a"), attrs.real("b")};
}

double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}
double softplus_of(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

// f(x) and f'(x).
struct Point {
  double value, slope;
};

Point gelu_at(double x) {
  const double cdf = 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
  return {x * cdf, cdf + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi)};
}

Point gelu_tanh_at(double x) {
  const double root = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(root * (x + 0.044715 * x * x * x));
  return {0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x)};
}

Point point_at(const Function& f, double x) {
  switch (f.kind) {
    case ActivationKind::relu:
      return {std::max(x, 0.0), x > 0 ? 1.0 : 0.0};
    case ActivationKind::relu2: {
      const double r = std::max(x, 0.0);
      return {r * r, 2 * r};
    }
    case ActivationKind::gelu:
      return gelu_at(x);
    case ActivationKind::gelu_tanh:
      return gelu_tanh_at(x);
    case ActivationKind::swish: {
      const double s = sigmoid_of(f.a * x);
      return {x * s, s + f.a * x * s * (1 - s)};
    }
    case ActivationKind::sigmoid: {
      const double s = sigmoid_of(x);
      return {s, s * (1 - s)};
    }
    case ActivationKind::tanh: {
      const double t = std::tanh(x);
      return {t, 1 - t * t};
    }
    case ActivationKind::softplus:
      return {softplus_of(x), sigmoid_of(x)};
    case ActivationKind::sqrt_softplus: {
      const double root = std::sqrt(softplus_of(x));
      return {root, root > 0 ? sigmoid_of(x) / (2 * root) : 0.0};
    }
    case ActivationKind::clamp:
      return {std::clamp(x, f.a, f.b), x >= f.a && x <= f.b ? 1.0 : 0.0};
    case ActivationKind::softcap: {
      const double t = std::tanh(x / f.a);
      return {f.a * t, 1 - t * t};
    }
    case ActivationKind::exp:
      return {std::exp(x), std::exp(x)};
    case ActivationKind::negative_exp:
      if (x > 0) return {0, 0};
      return {std::expm1(std::min(x, f.a)) - x, (x < f.a ? std::exp(x) : 0) - 1};
    case ActivationKind::complement: {
      const double root = std::sqrt(-std::expm1(2 * x));
      return {root, -std::exp(2 * x) / root};
    }
    case ActivationKind::reciprocal:
      return {1 / x, -1 / (x * x)};
    case ActivationKind::sqrt: {
      const double root = std::sqrt(std::max(x, 0.0));
      return {root, root > 0 ? 0.5 / root : 0.0};
    }
  }
  CHECK(false, "unknown activation");
}

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  return infer_elementwise(site);
}

InferredTypes infer_grad(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kGradInputs));
  return infer_elementwise(site);
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  const Function f = function_of(site.op.attrs);
  return {activation_grad(site.builder, site.op.inputs[0], site.output_gradients[0], f.kind, f.a, f.b)};
}

void reference(const ReferenceCall& call) {
  const Function f = function_of(call.attrs);
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) call.outputs[0].data[i] = point_at(f, call.inputs[0].data[i]).value;
}

void reference_grad(const ReferenceCall& call) {
  const Function f = function_of(call.attrs);
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) {
    call.outputs[0].data[i] = call.inputs[1].data[i] * point_at(f, call.inputs[0].data[i]).slope;
  }
}

}  // namespace

const OpDef& activation_op() {
  static constexpr OpDef def{.name = "activation",
                             .infer = infer,
                             .gradient = gradient,
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 8); },
                             .reference = reference};
  return def;
}

const OpDef& activation_grad_op() {
  static constexpr OpDef def{.name = "activation_grad",
                             .infer = infer_grad,
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 12); },
                             .reference = reference_grad};
  return def;
}

ValueId activation(Builder& builder, ValueId x, ActivationKind kind, double a, double b) {
  return builder.emit_one(activation_op(), {x}, attrs_of({kind, a, b}));
}

ValueId activation_grad(Builder& builder, ValueId x, ValueId dy, ActivationKind kind, double a, double b) {
  return builder.emit_one(activation_grad_op(), {x, dy}, attrs_of({kind, a, b}));
}

}  // namespace tenon
