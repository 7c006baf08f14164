#include "ops/biased_attention.h"

#include <algorithm>
#include <cmath>

#include "ops/biased_attention_rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"q", Elements::floating, 3},
                                 {"k", Elements::floating, 3},
                                 {"v", Elements::floating, 3},
                                 {"sequence_begin", Elements::i32, 1}};
constexpr size_t kPlain = 4;      // inputs before the biases
constexpr size_t kGradPlain = 7;  // q, k, v, sequence_begin, out, lse, dout

Status check_packed(const OpSite& site) {
  const Type &q = site.inputs[0], &k = site.inputs[1], &v = site.inputs[2];
  RETURN_IF_ERROR(expect(site, q.shape.rank() == 3 && k.shape.rank() == 3 && v.shape.rank() == 3,
                         "q, k and v are not of rank 3"));
  RETURN_IF_ERROR(check_attention(site, q, k, v));
  RETURN_IF_ERROR(expect_extent(site, "the number of keys", k.shape[0], q.shape[0]));
  RETURN_IF_ERROR(expect_extent(site, "the number of values", v.shape[0], q.shape[0]));
  return expect(site, site.inputs[3] == Type{DType::i32, Shape{q.shape[0]}},
                "sequence_begin is not i32 [tokens]");
}

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_biases(site, kPlain));
  RETURN_IF_ERROR(check_packed(site));
  const Type &q = site.inputs[0], &v = site.inputs[2];
  return std::vector<Type>{Type{q.dtype, Shape{q.shape[0], q.shape[1], v.shape[2]}},
                           Type{DType::f32, Shape{q.shape[0], q.shape[1]}}};
}

InferredTypes infer_grad(const OpSite& site) {
  RETURN_IF_ERROR(check_biases(site, kGradPlain));
  RETURN_IF_ERROR(check_packed(site));
  const Type &q = site.inputs[0], &v = site.inputs[2];
  const Type forward{q.dtype, Shape{q.shape[0], q.shape[1], v.shape[2]}};
  RETURN_IF_ERROR(expect(site, site.inputs[4] == forward && site.inputs[6] == forward,
                         "out or dout is not of the type that attention gives"));
  RETURN_IF_ERROR(expect(site, site.inputs[5] == Type{DType::f32, Shape{q.shape[0], q.shape[1]}},
                         "lse is not f32 [tokens, heads]"));
  std::vector<Type> out = {site.inputs[0], site.inputs[1], site.inputs[2]};
  if (site.attrs.flag("sinks")) out.push_back(site.inputs[kGradPlain]);
  if (site.attrs.flag("relative")) out.push_back(site.inputs.back());
  return out;
}

std::vector<ValueId> gradient(const GradientSite& site) {
  CHECK(!site.output_gradients[1].valid(), "attention's lse has no gradient rule");
  const auto& in = site.op.inputs;
  std::vector<ValueId> out(in.size());
  bool any = false;
  for (bool needed : site.needed) any = any || needed;
  if (!any || !site.output_gradients[0].valid()) return out;
  const AttentionBiases biases = biases_of(site.op.attrs, in, kPlain);
  std::vector<ValueId> inputs = {
      in[0], in[1], in[2], in[3], site.op.outputs[0], site.op.outputs[1], site.output_gradients[0]};
  const auto gradients =
      site.builder.emit(biased_attention_grad_op(), with_biases(std::move(inputs), biases), site.op.attrs);
  for (size_t i = 0; i < 3; ++i) {
    if (site.needed[i]) out[i] = gradients[i];
  }
  if (biases.sinks.valid() && site.needed[kPlain]) out[kPlain] = gradients[3];
  if (biases.relative.valid() && site.needed.back()) out.back() = gradients.back();
  return out;
}

int64_t flops(const OpSite& site, int64_t qk_products, int64_t v_products) {
  const Shape &q = site.inputs[0].shape, &v = site.inputs[2].shape;
  const int64_t window = site.attrs.integer("window"), chunk = site.attrs.integer("chunk");
  const int64_t reach = window > 0 && chunk > 0 ? std::min(window, chunk) : std::max(window, chunk);
  return 2 * attention_pairs(q[0], reach) * q[1] * (qk_products * q[2] + v_products * v[-1]);
}

Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = flops(site, 1, 1);
  return cost;
}

Cost cost_grad(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = flops(site, 3, 2);
  return cost;
}

// Packed sequences: the keys that a query sees, and its scores.
struct Packed {
  const ReferenceCall& call;
  BiasedAttentionOptions options;
  BiasData data;
  int64_t tokens, heads, head_dim, kv_heads, v_head_dim;

  Packed(const ReferenceCall& c, size_t first_bias)
      : call(c), options(biased_attention_options(c.attrs)), data(bias_data(c, first_bias)) {
    const Shape &q = c.inputs[0].type.shape, &v = c.inputs[2].type.shape;
    tokens = q[0], heads = q[1], head_dim = q[2], kv_heads = v[1], v_head_dim = v[2];
  }
  int64_t sequence(int64_t t) const { return static_cast<int64_t>(call.inputs[3].data[t]); }
  int64_t begin(int64_t t) const { return sequence(t) + first_seen(options, t - sequence(t)); }
  int64_t kv_of(int64_t head) const { return head / (heads / kv_heads); }
  const double* k(int64_t j, int64_t head) const {
    return call.inputs[1].data + (j * kv_heads + kv_of(head)) * head_dim;
  }
  const double* v(int64_t j, int64_t head) const {
    return call.inputs[2].data + (j * kv_heads + kv_of(head)) * v_head_dim;
  }
  AttentionScore score(int64_t t, int64_t head, int64_t j) const {
    const double* q = call.inputs[0].data + (t * heads + head) * head_dim;
    AttentionScore score = attention_score(options, q, k(j, head), head_dim);
    score.value += position_bias(options, data, t, head, t - sequence(t), j - sequence(t));
    return score;
  }
};

