#include "ops/entry_pool.h"

#include <algorithm>
#include <cmath>

#include "ops/needed_gradients.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x", Elements::floating, 2},
                                 {"gate", Elements::floating, 2},
                                 {"bias", Elements::f32, 2},
                                 {"sequence_begin", Elements::i32, 1},
                                 {"dout", Elements::floating, 2}};
constexpr InputRule kCachedInputs[] = {{"x", Elements::floating, 2}, {"gate", Elements::floating, 2},
                                       {"bias", Elements::f32, 2},   {"state", Elements::floating, 3},
                                       {"stream", Elements::i32, 1}, {"positions", Elements::i32, 1}};

Status check(const OpSite& site) {
  const Type &x = site.inputs[0], &bias = site.inputs[2];
  const int64_t parts = site.attrs.integer("parts");
  RETURN_IF_ERROR(expect(site, site.inputs[1] == x, "gate is not of x's type"));
  RETURN_IF_ERROR(expect_extent(site, "the width of bias", bias.shape[1], x.shape[1]));
  RETURN_IF_ERROR(expect(site, bias.shape[0] > 0, "there is no stride"));
  return expect(site, (parts == 1 || parts == 2) && x.shape[1] % parts == 0, "parts do not fit the columns");
}

Type out_type(const OpSite& site) {
  const Type& x = site.inputs[0];
  return {x.dtype, Shape{x.shape[0], x.shape[1] / site.attrs.integer("parts")}};
}

InferredTypes infer(const OpSite& site) {
  const bool grad = site.op.name == "entry_pool_grad";
  RETURN_IF_ERROR(check_inputs(site, std::span(kInputs).first(grad ? 5 : 4)));
  RETURN_IF_ERROR(check(site));
  const Type& x = site.inputs[0];
  RETURN_IF_ERROR(expect_extent(site, "the length of sequence_begin", site.inputs[3].shape[0], x.shape[0]));
  if (!grad) return std::vector<Type>{out_type(site)};
  RETURN_IF_ERROR(expect(site, site.inputs[4] == out_type(site), "dout is not of the output's type"));
  return std::vector<Type>{x, x, site.inputs[2]};
}

InferredTypes infer_cached(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kCachedInputs));
  RETURN_IF_ERROR(check(site));
  const Type &x = site.inputs[0], &state = site.inputs[3];
  const int64_t rows = site.attrs.integer("parts") * site.inputs[2].shape[0];
  RETURN_IF_ERROR(expect(site, state.dtype == x.dtype, "state and x differ in dtype"));
  RETURN_IF_ERROR(expect_extent(site, "the rows of a state", state.shape[1], rows));
  RETURN_IF_ERROR(expect_extent(site, "the width of a state", state.shape[2], 2 * x.shape[1]));
  for (size_t i : {size_t{4}, size_t{5}})
    RETURN_IF_ERROR(
        expect_extent(site, "the length of stream or positions", site.inputs[i].shape[0], x.shape[0]));
  return std::vector<Type>{out_type(site), state};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!any_needed(site)) return needed_gradients(site, {});
  const auto& in = site.op.inputs;
  const auto found = entry_pool_grad(site.builder, {in[0], in[1], in[2]}, in[3], site.output_gradients[0],
                                     site.op.attrs.integer("parts"));
  return needed_gradients(site, found);
}

Cost cost(const OpSite& site) {
  return streaming_cost(site, 8);
}

struct Sizes {
  int64_t columns, parts, width, stride;
  explicit Sizes(const ReferenceCall& call)
      : columns(call.inputs[0].type.shape[1]),
        parts(call.attrs.integer("parts")),
        width(columns / parts),
        stride(call.inputs[2].type.shape[0]) {}
};

// One token's x and gate that an entry takes, in the order of the sequence.
struct Source {
  const double *x, *gate;
  int64_t token;   // id, or position
  int64_t within;  // the stride
  int64_t column;  // where its part of the columns begins
};

// The sources of the entry at `position`; row(i) gives x and gate of position i.
template <typename F>
std::vector<Source> sources_at(const Sizes& s, int64_t position, F row) {
  std::vector<Source> out;
  for (int64_t p = position - s.parts * s.stride + 1; p <= position; ++p) {
    if (p < 0) continue;
    const bool own = p > position - s.stride;
    const auto [x, gate] = row(p);
    out.push_back({x, gate, p, p % s.stride, own ? (s.parts - 1) * s.width : 0});
  }
  return out;
}

// Weights of the sources in a channel.
std::vector<double> weights_of(const Sizes& s, const std::vector<Source>& sources, const double* bias,
                               int64_t channel) {
  std::vector<double> out;
  for (const Source& source : sources) {
    const int64_t at = source.column + channel;
    out.push_back(source.gate[at] + bias[source.within * s.columns + at]);
  }
  const double largest = *std::max_element(out.begin(), out.end());
  double sum = 0;
  for (double& w : out) sum += w = std::exp(w - largest);
  for (double& w : out) w /= sum;
  return out;
}

