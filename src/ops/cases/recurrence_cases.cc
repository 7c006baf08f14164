// Ops with a state along the sequence: causal convolution, linear attention, selective scan, WKV; packed,
// cached, and their gradients.
#include <cmath>

#include "ops/cases/case_list.h"
#include "ops/linear_attention.h"
#include "ops/running_max.h"
#include "ops/selective_scan.h"
#include "ops/wkv.h"

namespace tenon {
namespace {

using Ids = std::span<const ValueId>;

// Three sequences, one of a single token; chunks of 4 do not end where they do.
const CaseInput kBegins = given_ids({0, 0, 0, 0, 0, 0, 6, 7, 7, 7, 7});
constexpr int64_t kTokens = 11, kChunk = 4;
// Two streams of three, a token of none, one that begins and one that goes on.
const CaseInput kStreams = given_ids({2, 0, -1, 2, 0}), kPositions = given_ids({5, 0, 0, 6, 1});

void add_convolutions(CaseList& list, DType dtype) {
  const CaseInput x = normal(dtype, Shape{kTokens, 6}), new_x = normal(dtype, Shape{5, 6});
  for (const int64_t taps : {2, 4}) {
    for (const int64_t dilation : {1, 3}) {
      const CaseInput w = normal(DType::f32, Shape{6, taps});
      const CaseInput state = normal(dtype, Shape{3, (taps - 1) * dilation, 6});
      list.add({x, w, kBegins}, [&](Builder& b, Ids in) { causal_conv(b, in[0], in[1], in[2], dilation); });
      list.add({x, w, kBegins},
               [&](Builder& b, Ids in) { causal_conv_grad_input(b, in[0], in[1], in[2], dilation); });
      list.add({x, x, kBegins},
               [&](Builder& b, Ids in) { causal_conv_grad_weight(b, in[0], in[1], in[2], taps, dilation); });
      list.add({new_x, w, state, kStreams, kPositions}, [&](Builder& b, Ids in) {
        causal_conv_cached(b, in[0], in[1], {in[2], in[3], in[4]}, dilation);
      });
    }
  }
}

// An input of states that the forward op gives for the others: the second output of `op` over the inputs that
// `from` lists.
void fill_states(const OpDef& op, const OpCase& op_case, ReferenceValues& inputs, size_t states,
                 const std::vector<size_t>& from) {
  const std::vector<Type> types = op_case.input_types();
  std::vector<Type> forward_types;
  ReferenceValues forward;
  for (size_t i : from) {
    forward_types.push_back(types[i]);
    forward.push_back(inputs[i]);
  }
  const ReferenceValues outputs = evaluate_op(op, op_case.attrs, forward_types, forward);
  for (size_t i = 0; i < outputs[1].size(); ++i)
    inputs[states][i] = round_to_dtype(outputs[1][i], types[states].dtype);
}

void complete_linear(const OpCase& op_case, ReferenceValues& inputs) {
  std::vector<size_t> from = {0, 1, 2, 3, 4};
  if (inputs.size() == 8) from.push_back(7);
  fill_states(linear_attention_op(), op_case, inputs, 5, from);
}

void complete_scan(const OpCase& op_case, ReferenceValues& inputs) {
  fill_states(selective_scan_op(), op_case, inputs, 6, {0, 1, 2, 3, 4, 5});
}

void complete_wkv(const OpCase& op_case, ReferenceValues& inputs) {
  fill_states(wkv_op(), op_case, inputs, 5, {0, 1, 2, 3, 4});
}

struct LinearCase {
  bool delta, beta, by_channel;
};

LinearAttentionInputs linear_inputs(Ids in, bool beta) {
  return {in[0], in[1], in[2], in[3], beta ? in.back() : ValueId{}};
}

void add_linear(CaseList& list, DType dtype, const LinearCase& c) {
  const LinearAttentionOptions options{.scale = 0.5, .delta = c.delta, .chunk = kChunk};
  const auto operands = [&](int64_t tokens) {
    const CaseInput keys = normal(dtype, Shape{tokens, 2, 3}, 0.6);
    const Shape decays{tokens, 4, c.by_channel ? 3 : 1};
    return std::vector<CaseInput>{keys, keys, normal(dtype, Shape{tokens, 4, 5}),
                                  normal(DType::f32, decays, 0.3, -0.6)};
  };
  const auto beta = [&](int64_t tokens) { return normal(DType::f32, Shape{tokens, 4}, 0.2, 0.7); };
  std::vector<CaseInput> packed = operands(kTokens), backward = packed, cached = operands(5);
  packed.push_back(kBegins);
  backward.insert(backward.end(),
                  {kBegins, normal(DType::f32, Shape{3, 4, 3, 5}), normal(dtype, Shape{kTokens, 4, 5})});
  cached.insert(cached.end(), {normal(DType::f32, Shape{3, 4, 3, 5}), kStreams, kPositions});
  if (c.beta) {
    packed.push_back(beta(kTokens));
    backward.push_back(beta(kTokens));
    cached.push_back(beta(5));
  }
  list.add(packed,
           [&](Builder& b, Ids in) { linear_attention(b, linear_inputs(in, c.beta), in[4], options); });
  list.add(cached, [&](Builder& b, Ids in) {
    linear_attention_cached(b, linear_inputs(in, c.beta), {in[4], in[5], in[6]}, options);
  });
  list.add(backward, [&](Builder& b, Ids in) {
    linear_attention_grad(b, linear_inputs(in, c.beta), in[4], in[5], in[6], options);
  });
  list.complete_with(complete_linear);
}

void add_scans(CaseList& list, DType dtype) {
  for (const int64_t groups : {1, 2}) {
    const auto operands = [&](int64_t tokens) {
      const CaseInput by_group = normal(dtype, Shape{tokens, groups, 3});
      return std::vector<CaseInput>{normal(dtype, Shape{tokens, 4}),
                                    positive(DType::f32, Shape{tokens, 4}, 0.5),
                                    normal(DType::f32, Shape{4, 3}, 0.2, -1.0), by_group, by_group};
    };
    std::vector<CaseInput> packed = operands(kTokens), cached = operands(5);
    packed.push_back(kBegins);
    cached.insert(cached.end(), {normal(DType::f32, Shape{3, 4, 3}), kStreams, kPositions});
    const auto inputs = [](Ids in) { return SelectiveScanInputs{in[0], in[1], in[2], in[3], in[4]}; };
    list.add(packed, [&](Builder& b, Ids in) { selective_scan(b, inputs(in), in[5], kChunk); });
    list.add(cached, [&](Builder& b, Ids in) {
      selective_scan_cached(b, inputs(in), {in[5], in[6], in[7]});
    });
    packed.insert(packed.end(), {normal(DType::f32, Shape{3, 4, 3}), normal(dtype, Shape{kTokens, 4})});
    list.add(packed,
             [&](Builder& b, Ids in) { selective_scan_grad(b, inputs(in), in[5], in[6], in[7], kChunk); });
    list.complete_with(complete_scan);
  }
}

// Keys far from zero, whose exponentials overflow, among them; 70 channels are a block of vectors and a part
// of one.
void add_wkv(CaseList& list, DType dtype) {
  for (const int64_t channels : {3, 70}) {
    for (const double key_scale : {1.0, 60.0}) {
      const auto operands = [&](int64_t tokens) {
        return std::vector<CaseInput>{
            normal(dtype, Shape{tokens, channels}, key_scale), normal(dtype, Shape{tokens, channels}),
            normal(DType::f32, Shape{channels}, 0.1, -0.5), normal(DType::f32, Shape{channels}, 0.3)};
      };
      std::vector<CaseInput> packed = operands(kTokens), cached = operands(5);
      packed.push_back(kBegins);
      const CaseInput state = positive(DType::f32, Shape{3, kWkvState, channels});
      cached.insert(cached.end(), {state, kStreams, kPositions});
      const auto inputs = [](Ids in) { return WkvInputs{in[0], in[1], in[2], in[3]}; };
      const std::string_view label = key_scale > 1 ? "large keys" : "";
      list.add(
          packed, [&](Builder& b, Ids in) { wkv(b, inputs(in), in[4], kChunk); }, label);
      list.add(
          cached,
          [&](Builder& b, Ids in) {
            wkv_cached(b, inputs(in), {in[4], in[5], in[6]});
          },
          label);
      packed.insert(packed.end(), {state, normal(dtype, Shape{kTokens, channels})});
      list.add(
          packed, [&](Builder& b, Ids in) { wkv_grad(b, inputs(in), in[4], in[5], in[6], kChunk); }, label);
      list.complete_with(complete_wkv);
    }
  }
}

void add_running_max(CaseList& list) {
  for (const int64_t n : {1, 5}) {
    const auto decay = [&](int64_t tokens) { return normal(DType::f32, Shape{tokens, n}, 0.5, -0.6); };
    const auto value = [&](int64_t tokens) { return normal(DType::f32, Shape{tokens, n}); };
    const CaseInput out = normal(DType::f32, Shape{kTokens, 2, n});
    list.add({decay(kTokens), value(kTokens), kBegins},
             [](Builder& b, Ids in) { running_max(b, in[0], in[1], in[2]); });
    list.add({decay(5), value(5), normal(DType::f32, Shape{3, n}), kStreams, kPositions},
             [](Builder& b, Ids in) {
               running_max_cached(b, in[0], in[1], {in[2], in[3], in[4]});
             });
    list.add({out, out, kBegins}, [](Builder& b, Ids in) { running_max_grad(b, in[0], in[1], in[2]); });
  }
}

}  // namespace

void add_recurrence_cases(CaseList& list) {
  add_running_max(list);
  for (DType dtype : {DType::f32, DType::bf16}) {
    add_convolutions(list, dtype);
    for (const LinearCase& c : {LinearCase{false, false, false}, LinearCase{false, true, true},
                                LinearCase{true, true, false}, LinearCase{true, true, true}}) {
      add_linear(list, dtype, c);
    }
    add_scans(list, dtype);
    add_wkv(list, dtype);
  }
}

}  // namespace tenon