void reference(const ReferenceCall& call) {
  const Packed p(call, kPlain);
  std::vector<double> scores(static_cast<size_t>(p.tokens));
  for (int64_t t = 0; t < p.tokens; ++t) {
    for (int64_t h = 0; h < p.heads; ++h) {
      const double sink = p.data.sinks ? p.data.sinks[p.data.sink_index(t, h)] : -INFINITY;
      double largest = sink;
      for (int64_t j = p.begin(t); j <= t; ++j) {
        scores[static_cast<size_t>(j)] = p.score(t, h, j).value;
        largest = std::max(largest, scores[static_cast<size_t>(j)]);
      }
      double total = p.data.sinks ? std::exp(sink - largest) : 0;
      for (int64_t j = p.begin(t); j <= t; ++j) total += std::exp(scores[static_cast<size_t>(j)] - largest);
      const double lse = largest + std::log(total);
      call.outputs[1].data[t * p.heads + h] = lse;
      double* out = call.outputs[0].data + (t * p.heads + h) * p.v_head_dim;
      std::fill_n(out, p.v_head_dim, 0.0);
      for (int64_t j = p.begin(t); j <= t; ++j) {
        const double weight = std::exp(scores[static_cast<size_t>(j)] - lse);
        for (int64_t i = 0; i < p.v_head_dim; ++i) out[i] += weight * p.v(j, h)[i];
      }
    }
  }
}

void add_row_gradients(const Packed& p, int64_t t, int64_t h) {
  const ReferenceCall& call = p.call;
  const int64_t at = t * p.heads + h;
  const double* q = call.inputs[0].data + at * p.head_dim;
  const double* dout = call.inputs[6].data + at * p.v_head_dim;
  const double lse = call.inputs[5].data[at];
  double delta = 0;
  for (int64_t i = 0; i < p.v_head_dim; ++i) delta += dout[i] * call.inputs[4].data[at * p.v_head_dim + i];
  double* dq = call.outputs[0].data + at * p.head_dim;
  for (int64_t j = p.begin(t); j <= t; ++j) {
    const AttentionScore score = p.score(t, h, j);
    const double weight = std::exp(score.value - lse);
    const int64_t kv = j * p.kv_heads + p.kv_of(h);
    double dp = 0;
    for (int64_t i = 0; i < p.v_head_dim; ++i) {
      dp += dout[i] * p.v(j, h)[i];
      call.outputs[2].data[kv * p.v_head_dim + i] += weight * dout[i];
    }
    if (p.data.relative && t - j < p.data.extent)
      call.outputs.back().data[at * p.data.extent + t - j] = weight * (dp - delta);
    const double ds = weight * (dp - delta) * score.slope * p.options.scale;
    for (int64_t i = 0; i < p.head_dim; ++i) {
      dq[i] += ds * p.k(j, h)[i];
      call.outputs[1].data[kv * p.head_dim + i] += ds * q[i];
    }
  }
  if (!p.data.sinks) return;
  const int64_t sink = p.data.sink_index(t, h);
  call.outputs[3].data[sink] -= std::exp(p.data.sinks[sink] - lse) * delta;
}

void reference_grad(const ReferenceCall& call) {
  const Packed p(call, kGradPlain);
  for (const ReferenceTensor& output : call.outputs) std::fill_n(output.data, output.type.elements(), 0.0);
  for (int64_t t = 0; t < p.tokens; ++t) {
    for (int64_t h = 0; h < p.heads; ++h) add_row_gradients(p, t, h);
  }
}

}  // namespace

const OpDef& biased_attention_op() {
  static constexpr OpDef def{
      .name = "biased_attention", .infer = infer, .gradient = gradient, .cost = cost, .reference = reference};
  return def;
}

const OpDef& biased_attention_grad_op() {
  static constexpr OpDef def{
      .name = "biased_attention_grad", .infer = infer_grad, .cost = cost_grad, .reference = reference_grad};
  return def;
}

AttentionOutputs biased_attention(Builder& builder, ValueId q, ValueId k, ValueId v, ValueId sequence_begin,
                                  const AttentionBiases& biases, const BiasedAttentionOptions& options) {
  const auto outputs = builder.emit(biased_attention_op(), with_biases({q, k, v, sequence_begin}, biases),
                                    biased_attention_attrs(biases, options));
  return {outputs[0], outputs[1]};
}

std::vector<ValueId> biased_attention_grad(Builder& builder, std::vector<ValueId> inputs,
                                           const AttentionBiases& biases,
                                           const BiasedAttentionOptions& options) {
  return builder.emit(biased_attention_grad_op(), std::move(inputs), biased_attention_attrs(biases, options));
}

}  // namespace tenon
