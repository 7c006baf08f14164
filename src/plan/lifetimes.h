// How long the bytes of each value of a program are needed and whose bytes they are: views, in-place updates
// and in-place choices. Decides no offset.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "device/kernel.h"
#include "plan/plan.h"

namespace tenon {

struct Lifetime {
  // Whose bytes: the value itself, or through views and in-place updates the first value that lived there.
  ValueId root;
  // fresh for a value with bytes of its own in the work arena (fresh or reuse is known after packing),
  // static_data for a static value (external is the plan's to say), else in_place or view.
  PlacementKind kind = PlacementKind::fresh;
  int32_t first_step = 0;  // as in Placement
  int32_t last_step = 0;
};

struct Lifetimes {
  std::vector<Lifetime> values;         // one for each value
  std::vector<int32_t> root_last_step;  // by value id: for a root, the last step that needs its bytes
};

// `kernels` has one entry for each op, null for views. With `in_place`, an output takes the place of a dying
// input where the op's may-alias and the kernel allow it, the byte sizes agree and the bytes are not static.
// Fails where the program reads a value whose bytes an in-place update has changed.
Result<Lifetimes> find_lifetimes(const Program& program, std::span<const KernelDef* const> kernels,
                                 bool in_place);

// Whether the op only shows its inputs under other shapes, so that no kernel runs.
bool is_view_op(std::span<const Alias> aliases);

}  // namespace tenon
