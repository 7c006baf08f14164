// Reads a Mamba-2 layer, whose keys have other names in each family.
#pragma once

#include <string>
#include <string_view>

#include "models/config_reader.h"
#include "models/recurrence_spec.h"

namespace tenon {

struct Mamba2Keys {
  std::string_view heads = "mamba_n_heads", head_dim = "mamba_d_head", groups = "mamba_n_groups";
  std::string_view state = "mamba_d_state", taps = "mamba_d_conv", conv_bias = "mamba_conv_bias";
  std::string_view bias = "mamba_proj_bias";
  std::string_view dt_min = {};  // of the least time step; empty: none
};

// The layer at `path` of a model of that width; its gated norm is over each group, the gate before it.
Mamba2Spec read_mamba2_layer(ConfigReader& config, const Mamba2Keys& keys, const std::string& path,
                             int64_t hidden, double eps);

// Says that the keys of Mamba-2 that change no arithmetic are known, and refuses the limits of time steps
// that do. `activation_key` names the activation of the convolution.
void check_mamba2_keys(ConfigReader& config, std::string_view activation_key = "hidden_act");

}  // namespace tenon
