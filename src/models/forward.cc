#include "models/forward.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "models/layers.h"
#include "ops/add.h"
#include "ops/cast.h"
#include "ops/columns.h"
#include "ops/embedding.h"
#include "ops/fill.h"
#include "ops/gather_rows.h"
#include "ops/linear_cross_entropy.h"
#include "ops/matmul.h"
#include "ops/rope_table.h"
#include "ops/rope_table_by_length.h"

namespace tenon {
namespace {

ValueId input(Builder& b, const ForwardOptions& options, const char* name, int64_t count) {
  return b.add_static(Role::input, options.input_prefix + name, {DType::i32, Shape{count}});
}

ForwardContext make_context(Builder& builder, const ModelSpec& spec, const ForwardOptions& options,
                            ValueId positions) {
  ForwardContext c{builder, spec, options, {}, {}, {}, {}, {}, positions};
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
    if (rope.long_from == 0) {
      c.rope_tables.push_back(rope_table(builder, positions, inv_freq, rope.amplitude));
      continue;
    }
    const ValueId far = rope.long_inv_freq.empty()
                            ? inv_freq
                            : builder.add_constant(fmt::format("rope.{}.long_inv_freq", i),
                                                   builder.shape(inv_freq), rope.long_inv_freq);
    const LengthOptions by_length{rope.long_from, rope.dynamic_factor, rope.theta, rope.amplitude};
    const ValueId sequence = options.cache ? c.stream : c.sequence_begin;
    c.rope_tables.push_back(rope_table_by_length(builder, positions, sequence, inv_freq, far, by_length));
  }
  return c;
}

int64_t embedding_width(const ModelSpec& spec) {
  return spec.embedding_width > 0 ? spec.embedding_width : spec.hidden;
}

ValueId embed(ForwardContext& c, ValueId ids) {
  const ModelSpec& spec = c.spec;
  const DType compute = c.options.compute;
  const ValueId table =
      weight_matrix(c, spec.embedding_path + ".weight", Shape{spec.vocab, embedding_width(spec)});
  c.b.set_name(spec.embedding_path);
  ValueId x = times(c, embedding(c.b, table, ids, compute), spec.embedding_scale);
  if (spec.project_in.present()) x = apply(c, spec.project_in, x);
  const Shape positions{spec.max_positions, spec.hidden};
  if (!spec.position_path.empty()) {
    const ValueId learned = weight_matrix(c, spec.position_path + ".weight", positions);
    c.b.set_name(spec.position_path);
    x = add(c.b, x, embedding(c.b, learned, c.positions, compute));
  }
  if (!spec.position_table.empty()) {
    const ValueId fixed = c.b.add_constant("position_table", positions, spec.position_table);
    x = add(c.b, x, embedding(c.b, fixed, c.positions, compute));
  }
  return apply(c, spec.embedding_norm, x);
}

ValueId apply_block(ForwardContext& c, const BlockSpec& block, int32_t layer, ValueId x) {
  const bool mixes = !std::holds_alternative<std::monostate>(block.mixer);
  const bool feeds = !std::holds_alternative<std::monostate>(block.feed_forward);
  if (block.parallel) {
    const ValueId pre = apply(c, block.mixer_norm, x);
    const bool own = block.feed_forward_norm.kind != NormKind::none;
    const ValueId fed = own ? apply(c, block.feed_forward_norm, x) : pre;
    const ValueId mixed = apply_mixer(c, block.mixer, layer, pre);
    const ValueId sum = add(c.b, mixed, apply_feed_forward(c, block.feed_forward, fed));
    return add(c.b, x, times(c, sum, block.residual_scale));
  }
  if (mixes) {
    const ValueId y = apply_mixer(c, block.mixer, layer, apply(c, block.mixer_norm, x));
    x = add(c.b, x, times(c, apply(c, block.mixer_post_norm, y), block.residual_scale));
    x = apply(c, block.mixer_sum_norm, x);
  }
  if (feeds) {
    const ValueId y = apply_feed_forward(c, block.feed_forward, apply(c, block.feed_forward_norm, x));
    x = add(c.b, x, times(c, apply(c, block.feed_forward_post_norm, y), block.residual_scale));
    x = apply(c, block.feed_forward_sum_norm, x);
  }
  return x;
}

// Columns of the head's input: those of the embedding, and a one where the head has a bias.
int64_t head_width(const ModelSpec& spec) {
  return embedding_width(spec) + (spec.head.bias ? 1 : 0);
}

ValueId head_weight(Builder& builder, const ModelSpec& spec, const ForwardOptions& options) {
  const std::string name = (spec.tied ? spec.embedding_path : spec.head.path) + ".weight";
  return builder.add_static(Role::weight, name,
                            {options.matrix_dtype(name), Shape{spec.vocab, head_width(spec)}});
}

ValueId head_input(Builder& builder, const ModelSpec& spec, ValueId x) {
  if (!spec.head.bias) return x;
  const ValueId one = builder.add_constant("one", Shape{1}, {1.0f});
  const ValueId ones = fill(builder, one, Shape{builder.shape(x)[0], 1});
  return concat_columns(builder,
                        {x, builder.dtype(x) == DType::f32 ? ones : cast(builder, ones, builder.dtype(x))});
}

}  // namespace

ValueId build_forward(Builder& builder, const ModelSpec& spec, const ForwardOptions& options) {
  CHECK(options.tokens > 0);
  const ValueId ids = input(builder, options, kIdsInput, options.tokens);
  const ValueId positions = input(builder, options, kPositionsInput, options.tokens);
  ForwardContext c = make_context(builder, spec, options, positions);
  ValueId x = embed(c, ids);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    builder.set_block(static_cast<int32_t>(i));
    x = apply_block(c, spec.blocks[i], static_cast<int32_t>(i), x);
  }
  builder.set_block(-1);
  x = apply(c, spec.final_norm, x);
  return spec.project_out.present() ? apply(c, spec.project_out, x) : x;
}

ValueId build_logits(Builder& builder, const ModelSpec& spec, ValueId hidden, int64_t rows,
                     const ForwardOptions& options) {
  const ValueId chosen = input(builder, options, kRowsInput, rows);
  builder.set_name(spec.head.path);
  const ValueId x = head_input(builder, spec, gather_rows(builder, hidden, chosen));
  const MatmulOptions product{.trans_b = true, .alpha = spec.logit_scale, .out_dtype = DType::f32};
  const ValueId logits = matmul(builder, x, head_weight(builder, spec, options), product);
  if (spec.logit_softcap == 0) return logits;
  return activation(builder, logits, ActivationKind::softcap, spec.logit_softcap);
}

LossOutputs build_loss(Builder& builder, const ModelSpec& spec, ValueId hidden,
                       const ForwardOptions& options) {
  const ValueId labels = input(builder, options, kLabelsInput, options.tokens);
  builder.set_name(spec.head.path);
  const ValueId x = head_input(builder, spec, hidden);
  const auto out = linear_cross_entropy(builder, x, head_weight(builder, spec, options), labels,
                                        {.logit_scale = spec.logit_scale, .softcap = spec.logit_softcap});
  return {out.loss, out.predicted};
}

}  // namespace tenon
