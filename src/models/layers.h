// What the builders of a forward Program share: the context of one program, and linear layers and norms. For
// models/ alone.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/forward.h"
#include "models/model_spec.h"

namespace tenon {

struct StreamInputs;

// Where the tokens of a run go in a cache, and where those before them lie.
struct CachePlaces {
  ValueId slots, page_table;
};

// What every layer of one program shares.
struct ForwardContext {
  Builder& b;
  const ModelSpec& spec;
  const ForwardOptions& options;
  std::vector<ValueId> rope_tables;       // one for each of the spec's ropes
  ValueId sequence_begin;                 // packed
  ValueId stream;                         // cached
  std::map<int64_t, CachePlaces> places;  // cached, by pages of the ring; 0: of the whole history
  ValueId ids, positions;
  ValueId embedded;                             // the stream before the first block
  ValueId per_layer;                            // [tokens, blocks, width] or invalid
  std::map<int32_t, ValueId> chosen;            // keys that a layer's indexer chose
  ValueId router;                               // what the last router of several layers carries over
  std::vector<std::pair<ValueId, ValueId>> kv;  // k and v of each layer: rows, or caches

  int64_t tokens() const { return options.tokens; }
};

ValueId weight_matrix(ForwardContext& c, const std::string& name, Shape shape);  // in the weights' dtype
ValueId weight_vector(ForwardContext& c, const std::string& name, Shape shape);  // f32
// Fixed i32 values, [values].
ValueId add_indices(Builder& builder, std::string name, std::vector<float> values);
ValueId apply(ForwardContext& c, const LinearSpec& spec, ValueId x);
ValueId apply(ForwardContext& c, const NormSpec& spec, ValueId x);
// The factors of channels f32 [channels], and x [..., channels] times them; x itself where there are none.
ValueId channel_factors(ForwardContext& c, const ChannelScaleSpec& spec, int64_t channels);
ValueId apply(ForwardContext& c, const ChannelScaleSpec& spec, ValueId x);
// x itself where the factor is 1.
ValueId times(ForwardContext& c, ValueId x, double factor);

ValueId apply_mixer(ForwardContext& c, const MixerSpec& spec, int32_t layer, ValueId x);
ValueId apply_short_conv(ForwardContext& c, const ShortConvSpec& spec, int32_t layer, ValueId x);
ValueId apply_delta(ForwardContext& c, const DeltaSpec& spec, int32_t layer, ValueId x);
ValueId apply_mamba2(ForwardContext& c, const Mamba2Spec& spec, int32_t layer, ValueId x);
ValueId apply_mamba(ForwardContext& c, const MambaSpec& spec, int32_t layer, ValueId x);
ValueId apply_fixed_decay(ForwardContext& c, const FixedDecaySpec& spec, int32_t layer, ValueId x);
ValueId apply_recurrent_unit(ForwardContext& c, const RecurrentUnitSpec& spec, int32_t layer, ValueId x);
ValueId apply_time_mix(ForwardContext& c, const TimeMixSpec& spec, int32_t layer, ValueId x);
ValueId apply_channel_mix(ForwardContext& c, const ChannelMixSpec& spec, int32_t layer, ValueId x);
ValueId apply_matrix_memory(ForwardContext& c, const MatrixMemorySpec& spec, int32_t layer, ValueId x);
ValueId apply_attention_experts(ForwardContext& c, const AttentionExpertsSpec& spec, int32_t layer,
                                ValueId x);
// What is added to the scores of each token: sinks f32 [tokens, heads], relative [tokens, heads, extent].
struct TokenBiases {
  ValueId sinks, relative;
};
// q [tokens, heads, dim] against k and v, cached or packed: [tokens, heads, v_dim].
ValueId attend(ForwardContext& c, const AttendSpec& spec, int32_t layer, ValueId q, ValueId k, ValueId v,
               const TokenBiases& biases = {});
// The same with the keys that ids name: [tokens, n], or [tokens, groups, n] by group of heads.
ValueId attend_chosen(ForwardContext& c, const AttendSpec& spec, int32_t layer, ValueId q, ValueId k,
                      ValueId v, ValueId ids);
ValueId choose_keys(ForwardContext& c, const IndexerSpec& spec, int32_t layer, ValueId x, ValueId q_latent);
ValueId choose_blocks(ForwardContext& c, const BlockIndexerSpec& spec, int32_t layer, ValueId x);
// Queries, gates and relative positions come from x.q, keys and values from their own inputs.
struct AttentionInputs {
  ValueId q, k, v;
};
ValueId apply_relative_attention(ForwardContext& c, const RelativeAttentionSpec& spec, int32_t layer,
                                 const AttentionInputs& x);
ValueId apply(ForwardContext& c, const ResidualConvSpec& spec, int32_t layer, ValueId x, ValueId by_token_x,
              const std::string& part);
// x of the token `by` before, zero before the sequence.
ValueId delayed(ForwardContext& c, int32_t layer, const std::string& part, int64_t by, ValueId x);
ValueId apply_convolved_attention(ForwardContext& c, const ConvolvedAttentionSpec& spec, int32_t layer,
                                  ValueId x);
ValueId attend_masked(ForwardContext& c, const AttentionSpec& spec, int32_t layer, ValueId q, ValueId k,
                      ValueId v);
ValueId apply_compressed_attention(ForwardContext& c, const CompressedAttentionSpec& spec, int32_t layer,
                                   ValueId x);
// States that blocks read from (DepthSpec): those at which groups began, normed, and of a loop, what it began
// from and what the pass before left.
struct DepthStates {
  std::vector<ValueId> groups;
  std::vector<ValueId> loop_groups, pass_groups;
  ValueId loop_state;
};
ValueId apply_in_depth(ForwardContext& c, const BlockSpec& block, int32_t layer, DepthStates& states,
                       ValueId x);
// What the final norm reads.
ValueId read_depth(ForwardContext& c, const DepthStates& states, ValueId x);
// What an n-gram embedding adds to the streams.
ValueId apply_ngram(ForwardContext& c, const NgramSpec& spec, int32_t layer, ValueId streams);
// What a layer keeps of each stream, `shape` beginning with their number, in the cache under `part`.
StreamInputs stream_state(ForwardContext& c, int32_t layer, const char* part, DType dtype, Shape shape);
// Depthwise causal convolution, its state in the cache under `part`.
ValueId convolve(ForwardContext& c, const ConvSpec& spec, int32_t layer, ValueId x, const char* part = "conv",
                 int64_t dilation = 1);
ValueId as_f32(ForwardContext& c, ValueId x);
ValueId apply_latent_attention(ForwardContext& c, const LatentAttentionSpec& spec, int32_t layer, ValueId x);
ValueId rotate(ForwardContext& c, int32_t rope, ValueId x);
// Rotates the elements of each head from `from` on.
ValueId rotate_from(ForwardContext& c, int32_t rope, int64_t from, ValueId x);
// Rotates as rope `rope` at positions shifted by `shift`.
ValueId rotate_shifted(ForwardContext& c, int32_t rope, int64_t shift, ValueId x);
// Where there are `part_weights` f32 [tokens, parts], equal parts of the inner width are multiplied with
// them.
ValueId apply_mlp(ForwardContext& c, const MlpSpec& spec, ValueId x, ValueId part_weights = {});
// The activation of gate and up, side by side projections already done; gate is invalid where nothing gates.
ValueId activate(ForwardContext& c, const MlpSpec& spec, ValueId gate, ValueId up);
ValueId activated(ForwardContext& c, const MlpSpec& spec, ValueId x);
// Routing weights f32 [tokens, k] and the experts [tokens, k] that they belong to; those of shared experts,
// or invalid.
struct Routes {
  ValueId weights, experts, shared;
};
Routes route(ForwardContext& c, const MoeSpec& moe, ValueId x);
// Experts over x, chosen by what `router_x` says.
ValueId apply_moe(ForwardContext& c, const MoeSpec& moe, ValueId x, ValueId router_x);
// x [..., n] times a vector of one element.
ValueId times_scalar(ForwardContext& c, ValueId x, ValueId scalar);
// The streams after a block of AltUp, stream 0 active.
std::vector<ValueId> apply_altup(ForwardContext& c, const BlockSpec& block, int32_t layer,
                                 const std::vector<ValueId>& streams);
std::vector<ValueId> open_streams(ForwardContext& c, ValueId x);
ValueId close_streams(ForwardContext& c, const std::vector<ValueId>& streams);
// What a layer reads of several streams, [tokens, hidden], what of them is kept, side by side, and the weight
// f32 [tokens, streams] of its output in each; the last two invalid where nothing is written back.
struct StreamsRead {
  ValueId x, kept, after;
};
StreamsRead read_streams(ForwardContext& c, const StreamsSpec& spec, ValueId streams);
ValueId write_streams(ForwardContext& c, const StreamsRead& read, ValueId y);
// A token's input to a layer put through its gate and projection, normed.
ValueId per_layer_output(ForwardContext& c, const PerLayerInput& spec, int32_t layer, ValueId x);
ValueId apply_feed_forward(ForwardContext& c, const FeedForwardSpec& spec, int32_t layer, ValueId x);

}  // namespace tenon
