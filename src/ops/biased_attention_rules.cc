#include "ops/biased_attention_rules.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"

namespace tenon {

Attrs biased_attention_attrs(const AttentionBiases& biases, const BiasedAttentionOptions& options) {
  Attrs attrs = attention_attrs(options);
  attrs.set("chunk", options.chunk);
  attrs.set("sinks", biases.sinks.valid());
  attrs.set("alibi", static_cast<int64_t>(options.alibi));
  attrs.set("alibi_scale", options.alibi_scale);
  attrs.set("relative", biases.relative.valid());
  return attrs;
}

BiasedAttentionOptions biased_attention_options(const Attrs& attrs) {
  BiasedAttentionOptions options;
  static_cast<AttentionOptions&>(options) = attention_options(attrs);
  options.chunk = attrs.integer("chunk");
  options.alibi = static_cast<Alibi>(attrs.integer("alibi"));
  options.alibi_scale = attrs.real("alibi_scale");
  return options;
}

Status check_biases(const OpSite& site, size_t first) {
  const bool sinks = site.attrs.flag("sinks"), slopes = site.attrs.integer("alibi") != 0;
  const bool relative = site.attrs.flag("relative");
  const size_t biases = size_t{sinks} + slopes + relative;
  RETURN_IF_ERROR(expect_extent(site, "the number of inputs", static_cast<int64_t>(site.inputs.size()),
                                static_cast<int64_t>(first + biases)));
  const Type& q = site.inputs[0];
  RETURN_IF_ERROR(expect(site, q.shape.rank() == 3, "q is not of rank 3"));
  const Type by_head{DType::f32, Shape{q.shape[1]}}, by_token{DType::f32, Shape{q.shape[0], q.shape[1]}};
  if (sinks) {
    const Type& type = site.inputs[first++];
    RETURN_IF_ERROR(
        expect(site, type == by_head || type == by_token, "sinks are not f32 [heads] or [tokens, heads]"));
  }
  if (slopes) RETURN_IF_ERROR(expect(site, site.inputs[first++] == by_head, "slopes are not f32 [heads]"));
  if (relative) {
    const Type& type = site.inputs[first];
    RETURN_IF_ERROR(expect(site,
                           type.dtype == q.dtype && type.shape.rank() == 3 && type.shape[0] == q.shape[0] &&
                               type.shape[1] == q.shape[1] && type.shape[2] > 0,
                           "relative is not [tokens, heads, extent] in q's dtype"));
  }
  return expect(site, site.attrs.integer("chunk") >= 0, "chunk is negative");
}

BiasData bias_data(const ReferenceCall& call, size_t first) {
  BiasData data;
  data.heads = call.inputs[0].type.shape[1];
  if (call.attrs.flag("sinks")) {
    data.sinks_by_token = call.inputs[first].type.shape.rank() == 2;
    data.sinks = call.inputs[first++].data;
  }
  if (call.attrs.integer("alibi") != 0) data.slopes = call.inputs[first++].data;
  if (call.attrs.flag("relative")) {
    data.extent = call.inputs[first].type.shape[2];
    data.relative = call.inputs[first].data;
  }
  return data;
}

std::vector<ValueId> with_biases(std::vector<ValueId> inputs, const AttentionBiases& biases) {
  if (biases.sinks.valid()) inputs.push_back(biases.sinks);
  if (biases.slopes.valid()) inputs.push_back(biases.slopes);
  if (biases.relative.valid()) inputs.push_back(biases.relative);
  return inputs;
}

AttentionBiases biases_of(const Attrs& attrs, const std::vector<ValueId>& inputs, size_t first) {
  AttentionBiases biases;
  if (attrs.flag("sinks")) biases.sinks = inputs[first++];
  if (attrs.integer("alibi") != 0) biases.slopes = inputs[first++];
  if (attrs.flag("relative")) biases.relative = inputs[first];
  return biases;
}

int64_t first_seen(const BiasedAttentionOptions& options, int64_t p) {
  const int64_t begin = attention_begin(options, 0, p);
  return options.chunk > 0 ? std::max(begin, p - p % options.chunk) : begin;
}

double position_bias(const BiasedAttentionOptions& options, const BiasData& data, int64_t t, int64_t head,
                     int64_t p, int64_t j) {
  const bool near = data.relative != nullptr && p - j < data.extent;
  const double learned = near ? data.relative[(t * data.heads + head) * data.extent + p - j] : 0;
  if (data.slopes == nullptr) return learned;
  const auto rounded = [](double x) { return double{bf16_to_f32(f32_to_bf16(static_cast<float>(x)))}; };
  double bias = data.slopes[head] * static_cast<double>(j);
  if (options.alibi == Alibi::bf16) bias = rounded(data.slopes[head] * rounded(static_cast<double>(j)));
  return options.alibi_scale * bias + learned;
}

}  // namespace tenon
