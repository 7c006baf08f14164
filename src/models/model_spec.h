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
#include "ops/position_scale.h"
#include "ops/routing.h"

namespace tenon {

struct LinearSpec {
  std::string path;
  int64_t in = 0;
  int64_t out = 0;
  bool bias = false;
  std::string weight_name = ".weight";  // after the path

  bool present() const { return out > 0; }
};

enum class NormKind : uint8_t { none, rms, layer };

struct NormSpec {
  NormKind kind = NormKind::none;
  std::string path;
  int64_t width = 0;
  double eps = 0;
  double weight_offset = 0;  // 1 where weights are stored zero-centred
  bool weight = true;
  bool bias = false;
  int64_t heads = 0;  // > 0: each head has its own weights, [heads, width]
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
  double qkv_clip = 0;              // values are cut to +- this; 0: not
  bool v_is_k = false;              // v is the raw k projection
  NormSpec q_norm, k_norm, v_norm;  // over head_dim, or over the whole width
  bool norm_after_rope = false;
  int32_t rope = -1;  // index into ModelSpec::ropes, or -1
  std::optional<PositionScale> q_scale;
  double v_scale = 1;
  AttendSpec attend;
  // out * gate, by head (gate.out = heads) or by element; `gate_in_q`: q's projection gives each head's q and
  // gate side by side.
  GateKind gate_kind = GateKind::none;
  LinearSpec gate;
  bool gate_in_q = false;
  NormSpec out_norm;  // before o, over the whole width
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
  LinearSpec kv_a, kv_b, o;  // kv_a gives latent and rotary key side by side
  NormSpec q_a_norm, kv_a_norm, k_rope_norm;
  double q_latent_scale = 1, kv_latent_scale = 1;
  int32_t rope = -1;
  std::optional<PositionScale> q_scale;
  AttendSpec attend;
  GateKind gate_kind = GateKind::none;
  LinearSpec gate;
};

enum class Activation : uint8_t { silu, gelu, gelu_tanh, relu, relu2, quick_gelu, xielu };

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

  bool gated() const { return gate.present() || gate_up.present(); }
};

enum class RouterScores : uint8_t { softmax, sigmoid, sqrt_softplus, softmax_of_chosen, sigmoid_of_chosen };

// Experts chosen for each token by a router.
struct MoeSpec {
  LinearSpec router;
  RouterScores scores = RouterScores::softmax;
  std::string selection_bias;   // weight [experts], added to the scores to select; empty: none
  bool bias_on_logits = false;  // the bias is added to logits, and selects there
  TopKOptions top_k;
  bool renormalise = false;
  double renormalise_eps = 0;
  double scale = 1;
  bool scale_inputs = false;  // weights multiply what goes into the experts, not what comes out
  std::string output_bias;    // weight [hidden] added to the sum; empty: none

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
  double sum_scale = 1;    // of routed + shared
  NormSpec routed_norm;    // of the routed sum, before the shared expert is added
};

// A dense MLP and experts side by side, each between norms of its own.
using MixerSpec = std::variant<std::monostate, AttentionSpec, LatentAttentionSpec>;
using FeedForwardSpec = std::variant<std::monostate, MlpSpec, MoeSpec>;

// Sequential: x += s * post(mixer(pre(x))), then the same with the feed-forward; sum norms are applied to the
// new x. Parallel: x += s * (mixer(pre(x)) + feed_forward(pre'(x))); pre' is pre where it has no norm.
struct BlockSpec {
  NormSpec mixer_norm, mixer_post_norm, mixer_sum_norm;
  MixerSpec mixer;
  NormSpec feed_forward_norm, feed_forward_post_norm, feed_forward_sum_norm;
  FeedForwardSpec feed_forward;
  bool parallel = false;
  double residual_scale = 1;
};

// A block of a stored tensor that holds a block of a logical weight. Both count as matrices: the innermost
// axis is the columns, all others together the rows; a vector is one column. Logical (row + i, column + j) is
// stored (from_row + i * stride, from_column + j), or (from_row + j, from_column + i) where transposed.
struct StoredBlock {
  std::string tensor;
  int64_t row = 0, column = 0, rows = 0, columns = 0;
  int64_t from_row = 0, from_column = 0;
  int64_t stride = 1;
  bool transposed = false;
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
  LinearSpec project_in, project_out;  // between embedding_width and hidden; absent: none
  std::string position_path;           // learned positions [max_positions, embedding]; empty: none
  std::vector<float> position_table;   // fixed positions, likewise; empty: none
  std::vector<RopeSpec> ropes;
  std::vector<BlockSpec> blocks;
  NormSpec final_norm;
  LinearSpec head;    // a bias is one more column of its weight
  bool tied = false;  // the head's weight is the embedding table
  double logit_scale = 1;
  double logit_softcap = 0;

  // From logical names to tensors: parts of names to replace, in order, and weights that are cut or joined.
  std::vector<std::pair<std::string, std::string>> renames;
  std::map<std::string, std::vector<StoredBlock>> stored;
};

}  // namespace tenon
