#include "ops/sinkhorn.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x", Elements::f32, 3}, {"dout", Elements::f32, 3}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, std::span(kInputs).first(site.op.name == "sinkhorn" ? 1 : 2)));
  RETURN_IF_ERROR(expect_equal_types(site));
  const Shape& x = site.inputs[0].shape;
  RETURN_IF_ERROR(expect_extent(site, "the number of columns", x[2], x[1]));
  RETURN_IF_ERROR(expect(site, site.attrs.integer("iterations") > 0, "iterations must be positive"));
  return std::vector<Type>{site.inputs[0]};
}

SinkhornOptions options_of(const Attrs& attrs) {
  return {attrs.integer("iterations"), attrs.real("eps")};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return std::vector<ValueId>(1);
  return {
      sinkhorn_grad(site.builder, site.op.inputs[0], site.output_gradients[0], options_of(site.op.attrs))};
}

Cost cost(const OpSite& site) {
  const int64_t passes = 2 * site.attrs.integer("iterations");
  return streaming_cost(site, (site.inputs.size() == 1 ? 3 : 9) * passes);
}

// One matrix [n, n], and the division of its lines by their sums plus eps.
struct Lines {
  int64_t n;
  bool columns;
  double eps;

  int64_t at(int64_t line, int64_t i) const { return columns ? i * n + line : line * n + i; }
  double divisor(const double* x, int64_t line) const {
    double sum = eps;
    for (int64_t i = 0; i < n; ++i) sum += x[at(line, i)];
    return sum;
  }
  void divide(double* x) const {
    for (int64_t line = 0; line < n; ++line) {
      const double by = divisor(x, line);
      for (int64_t i = 0; i < n; ++i) x[at(line, i)] /= by;
    }
  }
  // The gradient dx of a division of x, in place of that of its result.
  void divide_grad(const double* x, double* d) const {
    for (int64_t line = 0; line < n; ++line) {
      const double by = divisor(x, line);
      double dot = 0;
      for (int64_t i = 0; i < n; ++i) dot += d[at(line, i)] * x[at(line, i)];
      for (int64_t i = 0; i < n; ++i) d[at(line, i)] = (d[at(line, i)] - dot / by) / by;
    }
  }
};

void softmax_rows(const double* x, int64_t n, double* out) {
  for (int64_t r = 0; r < n; ++r) {
    const double largest = *std::max_element(x + r * n, x + (r + 1) * n);
    double sum = 0;
    for (int64_t i = r * n; i < (r + 1) * n; ++i) sum += out[i] = std::exp(x[i] - largest);
    for (int64_t i = r * n; i < (r + 1) * n; ++i) out[i] /= sum;
  }
}

// The matrix before each division, and at last the result.
std::vector<std::vector<double>> steps(const double* x, int64_t n, const SinkhornOptions& options) {
  std::vector<std::vector<double>> out(1, std::vector<double>(static_cast<size_t>(n * n)));
  softmax_rows(x, n, out[0].data());
  for (double& value : out[0]) value += options.eps;
  for (int64_t i = 0; i < 2 * options.iterations - 1; ++i) {
    out.push_back(out.back());
    Lines{n, i % 2 == 0, options.eps}.divide(out.back().data());
  }
  return out;
}

void reference(const ReferenceCall& call) {
  const Shape& shape = call.inputs[0].type.shape;
  const int64_t size = shape[1] * shape[2];
  for (int64_t r = 0; r < shape[0]; ++r) {
    const auto all = steps(call.inputs[0].data + r * size, shape[1], options_of(call.attrs));
    std::copy(all.back().begin(), all.back().end(), call.outputs[0].data + r * size);
  }
}

void reference_grad(const ReferenceCall& call) {
  const Shape& shape = call.inputs[0].type.shape;
  const int64_t n = shape[1], size = n * n;
  const SinkhornOptions options = options_of(call.attrs);
  for (int64_t r = 0; r < shape[0]; ++r) {
    double* d = call.outputs[0].data + r * size;
    std::copy_n(call.inputs[1].data + r * size, size, d);
    const auto all = steps(call.inputs[0].data + r * size, n, options);
    for (int64_t i = 2 * options.iterations - 2; i >= 0; --i)
      Lines{n, i % 2 == 0, options.eps}.divide_grad(all[static_cast<size_t>(i)].data(), d);
    std::vector<double> p(static_cast<size_t>(size));
    softmax_rows(call.inputs[0].data + r * size, n, p.data());
    for (int64_t row = 0; row < size; row += n) {
      double dot = 0;
      for (int64_t i = row; i < row + n; ++i) dot += d[i] * p[static_cast<size_t>(i)];
      for (int64_t i = row; i < row + n; ++i) d[i] = p[static_cast<size_t>(i)] * (d[i] - dot);
    }
  }
}

}  // namespace

const OpDef& sinkhorn_op() {
  static constexpr OpDef def{
      .name = "sinkhorn", .infer = infer, .gradient = gradient, .cost = cost, .reference = reference};
  return def;
}

const OpDef& sinkhorn_grad_op() {
  static constexpr OpDef def{
      .name = "sinkhorn_grad", .infer = infer, .cost = cost, .reference = reference_grad};
  return def;
}

ValueId sinkhorn(Builder& builder, ValueId x, const SinkhornOptions& options) {
  return builder.emit_one(sinkhorn_op(), {x}, {{"iterations", options.iterations}, {"eps", options.eps}});
}

ValueId sinkhorn_grad(Builder& builder, ValueId x, ValueId dout, const SinkhornOptions& options) {
  return builder.emit_one(sinkhorn_grad_op(), {x, dout},
                          {{"iterations", options.iterations}, {"eps", options.eps}});
}

}  // namespace tenon
