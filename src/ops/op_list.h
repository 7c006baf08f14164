// All ops by name, from op_list.inc.
#pragma once

#include <span>
#include <string_view>

#include "ir/op_def.h"

namespace tenon {

std::span<const OpDef* const> all_ops();
const OpDef* find_op(std::string_view name);  // null when there is none

}  // namespace tenon
