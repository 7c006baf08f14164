#include "passes/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "ops/dropout.h"
#include "ops/grouped_matmul.h"
#include "ops/matmul.h"
#include "ops/permute.h"
#include "ops/reshape.h"
#include "passes/rewriter.h"

namespace tenon {
namespace {

std::string last_part(const std::string& module) {
  return module.substr(module.rfind('.') + 1);
}

bool is_linear(const Program& program, const Op& op) {
  if (op.def != &matmul_op() || !op.attrs.flag("trans_b") || op.name.empty()) return false;
  const Value& weight = program.value(op.inputs[1]);
  return weight.role == Role::weight && weight.name.ends_with(".weight") &&
         last_part(weight.name.substr(0, weight.name.rfind('.'))) == last_part(op.name);
}

bool is_experts(const Program& program, const Op& op) {
  if (op.def != &grouped_matmul_op() || !op.attrs.flag("trans_b") || op.name.empty()) return false;
  const Value& weight = program.value(op.inputs[1]);
  return weight.role == Role::weight && weight.name == op.name;
}

// A grouped product with a linear layer's weight cut by head, rows of one head each (the weight's own way
// round, or not): where latent attention decodes.
bool is_by_head(const Program& program, const Op& op) {
  if (op.def != &grouped_matmul_op() || op.name.empty()) return false;
  const OpId cut = program.value(op.inputs[1]).producer;
  if (!cut.valid() || program.op(cut).def != &reshape_op()) return false;
  const Value& weight = program.value(program.op(cut).inputs[0]);
  return weight.role == Role::weight && weight.name == op.name + ".weight";
}

std::string parent_of(const std::string& module) {
  return module.substr(0, module.rfind('.'));
}

std::string known_targets(const std::vector<AdapterModule>& linears) {
  std::set<std::string> parts;
  for (const AdapterModule& linear : linears) parts.insert(last_part(linear.module));
  std::string out;
  for (const std::string& part : parts) out += fmt::format("{}{}", out.empty() ? "" : ", ", part);
  return out;
}

template <typename T>
T matching_or(const std::map<std::string, T>& patterns, const std::string& module, T otherwise) {
  for (const auto& [pattern, value] : patterns) {
    if (names_module(pattern, module)) return value;
  }
  return otherwise;
}

template <typename T>
Status check_patterns(const std::map<std::string, T>& patterns, const std::vector<AdapterModule>& chosen,
                      std::string_view option) {
  for (const auto& [pattern, value] : patterns) {
    bool used = false;
    for (const AdapterModule& module : chosen) used = used || names_module(pattern, module.module);
    if (!used) {
      return bad_argument(fmt::format("'{}' matches none of the adapted modules", pattern),
                          std::string(option), "Name a module that --targets chooses.");
    }
    if (!(value > 0))
      return bad_argument(fmt::format("the value for '{}' must be positive", pattern), std::string(option));
  }
  return {};
}

struct GroupedValues {
  ValueId x, group, base, a, b;
};

ValueId add_expert_adapter(Builder& b, const AdapterModule& module, const GroupedValues& v) {
  b.set_name(module.module + ".lora");
  const ValueId a = reshape(b, v.a, Shape{module.experts, module.rank, module.in});
  const ValueId by_rank = reshape(b, v.b, Shape{module.out, module.rank, module.experts});
  const ValueId low = grouped_matmul(b, v.x, a, v.group);
  return grouped_matmul(b, low, permute(b, by_rank, {2, 0, 1}), v.group,
                        {.alpha = module.scale, .addend = v.base});
}

// out = base + scale * (x · A^T) · B^T, or scale * (x · B) · A the other way round, with the rows of B that
// belong to the head of each row of x.
ValueId add_adapter_by_head(Builder& b, const AdapterModule& module, const GroupedValues& v, bool transposed,
                            int64_t heads) {
  b.set_name(module.module + ".lora");
  const DType compute = b.dtype(v.x);
  const ValueId by_head = reshape(b, v.b, Shape{heads, module.out / heads, module.rank});
  if (transposed) {
    const ValueId low = matmul(b, v.x, v.a, {.trans_b = true, .out_dtype = compute});
    return grouped_matmul(b, low, by_head, v.group, {.alpha = module.scale, .addend = v.base});
  }
  const ValueId low = grouped_matmul(b, v.x, by_head, v.group, {.trans_b = false});
  return matmul(b, low, v.a, {.alpha = module.scale, .out_dtype = compute, .addend = v.base});
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::vector<AdapterModule> linear_modules(const Program& program) {
  std::vector<AdapterModule> out;
  std::set<std::string_view> seen;  // a module that runs several times is one
  for (const Op& op : program.ops) {
    if (!is_linear(program, op) || !seen.insert(op.name).second) continue;
    const Shape& weight = program.value(op.inputs[1]).type.shape;
    out.push_back({op.name, op.name, 0, weight[1], weight[0]});
  }
  for (const Op& op : program.ops) {
    if (!is_experts(program, op) || !seen.insert(op.name).second) continue;
    const Shape& weight = program.value(op.inputs[1]).type.shape;
    const std::string parent = parent_of(op.name);
    if (!out.empty() && out.back().key == parent) out.back().key += ".base_layer";
    out.push_back({op.name, parent, weight[0], weight[2], weight[1]});
  }
  return out;
}

bool names_module(std::string_view pattern, std::string_view module) {
  constexpr std::string_view kAnyParent = ".*\\.";  // as PEFT's configurations write "at any depth"
  if (pattern.starts_with(kAnyParent)) pattern.remove_prefix(kAnyParent.size());
  if (!module.ends_with(pattern) || pattern.empty()) return false;
  return module.size() == pattern.size() || module[module.size() - pattern.size() - 1] == '.';
}

Result<std::vector<AdapterModule>> choose_modules(const Program& program, const AdapterOptions& options) {
  if (options.rank < 1) {
    return bad_argument(fmt::format("the rank must be at least 1, but is {}", options.rank), "rank");
  }
  if (!(options.alpha > 0)) {
    return bad_argument(fmt::format("alpha must be positive, but is {}", options.alpha), "alpha",
                        "Usual values are the rank or twice the rank.");
  }
  const std::vector<AdapterModule> linears = linear_modules(program);
  const bool all =
      options.targets.empty() || (options.targets.size() == 1 && options.targets[0] == "all-linear");
  if (!all) {
    for (const std::string& target : options.targets) {
      bool used = false;
      for (const AdapterModule& linear : linears) used = used || names_module(target, linear.module);
      if (!used) {
        return bad_argument(fmt::format("'{}' matches no linear layer of this model", target), "targets",
                            fmt::format("There are: {}; or all-linear.", known_targets(linears)));
      }
    }
  }
  std::vector<AdapterModule> chosen;
  for (AdapterModule module : linears) {
    bool wanted = all && module.experts == 0 && !contains(options.not_linear, module.module);
    for (const std::string& target : options.targets) wanted = wanted || names_module(target, module.module);
    if (!wanted) continue;
    module.rank = matching_or(options.rank_pattern, module.module, options.rank);
    const double alpha = matching_or(options.alpha_pattern, module.module, options.alpha);
    const double rank = static_cast<double>(module.rank);
    module.scale = alpha / (options.rslora ? std::sqrt(rank) : rank);
    chosen.push_back(std::move(module));
  }
  RETURN_IF_ERROR(check_patterns(options.rank_pattern, chosen, "rank-pattern"));
  RETURN_IF_ERROR(check_patterns(options.alpha_pattern, chosen, "alpha-pattern"));
  return chosen;
}

Program add_adapters(const Program& program, const std::vector<AdapterModule>& modules,
                     AdapterDropout dropout) {
  std::unordered_map<std::string_view, int64_t>
      index;  // module -> its place, which is also its dropout stream
  for (size_t i = 0; i < modules.size(); ++i) index.emplace(modules[i].module, static_cast<int64_t>(i));
  std::set<int64_t> adapted;
  Rewriter rewriter(program);
  Builder& b = rewriter.builder();
  for (const Op& op : program.ops) {
    rewriter.copy(op);
    const bool by_head = is_by_head(program, op);
    const bool is_adaptable = by_head || is_linear(program, op) || is_experts(program, op);
    const auto at = is_adaptable ? index.find(op.name) : index.end();
    if (at == index.end()) continue;
    adapted.insert(at->second);
    const AdapterModule& module = modules[static_cast<size_t>(at->second)];
    const ValueId a = b.add_static(Role::adapter, module.a_name(), {DType::f32, module.a_shape()});
    const ValueId bb = b.add_static(Role::adapter, module.b_name(), {DType::f32, module.b_shape()});
    const ValueId base = rewriter.map(op.outputs[0]);
    ValueId x = rewriter.map(op.inputs[0]);
    const DType compute = b.dtype(x);
    b.set_name(module.module + ".lora");
    if (by_head) {
      const GroupedValues values{x, rewriter.map(op.inputs[2]), base, a, bb};
      const int64_t heads = program.value(op.inputs[1]).type.shape[0];
      rewriter.set(op.outputs[0], add_adapter_by_head(b, module, values, op.attrs.flag("trans_b"), heads));
      continue;
    }
    if (module.experts > 0) {
      const ValueId group = rewriter.map(op.inputs[2]);
      rewriter.set(op.outputs[0], add_expert_adapter(b, module, {x, group, base, a, bb}));
      continue;
    }
    if (dropout.rate > 0) {
      const ValueId seed = b.add_static(Role::input, kDropoutSeedInput, {DType::i32, Shape{2}});
      x = tenon::dropout(b, x, seed, dropout.rate, at->second);
    }
    const ValueId low = matmul(b, x, a, {.trans_b = true, .out_dtype = compute});
    const MatmulOptions up{
        .trans_b = true, .alpha = module.scale, .out_dtype = b.dtype(base), .addend = base};
    rewriter.set(op.outputs[0], matmul(b, low, bb, up));
  }
  CHECK(adapted.size() == modules.size(), "the program lacks a module that was chosen");
  return rewriter.finish();
}

}  // namespace tenon
