// A block of a model as plain data: a mixer and a feed-forward, their norms and residuals, and what some
// families put beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "models/attention_spec.h"
#include "models/experts_spec.h"
#include "models/feed_forward_spec.h"
#include "models/layer_spec.h"
#include "models/recurrence_spec.h"
#include "models/streams_spec.h"
#include "ops/ngram_ids.h"

namespace tenon {

using MixerSpec =
    std::variant<std::monostate, AttentionSpec, LatentAttentionSpec, ShortConvSpec, DeltaSpec, Mamba2Spec,
                 MambaSpec, FixedDecaySpec, RecurrentUnitSpec, AttentionExpertsSpec, CompressedAttentionSpec,
                 ConvolvedAttentionSpec, RelativeAttentionSpec, TimeMixSpec, MatrixMemorySpec>;

using FeedForwardSpec = std::variant<std::monostate, MlpSpec, MoeSpec, ChannelMixSpec>;

// Each token's own input to each layer (Gemma 3n, 4): project(activation(gate(x)) * input), normed, is added
// to the stream at the end of the block.
struct PerLayerInput {
  LinearSpec gate, projection;
  NormSpec norm;
  Activation activation = Activation::gelu_tanh;
};

// A second feed-forward over the raw stream, added to the first.
struct AsideSpec {
  MoeSpec moe;
  NormSpec pre, post;   // of the experts
  NormSpec first_post;  // of the block's own feed-forward
};

// A transformer layer over the stream and the embedding side by side, whose weights several blocks share
// (Zamba): project(mlp(norm(attention(norm(stream, embedding))))) is added to what goes into the block's
// mixer.
struct SharedLayerSpec {
  NormSpec mixer_norm, feed_forward_norm;
  AttentionSpec attention;
  MlpSpec mlp;
  LinearSpec projection;
};

// An embedding of the last tokens, hashed (ops/ngram_ids.h), added to the streams before a block (Qwen 4):
// its value, times the sigmoid of a signed root of the product of its key and the stream, both normed, and a
// dilated convolution of that, normed.
struct NgramSpec {
  NgramOptions hash;
  std::string table;                  // weight [table_rows, width of a head]
  int64_t table_rows = 0, width = 0;  // of all heads
  LinearSpec key, value;              // to all streams, and to one
  NormSpec key_norm, query_norm, conv_norm;
  ConvSpec conv;
  int64_t dilation = 1;
};

// Sequential: x += s * post(mixer(pre(x))), then the same with the feed-forward; sum norms are applied to the
// new x. Parallel: x += s * (mixer(pre(x)) + feed_forward(pre'(x))); pre' is pre where it has no norm.
struct BlockSpec {
  NormSpec mixer_norm, mixer_post_norm, mixer_sum_norm;
  MixerSpec mixer;
  MixerSpec beside;  // a second mixer of the same input, added to the first
  NormSpec feed_forward_norm, feed_forward_post_norm, feed_forward_sum_norm;
  FeedForwardSpec feed_forward;
  std::optional<AsideSpec> aside;
  // Experts over the input of the feed-forward, whose output joins at the end of the block `shortcut_blocks`
  // later.
  std::optional<MoeSpec> shortcut;
  int32_t shortcut_blocks = 0;
  bool parallel = false;
  double residual_scale = 1;
  ResidualSpec mixer_residual, feed_forward_residual;
  StreamsSpec mixer_streams, feed_forward_streams;                // where the model has several
  std::optional<ResidualConvSpec> mixer_conv, feed_forward_conv;  // of what comes out, before its norm
  std::optional<DepthSpec> depth;
  std::optional<NgramSpec> ngram;
  KeptStreamSpec kept;
  std::optional<SharedLayerSpec> shared;
  std::optional<AltUpSpec> altup;
  std::optional<PerLayerInput> per_layer;
  std::string output_scale;  // fixed value [1] that the stream is multiplied with at the end; empty: none
};

}  // namespace tenon
