// Sums of rows by id, in f32: the gradients of gathering rows.
#pragma once

#include <cstdint>

#include "base/threads.h"
#include "device/kernel.h"

namespace tenon {

// sums[r] = the sum of the rows i of dy [rows, width] with ids[i] == r, in the order of i, for each r of
// `range`. `sums` [ids there are, width] is that of all ids. dy is of any dtype without blocks.
void sum_rows_by_id(const TensorView& dy, const int32_t* ids, Range range, float* sums);

}  // namespace tenon
