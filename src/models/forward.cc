#include "models/forward.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "ops/add.h"
#include "ops/attention.h"
#include "ops/cache_write.h"
#include "ops/embedding.h"
#include "ops/gather_rows.h"
#include "ops/linear_cross_entropy.h"
#include "ops/matmul.h"
#include "ops/paged_attention.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "ops/rope_table.h"
#include "ops/swiglu.h"

namespace tenon {
namespace {

// What every layer of one program shares.
struct Context {
  Builder& b;
  const ModelSpec& spec;
  const ForwardOptions& options;
  std::vector<ValueId> rope_tables;              // one for each of the spec's ropes
  ValueId sequence_begin;                        // packed
  ValueId slots, stream, page_table, positions;  // cached

  ValueId input(const char* name, Shape shape) const {
    return b.add_static(Role::input, name, {DType::i32, shape});
  }
};

ValueId input(Builder& b, const ForwardOptions& options, const char* name, int64_t count) {
  return b.add_static(Role::input, options.input_prefix + name, {DType::i32, Shape{count}});
}

ValueId matrix(Context& c, const std::string& name, int64_t rows, int64_t columns) {
  return c.b.add_static(Role::weight, name, {c.options.weight_dtype, Shape{rows, columns}});
}

ValueId vector_weight(Context& c, const std::string& name, int64_t width) {
  return c.b.add_static(Role::weight, name, {DType::f32, Shape{width}});
}

ValueId apply(Context& c, const LinearSpec& spec, ValueId x) {
  const ValueId weight = matrix(c, spec.path + ".weight", spec.out, spec.in);
  const ValueId bias = spec.bias ? vector_weight(c, spec.path + ".bias", spec.out) : ValueId{};
  c.b.set_name(spec.path);
  return linear(c.b, x, weight, bias);
}

ValueId apply(Context& c, const NormSpec& spec, ValueId x) {
  if (spec.kind == NormKind::none) return x;
  const ValueId weight = vector_weight(c, spec.path + ".weight", spec.width);
  c.b.set_name(spec.path);
  return rms_norm(c.b, x, weight, spec.eps, spec.weight_offset);
}

ValueId cached_attention(Context& c, const AttentionSpec& a, int32_t layer, ValueId q, ValueId k, ValueId v) {
  const CacheOptions& cache = *c.options.cache;
  const Type type{cache.dtype, Shape{cache.pages, cache.page_tokens, a.kv_heads, a.head_dim}};
  const ValueId k_cache = c.b.add_static(Role::cache, fmt::format("cache.{}.k", layer), type);
  const ValueId v_cache = c.b.add_static(Role::cache, fmt::format("cache.{}.v", layer), type);
  const ValueId keys = cache_write(c.b, k_cache, k, c.slots);
  const ValueId values = cache_write(c.b, v_cache, v, c.slots);
  return paged_attention(c.b, {q, keys, values, c.page_table, c.stream, c.positions},
                         {a.scale, a.window, a.softcap});
}

struct ApplyMixer {
  Context& c;
  int32_t layer;
  ValueId x;

  ValueId operator()(const AttentionSpec& a) const {
    const int64_t tokens = c.options.tokens;
    ValueId q = reshape(c.b, apply(c, a.q, x), Shape{tokens, a.heads, a.head_dim});
    ValueId k = reshape(c.b, apply(c, a.k, x), Shape{tokens, a.kv_heads, a.head_dim});
    const ValueId v = reshape(c.b, apply(c, a.v, x), Shape{tokens, a.kv_heads, a.head_dim});
    q = apply(c, a.q_norm, q);
    k = apply(c, a.k_norm, k);
    c.b.set_name(fmt::format("layer {} attention", layer));
    if (a.rope >= 0) {
      const ValueId table = c.rope_tables[static_cast<size_t>(a.rope)];
      const bool interleaved = c.spec.ropes[static_cast<size_t>(a.rope)].interleaved;
      q = rope(c.b, q, table, interleaved);
      k = rope(c.b, k, table, interleaved);
    }
    const ValueId out = c.options.cache
                            ? cached_attention(c, a, layer, q, k, v)
                            : attention(c.b, q, k, v, c.sequence_begin, {a.scale, a.window, a.softcap}).out;
    return apply(c, a.o, reshape(c.b, out, Shape{tokens, a.heads * a.head_dim}));
  }
};

struct ApplyFeedForward {
  Context& c;
  ValueId x;

