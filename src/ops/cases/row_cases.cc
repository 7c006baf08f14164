// Ops over rows: embedding, gather_rows and their gradients, RMSNorm and its gradients, rope, sums.
#include "ops/cases/case_list.h"
#include "ops/column_sum.h"
#include "ops/embedding.h"
#include "ops/embedding_grad.h"
#include "ops/gather_rows.h"
#include "ops/gather_rows_grad.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_grad_input.h"
#include "ops/rms_norm_grad_weight.h"
#include "ops/rope.h"
#include "ops/rope_table.h"
#include "ops/sum.h"

namespace tenon {
namespace {

using Ids = std::span<const ValueId>;

void add_embeddings(CaseList& list) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (DType table : {DType::f32, DType::bf16, DType::f16, DType::q4_0, DType::q8_0, DType::q6_k}) {
      for (int64_t tokens : {0, 1, 9}) {
        const int64_t hidden = is_block_quantised(table) ? 512 : 45;
        list.add({normal(table, Shape{7, hidden}), ids_below(7, tokens)},
                 [dtype](Builder& b, Ids in) { embedding(b, in[0], in[1], dtype); });
      }
    }
    for (int64_t tokens : {0, 1, 30}) {
      list.add({normal(dtype, Shape{tokens, 37}), ids_below(11, tokens)},
               [](Builder& b, Ids in) { embedding_grad(b, in[0], in[1], 11); });
    }
  }
}

void add_gathers(CaseList& list) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (int64_t count : {0, 1, 6}) {
      list.add({normal(dtype, Shape{5, 19}), ids_below(5, count)},
               [](Builder& b, Ids in) { gather_rows(b, in[0], in[1]); });
      list.add({normal(dtype, Shape{count, 19}), ids_below(5, count)},
               [](Builder& b, Ids in) { gather_rows_grad(b, in[0], in[1], 5); });
    }
  }
}

void add_norm(CaseList& list, DType x_dtype, DType weight_dtype, const Shape& shape, double offset) {
  const CaseInput x = normal(x_dtype, shape, 1.5);
  const CaseInput weight = normal(weight_dtype, Shape{shape[-1]}, 0.3, 1.0 - offset);
  list.add({x, weight}, [offset](Builder& b, Ids in) { rms_norm(b, in[0], in[1], 1e-5, offset); });
  list.add({x, weight, x},
           [offset](Builder& b, Ids in) { rms_norm_grad_input(b, in[0], in[1], in[2], 1e-5, offset); });
  if (offset == 0 && weight_dtype == x_dtype) {
    list.add({x, x}, [](Builder& b, Ids in) { rms_norm_grad_weight(b, in[0], in[1], 1e-5); });
  }
}

void add_norms(CaseList& list) {
  for (DType x : {DType::f32, DType::bf16}) {
    for (DType weight : {DType::f32, DType::bf16}) {
      for (double offset : {0.0, 1.0}) {
        for (const Shape& shape : {Shape{0, 16}, Shape{1, 1}, Shape{3, 7}, Shape{5, 64}, Shape{2, 203},
                                   Shape{4, 3, 16}, Shape{33, 40}}) {
          add_norm(list, x, weight, shape, offset);
        }
      }
    }
    list.add(
        {given(x, Shape{1, 3}, {0, 0, 0}), normal(DType::f32, Shape{3})},
        [](Builder& b, Ids in) { rms_norm(b, in[0], in[1], 1e-6); }, "zero row");
  }
}

void add_ropes(CaseList& list) {
  struct Size {
    int64_t tokens, heads, head_dim, pairs;
  };
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const bool interleaved : {false, true}) {
      for (const bool inverse : {false, true}) {
        for (const Size& s : {Size{0, 2, 8, 4}, Size{1, 1, 2, 1}, Size{5, 3, 8, 4}, Size{4, 2, 10, 3},
                              Size{7, 4, 64, 32}, Size{3, 1, 80, 40}, Size{2, 2, 6, 0}}) {
          list.add({normal(dtype, Shape{s.tokens, s.heads, s.head_dim}),
                    normal(DType::f32, Shape{s.tokens, 2, s.pairs})},
                   [=](Builder& b, Ids in) { rope(b, in[0], in[1], interleaved, inverse); });
        }
      }
    }
  }
  for (int64_t tokens : {0, 1, 9}) {
    for (int64_t pairs : {1, 5, 32}) {
      std::vector<double> inverse_frequencies;
      for (int64_t i = 0; i < pairs; ++i)
        inverse_frequencies.push_back(1.0 / static_cast<double>(1 << (i / 2)));
      list.add({ids_below(3000, tokens), given(DType::f32, Shape{pairs}, inverse_frequencies)},
               [](Builder& b, Ids in) { rope_table(b, in[0], in[1], 1.25); });
    }
  }
}

void add_sums(CaseList& list) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const Shape& shape : {Shape{0, 5}, Shape{1, 5}, Shape{33, 70}, Shape{2, 3, 17}, Shape{600, 1}}) {
      list.add({normal(dtype, shape)}, [](Builder& b, Ids in) { sum(b, in[0]); });
      list.add({normal(dtype, shape)}, [](Builder& b, Ids in) { column_sum(b, in[0]); });
    }
  }
}

}  // namespace

void add_row_cases(CaseList& list) {
  add_embeddings(list);
  add_gathers(list);
  add_norms(list);
  add_ropes(list);
  add_sums(list);
}

}  // namespace tenon
