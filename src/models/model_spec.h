// A model as plain data: sizes and a list of blocks. Reading a checkpoint's configuration gives one; building
// a Program walks it. It knows no file and no device, and nothing that reads it asks which family it came
// from.
//
// Paths are module names as transformers and PEFT use them ("model.layers.0.self_attn.q_proj"); a module's
// parameters are path + ".weight" and ".bias". Where a file calls or cuts them otherwise, `renames` and
// `stored` say how.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ops/activation.h"
#include "ops/biased_attention.h"
#include "ops/ngram_ids.h"
#include "ops/position_scale.h"
#include "ops/routing.h"
#include "ops/sinkhorn.h"

namespace tenon {

// A learned factor for each channel: factor * weight, or the square of that.
struct ChannelScaleSpec {
  std::string weight;  // name, [channels]; empty: none
  double factor = 1;
  bool squared = false;
};

struct LinearSpec {
  std::string path;
  int64_t in = 0;
  int64_t out = 0;
  bool bias = false;
  std::string weight_name = ".weight";  // after the path
  double scale = 1;                     // of what comes out
  std::vector<LinearSpec> low_rank;     // two more, one after the other, whose output is added; empty: none
  std::string weight_path;              // of the module whose weight and bias these are; empty: its own
  ChannelScaleSpec channels;            // of what comes out

  bool present() const { return out > 0; }
};

// clip: x, times its weight, cut to the length `limit`.
enum class NormKind : uint8_t { none, rms, layer, l2, clip };

struct NormSpec {
  NormKind kind = NormKind::none;
  std::string path;
  int64_t width = 0;
  double eps = 0;
  double weight_offset = 0;  // 1 where weights are stored zero-centred
  bool weight = true;
  bool bias = false;
  int64_t heads = 0;   // > 0: each head has its own weights, [heads, width]
  int64_t groups = 1;  // equal parts of the width that are normed apart
  // Two more, where there are any: y, what the norm gives, times sigmoid(gate[1](silu(gate[0](y)))).
  std::vector<LinearSpec> gate;
  double limit = 0;
};

// Rotary embedding: the first 2 * inv_freq.size() elements of a head are rotated. Where long_inv_freq is
// given, it serves sequences longer than long_from tokens.
struct RopeSpec {
  std::vector<float> inv_freq;
  double amplitude = 1;
  bool interleaved = false;
  std::vector<float> long_inv_freq;
  int64_t long_from = 0;
  // Dynamic NTK (theta grows with the length beyond long_from); 0: not dynamic.
  double dynamic_factor = 0;
  double theta = 0;

