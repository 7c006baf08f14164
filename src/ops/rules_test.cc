// What shape rules say of inputs that do not fit.
#include "ops/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/cache_write.h"
#include "ops/cast.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/linear_cross_entropy.h"
#include "ops/matmul.h"
#include "ops/mul.h"
#include "ops/op_cases.h"
#include "ops/op_list.h"
#include "ops/paged_attention.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"

namespace tenon {
namespace {

using testing::HasSubstr;

std::string error_of(const OpDef& op, const std::vector<Type>& inputs, const Attrs& attrs = {}) {
  const auto types = op.infer(OpSite{op, attrs, inputs, {}});
  return types.ok() ? "fits" : types.error().text();
}

Type f32(Shape shape) {
  return Type{DType::f32, shape};
}
Type bf16(Shape shape) {
  return Type{DType::bf16, shape};
}
Type i32(Shape shape) {
  return Type{DType::i32, shape};
}

TEST(ShapeErrors, NameTheOpTheInputAndAllTypes) {
  EXPECT_EQ(error_of(mul_op(), {f32({2, 3}), bf16({2, 3})}),
            "mul: input 1 is bf16[2, 3], expected f32[2, 3] as input 0\n  Inputs: f32[2, 3], bf16[2, 3].");
  EXPECT_EQ(error_of(embedding_op(), {f32({9, 4}), f32({5})}, {{"dtype", DType::f32}}),
            "embedding: ids is f32[5], expected a i32 tensor of rank 1\n  Inputs: f32[9, 4], f32[5]; "
            "attributes: dtype=f32.");
  EXPECT_THAT(error_of(mul_op(), {f32({2})}), HasSubstr("takes 2 inputs, given 1"));
}

TEST(ShapeErrors, Matmul) {
  const Attrs linear{{"trans_a", false}, {"trans_b", true}, {"alpha", 1.0}, {"out_dtype", DType::f32}};
  EXPECT_THAT(error_of(matmul_op(), {f32({2, 3}), f32({4, 5})}, linear),
              HasSubstr("the inner extent of b is 5, expected 3"));
  EXPECT_THAT(error_of(matmul_op(), {f32({2, 3}), f32({4, 3}), f32({2})}, linear),
              HasSubstr("addend is neither of the output's shape nor one row of it"));
  EXPECT_THAT(error_of(matmul_op(), {f32({2, 33}), Type{DType::q4_0, Shape{4, 33}}}, linear),
              HasSubstr("b is q4_0[4, 33], whose rows are not whole blocks of 32"));
  EXPECT_THAT(error_of(matmul_op(), {Type{DType::q4_0, Shape{2, 32}}, f32({4, 32})}, linear),
              HasSubstr("a is q4_0[2, 32], expected a floating-point tensor of rank 2"));
}

TEST(ShapeErrors, Attention) {
  const Attrs attrs = attention_attrs({});
  EXPECT_THAT(error_of(attention_op(), {f32({5, 3, 8}), f32({5, 2, 8}), f32({5, 2, 8}), i32({5})}, attrs),
              HasSubstr("heads is not a multiple of kv_heads"));
  EXPECT_THAT(error_of(attention_op(), {f32({5, 2, 8}), f32({5, 2, 7}), f32({5, 2, 8}), i32({5})}, attrs),
              HasSubstr("head_dim of the keys is 7, expected 8"));
  EXPECT_THAT(error_of(attention_op(), {f32({5, 2, 8}), f32({5, 2, 8}), f32({5, 2, 8}), i32({4})}, attrs),
              HasSubstr("the length of sequence_begin is 4, expected 5"));
  EXPECT_THAT(error_of(attention_op(), {f32({5, 2, 8}), bf16({5, 2, 8}), f32({5, 2, 8}), i32({5})}, attrs),
              HasSubstr("differ in dtype"));
  EXPECT_THAT(error_of(attention_op(), {f32({5, 2, 8}), f32({5, 2, 8}), f32({5, 2, 8}), i32({5})},
                       attention_attrs({.window = -1})),
              HasSubstr("window is negative"));
  EXPECT_THAT(
      error_of(paged_attention_op(),
               {f32({5, 2, 8}), f32({3, 4, 2, 8}), f32({3, 5, 2, 8}), i32({1, 2}), i32({5}), i32({5})},
               attrs),
      HasSubstr("page_tokens of v_cache is 5, expected 4"));
}

TEST(ShapeErrors, Others) {
  EXPECT_THAT(error_of(rms_norm_op(), {f32({2, 3}), f32({2})}, {{"eps", 1e-5}, {"weight_offset", 0.0}}),
              HasSubstr("the length of weight is 2, expected 3"));
  EXPECT_THAT(
      error_of(rope_op(), {f32({2, 1, 6}), f32({2, 2, 4})}, {{"interleaved", true}, {"inverse", false}}),
      HasSubstr("table rotates more elements than a head has"));
  EXPECT_THAT(error_of(linear_cross_entropy_op(), {f32({4, 8}), f32({9, 7}), i32({4})},
                       linear_cross_entropy_attrs({})),
              HasSubstr("the hidden size of weight is 7, expected 8"));
  EXPECT_THAT(error_of(dropout_op(), {f32({4}), i32({2})}, {{"rate", 1.0}, {"stream", int64_t{0}}}),
              HasSubstr("rate is outside [0, 1)"));
  EXPECT_THAT(error_of(cast_op(), {f32({4})}, {{"dtype", DType::q4_0}}),
              HasSubstr("dtype is not a plain floating-point one"));
  EXPECT_THAT(error_of(reshape_op(), {f32({4})}, {{"shape", std::vector<int64_t>{3}}}),
              HasSubstr("the number of elements of the shape is 3, expected 4"));
  EXPECT_THAT(
      error_of(reshape_op(), {Type{DType::q4_0, Shape{64}}}, {{"shape", std::vector<int64_t>{4, 16}}}),
      HasSubstr("cuts a block"));
  EXPECT_THAT(error_of(adamw_op(), {f32({4}), f32({5}), f32({4}), f32({4}), f32({1}), f32({3})}),
              HasSubstr("differ in shape"));
  EXPECT_THAT(error_of(cache_write_op(), {f32({4, 2, 3, 8}), bf16({5, 3, 8}), i32({5})}),
              HasSubstr("cache and rows differ in dtype"));
}

// Every rule answers with an error, and never aborts, where inputs are missing, of rank 0 or of no number.
TEST(ShapeErrors, NoRuleAbortsOnWrongInputs) {
  for (const OpCase& op_case : op_cases()) {
    const std::vector<Type> fitting = op_case.input_types();
    EXPECT_NE(error_of(*op_case.op, {}, op_case.attrs), "fits") << op_case.name;
    for (size_t i = 0; i < fitting.size(); ++i) {
      std::vector<Type> types = fitting;
      types[i] = Type{DType::u8, fitting[i].shape};
      if (op_case.op->name != "reshape") {
        EXPECT_NE(error_of(*op_case.op, types, op_case.attrs), "fits") << op_case.name << i;
      }
      types[i] = Type{fitting[i].dtype, Shape{}};
      error_of(*op_case.op, types, op_case.attrs);
      types.resize(i);
      error_of(*op_case.op, types, op_case.attrs);
    }
  }
}

}  // namespace
}  // namespace tenon
