// Architectures that are known and not served, each with the reason, so that a refusal says it.
#pragma once

#include <span>
#include <string_view>

namespace tenon {

struct LeftOut {
  std::string_view model_type;
  std::string_view reason;
};

std::span<const LeftOut> left_out();
const LeftOut* find_left_out(std::string_view model_type);  // null where it is not in the list

}  // namespace tenon
