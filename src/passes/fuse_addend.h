// Folds an addition into the matrix product that feeds it: add(x, matmul(a, b)) becomes matmul(a, b, addend
// x), also through a chain of products (base layer, then its adapter). One pass over memory less, forward and
// backward.
#pragma once

#include "ir/program.h"

namespace tenon {

Program fuse_addend(const Program& program);

}  // namespace tenon
