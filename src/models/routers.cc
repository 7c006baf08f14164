#include "models/routers.h"

namespace tenon {
namespace {

void add_router(const MoeSpec& moe, std::vector<std::string>& out) {
  if (moe.router.present() && !moe.router_is_linear) out.push_back(moe.router.path);
}

}  // namespace

std::vector<std::string> parameter_routers(const ModelSpec& spec) {
  std::vector<std::string> out;
  for (const BlockSpec& block : spec.blocks) {
    if (const auto* moe = std::get_if<MoeSpec>(&block.feed_forward)) add_router(*moe, out);
    if (const auto* a = std::get_if<AttentionExpertsSpec>(&block.mixer)) add_router(a->experts, out);
    if (block.aside) add_router(block.aside->moe, out);
    if (block.shortcut) add_router(*block.shortcut, out);
  }
  return out;
}

}  // namespace tenon
