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
  const size_t biases = size_t{site.attrs.flag("sinks")} + (site.attrs.integer("alibi") != 0);
  RETURN_IF_ERROR(expect_extent(site, "the number of inputs", static_cast<int64_t>(site.inputs.size()),
                                static_cast<int64_t>(first + biases)));
  for (size_t i = first; i < site.inputs.size(); ++i) {
    RETURN_IF_ERROR(expect(site, site.inputs[i] == Type{DType::f32, Shape{site.inputs[0].shape[1]}},
                           "sinks or slopes are not f32 [heads]"));
  }
  return expect(site, site.attrs.integer("chunk") >= 0, "chunk is negative");
}

BiasData bias_data(const ReferenceCall& call, size_t first) {
  BiasData data;
  if (call.attrs.flag("sinks")) data.sinks = call.inputs[first++].data;
  if (call.attrs.integer("alibi") != 0) data.slopes = call.inputs[first].data;
  return data;
}

std::vector<ValueId> with_biases(std::vector<ValueId> inputs, const AttentionBiases& biases) {
  if (biases.sinks.valid()) inputs.push_back(biases.sinks);
  if (biases.slopes.valid()) inputs.push_back(biases.slopes);
  return inputs;
}

AttentionBiases biases_of(const Attrs& attrs, const std::vector<ValueId>& inputs, size_t first) {
  AttentionBiases biases;
  if (attrs.flag("sinks")) biases.sinks = inputs[first++];
  if (attrs.integer("alibi") != 0) biases.slopes = inputs[first];
  return biases;
}

int64_t first_seen(const BiasedAttentionOptions& options, int64_t p) {
  const int64_t begin = attention_begin(options, 0, p);
  return options.chunk > 0 ? std::max(begin, p - p % options.chunk) : begin;
}

double position_bias(const BiasedAttentionOptions& options, const BiasData& data, int64_t head, int64_t j) {
  if (data.slopes == nullptr) return 0;
  const auto rounded = [](double x) { return double{bf16_to_f32(f32_to_bf16(static_cast<float>(x)))}; };
  double bias = data.slopes[head] * static_cast<double>(j);
  if (options.alibi == Alibi::bf16) bias = rounded(data.slopes[head] * rounded(static_cast<double>(j)));
  return options.alibi_scale * bias;
}

}  // namespace tenon
