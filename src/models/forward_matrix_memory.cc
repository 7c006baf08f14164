// Builds mLSTM: attention through a state whose gates are exponentials. Their exponents are measured from the
// largest in the state, which is a state of its own, so that none overflows.
#include <fmt/format.h>

#include <cmath>

#include "models/layers.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/causal_conv.h"
#include "ops/columns.h"
#include "ops/fill.h"
#include "ops/linear_attention.h"
#include "ops/matmul.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/running_max.h"
#include "ops/scale.h"

namespace tenon {
namespace {

using Context = ForwardContext;

constexpr int64_t kMostColumns = 64;  // of a head's values that kernels keep in registers with 256 keys

// A gate before its exponential or sigmoid, f32 [tokens, heads].
ValueId capped_gate(Context& c, const LinearSpec& spec, double cap, ValueId x) {
  const ValueId weight = weight_matrix(c, spec.path + ".weight", Shape{spec.out, spec.in});
  const ValueId bias = weight_vector(c, spec.path + ".bias", Shape{spec.out});
  c.b.set_name(spec.path);
  const ValueId gate = matmul(c.b, x, weight, {.trans_b = true, .out_dtype = DType::f32, .addend = bias});
  return activation(c.b, gate, ActivationKind::softcap, cap);
}

// Both gates of each token and head, measured from m, the largest exponent in the state; all f32.
struct Gates {
  ValueId log_decay, in, largest;  // [tokens, heads]
};

Gates open_gates(Context& c, const MatrixMemorySpec& s, int32_t layer, ValueId x) {
  const Shape shape{c.tokens(), s.heads};
  const ValueId value = capped_gate(c, s.in_gate, s.gate_cap, x);
  const ValueId forget = scale(c.b, capped_gate(c, s.forget_gate, s.gate_cap, x), -1);
  const ValueId decay = scale(c.b, activation(c.b, forget, ActivationKind::softplus), -1);
  c.b.set_name(fmt::format("layer {} largest exponents", layer));
  ValueId both;
  if (c.options.cache) {
    const Shape state{c.options.cache->streams, s.heads};
    both = running_max_cached(c.b, decay, value, stream_state(c, layer, "largest", DType::f32, state));
  } else {
    both = running_max(c.b, decay, value, c.sequence_begin);
  }
  const ValueId rows = reshape(c.b, both, Shape{c.tokens(), 2 * s.heads});
  const ValueId carried = slice_columns(c.b, rows, 0, s.heads);
  Gates gates;
  gates.largest = slice_columns(c.b, rows, s.heads, s.heads);
  const ValueId from_largest = scale(c.b, gates.largest, -1);
  gates.log_decay = add(c.b, carried, from_largest);
  gates.in = activation(c.b, add(c.b, value, from_largest), ActivationKind::exp);
  return gates;
}

// Each column `times` times side by side: [tokens, heads] to [tokens, heads * times].
ValueId by_part(Context& c, ValueId x, int64_t heads, int64_t times) {
  const ValueId column = reshape(c.b, x, Shape{c.tokens() * heads, 1});
  return reshape(c.b, repeat_columns(c.b, column, times), Shape{c.tokens(), heads * times});
}

struct Keys {
  ValueId q, k;  // [tokens, heads, key_dim]
};

// Values [tokens, heads, any] through a state of their own with the same keys and gates.
ValueId recall(Context& c, const MatrixMemorySpec& s, int32_t layer, const char* part, const Keys& keys,
               const Gates& gates, ValueId v) {
  const int64_t width = c.b.shape(v)[2];
  int64_t parts = (width + kMostColumns - 1) / kMostColumns;
  while (width % parts != 0) ++parts;
  LinearAttentionInputs in;
  in.q = keys.q;
  in.k = keys.k;
  in.v = reshape(c.b, v, Shape{c.tokens(), s.heads * parts, width / parts});
  in.log_decay =
      reshape(c.b, by_part(c, gates.log_decay, s.heads, parts), Shape{c.tokens(), s.heads * parts, 1});
  in.beta = by_part(c, gates.in, s.heads, parts);
  const LinearAttentionOptions options{.scale = 1 / std::sqrt(static_cast<double>(s.key_dim))};
  c.b.set_name(fmt::format("layer {} {}", layer, part));
  if (!c.options.cache) return linear_attention(c.b, in, c.sequence_begin, options);
  const Shape state{c.options.cache->streams, s.heads * parts, s.key_dim, width / parts};
  return linear_attention_cached(c.b, in, stream_state(c, layer, part, DType::f32, state), options);
}

// 1 / (max(|sum|, e^-m) + eps), f32, one a row: sums and m are both measured from m.
ValueId inverse_norm(Context& c, const MatrixMemorySpec& s, ValueId sum, ValueId largest) {
  const Shape rows{c.tokens() * s.heads};
  sum = reshape(c.b, as_f32(c, sum), rows);
  const ValueId least = activation(c.b, scale(c.b, reshape(c.b, largest, rows), -1), ActivationKind::exp);
  const ValueId size = add(c.b, activation(c.b, sum, ActivationKind::relu),
                           activation(c.b, scale(c.b, sum, -1), ActivationKind::relu));
  const ValueId above = activation(c.b, add(c.b, size, scale(c.b, least, -1)), ActivationKind::relu);
  const ValueId eps = fill(c.b, c.b.add_constant("memory_eps", Shape{1}, {static_cast<float>(s.eps)}), rows);
  return activation(c.b, add(c.b, add(c.b, least, above), eps), ActivationKind::reciprocal);
}

}  // namespace

ValueId apply_matrix_memory(ForwardContext& c, const MatrixMemorySpec& s, int32_t layer, ValueId x) {
  const Shape by_key{c.tokens(), s.heads, s.key_dim};
  const Keys keys{reshape(c.b, apply(c, s.q, x), by_key), reshape(c.b, apply(c, s.k, x), by_key)};
  const ValueId v = reshape(c.b, apply(c, s.v, x), Shape{c.tokens(), s.heads, s.value_dim});
  const ValueId open = activation(c.b, apply(c, s.out_gate, x), ActivationKind::sigmoid);
  const Gates gates = open_gates(c, s, layer, x);
  const ValueId one = c.b.add_constant("one", Shape{1}, {1.0f});
  ValueId ones = fill(c.b, one, Shape{c.tokens(), s.heads, 1});
  if (c.b.dtype(v) != DType::f32) ones = cast(c.b, ones, c.b.dtype(v));
  const ValueId sum = recall(c, s, layer, "norm", keys, gates, ones);
  const ValueId out = recall(c, s, layer, "state", keys, gates, v);
  const ValueId rows = reshape(c.b, out, Shape{c.tokens() * s.heads, s.value_dim});
  const ValueId normed = mul_column(c.b, rows, inverse_norm(c, s, sum, gates.largest));
  const ValueId y = apply(c, s.norm, reshape(c.b, normed, Shape{c.tokens(), s.heads * s.value_dim}));
  return apply(c, s.out, mul(c.b, open, y));
}

}  // namespace tenon
