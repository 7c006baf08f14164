// activation and activation_grad: one functor, the kind the same for every element.
#include "backend/cuda/elementwise.h"

#include <string_view>

#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "base/check.h"
#include "ops/activation.h"

namespace tenon::cuda {
namespace {

struct Point {
  float value, slope;
};

struct Function {
  ActivationKind kind;
  float a, b;

  __device__ static float sigmoid(float x) { return 1 / (1 + expf(-x)); }
  __device__ static float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

  __device__ static Point gelu(float x) {
    const float below = 0.5f * erfcf(-x * 0.70710678118654752f);  // of the normal distribution
    return {x * below, below + x * expf(-0.5f * x * x) * 0.39894228040143268f};
  }
  __device__ static Point gelu_tanh(float x) {
    const float root = 0.79788456080286536f;
    // tanh(u) = 2 sigmoid(2u) - 1, whose products below lose nothing where it is near -1 or 1.
    const float u = 2 * root * (x + 0.044715f * x * x * x);
    const float s = sigmoid(u), rest = sigmoid(-u);
    return {x * s, s + 2 * x * s * rest * root * (1 + 3 * 0.044715f * x * x)};
  }

  // In f64: near numbers are subtracted.
  __device__ Point negative_exp(double x) const {
    if (x > 0) return {0, 0};
    return {static_cast<float>(expm1(fmin(x, static_cast<double>(a))) - x),
            static_cast<float>((x < a ? expm1(x) : -1.0))};
  }

  __device__ Point at(float x) const {
    switch (kind) {
      case ActivationKind::relu:
        return {fmaxf(x, 0.0f), x > 0 ? 1.0f : 0.0f};
      case ActivationKind::relu2: {
        const float r = fmaxf(x, 0.0f);
        return {r * r, 2 * r};
      }
      case ActivationKind::gelu:
        return gelu(x);
      case ActivationKind::gelu_tanh:
        return gelu_tanh(x);
      case ActivationKind::swish: {
        const float s = sigmoid(a * x);
        return {x * s, s + a * x * s * (1 - s)};
      }
      case ActivationKind::sigmoid: {
        const float s = sigmoid(x);
        return {s, s * (1 - s)};
      }
      case ActivationKind::tanh: {
        const float t = tanhf(x);
        return {t, 1 - t * t};
      }
      case ActivationKind::softplus:
        return {softplus(x), sigmoid(x)};
      case ActivationKind::sqrt_softplus: {
        const float root = sqrtf(softplus(x));
        return {root, root > 0 ? sigmoid(x) / (2 * root) : 0.0f};
      }
      case ActivationKind::clamp:
        return {fminf(fmaxf(x, a), b), x >= a && x <= b ? 1.0f : 0.0f};
      case ActivationKind::softcap: {
        const float t = tanhf(x / a);
        return {a * t, 1 - t * t};
      }
      case ActivationKind::exp:
        return {expf(x), expf(x)};
      case ActivationKind::negative_exp:
        return negative_exp(x);
      case ActivationKind::complement: {
        const float root = sqrtf(-expm1f(2 * x));
        return {root, -expf(2 * x) / root};
      }
      case ActivationKind::reciprocal:
        return {1 / x, -1 / (x * x)};
      case ActivationKind::sqrt: {
        const float root = sqrtf(fmaxf(x, 0.0f));
        return {root, root > 0 ? 0.5f / root : 0.0f};
      }
    }
    return {x, 1};
  }
};

struct Forward {
  Function f;
  __device__ void operator()(const float (&x)[1], float (&y)[1], int64_t) const { y[0] = f.at(x[0]).value; }
};
struct Backward {
  Function f;
  __device__ void operator()(const float (&x)[2], float (&y)[1], int64_t) const {
    y[0] = x[1] * f.at(x[0]).slope;
  }
};

Function function_of(const Attrs& attrs) {
  constexpr std::string_view kNames[] = {"relu",          "relu2",      "gelu",       "gelu_tanh",
                                         "swish",         "sigmoid",    "tanh",       "softplus",
                                         "sqrt_softplus", "clamp",      "softcap",    "exp",
                                         "negative_exp",  "complement", "reciprocal", "sqrt"};
  const auto* at = std::find(std::begin(kNames), std::end(kNames), attrs.text("kind"));
  CHECK(at != std::end(kNames), attrs.text("kind"));
  return {static_cast<ActivationKind>(at - std::begin(kNames)), static_cast<float>(attrs.real("a")),
          static_cast<float>(attrs.real("b"))};
}

constexpr KernelDef kKernels[] = {
    {.op = "activation",
     .name = "activation",
     .serves = serves_plain,
     .run = [](const KernelCall& call) { launch_elementwise<1>(call, Forward{function_of(*call.attrs)}); }},
    {.op = "activation_grad",
     .name = "activation_grad",
     .serves = serves_plain,
     .run = [](const KernelCall& call) { launch_elementwise<2>(call, Backward{function_of(*call.attrs)}); }},
};

}  // namespace

std::span<const KernelDef> activation_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
