// Ops that update state in place, and the norm that clipping needs.
#include <limits>

#include "ops/accumulate.h"
#include "ops/adamw.h"
#include "ops/cases/case_list.h"
#include "ops/global_norm.h"
#include "ops/zero.h"

namespace tenon {
namespace {

using Ids = std::span<const ValueId>;

const Shape kShapes[] = {Shape{0}, Shape{1}, Shape{5, 7}, Shape{3, 64}, Shape{1003}};

void add_adamw(CaseList& list, const Shape& shape, const AdamWOptions& options, double grad_norm = 4.0) {
  const CaseInput x = normal(DType::f32, shape);
  list.add({x, x, normal(DType::f32, shape, 0.1), positive(DType::f32, shape, 0.01),
            given(DType::f32, Shape{1}, {grad_norm}), given(DType::f32, Shape{3}, {0.001, 0.19, 0.002})},
           [&](Builder& b, Ids in) {
             adamw(b, {.param = in[0], .m = in[2], .v = in[3]}, in[1], in[4], in[5], options);
           });
}

}  // namespace

void add_update_cases(CaseList& list) {
  for (const Shape& shape : kShapes) {
    const CaseInput x = normal(DType::f32, shape);
    for (DType dtype : {DType::f32, DType::bf16}) {
      list.add({x, normal(dtype, shape)}, [](Builder& b, Ids in) { accumulate(b, in[0], in[1]); });
      list.add({normal(dtype, shape)}, [](Builder& b, Ids in) { zero(b, in[0]); });
    }
    add_adamw(list, shape, {});
    add_adamw(list, shape, {.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1, .max_norm = 1.0});
    add_adamw(list, shape, {.weight_decay = 0.5}, std::numeric_limits<double>::infinity());
    list.add({x}, [](Builder& b, Ids in) { global_norm(b, {in[0]}); });
  }
  list.add(
      {normal(DType::f32, Shape{0}), normal(DType::f32, Shape{17, 3}), normal(DType::f32, Shape{129}, 3.0)},
      [](Builder& b, Ids in) {
        global_norm(b, {in[0], in[1], in[2]});
      });
}

}  // namespace tenon