  bool operator==(const RopeSpec&) const = default;
};

// What is done to heads of q, k and v whatever projections they come from, and how they attend.
struct AttendSpec {
  double scale = 0;
  int64_t window = 0;  // keys that a query sees, itself included; 0: all
  int64_t chunk = 0;   // a query sees its own chunk of this many positions; 0: all
  double softcap = 0;
  std::string sinks;          // name of the weight [heads]; empty: none
  std::vector<float> slopes;  // of ALiBi by head; empty: none
  Alibi alibi = Alibi::none;
  double alibi_scale = 1;
};

enum class GateKind : uint8_t { none, sigmoid, softplus };

// Differential attention (Ye et al. 2024): halves of the heads attend to both halves of the values, and the
// second half is taken off the first, times lambda = exp(q1 . k1) - exp(q2 . k2) + init, of the weights path
// +
// ".lambda_q1" and so on, [head_dim].
struct DifferentialSpec {
  std::string path;
  double init = 0;
  double eps = 0;  // of the norm over the pair, which has no weights
};

// Chooses blocks of `block` keys for each token. Plain: every head chooses for its group of the attention's
// heads, a block's score being its largest product (ops/block_top_k.h), and `local` blocks are always chosen.
// Pooled: whole blocks are scored by their mean key, normed and rotated as their first token, as
// ops/index_top_k.h does with equal weights; keys after the last whole block are always chosen.
struct BlockIndexerSpec {
  int64_t heads = 0, dim = 0;
  int64_t blocks = 0, block = 0, local = 0;  // blocks: how many are chosen
  bool pooled = false;
  LinearSpec q, k;
  LinearSpec qk;  // in place of q and k, q first, where qk.out > 0
  NormSpec q_norm, k_norm;
  int32_t rope = -1;
  int32_t upper_rope = -1;  // of the second half of the elements, where it is another
};

// Each head of keys keeps those whose values weigh most: exp(rate * softplus(step(values))), which is added
// to their scores (Doge).
struct ValueMaskSpec {
  int64_t keep = 0;
  LinearSpec step;   // of all values to heads of keys
  std::string rate;  // weight [kv_heads]
};

// Softmax attention with grouped keys and values.
struct AttentionSpec {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t v_head_dim = 0;
  LinearSpec q, k, v, o;
  // One projection in place of q, k and v, where qkv.out > 0: `qkv_groups` equal parts, each with its share
  // of heads of q, k and v side by side in the order given.
  LinearSpec qkv;
  int64_t qkv_groups = 1;
  std::string qkv_order = "qkv";
  double qkv_clip = 0;   // values are cut to +- this; 0: not
  bool v_is_k = false;   // v is the raw k projection
  LinearSpec kv;         // in place of k and v, k first, where kv.out > 0
  int32_t kv_from = -1;  // k and v are those of that earlier layer, -1: its own
  std::optional<DifferentialSpec> differential;
  NormSpec q_norm, k_norm, v_norm;  // over head_dim, or over the whole width
  bool norm_after_rope = false;
  int32_t rope = -1;            // index into ModelSpec::ropes, or -1
  ChannelScaleSpec q_channels;  // of rotated queries
  std::optional<PositionScale> q_scale;
  double v_scale = 1;
  AttendSpec attend;
  std::optional<BlockIndexerSpec> indexer;  // where keys are chosen
  std::optional<ValueMaskSpec> value_mask;
  // out * gate, by head (gate.out = heads) or by element; `gate_in_q`: q's projection gives each head's q and
  // gate side by side.
  GateKind gate_kind = GateKind::none;
  LinearSpec gate;
  std::string gate_bias;  // weight [heads] added to the gate of each head; empty: none
  bool gate_in_q = false;
  NormSpec out_norm;  // before o, over the whole width
};

// Chooses the keys of each token (ops/index_top_k.h): queries from the latent of the queries, one key a
// token, normed, and weights of the heads.
struct IndexerSpec {
  int64_t heads = 0, dim = 0, keys = 0;  // keys: how many are chosen
  LinearSpec q, k, weights;
  NormSpec k_norm;
  int32_t rope = -1;
  int64_t rope_from = 0;  // the element where the rotated part begins
};

// Multi-head latent attention (DeepSeek-V2): keys and values come from a low-rank latent, and one rotary key
// part is shared by all heads.
struct LatentAttentionSpec {
  int64_t heads = 0;
  int64_t nope_dim = 0;
  int64_t rope_dim = 0;
  int64_t v_head_dim = 0;
  LinearSpec q;              // straight, or
  LinearSpec q_a, q_b;       // through a latent
  LinearSpec q_gate;         // in place of q_b and gate: from [normed, raw] latent, each head's q and gate
  LinearSpec kv_a, kv_b, o;  // kv_a gives latent and rotary key side by side
  NormSpec q_a_norm, kv_a_norm, k_rope_norm;
  double q_latent_scale = 1, kv_latent_scale = 1;
  std::optional<IndexerSpec> indexer;  // where keys are chosen
  int32_t indices_from = -1;           // keys are those that this earlier layer chose; -1: not
  int32_t rope = -1;
  std::optional<PositionScale> q_scale;
  AttendSpec attend;
  GateKind gate_kind = GateKind::none;
  LinearSpec gate;
};

// Depthwise causal convolution along the sequence: weight [channels, 1, taps].
struct ConvSpec {
  std::string path;
  int64_t channels = 0;
  int64_t taps = 0;
  bool bias = false;
};

// (convolution of x, plus x) * scale. Where `by_token` is present, the weights of a channel are those of the
// weight conv.path + ".static_weight" [taps, channels] plus those that by_token gives for its head,
// [heads, taps], both by distance.
struct ResidualConvSpec {
  ConvSpec conv;
  double scale = 1;
  LinearSpec by_token;
  int64_t heads = 1;
};

// Attention with learned relative positions in place of rope: each token mixes `states` profiles of scores by
// distance, the weight `profiles` [states, extent], as r says by head. Keys and values pass short
// convolutions. `log_from` > 0: queries and r are multiplied with 1 + log_rate * log(max((p + 1) / log_from,
// 1)).
struct RelativeAttentionSpec {
  int64_t heads = 0, kv_heads = 0, head_dim = 0, states = 0, extent = 0;
  LinearSpec q, k, v, r, o;
  ResidualConvSpec k_conv, v_conv;
  NormSpec q_norm, k_norm, v_norm, r_norm;
  std::string profiles;
  double log_rate = 0;
  int64_t log_from = 0;
  LinearSpec sinks;  // of each token, to heads; absent: none
  LinearSpec gate;   // sigmoid of it multiplies what goes into o; absent: none
  AttendSpec attend;
};

// Attention whose queries and keys pass two causal convolutions, by channel and by head, beside the mean of a
// query and the key that it meets; half of the values are those of the token before (Zaya). Queries and keys
// are of length sqrt(head_dim), keys times a weight of their head.
struct ConvolvedAttentionSpec {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  LinearSpec q, k, v, v_late, o;
  ConvSpec conv;         // of queries and keys side by side
  std::string mix_path;  // weight [channels, head_dim, taps] and bias [channels]
  int64_t mix_taps = 1;
  std::string key_scale;  // weight [kv_heads]
  int32_t rope = -1;
  AttendSpec attend;
};

// Entries of compressed attention (ops/entry_pool.h): each stands for `stride` tokens, normed and rotated as
// the first of them.
struct CompressorSpec {
  int64_t stride = 1;
  int64_t parts = 1;
  LinearSpec x, gate;
  std::string bias;  // weight [stride, parts * width]
  NormSpec norm;
};

// Chooses entries as IndexerSpec does keys, by entries of its own.
struct EntryIndexerSpec {
  int64_t heads = 0, dim = 0, entries = 0;  // entries: how many are chosen
  LinearSpec q, weights;
  CompressorSpec compressor;
};

// Attention of all heads to one key that is its own value, in a window and, where there is a compressor, to
// entries of all tokens before: all of them, or those that the indexer chooses (DeepSeek-V4). The last
// 2 * pairs elements of queries and keys are rotated; those of what comes out are rotated back.
struct CompressedAttentionSpec {
  int64_t heads = 0, head_dim = 0;
  LinearSpec q_a, q_b, kv;
  NormSpec q_a_norm, q_norm, kv_norm;
  int32_t rope = -1;
  std::optional<CompressorSpec> compressor;
  std::optional<EntryIndexerSpec> indexer;
  AttendSpec attend;            // of the window
  std::vector<LinearSpec> o_a;  // one for each equal group of heads
  LinearSpec o_b;
};

enum class Activation : uint8_t { silu, gelu, gelu_tanh, relu, relu2, quick_gelu, xielu };

// A norm of x gated by another value: norm(x) * f(gate), or norm(x * f(gate)). `group` values are normed
// together; the weight is [width], repeated where the rows are wider.
struct GatedNormSpec {
  std::string path;  // empty: no norm, x * f(gate)
  int64_t width = 0;
  int64_t group = 0;
  double eps = 0;
  bool sigmoid = false;  // f; otherwise SiLU
  bool gate_first = false;
};

// Gated short convolution (LFM2): in gives b, c and x side by side; out(c * conv(b * x)).
struct ShortConvSpec {
  LinearSpec in, out;
  ConvSpec conv;
};

// How a decay of a state is made from its projection x: -exp(A) * softplus(x + dt_bias), or bound *
// sigmoid(exp(A)
// * (x + dt_bias)) where bound is not 0. A is by head.
struct DecaySpec {
  std::string a_log, dt_bias;
  double bound = 0;
};

// Gated delta rule (Yang et al. 2024; by channel: Kimi delta attention): q, k and v through one short
// convolution and SiLU, q and k of unit length. All projections side by side in qkvz and ba, by key head (q,
// k, v, gate; beta, decay), where those are present.
struct DeltaSpec {
  int64_t key_heads = 0, heads = 0, key_dim = 0, value_dim = 0;
  LinearSpec qkvz, ba;
  LinearSpec qkv, q, k, v;
  ConvSpec conv;
  LinearSpec beta;
  double beta_scale = 1;
  LinearSpec decay_a, decay;  // decay_a: present where the projection is low-rank
  DecaySpec decay_kind;
  bool by_channel = false;
  LinearSpec gate_a, gate;  // likewise
  GatedNormSpec norm;
  LinearSpec out;
};

// Mamba-2 (Dao and Gu 2024): in gives the gate, x, B, C and the time steps side by side.
struct Mamba2Spec {
  int64_t heads = 0, head_dim = 0, groups = 0, state = 0;
  LinearSpec in, out;
  std::vector<float> in_scales;  // of the five parts; empty: none
  ConvSpec conv;
  std::string a_log, d, dt_bias;
  double dt_min = 0;  // of the time steps
  GatedNormSpec norm;

