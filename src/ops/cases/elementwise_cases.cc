// add, mul, scale, silu, swiglu and their gradient ops, cast, dropout, fill, reshape.
#include "ops/add.h"
#include "ops/cases/case_list.h"
#include "ops/cast.h"
#include "ops/dropout.h"
#include "ops/fill.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/scale.h"
#include "ops/silu.h"
#include "ops/silu_grad.h"
#include "ops/swiglu.h"
#include "ops/swiglu_grad.h"

namespace tenon {
namespace {

using Ids = std::span<const ValueId>;

constexpr DType kBlockTypes[] = {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0,
                                 DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k};

const Shape kShapes[] = {Shape{0}, Shape{1}, Shape{7}, Shape{3, 33}, Shape{2, 5, 64}, Shape{4, 1001}};

void add_plain(CaseList& list, DType dtype, const Shape& shape) {
  const CaseInput x = normal(dtype, shape, 2.0);
  list.add({x, x}, [](Builder& b, Ids in) { add(b, in[0], in[1]); });
  list.add({x, x}, [](Builder& b, Ids in) { mul(b, in[0], in[1]); });
  list.add({x}, [](Builder& b, Ids in) { scale(b, in[0], -0.37); });
  list.add({x}, [](Builder& b, Ids in) { silu(b, in[0]); });
  list.add({x, x}, [](Builder& b, Ids in) { silu_grad(b, in[0], in[1]); });
  list.add({x, x}, [](Builder& b, Ids in) { swiglu(b, in[0], in[1]); });
  list.add({x, x, x}, [](Builder& b, Ids in) { swiglu_grad(b, in[0], in[1], in[2]); });
}

void add_casts(CaseList& list) {
  const DType plain[] = {DType::f32, DType::bf16, DType::f16};
  for (DType from : plain) {
    for (DType to : plain) {
      for (const Shape& shape : kShapes) {
        list.add({normal(from, shape)}, [to](Builder& b, Ids in) { cast(b, in[0], to); });
      }
    }
  }
  // Ties both ways, the smallest and largest that stay finite, signed zero.
  const CaseInput edges =
      given(DType::f32, Shape{9},
            {0.0, -0.0, 1.00390625, 1.01171875, -65504.0, 65519.0, 0x1.8p-25, -0x1p-24, 6.1e-5});
  list.add(
      {edges}, [](Builder& b, Ids in) { cast(b, in[0], DType::bf16); }, "edges");
  list.add(
      {edges}, [](Builder& b, Ids in) { cast(b, in[0], DType::f16); }, "edges");
  for (DType from : kBlockTypes) {
    for (DType to : plain) {
      list.add({normal(from, Shape{3, 512})}, [to](Builder& b, Ids in) { cast(b, in[0], to); });
    }
  }
}

void add_dropouts(CaseList& list) {
  const CaseInput seed = given_ids({-1234567, 89});
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const Shape& shape : kShapes) {
      list.add({normal(dtype, shape), seed}, [](Builder& b, Ids in) { dropout(b, in[0], in[1], 0.1, 3); });
    }
    for (double rate : {0.0, 0.5, 0.999}) {
      list.add({normal(dtype, Shape{5, 77}), seed},
               [rate](Builder& b, Ids in) { dropout(b, in[0], in[1], rate, (int64_t{1} << 40) + 1); });
    }
  }
}

}  // namespace

void add_elementwise_cases(CaseList& list) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const Shape& shape : kShapes) add_plain(list, dtype, shape);
  }
  add_casts(list);
  add_dropouts(list);
  for (const Shape& shape : kShapes) {
    list.add({normal(DType::f32, Shape{1})}, [&shape](Builder& b, Ids in) { fill(b, in[0], shape); });
  }
  list.add({normal(DType::f32, Shape{6, 4})}, [](Builder& b, Ids in) { reshape(b, in[0], Shape{3, 2, 4}); });
  list.add({normal(DType::bf16, Shape{0, 8})}, [](Builder& b, Ids in) { reshape(b, in[0], Shape{0, 2, 4}); });
  list.add({normal(DType::q4_0, Shape{2, 64})}, [](Builder& b, Ids in) { reshape(b, in[0], Shape{4, 32}); });
}

}  // namespace tenon
