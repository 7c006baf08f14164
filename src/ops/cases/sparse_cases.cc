// Choosing keys and attending to them: packed, paged, and the gradient.
#include "ops/cases/case_list.h"
#include "ops/index_top_k.h"
#include "ops/sparse_attention.h"

namespace tenon {
namespace {

using Ids = std::span<const ValueId>;

// sparse_attention_grad's out and lse are what sparse_attention gives for its other inputs.
void run_forward(const OpCase& op_case, ReferenceValues& inputs) {
  const std::vector<Type> types = op_case.input_types();
  const ReferenceValues forward = evaluate_op(sparse_attention_op(), op_case.attrs, std::span(types).first(4),
                                              ReferenceValues(inputs.begin(), inputs.begin() + 4));
  for (size_t output = 0; output < 2; ++output) {
    for (size_t i = 0; i < forward[output].size(); ++i)
      inputs[4 + output][i] = round_to_dtype(forward[output][i], types[4 + output].dtype);
  }
}

void add_choices(CaseList& list, DType dtype) {
  const CaseInput q = normal(dtype, Shape{6, 3, 4}), k = normal(dtype, Shape{6, 1, 4});
  const CaseInput weights = normal(DType::f32, Shape{6, 3});
  for (const int64_t n : {1, 3, 8}) {
    list.add({q, k, weights, given_ids({0, 0, 2, 2, 2, 2})},
             [&](Builder& b, Ids in) { index_top_k(b, in[0], in[1], in[2], in[3], n, 0.5); });
    list.add(
        {normal(dtype, Shape{3, 3, 4}), normal(dtype, Shape{3, 4, 1, 4}), normal(DType::f32, Shape{3, 3}),
         given(DType::i32, Shape{1, 3}, {2, 0, 1}), given_ids({0, -1, 0}), given_ids({8, 0, 1})},
        [&](Builder& b, Ids in) {
          index_top_k_paged(b, {in[0], in[1], in[2], in[3], in[4], in[5]}, n, 0.5);
        });
  }
}

void add_attentions(CaseList& list, DType dtype) {
  const CaseInput q = normal(dtype, Shape{4, 4, 6}), k = normal(dtype, Shape{4, 2, 6});
  const CaseInput v = normal(dtype, Shape{4, 2, 5}), out = normal(dtype, Shape{4, 4, 5});
  const CaseInput ids = given(DType::i32, Shape{4, 3}, {0, -1, -1, 0, 1, -1, -1, -1, -1, 0, 2, 3});
  list.add({q, k, v, ids}, [](Builder& b, Ids in) { sparse_attention(b, in[0], in[1], in[2], in[3], 0.4); });
  list.add({q, k, v, ids, out, normal(DType::f32, Shape{4, 4}), out}, [](Builder& b, Ids in) {
    sparse_attention_grad(b, {in.begin(), in.end()}, 0.4);
  });
  list.complete_with(run_forward);
  list.add({normal(dtype, Shape{3, 4, 6}), normal(dtype, Shape{3, 4, 2, 6}), normal(dtype, Shape{3, 4, 2, 5}),
            given(DType::i32, Shape{1, 3}, {2, 0, 1}), given_ids({0, -1, 0}),
            given(DType::i32, Shape{3, 2}, {0, 9, 1, 2, 4, -1})},
           [](Builder& b, Ids in) {
             sparse_paged_attention(b, {in[0], in[1], in[2], in[3], in[4], in[5]}, 0.4);
           });
}

}  // namespace

void add_sparse_cases(CaseList& list) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    add_choices(list, dtype);
    add_attentions(list, dtype);
  }
}

}  // namespace tenon
