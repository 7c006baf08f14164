// linear_cross_entropy and its two gradient ops.
#include "ops/cases/case_list.h"
#include "ops/linear_cross_entropy.h"
#include "ops/linear_cross_entropy_grad_hidden.h"
#include "ops/linear_cross_entropy_grad_weight.h"
#include "ops/linear_cross_entropy_with_grad.h"

namespace tenon {
namespace {

using Ids = std::span<const ValueId>;

struct Head {
  DType hidden, weight;
  int64_t hidden_size, vocab;
  std::vector<double> labels;
  LinearCrossEntropyOptions options = {};
};

// The gradient ops' lse is what the forward op gives.
void run_forward(const OpCase& op_case, ReferenceValues& inputs) {
  const std::vector<Type> types = op_case.input_types();
  const ReferenceValues forward =
      evaluate_op(linear_cross_entropy_op(), op_case.attrs, std::span(types).first(3),
                  ReferenceValues(inputs.begin(), inputs.begin() + 3));
  for (size_t i = 0; i < inputs[3].size(); ++i) inputs[3][i] = round_to_dtype(forward[1][i], DType::f32);
}

void add_head(CaseList& list, const Head& h) {
  const auto tokens = static_cast<int64_t>(h.labels.size());
  const CaseInput hidden = normal(h.hidden, Shape{tokens, h.hidden_size});
  const CaseInput weight = normal(h.weight, Shape{h.vocab, h.hidden_size}, 0.3);
  const CaseInput labels = given_ids(h.labels);
  const CaseInput row = normal(DType::f32, Shape{tokens});
  list.add({hidden, weight, labels},
           [&](Builder& b, Ids in) { linear_cross_entropy(b, in[0], in[1], in[2], h.options); });
  const auto grad_hidden = [&](Builder& b, Ids in) {
    linear_cross_entropy_grad_hidden(b, in[0], in[1], in[2], in[3], in[4], h.options);
  };
  const auto grad_weight = [&](Builder& b, Ids in) {
    linear_cross_entropy_grad_weight(b, in[0], in[1], in[2], in[3], in[4], h.options);
  };
  list.add({hidden, weight, labels, row, row}, grad_hidden);
  list.complete_with(run_forward);
  list.add({hidden, weight, labels, row, row}, grad_weight);
  list.complete_with(run_forward);
  list.add({hidden, weight, labels, row}, [&](Builder& b, Ids in) {
    linear_cross_entropy_with_grad(b, in[0], in[1], in[2], in[3], h.options);
  });
}

std::vector<double> labels_below(int64_t vocab, int64_t tokens) {
  std::vector<double> labels;
  for (int64_t t = 0; t < tokens; ++t) {
    labels.push_back(t % 3 == 1 ? -100 : static_cast<double>((t * 7919 + 3) % vocab));
  }
  return labels;
}

}  // namespace

void add_loss_cases(CaseList& list) {
  const LinearCrossEntropyOptions capped{.logit_scale = 0.7, .softcap = 1.5};
  struct Dtypes {
    DType hidden, weight;
  };
  for (const Dtypes& d : {Dtypes{DType::f32, DType::f32}, Dtypes{DType::bf16, DType::bf16},
                          Dtypes{DType::bf16, DType::f32}, Dtypes{DType::f32, DType::bf16}}) {
    add_head(list, {d.hidden, d.weight, 5, 3, {}});
    add_head(list, {d.hidden, d.weight, 4, 1, {0}});
    add_head(list, {d.hidden, d.weight, 9, 6, {-100, -1}});
    add_head(list, {d.hidden, d.weight, 7, 17, labels_below(17, 5)});
    add_head(list, {d.hidden, d.weight, 7, 17, labels_below(17, 6), capped});
    add_head(list, {d.hidden, d.weight, 40, 301, labels_below(301, 35)});
    add_head(list, {d.hidden, d.weight, 64, 1030, labels_below(1030, 10), capped});
  }
  for (DType block : {DType::q4_0, DType::q8_0, DType::q6_k}) {
    add_head(list, {DType::f32, block, 512, 37, labels_below(37, 4)});
    add_head(list, {DType::bf16, block, 256, 37, labels_below(37, 4), capped});
  }
  // Small integers: sums are exact, so the equal logits of rows 1 and 3 are equal in any order of addition.
  for (DType dtype : {DType::f32, DType::bf16}) {
    list.add(
        {given(dtype, Shape{2, 3}, {1, 2, -1, 3, 0, 2}),
         given(dtype, Shape{4, 3}, {0, 1, 1, 2, 1, 0, -1, 0, 1, 2, 1, 0}), given_ids({3, 0})},
        [](Builder& b, Ids in) { linear_cross_entropy(b, in[0], in[1], in[2], {}); }, "ties");
  }
}

}  // namespace tenon
