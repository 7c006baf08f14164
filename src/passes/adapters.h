// Low-rank adapters (Hu et al. 2021) as a pass: y = x·W^T becomes y + scale * dropout(x)·A^T·B^T at each
// chosen linear layer. Which layers are chosen is decided, and refused, before: a target that matches nothing
// is an error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/program.h"

namespace tenon {

struct AdapterOptions {
  int64_t rank = 16;
  double alpha = 32;
  bool rslora = false;               // scale alpha / sqrt(rank) (Kalajdzievski 2023) instead of alpha / rank
  std::vector<std::string> targets;  // module names or their last parts; or just "all-linear"
  std::vector<std::string> not_linear;          // modules that all-linear leaves out
  std::map<std::string, int64_t> rank_pattern;  // module name or its end -> rank
  std::map<std::string, double> alpha_pattern;  // likewise -> alpha
};

// One adapted layer: A is [rank, in], B is [out, rank], both f32. Stacked experts have one A and one B an
// expert: row e * rank + r of A belongs to expert e, and so does column r * experts + e of B (PEFT's layout).
struct AdapterModule {
  std::string module;   // "model.layers.0.self_attn.q_proj"
  std::string key;      // what the adapter's tensors are called by; the module, but for experts
  int64_t experts = 0;  // 0: a linear layer
  int64_t in = 0;
  int64_t out = 0;
  int64_t rank = 0;
  double scale = 1;

  std::string a_name() const { return key + ".lora_A.weight"; }
  std::string b_name() const { return key + ".lora_B.weight"; }
  int64_t rank_rows() const { return experts > 0 ? rank * experts : rank; }
  Shape a_shape() const { return Shape{rank_rows(), in}; }
  Shape b_shape() const { return Shape{out, rank_rows()}; }
};

// Linear layers of a program: products of a weight whose name ends as the op's and in ".weight". Layers that
// share a weight have names of their own, and so adapters of their own. Then its stacked
// experts: grouped products of a weight whose name is the op's; the first of two that share a parent is
// called parent + ".base_layer", the second parent, as PEFT wraps them.
std::vector<AdapterModule> linear_modules(const Program& program);

// Whether `pattern` names the module: it is the module's path or its last parts ("q_proj",
// "self_attn.q_proj"), with or without PEFT's leading ".*\.".
bool names_module(std::string_view pattern, std::string_view module);

// The layers that the options choose. Errors: bad_argument for a rank below 1, a target or pattern that
// matches nothing (listing the names that exist).
Result<std::vector<AdapterModule>> choose_modules(const Program& program, const AdapterOptions& options);

struct AdapterDropout {
  double rate = 0;  // 0: no dropout (evaluation, generation)
};
// Input of programs with dropout: i32 [2], the key of this micro-step's masks.
inline constexpr const char* kDropoutSeedInput = "dropout_seed";

// The program with adapters at `modules`; CHECKs that it has each of them.
Program add_adapters(const Program& program, const std::vector<AdapterModule>& modules,
                     AdapterDropout dropout = {});

}  // namespace tenon