  int64_t width() const { return heads * head_dim; }
};

// Attention through a state with a fixed decay by head (lightning attention, Qin et al. 2024): SiLU of q, k
// and v, side by side by head; norm over the width, gate by element.
struct FixedDecaySpec {
  int64_t heads = 0, head_dim = 0;
  LinearSpec qkv, gate, out;
  std::vector<float> log_decays;  // by head
  NormSpec norm;
};

// Real-gated linear recurrent unit (De et al. 2024): in_x through a convolution and the recurrence, times
// activation(in_y). Gates are block-diagonal, one block a head: weights path + ".input_gate_weight" [heads,
// width, width] and so on.
struct RecurrentUnitSpec {
  int64_t heads = 0, width = 0;  // of all heads
  LinearSpec in_x, in_y, out;
  ConvSpec conv;
  std::string path;
  Activation activation = Activation::gelu_tanh;
};

// Mamba (Gu and Dao 2023): in gives x and the gate side by side; x_proj gives time steps, B and C. With
// several heads, each has its own x_proj and dt_proj ("path.<head>.weight").
struct MambaSpec {
  int64_t channels = 0, state = 0, dt_rank = 0, heads = 1;
  LinearSpec in, x, dt, out;
  bool interleaved = false;  // x and gate of a channel side by side
  ConvSpec conv;
  std::string a_log, d;
  NormSpec dt_norm, b_norm, c_norm;
};

// RWKV-4 (Peng et al. 2023): layers that read x mixed with the token before, x * mix + before * (1 - mix), by
// channel and projection (weights path + ".time_mix_key" [1, 1, hidden] and so on).
// Time mixing: out(sigmoid(receptance) * wkv(key, value)), with weights path + ".time_decay" and
// ".time_first" [channels].
struct TimeMixSpec {
  std::string path;
  LinearSpec key, value, receptance, out;
};
// Channel mixing: sigmoid(receptance) * value(relu(key)^2).
struct ChannelMixSpec {
  std::string path;
  LinearSpec key, value, receptance;
};

// mLSTM (Beck et al. 2024): attention through a state with exponential gates, e^in_gate and sigmoid of
// forget_gate, both soft-capped first. Of a head, with m the largest exponent in the state
// (ops/running_max.h) and n the sum of its gated keys, the output is S^T q / (max(|n . q|, 1) + eps * e^m),
// normed; out reads it times sigmoid(out_gate).
struct MatrixMemorySpec {
  int64_t heads = 0, key_dim = 0, value_dim = 0;
  LinearSpec q, k, v, in_gate, forget_gate, out_gate, out;
  double gate_cap = 0, eps = 0;
  NormSpec norm;
};

// down(activation(gate(x)) * up(x)), or down(activation(up(x))) where nothing gates.
struct MlpSpec {
  LinearSpec gate, up, down;
  LinearSpec gate_up;  // one projection in place of gate and up, where gate_up.out > 0: gate first
  Activation activation = Activation::silu;
  std::string activation_path;  // of an activation with weights
  NormSpec inner_norm;          // before down
  double limit = 0;             // gate is cut at limit from above, up to +- limit; 0: not
  double swish = 0;             // > 0: the activation is x * sigmoid(swish * x)
  double up_offset = 0;         // added to up
  double gate_cutoff = 0;  // > 0: what is below the mean of the gate plus this many deviations is zero, and
                           // the rest is measured from there
  // > 0: gate and up are softly capped, but not in the gate's sigmoid.
  double gate_softcap = 0, up_softcap = 0;
  std::string output_scale;  // weight [1] that multiplies what comes out; empty: none

