#include "models/forward.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "models/cache_layout.h"
#include "models/layers.h"
#include "models/rope.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/columns.h"
#include "ops/detach.h"
#include "ops/embedding.h"
#include "ops/fill.h"
#include "ops/gather_rows.h"
#include "ops/linear_cross_entropy.h"
#include "ops/matmul.h"
#include "ops/mul.h"
#include "ops/position_scale.h"
#include "ops/reshape.h"
#include "ops/rope_table.h"
#include "ops/rope_table_by_length.h"
#include "ops/routing.h"
#include "ops/scale.h"
#include "ops/sequence_length.h"

namespace tenon {
namespace {

ValueId input(Builder& b, const ForwardOptions& options, std::string_view name, int64_t count) {
  return b.add_static(Role::input, options.input_prefix + std::string(name), {DType::i32, Shape{count}});
}

// Slots and page tables of the whole history and of each ring.
void add_places(ForwardContext& c) {
  const CacheOptions& cache = *c.options.cache;
  const Type table{DType::i32, Shape{cache.streams, cache.max_pages}};
  c.places[0] = {input(c.b, c.options, kSlotsInput, c.tokens()),
                 c.b.add_static(Role::input, kPageTableInput, table)};
  for (int64_t ring : ring_sizes(c.spec, cache)) {
    c.places[ring] = {input(c.b, c.options, ring_input(kSlotsInput, ring), c.tokens()),
                      c.b.add_static(Role::input, ring_input(kPageTableInput, ring), table)};
  }
}

ValueId sequence_lengths(ForwardContext& c) {
  if (c.options.cache) return input(c.b, c.options, kSequenceLengthInput, c.tokens());
  const ValueId length = sequence_length(c.b, c.positions, c.sequence_begin);
  c.b.set_name("sequence_length");
  return length;
}

void add_rope_tables(ForwardContext& c) {
  const ValueId length = depends_on_length(c.spec) ? sequence_lengths(c) : ValueId{};
  for (size_t i = 0; i < c.spec.ropes.size(); ++i) {
    const RopeSpec& rope = c.spec.ropes[i];
    const ValueId inv_freq = c.b.add_constant(
        fmt::format("rope.{}.inv_freq", i), Shape{static_cast<int64_t>(rope.inv_freq.size())}, rope.inv_freq);
    c.b.set_name(fmt::format("rope.{}", i));
    if (rope.long_from == 0) {
      c.rope_tables.push_back(rope_table(c.b, c.positions, inv_freq, rope.amplitude));
      continue;
    }
    const ValueId far = rope.long_inv_freq.empty()
                            ? inv_freq
                            : c.b.add_constant(fmt::format("rope.{}.long_inv_freq", i), c.b.shape(inv_freq),
                                               rope.long_inv_freq);
    const LengthOptions by_length{rope.long_from, rope.dynamic_factor, rope.theta, rope.amplitude};
    c.rope_tables.push_back(rope_table_by_length(c.b, c.positions, length, inv_freq, far, by_length));
  }
}

ForwardContext make_context(Builder& builder, const ModelSpec& spec, const ForwardOptions& options,
                            ValueId ids, ValueId positions) {
  ForwardContext c{builder, spec, options, {}, {}, {}, {}, ids, positions, {}, {}, {}, {}, {}};
  if (options.cache) {
    c.stream = input(builder, options, kStreamInput, options.tokens);
    add_places(c);
  } else {
    c.sequence_begin = input(builder, options, kSequenceBeginInput, options.tokens);
  }
  add_rope_tables(c);
  return c;
}

int64_t embedding_width(const ModelSpec& spec) {
  return spec.embedding_width > 0 ? spec.embedding_width : spec.hidden;
}

// (x + bias) * weight, of rows [tokens, hidden].
ValueId shifted(ForwardContext& c, ValueId x, const std::string& bias, const std::string& weight) {
  const Shape row{c.spec.hidden};
  if (!bias.empty()) x = add_row(c.b, x, weight_vector(c, bias, row));
  return weight.empty() ? x : mul_row(c.b, x, weight_vector(c, weight, row));
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
  return shifted(c, apply(c, spec.embedding_norm, x), spec.embedding_shift, spec.embedding_weight);
}

// Rows of a table, through which no gradient flows for ids beyond it: they read row 0, which pads and is not
// trained.
ValueId trained_in_table(ForwardContext& c, ValueId ids, ValueId rows) {
  // 1 below the table's end; at most 0 from there on, where the floor of id / vocab is 1 or more.
  const double beta = -1 / std::numbers::ln2;
  const ValueId factor =
      position_scale(c.b, ids, {.constant = 1, .beta = beta, .period = c.spec.per_layer_vocab});
  const ValueId inside = activation(c.b, factor, ActivationKind::clamp, 0, 1);
  const ValueId fixed = detach(c.b, rows);
  return add(c.b, fixed, mul_column(c.b, add(c.b, rows, scale(c.b, fixed, -1)), inside));
}

// Each token's inputs to the layers, [tokens, blocks, width].
ValueId per_layer_inputs(ForwardContext& c, ValueId ids, ValueId embedded) {
  const ModelSpec& spec = c.spec;
  const int64_t blocks = static_cast<int64_t>(spec.blocks.size()), width = spec.per_layer_width;
  const Shape by_layer{c.tokens(), blocks, width};
  const ValueId table =
      weight_matrix(c, spec.per_layer_path + ".weight", Shape{spec.per_layer_vocab, blocks * width});
  c.b.set_name(spec.per_layer_path);
  const ValueId in_table =
      spec.per_layer_vocab < spec.vocab ? limit_ids(c.b, ids, spec.per_layer_vocab, 0) : ids;
  ValueId own =
      times(c, embedding(c.b, table, in_table, c.options.compute), std::sqrt(static_cast<double>(width)));
  if (spec.per_layer_vocab < spec.vocab) own = trained_in_table(c, ids, own);
  const ValueId projected =
      apply(c, spec.per_layer_norm, reshape(c.b, apply(c, spec.per_layer_projection, embedded), by_layer));
  return scale(c.b, add(c.b, projected, reshape(c.b, own, by_layer)), std::numbers::sqrt2 / 2);
}

// The stream after a layer whose input was `in`, raw and normed.
struct Joint {
  ValueId raw, normed;
};

// x + |rate| * (y - x).
ValueId interpolated(ForwardContext& c, const ChannelScaleSpec& rate, ValueId x, ValueId y) {
  const ValueId factors = channel_factors(c, rate, c.spec.hidden);
  const ValueId above = activation(c.b, factors, ActivationKind::relu);
  const ValueId below = activation(c.b, scale(c.b, factors, -1), ActivationKind::relu);
  const ValueId way = add(c.b, y, scale(c.b, x, -1));
  return add(c.b, x, mul_row(c.b, way, add(c.b, above, below)));
}

ValueId join(ForwardContext& c, const ResidualSpec& spec, const Joint& in, ValueId y, double scale) {
  if (!spec.rate.weight.empty()) return interpolated(c, spec.rate, spec.from_normed ? in.normed : in.raw, y);
  const ValueId x = times(c, spec.from_normed ? in.normed : in.raw, spec.skip);
  y = shifted(c, times(c, y, scale * spec.branch), spec.branch_bias, spec.branch_weight);
  return add(c.b, shifted(c, x, spec.skip_bias, spec.skip_weight), y);
}

ValueId apply_parallel(ForwardContext& c, const BlockSpec& block, int32_t layer, ValueId x) {
  const ValueId pre = apply(c, block.mixer_norm, x);
  const bool own = block.feed_forward_norm.kind != NormKind::none;
  const ValueId fed = own ? apply(c, block.feed_forward_norm, x) : pre;
  const ValueId mixed = apply_mixer(c, block.mixer, layer, pre);
  const ValueId sum = add(c.b, mixed, apply_feed_forward(c, block.feed_forward, layer, fed));
  return add(c.b, x, times(c, sum, block.residual_scale));
}

// What a shared layer gives to a block's mixer.
ValueId shared_output(ForwardContext& c, const SharedLayerSpec& spec, int32_t layer, ValueId x) {
  const ValueId both = apply(c, spec.mixer_norm, concat_columns(c.b, {x, c.embedded}));
  const ValueId y = apply(c, spec.feed_forward_norm, apply_mixer(c, spec.attention, layer, both));
  return apply(c, spec.projection, apply_mlp(c, spec.mlp, y));
}

bool in_streams(const BlockSpec& block) {
  return !std::holds_alternative<std::monostate>(block.mixer_streams);
}

// Mixer and feed-forward, each reading and writing the streams `x`.
ValueId apply_in_streams(ForwardContext& c, const BlockSpec& block, int32_t layer, ValueId x) {
  if (block.ngram) x = add(c.b, x, apply_ngram(c, *block.ngram, layer, x));
  const StreamsRead mixed = read_streams(c, block.mixer_streams, x);
  x = write_streams(c, mixed, apply_mixer(c, block.mixer, layer, apply(c, block.mixer_norm, mixed.x)));
  const StreamsRead fed = read_streams(c, block.feed_forward_streams, x);
  return write_streams(
      c, fed, apply_feed_forward(c, block.feed_forward, layer, apply(c, block.feed_forward_norm, fed.x)));
}

ValueId mix(ForwardContext& c, const BlockSpec& block, int32_t layer, ValueId x) {
  const ValueId fed = block.shared ? add(c.b, x, shared_output(c, *block.shared, layer, x)) : x;
  const ValueId normed = apply(c, block.mixer_norm, fed);
  ValueId y = apply_mixer(c, block.mixer, layer, normed);
  if (block.mixer_conv) y = apply(c, *block.mixer_conv, layer, y, y, "mixer_conv");
  if (!std::holds_alternative<std::monostate>(block.beside))
    y = add(c.b, apply_mixer(c, block.beside, layer, normed), y);
  x = join(c, block.mixer_residual, {x, normed}, apply(c, block.mixer_post_norm, y), block.residual_scale);
  return apply(c, block.mixer_sum_norm, x);
}

// Outputs of shortcut experts by the block at whose end they join.
using Shortcuts = std::multimap<int32_t, ValueId>;

ValueId feed(ForwardContext& c, const BlockSpec& block, int32_t layer, Shortcuts& shortcuts, ValueId x) {
  const ValueId normed = apply(c, block.feed_forward_norm, x);
  if (block.shortcut)
    shortcuts.emplace(layer + block.shortcut_blocks, apply_moe(c, *block.shortcut, normed, normed));
  ValueId y = apply_feed_forward(c, block.feed_forward, layer, normed);
  if (block.aside) {
    const AsideSpec& aside = *block.aside;
    const ValueId routed = apply_moe(c, aside.moe, apply(c, aside.pre, x), x);
    y = add(c.b, apply(c, aside.first_post, y), apply(c, aside.post, routed));
  }
  if (block.feed_forward_conv) y = apply(c, *block.feed_forward_conv, layer, y, y, "feed_forward_conv");
  y = apply(c, block.feed_forward_post_norm, y);
  x = join(c, block.feed_forward_residual, {x, normed}, y, block.residual_scale);
  return apply(c, block.feed_forward_sum_norm, x);
}

}  // namespace

ValueId per_layer_output(ForwardContext& c, const PerLayerInput& spec, int32_t layer, ValueId x) {
  MlpSpec act;
  act.activation = spec.activation;
  const int64_t width = c.spec.per_layer_width;
  const ValueId all = reshape(c.b, c.per_layer, Shape{c.tokens(), c.b.shape(c.per_layer)[1] * width});
  const ValueId own = slice_columns(c.b, all, layer * width, width);
  const ValueId gated = mul(c.b, activated(c, act, apply(c, spec.gate, x)), own);
  return apply(c, spec.norm, apply(c, spec.projection, gated));
}

namespace {

ValueId apply_block(ForwardContext& c, const BlockSpec& block, int32_t layer, Shortcuts& shortcuts,
                    ValueId x) {
  if (block.parallel) return apply_parallel(c, block, layer, x);
  if (in_streams(block)) return apply_in_streams(c, block, layer, x);
  if (!std::holds_alternative<std::monostate>(block.mixer)) x = mix(c, block, layer, x);
  if (!std::holds_alternative<std::monostate>(block.feed_forward)) x = feed(c, block, layer, shortcuts, x);
  const auto [first, last] = shortcuts.equal_range(layer);
  for (auto at = first; at != last; ++at) x = add(c.b, x, at->second);
  if (block.per_layer) x = add(c.b, x, per_layer_output(c, *block.per_layer, layer, x));
  if (!block.output_scale.empty())
    x = times_scalar(c, x, detach(c.b, weight_vector(c, block.output_scale, Shape{1})));
  return x;
}

// Streams that are kept beside the blocks, as they are at first.
std::vector<ValueId> kept_streams(ForwardContext& c) {
  std::vector<ValueId> kept;
  for (const std::string& name : c.spec.kept_streams) {
    if (name.empty()) {
      kept.push_back(c.embedded);
      continue;
    }
    const ValueId row = detach(c.b, weight_vector(c, name, Shape{c.spec.hidden}));
    const ValueId rows = repeat_columns(c.b, reshape(c.b, row, Shape{1, c.spec.hidden}), c.tokens());
    const ValueId all = reshape(c.b, rows, Shape{c.tokens(), c.spec.hidden});
    kept.push_back(c.options.compute == DType::f32 ? all : cast(c.b, all, c.options.compute));
  }
  return kept;
}

ValueId enter(ForwardContext& c, const KeptStreamSpec& spec, const std::vector<ValueId>& kept, ValueId x) {
  if (spec.enter < 0) return x;
  return add(c.b, apply(c, spec.enter_norm, x), kept[static_cast<size_t>(spec.enter)]);
}

ValueId leave(ForwardContext& c, const KeptStreamSpec& spec, std::vector<ValueId>& kept, ValueId x) {
  if (spec.leave < 0) return x;
  x = apply(c, spec.leave_norm, x);
  if (spec.detached) x = detach(c.b, x);
  kept[static_cast<size_t>(spec.leave)] = x;
  return x;
}

// Columns of the head's input: those of the embedding, and a one where the head has a bias.
int64_t head_width(const ModelSpec& spec) {
  return embedding_width(spec) + (spec.head.bias ? 1 : 0);
}

// Rows times the factors of their channels, where there are any: by rows in serving too, so that products are
// rounded as in training.
ValueId head_weight(Builder& builder, const ModelSpec& spec, const ForwardOptions& options) {
  const std::string name = (spec.tied ? spec.embedding_path : spec.head.path) + ".weight";
  const ValueId weight = builder.add_static(
      Role::weight, name, {options.matrix_dtype(name), Shape{spec.vocab, head_width(spec)}});
  const ChannelScaleSpec& channels = spec.head.channels;
  if (channels.weight.empty()) return weight;
  const ValueId factors = builder.add_static(Role::weight, channels.weight, {DType::f32, Shape{spec.vocab}});
  return mul_column(builder, weight, scale(builder, factors, channels.factor));
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
  ForwardContext c = make_context(builder, spec, options, ids, positions);
  ValueId x = embed(c, ids);
  c.embedded = x;
  if (spec.per_layer_width > 0) c.per_layer = per_layer_inputs(c, ids, x);
  Shortcuts shortcuts;
  std::vector<ValueId> streams;
  if (!spec.stream_in.empty()) streams = open_streams(c, x);
  if (spec.streams > 1) x = repeat_columns(c.b, x, spec.streams);
  std::vector<ValueId> kept = kept_streams(c);
  DepthStates depth;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    builder.set_block(static_cast<int32_t>(i));
    if (spec.blocks[i].depth) {
      x = apply_in_depth(c, spec.blocks[i], static_cast<int32_t>(i), depth, x);
      continue;
    }
    x = enter(c, spec.blocks[i].kept, kept, x);
    if (spec.blocks[i].altup) {
      streams = apply_altup(c, spec.blocks[i], static_cast<int32_t>(i), streams);
      continue;
    }
    x = apply_block(c, spec.blocks[i], static_cast<int32_t>(i), shortcuts, x);
    x = leave(c, spec.blocks[i].kept, kept, x);
  }
  builder.set_block(-1);
  if (!streams.empty()) x = close_streams(c, streams);
  if (spec.streams > 1) x = read_streams(c, spec.head_streams, x).x;
  if (!spec.depth_query.empty()) x = read_depth(c, depth, x);
  x = apply(c, spec.final_norm, x);
  if (spec.head_dense.present()) {
    MlpSpec act;
    act.activation = spec.head_activation;
    x = apply(c, spec.head_norm, activated(c, act, apply(c, spec.head_dense, x)));
  }
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
  const ValueId weight = head_weight(builder, spec, options);
  const auto out = linear_cross_entropy(builder, x, weight, labels,
                                        {.logit_scale = spec.logit_scale, .softcap = spec.logit_softcap});
  return {out.loss, out.predicted};
}

}  // namespace tenon
