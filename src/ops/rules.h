// What the shape and alias rules of ops share: checks of inputs whose errors name the op, the input and what
// it should be, and the rules of element-wise ops. For ops/ alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/op_def.h"

namespace tenon {

enum class Elements : uint8_t {
  floating,  // a plain floating-point dtype
  number,    // floating, or block-quantised with whole blocks along the innermost axis
  f32,
  i32,
};

struct InputRule {
  std::string_view name;
  Elements elements = Elements::floating;
  int rank = -1;  // -1: any
};

using InferredTypes = Result<std::vector<Type>>;

// The inputs do not fit: `message` with the op as subject and all input types in the hint.
Error misfit(const OpSite& site, std::string message);

// One input for each rule, each of its elements and rank.
Status check_inputs(const OpSite& site, std::span<const InputRule> rules);
// "WHAT is ACTUAL, expected WANTED" unless they are equal.
Status expect_extent(const OpSite& site, std::string_view what, int64_t actual, int64_t wanted);
// All inputs have the type of the first.
Status expect_equal_types(const OpSite& site);
// "MESSAGE" unless the condition holds: for the range of attributes.
Status expect(const OpSite& site, bool condition, std::string_view message);

// Element-wise ops: any number of inputs (at least one) of one floating type, and one output of that type.
InferredTypes infer_elementwise(const OpSite& site);
// Each output may overwrite each input whose elements are as wide as its own and as many.
std::vector<Alias> alias_elementwise(const OpSite& site);

// x's gradient in the dtype that gradients of values of `dtype` have: `dtype` itself, or f32 where that
// cannot hold a gradient (block-quantised).
DType gradient_dtype(DType dtype);
// `x` in `dtype`: x itself where it already is.
ValueId cast_to(Builder& builder, ValueId x, DType dtype);

// Bytes of `elements` values; sizes are known to be whole blocks.
int64_t bytes_of(DType dtype, int64_t elements);

}  // namespace tenon