  bool gated() const { return gate.present() || gate_up.present(); }
};

enum class RouterScores : uint8_t {
  softmax,
  sigmoid,
  sqrt_softplus,
  softmax_of_chosen,
  sigmoid_of_chosen,
  sparse_mixer,  // each of two experts weighed among those near the best that is left (Liu et al. 2023)
};

// A router of several layers: down(x), plus what the router before had there times a weight, normed and
// through layers with GELU.
struct RouterMlpSpec {
  LinearSpec down;
  std::string carry;  // weight [width]; empty: nothing is carried over
  NormSpec norm;
  std::vector<LinearSpec> inner;
  LinearSpec out;
};

// Experts chosen for each token by a router.
struct MoeSpec {
  LinearSpec router;
  std::optional<RouterMlpSpec> router_mlp;  // in place of it
  NormSpec router_norm;                     // of what goes into the router
  bool router_is_linear = false;            // by its type in transformers; others are bare parameters there
  RouterScores scores = RouterScores::softmax;
  std::string selection_bias;   // weight [experts], added to the scores to select; empty: none
  std::string expert_table;     // weight [vocab, k]: the experts of each token id; empty: chosen by scores
  bool bias_on_logits = false;  // the bias is added to logits, and selects there
  TopKOptions top_k;
  bool renormalise = false;
  double renormalise_eps = 0;
  double scale = 1;
  double slack = 0;              // of the sparse mixer
  std::string expert_scale;      // weight [experts] that the weights are multiplied with; empty: none
  int64_t identity_experts = 0;  // after the others; they give their input back
  bool skip_choice = false;      // after the others; gives nothing, and its bias to select is -1
  bool scale_inputs = false;     // weights multiply what goes into the experts, not what comes out
  std::string output_bias;       // weight [hidden] added to the sum; empty: none

