#include "ops/linear_attention_rules.h"

#include <algorithm>
#include <cmath>

namespace tenon {

Attrs linear_attention_attrs(const LinearAttentionOptions& options) {
  return {{"scale", options.scale}, {"delta", options.delta}, {"chunk", options.chunk}};
}

LinearAttentionOptions linear_attention_options(const Attrs& attrs) {
  return {.scale = attrs.real("scale"), .delta = attrs.flag("delta"), .chunk = attrs.integer("chunk")};
}

Status check_linear_attention(const OpSite& site, size_t beta) {
  const Type &q = site.inputs[0], &k = site.inputs[1], &v = site.inputs[2], &decay = site.inputs[3];
  RETURN_IF_ERROR(expect(site, q == k, "q and k differ in type"));
  RETURN_IF_ERROR(expect(site, q.dtype == v.dtype, "keys and values differ in dtype"));
  RETURN_IF_ERROR(expect_extent(site, "the number of tokens of v", v.shape[0], q.shape[0]));
  RETURN_IF_ERROR(
      expect(site, q.shape[1] > 0 && v.shape[1] % q.shape[1] == 0, "heads is not a multiple of key_heads"));
  RETURN_IF_ERROR(expect_extent(site, "the number of tokens of log_decay", decay.shape[0], v.shape[0]));
  RETURN_IF_ERROR(expect_extent(site, "the number of heads of log_decay", decay.shape[1], v.shape[1]));
  RETURN_IF_ERROR(expect(site, decay.shape[2] == 1 || decay.shape[2] == q.shape[2],
                         "log_decay has neither one decay a head nor one a key channel"));
  RETURN_IF_ERROR(expect(site, site.attrs.integer("chunk") > 0, "chunk must be positive"));
  if (site.inputs.size() <= beta) return {};
  return expect(site, site.inputs[beta].shape == Shape{v.shape[0], v.shape[1]},
                "beta is not [tokens, heads]");
}

LinearAttentionStep linear_attention_step(const ReferenceCall& call, const LinearAttentionSizes& s,
                                          const ReferenceTensor* beta, int64_t t, int64_t h) {
  const int64_t key = (t * s.key_heads + s.key_head(h)) * s.n, head = t * s.heads + h;
  return {call.inputs[0].data + key, call.inputs[1].data + key, call.inputs[2].data + head * s.p,
          call.inputs[3].data + head * s.decays, beta ? beta->data[head] : 1.0};
}

void advance(const LinearAttentionSizes& s, bool delta, const LinearAttentionStep& step, double* state,
             double* decayed) {
  for (int64_t i = 0; i < s.n; ++i) {
    const double a = std::exp(step.log_decay[s.decays == 1 ? 0 : i]);
    for (int64_t j = 0; j < s.p; ++j) state[i * s.p + j] *= a;
  }
  if (decayed) std::copy_n(state, s.n * s.p, decayed);
  for (int64_t j = 0; j < s.p; ++j) {
    double known = 0;
    for (int64_t i = 0; delta && i < s.n; ++i) known += step.k[i] * state[i * s.p + j];
    const double u = step.beta * (step.v[j] - known);
    for (int64_t i = 0; i < s.n; ++i) state[i * s.p + j] += step.k[i] * u;
  }
}

void read_out(const LinearAttentionSizes& s, double scale, const double* q, const double* state,
              double* out) {
  for (int64_t j = 0; j < s.p; ++j) {
    double total = 0;
    for (int64_t i = 0; i < s.n; ++i) total += q[i] * state[i * s.p + j];
    out[j] = scale * total;
  }
}

}  // namespace tenon
