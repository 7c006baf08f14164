// Mixers in which each token attends to the keys of others, as plain data: grouped, latent, with relative
// positions, convolved and compressed attention, and how each chooses the keys that are seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/layer_spec.h"
#include "ops/biased_attention.h"
#include "ops/position_scale.h"

namespace tenon {

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
// second half is taken off the first, times lambda = exp(q1 . k1) - exp(q2 . k2) + init, of the weights
// path + ".lambda_q1" and so on, [head_dim].
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

}  // namespace tenon
