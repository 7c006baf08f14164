// Builds blocks that read their inputs from all states before them (attention residuals), some of them
// looped.
#include <cmath>

#include "models/layers.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/columns.h"
#include "ops/matmul.h"
#include "ops/mul.h"
#include "ops/normalise.h"
#include "ops/reshape.h"
#include "ops/scale.h"

namespace tenon {
namespace {

using Context = ForwardContext;

constexpr double kNormEps = 1e-6;

ValueId normed(Context& c, ValueId x, double eps = kNormEps) {
  return normalise(c.b, x, NormaliseKind::rms, eps);
}

// What `count` queries, the rows of a weight, read of states, each [tokens, hidden] and normed.
std::vector<ValueId> read(Context& c, const std::string& query, int64_t count,
                          const std::vector<ValueId>& states) {
  const int64_t hidden = c.spec.hidden;
  const Shape stored = count == 1 ? Shape{hidden} : Shape{count, hidden};
  const ValueId queries = reshape(c.b, weight_vector(c, query, stored), Shape{count, hidden});
  std::vector<ValueId> scores;  // f32 [tokens, count] of each state
  for (ValueId state : states) {
    c.b.set_name(query);
    const MatmulOptions product{.trans_b = true, .alpha = 1 / std::sqrt(static_cast<double>(hidden))};
    scores.push_back(matmul(c.b, state, queries, product));
  }
  std::vector<ValueId> out;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<ValueId> own;
    for (ValueId score : scores) own.push_back(count == 1 ? score : slice_columns(c.b, score, i, 1));
    const ValueId weights =
        normalise(c.b, own.size() == 1 ? own[0] : concat_columns(c.b, own), NormaliseKind::softmax);
    ValueId sum;
    for (size_t j = 0; j < states.size(); ++j) {
      const ValueId weight = slice_columns(c.b, weights, static_cast<int64_t>(j), 1);
      const ValueId term = mul_column(c.b, states[j], weight);
      sum = sum.valid() ? add(c.b, sum, term) : term;
    }
    out.push_back(sum);
  }
  return out;
}

std::vector<ValueId> with(std::vector<ValueId> states, ValueId last) {
  states.push_back(last);
  return states;
}

ValueId take_message(Context& c, const MessageSpec& spec, ValueId x, ValueId message) {
  const double eps = c.spec.final_norm.eps;
  const ValueId both = concat_columns(c.b, {normed(c, x, eps), normed(c, message, eps)});
  const ValueId d = apply(c, spec.down, both);
  const ValueId forget = activation(c.b, apply(c, spec.forget, d), ActivationKind::tanh);
  const ValueId gain = activation(c.b, apply(c, spec.gain, d), ActivationKind::tanh);
  const ValueId kept = add(c.b, x, scale(c.b, mul(c.b, forget, x), -1));
  return add(c.b, kept, mul(c.b, gain, message));
}

// Begins a loop's pass, or none; returns the state that the block begins from.
ValueId begin_pass(Context& c, const DepthSpec& spec, DepthStates& states, ValueId x) {
  if (spec.begins_loop) {
    states.loop_state = x;
    states.loop_groups = states.groups;
  }
  if (!spec.repeats_loop) return x;
  // The first group of a pass is what the loop began from, which is no message.
  const auto first = states.groups.begin() + static_cast<std::ptrdiff_t>(states.loop_groups.size()) + 1;
  states.pass_groups = with({first, states.groups.end()}, normed(c, x));
  states.groups = states.loop_groups;
  return states.loop_state;
}

// What attention reads of the states, each input normed; `messages` as in DepthSpec.
AttentionInputs attention_inputs(Context& c, const BlockSpec& block, const std::vector<ValueId>& read_states,
                                 const std::vector<ValueId>& messages) {
  const DepthSpec& spec = *block.depth;
  const auto input = [&](size_t part, const NormSpec& own) {
    ValueId x = read_states[read_states.size() == 1 ? 0 : part];
    if (!messages.empty()) x = take_message(c, spec.messages[part], x, messages[part]);
    return apply(c, own.kind == NormKind::none ? block.mixer_norm : own, x);
  };
  const ValueId q = input(0, block.mixer_norm);
  const bool one = read_states.size() == 1 && messages.empty() && spec.k_norm.kind == NormKind::none;
  if (one) return {q, q, q};
  return {q, input(1, spec.k_norm), input(2, spec.v_norm)};
}

}  // namespace

ValueId apply_in_depth(ForwardContext& c, const BlockSpec& block, int32_t layer, DepthStates& states,
                       ValueId x) {
  const DepthSpec& spec = *block.depth;
  x = begin_pass(c, spec, states, x);
  const ValueId state = normed(c, x);
  std::vector<ValueId> in = {x}, messages;
  if (!spec.mixer_query.empty())
    in = read(c, spec.mixer_query, spec.mixer_queries, with(states.groups, state));
  if (!spec.messages.empty()) messages = read(c, spec.message_query, 4, states.pass_groups);
  const auto& attention = std::get<RelativeAttentionSpec>(block.mixer);
  ValueId y = apply_relative_attention(c, attention, layer, attention_inputs(c, block, in, messages));
  y = apply(c, *block.mixer_conv, layer, y, y, "mixer_conv");
  if (spec.begins_group) states.groups.push_back(state);
  x = spec.begins_group ? y : add(c.b, x, y);
  ValueId fed = read(c, spec.feed_forward_query, 1, with(states.groups, normed(c, x)))[0];
  if (!messages.empty()) fed = take_message(c, spec.messages[3], fed, messages[3]);
  fed = apply_feed_forward(c, block.feed_forward, layer, apply(c, block.feed_forward_norm, fed));
  return add(c.b, x, apply(c, *block.feed_forward_conv, layer, fed, fed, "feed_forward_conv"));
}

ValueId read_depth(ForwardContext& c, const DepthStates& states, ValueId x) {
  return read(c, c.spec.depth_query, 1, with(states.groups, normed(c, x)))[0];
}

}  // namespace tenon