void pool(const Sizes& s, const std::vector<Source>& sources, const double* bias, double* out) {
  for (int64_t c = 0; c < s.width; ++c) {
    const std::vector<double> weights = weights_of(s, sources, bias, c);
    for (size_t i = 0; i < sources.size(); ++i) out[c] += weights[i] * sources[i].x[sources[i].column + c];
  }
}

// Calls f(t, sources) for every token that ends a stride; source tokens are ids.
template <typename F>
void for_entries(const ReferenceCall& call, const Sizes& s, F f) {
  for (int64_t t = 0; t < call.inputs[0].type.shape[0]; ++t) {
    const auto begin = static_cast<int64_t>(call.inputs[3].data[t]);
    if ((t - begin + 1) % s.stride != 0) continue;
    auto sources = sources_at(s, t - begin, [&](int64_t p) {
      const int64_t at = (begin + p) * s.columns;
      return std::pair(call.inputs[0].data + at, call.inputs[1].data + at);
    });
    for (Source& source : sources) source.token += begin;
    f(t, sources);
  }
}

void reference(const ReferenceCall& call) {
  const Sizes s(call);
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  for_entries(call, s, [&](int64_t t, const std::vector<Source>& sources) {
    pool(s, sources, call.inputs[2].data, call.outputs[0].data + t * s.width);
  });
}

void reference_grad(const ReferenceCall& call) {
  const Sizes s(call);
  for (const ReferenceTensor& output : call.outputs) std::fill_n(output.data, output.type.elements(), 0.0);
  for_entries(call, s, [&](int64_t t, const std::vector<Source>& sources) {
    for (int64_t c = 0; c < s.width; ++c) {
      const std::vector<double> weights = weights_of(s, sources, call.inputs[2].data, c);
      const double dout = call.inputs[4].data[t * s.width + c];
      double mean = 0;
      for (size_t i = 0; i < sources.size(); ++i) mean += weights[i] * sources[i].x[sources[i].column + c];
      for (size_t i = 0; i < sources.size(); ++i) {
        const int64_t column = sources[i].column + c, at = sources[i].token * s.columns + column;
        const double dgate = dout * weights[i] * (sources[i].x[column] - mean);
        call.outputs[0].data[at] += dout * weights[i];
        call.outputs[1].data[at] += dgate;
        call.outputs[2].data[sources[i].within * s.columns + column] += dgate;
      }
    }
  });
}

void reference_cached(const ReferenceCall& call) {
  const Sizes s(call);
  const int64_t rows = s.parts * s.stride;
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  std::copy_n(call.inputs[3].data, call.inputs[3].type.elements(), call.outputs[1].data);
  for (int64_t t = 0; t < call.inputs[0].type.shape[0]; ++t) {
    const auto stream = static_cast<int64_t>(call.inputs[4].data[t]);
    if (stream < 0) continue;
    const auto position = static_cast<int64_t>(call.inputs[5].data[t]);
    const auto row = [&](int64_t p) {
      double* at = call.outputs[1].data + (stream * rows + p % rows) * 2 * s.columns;
      return std::pair(at, at + s.columns);
    };
    std::copy_n(call.inputs[0].data + t * s.columns, s.columns, row(position).first);
    std::copy_n(call.inputs[1].data + t * s.columns, s.columns, row(position).second);
    if ((position + 1) % s.stride == 0)
      pool(s, sources_at(s, position, row), call.inputs[2].data, call.outputs[0].data + t * s.width);
  }
}

std::vector<Alias> alias_state(const OpSite&) {
  return {Alias{1, 3, AliasKind::must}};
}

}  // namespace

const OpDef& entry_pool_op() {
  static constexpr OpDef def{
      .name = "entry_pool", .infer = infer, .gradient = gradient, .cost = cost, .reference = reference};
  return def;
}

const OpDef& entry_pool_grad_op() {
  static constexpr OpDef def{
      .name = "entry_pool_grad", .infer = infer, .cost = cost, .reference = reference_grad};
  return def;
}

const OpDef& entry_pool_cached_op() {
  static constexpr OpDef def{.name = "entry_pool_cached",
                             .infer = infer_cached,
                             .aliases = alias_state,
                             .cost = cost,
                             .reference = reference_cached};
  return def;
}

ValueId entry_pool(Builder& builder, const EntryPoolInputs& in, ValueId sequence_begin, int64_t parts) {
  return builder.emit_one(entry_pool_op(), {in.x, in.gate, in.bias, sequence_begin}, {{"parts", parts}});
}

std::vector<ValueId> entry_pool_grad(Builder& builder, const EntryPoolInputs& in, ValueId sequence_begin,
                                     ValueId dout, int64_t parts) {
  return builder.emit(entry_pool_grad_op(), {in.x, in.gate, in.bias, sequence_begin, dout},
                      {{"parts", parts}});
}

ValueId entry_pool_cached(Builder& builder, const EntryPoolInputs& in, const StreamInputs& streams,
                          int64_t parts) {
  return builder.emit(entry_pool_cached_op(),
                      {in.x, in.gate, in.bias, streams.state, streams.stream, streams.positions},
                      {{"parts", parts}})[0];
}

}  // namespace tenon