  int64_t experts = 0;
  int64_t intermediate = 0;
  // Stacked weights: gate_up [experts, 2 * intermediate, hidden] (or up [experts, intermediate, hidden]) and
  // down [experts, hidden, intermediate].
  std::string up_name, down_name;
  std::string up_bias, down_bias;  // [experts, ...]; empty: none
  MlpSpec inner;                   // activation and its settings; its projections are not used
  bool gated = true;

  std::optional<MlpSpec> shared;
  LinearSpec shared_gate;  // sigmoid of it multiplies the shared expert; absent: none
  // Shared experts that the router weighs with the chosen ones, after the others in its output: equal parts
  // of the width of `shared`, each times its weight.
  int64_t shared_choices = 0;
  std::string weight_scale;  // weight [1] that all weights are multiplied with; empty: none
  double sum_scale = 1;      // of routed + shared
  NormSpec routed_norm;      // of the routed sum, before the shared expert is added
};

// Mixture of attention heads (JetMoe): each token's queries and outputs come from the experts that it is
// routed to, keys and values are shared.
struct AttentionExpertsSpec {
  MoeSpec experts;  // router, up (queries) and down (outputs); nothing in between
  int64_t kv_heads = 0, head_dim = 0;
  LinearSpec kv;
  int32_t rope = -1;
  AttendSpec attend;
};

using MixerSpec =
    std::variant<std::monostate, AttentionSpec, LatentAttentionSpec, ShortConvSpec, DeltaSpec, Mamba2Spec,
                 MambaSpec, FixedDecaySpec, RecurrentUnitSpec, AttentionExpertsSpec, CompressedAttentionSpec,
                 ConvolvedAttentionSpec, RelativeAttentionSpec, TimeMixSpec, MatrixMemorySpec>;
using FeedForwardSpec = std::variant<std::monostate, MlpSpec, MoeSpec, ChannelMixSpec>;

// How a layer's output joins the residual stream: skip * x + branch * y, or where there is a rate, x + |rate|
// * (y - x).
struct ResidualSpec {
  double skip = 1;
  double branch = 1;
  bool from_normed = false;  // x is what went into the layer, after its norm
  // Weights [hidden] that x and y are multiplied with, and what is added to each before; empty: none.
  std::string skip_weight, skip_bias;
  std::string branch_weight, branch_bias;
  ChannelScaleSpec rate;
};

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

// Alternating updates (AltUp, Baykal et al. 2023) around a block: several streams are predicted from each
// other, the block runs on the active one, and all are corrected by what it changed. Beside attention, a
// low-rank layer (Laurel).
struct AltUpSpec {
  NormSpec router_norm;
  LinearSpec router;         // hidden to streams; tanh
  LinearSpec prediction;     // streams to streams^2
  LinearSpec correction;     // streams to streams
  std::string output_scale;  // weight [hidden] of the active stream before the per-layer input; empty: none
  LinearSpec laurel_down, laurel_up;
  NormSpec laurel_norm;
};

// Hyper-connections (Zhu et al. 2024; with Sinkhorn, Xie et al. 2025) around a layer: of the streams side by
// side, normed, `mix` gives weights by stream. The layer reads the sum of the streams with weights
// sigmoid(w * scale[0] + base) + before_eps; its output is added to each, times after_scale * sigmoid(w *
// scale[1] + base) + after_eps. With `among` the streams are first mixed by a matrix that Sinkhorn's
// iterations make of w * scale[2] + base, [from, to].
struct HyperConnectionSpec {
  NormSpec norm;
  LinearSpec mix;
  std::string base, scale;
  double before_eps = 0, after_eps = 0, after_scale = 1;
  std::optional<SinkhornOptions> among;
};

// Streams read element by element: the layer reads the mean over streams of sigmoid(up(silu(down(x) / n))) *
// x, x being the streams side by side, normed by stream; its output is added to each, times 2 *
// sigmoid(inject(x) / n).
struct GatedStreamsSpec {
  NormSpec norm;
  LinearSpec down, up, inject;
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

// A stream that is kept beside the blocks. Where `enter` is not -1 a block begins from norm(x) plus that
// stream; where `leave` is not -1 its output, normed, becomes that stream, without a gradient where
// `detached`.
struct KeptStreamSpec {
  int32_t enter = -1, leave = -1;
  NormSpec enter_norm, leave_norm;
  bool detached = false;
};

// What comes from the same layer in the pass before over a loop: (1 - tanh(forget(d))) * x + tanh(gain(d)) *
// m, where d = down(x and m normed, side by side), m being what a query reads of that pass's states.
struct MessageSpec {
  LinearSpec down, forget, gain;
};

// A block that reads its input from all before it (attention residuals): softmax of a learned query times
// each of the states at which groups of blocks began, and the present one, all normed, weighs those. The
// present state is what the blocks of the group have added up.
struct DepthSpec {
  std::string mixer_query;  // weight [hidden], or [3, hidden] for q, k and v; empty: the present state
  int64_t mixer_queries = 1;
  NormSpec k_norm, v_norm;  // of inputs of k and v, where they are not the mixer's
  std::string feed_forward_query;
  bool begins_group = false;
  // The first block of a loop's first pass, or of a later one, which begins from the same states.
  bool begins_loop = false, repeats_loop = false;
  std::string message_query;          // weight [4, hidden]
  std::vector<MessageSpec> messages;  // to q, k, v and the feed-forward; empty: none
};

using StreamsSpec = std::variant<std::monostate, HyperConnectionSpec, GatedStreamsSpec>;

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

// A block of a stored tensor that holds a block of a logical weight. Both count as matrices: the innermost
// axis is the columns, all others together the rows; a vector is one column. Logical (row + i, column + j) is
// stored (from_row + i * stride, from_column + j), or (from_row + j, from_column + i) where transposed.
struct StoredBlock {
  std::string tensor;
  int64_t row = 0, column = 0, rows = 0,
          columns = 0;  // rows 0: as many as the tensor has, after the block before
  int64_t from_row = 0, from_column = 0;
  int64_t stride = 1;
  bool transposed = false;
};

// How a checkpoint's matrices are quantised beside their dtype: the method by its file's name for it, and the
// extents of values that share a scale (0: a scale a matrix or a row, as their number says).
struct StoredQuantisation {
  std::string method;  // empty: not
  int64_t block_rows = 0, block_columns = 0;
};

struct ModelSpec {
  std::string family;        // as in family_list.inc; for people and records
  std::string architecture;  // as the file names it ("LlamaForCausalLM", "llama")
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t max_positions = 0;
  std::string embedding_path;
  int64_t embedding_width = 0;  // 0: hidden
  double embedding_scale = 1;
  NormSpec embedding_norm;
  std::string embedding_shift, embedding_weight;  // [hidden], added and then multiplied with; empty: none
  LinearSpec project_in, project_out;             // between embedding_width and hidden; absent: none
  std::string position_path;                      // learned positions [max_positions, embedding]; empty: none
  std::vector<float> position_table;              // fixed positions, likewise; empty: none
  // A second table [per_layer_vocab, blocks * per_layer_width] and a projection of the embedding, normed by
  // layer, give each token its input to each layer: (norm(projection) + scale * table) / sqrt(2).
  int64_t per_layer_width = 0, per_layer_vocab = 0;
  std::string per_layer_path;
  // What streams that are kept beside the blocks are at first: a fixed weight [hidden], or the embedding
  // where empty.
  std::vector<std::string> kept_streams;
  int64_t streams = 1;       // equal at first
  StreamsSpec head_streams;  // how the final norm reads them
  // Streams of AltUp beside the embedding, which is stream 0 and active: projections to and from them.
  std::vector<LinearSpec> stream_in, stream_out;
  LinearSpec per_layer_projection;
  NormSpec per_layer_norm;
  std::vector<RopeSpec> ropes;
  std::vector<BlockSpec> blocks;
  std::string depth_query;  // where blocks read from all before them: weight [hidden] of the final norm
  NormSpec final_norm;
  // Before the head: norm(activation(dense(x))); absent: none.
  LinearSpec head_dense;
  Activation head_activation = Activation::gelu;
  NormSpec head_norm;
  LinearSpec head;    // a bias is one more column of its weight; its channels are the vocabulary
  bool tied = false;  // the head's weight is the embedding table
  double logit_scale = 1;
  double logit_softcap = 0;

  // From logical names to tensors: parts of names to replace, in order, and weights that are cut or joined.
  std::vector<std::pair<std::string, std::string>> renames;
  std::vector<std::pair<std::string, std::string>>
      other_renames;  // of files that have other names; empty: none
  std::map<std::string, std::vector<StoredBlock>> stored;
  std::vector<std::string>
      ignored;  // beginnings or ends of names of tensors that carry nothing that is needed
  StoredQuantisation quantisation;
  bool multimodal = false;  // the checkpoint has parts beside the language model, which are not read
};

}  // namespace tenon
