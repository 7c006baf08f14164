#include "plan/select_kernel.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {
namespace {

std::string type_list(std::span<const Type> types) {
  std::string out;
  for (const Type& type : types) out += (out.empty() ? "" : ", ") + type.text();
  return out;
}

std::string site_text(const OpSite& site) {
  return fmt::format("{}({}) -> ({}) {}", site.op.name, type_list(site.inputs), type_list(site.outputs),
                     site.attrs.to_text());
}

// The kernel that a rule demands for this op, or empty. The last rule wins.
std::string_view required_kernel(std::string_view op, const KernelRules& rules) {
  std::string_view required;
  for (std::string_view rule : rules.require) {
    if (rule.size() > op.size() && rule.starts_with(op) && rule[op.size()] == '=') {
      required = rule.substr(op.size() + 1);
    }
  }
  return required;
}

bool forbidden(const KernelDef& kernel, const KernelRules& rules) {
  return std::find(rules.without.begin(), rules.without.end(), kernel.name) != rules.without.end();
}

Error no_kernel(const OpSite& site, const DeviceFacts& facts, std::span<const KernelDef> kernels,
                const KernelRules& rules, std::string_view required) {
  std::string reasons;
  for (const KernelDef& kernel : kernels) {
    if (kernel.op != site.op.name) continue;
    const char* why = "serves other types, attributes or devices";
    if (!required.empty() && kernel.name != required) why = "is not the required one";
    if (forbidden(kernel, rules)) why = "is forbidden";
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : "; ", kernel.name, why);
  }
  if (reasons.empty()) reasons = "the backend has no kernel for this op";
  std::string hint = required.empty() ? std::string() : fmt::format("Kernel '{}' is required.", required);
  return unsupported(fmt::format("no kernel serves it on {}: {}", facts.name, reasons), site_text(site),
                     std::move(hint));
}

}  // namespace

Result<const KernelDef*> select_kernel(const OpSite& site, const DeviceFacts& facts,
                                       std::span<const KernelDef> kernels, const KernelRules& rules) {
  const std::string_view required = required_kernel(site.op.name, rules);
  const KernelDef* best = nullptr;
  double best_cost = 0;
  for (const KernelDef& kernel : kernels) {
    if (kernel.op != site.op.name) continue;
    if (!required.empty() && kernel.name != required) continue;
    if (forbidden(kernel, rules) || !kernel.serves(site, facts)) continue;
    const double cost = kernel.cost ? kernel.cost(site, facts) : 1.0;
    if (best == nullptr || cost < best_cost) {
      best = &kernel;
      best_cost = cost;
    }
  }
  if (best == nullptr) return no_kernel(site, facts, kernels, rules, required);
  return best;
}

}  // namespace tenon
