// Rows sorted by their group: what the kernels of grouped products walk. Lives in a kernel's workspace.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"
#include "device/kernel.h"

namespace tenon {

struct RowGroups {
  std::span<int32_t> order;   // rows of group 0, then of group 1, ..., each in ascending order
  std::span<int32_t> begins;  // [groups + 1]: where a group begins in `order`

  int64_t size(int64_t group) const {
    return begins[static_cast<size_t>(group) + 1] - begins[static_cast<size_t>(group)];
  }
  std::span<const int32_t> rows(int64_t group) const {
    return order.subspan(static_cast<size_t>(begins[static_cast<size_t>(group)]),
                         static_cast<size_t>(size(group)));
  }
};

// Integers that sort_rows needs.
inline int64_t row_groups_length(int64_t rows, int64_t groups) {
  return rows + groups + 1;
}

// Counting sort of rows by `group` (-1: in none) into `memory`.
inline RowGroups sort_rows(std::span<const int32_t> group, int64_t groups, int32_t* memory) {
  RowGroups out{{memory + groups + 1, group.size()}, {memory, static_cast<size_t>(groups) + 1}};
  for (int32_t& begin : out.begins) begin = 0;
  for (int32_t g : group) {
    CHECK(g >= -1 && g < groups, "a group is outside the matrices");
    if (g >= 0) ++out.begins[static_cast<size_t>(g) + 1];
  }
  for (size_t g = 0; g < static_cast<size_t>(groups); ++g) out.begins[g + 1] += out.begins[g];
  // Filling moves each begin to its end, which is the next one's begin.
  for (size_t r = 0; r < group.size(); ++r) {
    if (group[r] >= 0)
      out.order[static_cast<size_t>(out.begins[static_cast<size_t>(group[r])]++)] = static_cast<int32_t>(r);
  }
  for (size_t g = static_cast<size_t>(groups); g > 0; --g) out.begins[g] = out.begins[g - 1];
  out.begins[0] = 0;
  return out;
}

// The given rows of a matrix, one after another, into `to`.
inline void copy_rows(const TensorView& from, std::span<const int32_t> rows, std::byte* to) {
  const int64_t row_bytes = *dtype_bytes(from.type.dtype, from.type.shape[1]);
  for (int32_t row : rows) {
    std::memcpy(to, from.data + row * row_bytes, static_cast<size_t>(row_bytes));
    to += row_bytes;
  }
}

}  // namespace tenon