  ValueId operator()(const GatedMlpSpec& mlp) const {
    const ValueId gate = apply(c, mlp.gate, x);
    const ValueId up = apply(c, mlp.up, x);
    c.b.set_name(mlp.gate.path + " * up");
    return apply(c, mlp.down, swiglu(c.b, gate, up));
  }
};

Context make_context(Builder& builder, const ModelSpec& spec, const ForwardOptions& options,
                     ValueId positions) {
  Context c{builder, spec, options, {}, {}, {}, {}, {}, positions};
  if (options.cache) {
    const Shape table{options.cache->streams, options.cache->max_pages};
    c.slots = input(builder, options, kSlotsInput, options.tokens);
    c.stream = input(builder, options, kStreamInput, options.tokens);
    c.page_table = builder.add_static(Role::input, kPageTableInput, {DType::i32, table});
  } else {
    c.sequence_begin = input(builder, options, kSequenceBeginInput, options.tokens);
  }
  for (size_t i = 0; i < spec.ropes.size(); ++i) {
    const RopeSpec& rope = spec.ropes[i];
    const ValueId inv_freq = builder.add_constant(
        fmt::format("rope.{}.inv_freq", i), Shape{static_cast<int64_t>(rope.inv_freq.size())}, rope.inv_freq);
    builder.set_name(fmt::format("rope.{}", i));
    c.rope_tables.push_back(rope_table(builder, positions, inv_freq, rope.amplitude));
  }
  return c;
}

ValueId head_weight(Builder& builder, const ModelSpec& spec, const ForwardOptions& options) {
  const std::string& path = spec.tied ? spec.embedding_path : spec.head.path;
  return builder.add_static(Role::weight, path + ".weight",
                            {options.weight_dtype, Shape{spec.vocab, spec.hidden}});
}

}  // namespace

ValueId build_forward(Builder& builder, const ModelSpec& spec, const ForwardOptions& options) {
  CHECK(options.tokens > 0);
  const ValueId ids = input(builder, options, kIdsInput, options.tokens);
  const ValueId positions = input(builder, options, kPositionsInput, options.tokens);
  Context c = make_context(builder, spec, options, positions);
  const ValueId table = matrix(c, spec.embedding_path + ".weight", spec.vocab, spec.hidden);
  builder.set_name(spec.embedding_path);
  ValueId x = embedding(builder, table, ids, options.compute);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    const BlockSpec& block = spec.blocks[i];
    const int32_t layer = static_cast<int32_t>(i);
    builder.set_block(layer);
    x = add(builder, x, std::visit(ApplyMixer{c, layer, apply(c, block.mixer_norm, x)}, block.mixer));
    x = add(builder, x,
            std::visit(ApplyFeedForward{c, apply(c, block.feed_forward_norm, x)}, block.feed_forward));
  }
  builder.set_block(-1);
  return apply(c, spec.final_norm, x);
}

ValueId build_logits(Builder& builder, const ModelSpec& spec, ValueId hidden, int64_t rows,
                     const ForwardOptions& options) {
  const ValueId chosen = input(builder, options, kRowsInput, rows);
  builder.set_name(spec.head.path);
  const ValueId x = gather_rows(builder, hidden, chosen);
  return matmul(builder, x, head_weight(builder, spec, options), {.trans_b = true, .out_dtype = DType::f32});
}

LossOutputs build_loss(Builder& builder, const ModelSpec& spec, ValueId hidden,
                       const ForwardOptions& options) {
  const ValueId labels = input(builder, options, kLabelsInput, options.tokens);
  builder.set_name(spec.head.path);
  const auto out = linear_cross_entropy(builder, hidden, head_weight(builder, spec, options), labels, {});
  return {out.loss, out.predicted};
}

}  // namespace tenon
