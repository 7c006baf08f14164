// Mixtures of experts as plain data: the router, what it chooses by, and the experts, which are MLPs or heads
// of attention.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/attention_spec.h"
#include "models/feed_forward_spec.h"
#include "models/layer_spec.h"
#include "ops/routing.h"

namespace tenon {

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

}  // namespace tenon
