// matmul: dtypes, layouts, edges of tiles, addends, block-quantised weights.
#include "ops/cases/case_list.h"
#include "ops/matmul.h"
#include "ops/matmul_low_rank.h"

namespace tenon {
namespace {

using Ids = std::span<const ValueId>;

struct Product {
  int64_t m, n, k;
  DType a = DType::f32, b = DType::f32;
  MatmulOptions options = {};
};

enum class Addend { none, full, row };

void add_product(CaseList& list, const Product& p, Addend addend = Addend::none,
                 DType addend_dtype = DType::f32) {
  const Shape a = p.options.trans_a ? Shape{p.k, p.m} : Shape{p.m, p.k};
  const Shape b = p.options.trans_b ? Shape{p.n, p.k} : Shape{p.k, p.n};
  std::vector<CaseInput> inputs = {normal(p.a, a), normal(p.b, b)};
  if (addend == Addend::full) inputs.push_back(normal(addend_dtype, Shape{p.m, p.n}));
  if (addend == Addend::row) inputs.push_back(normal(addend_dtype, Shape{p.n}));
  list.add(std::move(inputs), [&p](Builder& builder, Ids in) {
    MatmulOptions options = p.options;
    if (in.size() == 3) options.addend = in[2];
    matmul(builder, in[0], in[1], options);
  });
}

struct Dtypes {
  DType a, b, out;
};
constexpr Dtypes kDtypes[] = {
    {DType::f32, DType::f32, DType::f32},   {DType::bf16, DType::bf16, DType::bf16},
    {DType::bf16, DType::bf16, DType::f32}, {DType::bf16, DType::f32, DType::bf16},
    {DType::bf16, DType::f32, DType::f32},  {DType::f32, DType::bf16, DType::f32},
    {DType::f32, DType::bf16, DType::bf16}, {DType::bf16, DType::f16, DType::bf16},
    {DType::f32, DType::f16, DType::f32},
};

void add_layouts(CaseList& list) {
  for (const Dtypes& d : kDtypes) {
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        for (const Product& size : {Product{5, 19, 34}, Product{1, 1, 1}, Product{70, 67, 130}}) {
          add_product(list, {.m = size.m,
                             .n = size.n,
                             .k = size.k,
                             .a = d.a,
                             .b = d.b,
                             .options = {.trans_a = trans_a, .trans_b = trans_b, .out_dtype = d.out}});
        }
      }
    }
  }
}

void add_edges(CaseList& list) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const MatmulOptions linear{.trans_b = true, .out_dtype = dtype};
    const MatmulOptions plain{.out_dtype = dtype};
    for (const Product& size : {Product{0, 8, 8}, Product{8, 0, 8}, Product{3, 5, 0}, Product{1, 257, 512},
                                Product{2, 33, 7}, Product{4, 64, 96}, Product{129, 16, 17}}) {
      add_product(list, {size.m, size.n, size.k, dtype, dtype, linear});
      add_product(list, {size.m, size.n, size.k, dtype, dtype, plain});
    }
    // Weight gradients of an empty micro-step.
    add_product(list, {6, 5, 0, dtype, dtype, {.trans_a = true, .out_dtype = DType::f32}});
  }
}

void add_addends(CaseList& list) {
  for (const Dtypes& d : kDtypes) {
    const MatmulOptions options{.trans_b = true, .alpha = 0.5, .out_dtype = d.out};
    const Product product{9, 37, 21, d.a, d.b, options};
    add_product(list, product, Addend::full, d.out);
    add_product(list, product, Addend::row, DType::f32);
    add_product(list, product, Addend::row, DType::bf16);
    if (d.out != DType::f32) add_product(list, product, Addend::full, DType::f32);
  }
  const MatmulOptions plain{.alpha = -2.0, .out_dtype = DType::bf16};
  add_product(list, {3, 5, 0, DType::bf16, DType::bf16, plain}, Addend::full, DType::bf16);
  add_product(list, {0, 5, 3, DType::bf16, DType::bf16, plain}, Addend::row, DType::bf16);
  add_product(list, {6, 10, 12, DType::f32, DType::f32, {.trans_a = true, .alpha = 3.0}}, Addend::row);
}

// Gradients of LoRA's up matrices: few columns, and sums over tokens.
void add_few_columns(CaseList& list) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Product gradient{70, 6, 33, dtype, dtype, {.trans_a = true, .alpha = 0.5}};
    add_product(list, gradient);
    add_product(list, gradient, Addend::full);
  }
}

// One row, as decoding multiplies it, over sums longer than a kernel takes at once.
void add_rows(CaseList& list) {
  for (DType out : {DType::bf16, DType::f32}) {
    const Product row{1,           11,          4360,
                      DType::bf16, DType::bf16, {.trans_b = true, .alpha = 0.5, .out_dtype = out}};
    add_product(list, row);
    add_product(list, row, Addend::full, out);
    add_product(list, row, Addend::row, DType::f32);
  }
}

void add_block_quantised(CaseList& list) {
  for (DType b : {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0, DType::q2_k, DType::q3_k,
                  DType::q4_k, DType::q5_k, DType::q6_k}) {
    const int64_t block = dtype_info(b).block_elements;
    for (DType a : {DType::f32, DType::bf16}) {
      for (int64_t m : {1, 6}) {
        add_product(list, {m, 13, 3 * block, a, b, {.trans_b = true, .out_dtype = a}});
        add_product(list, {m, 2 * block, 11, a, b, {.alpha = 0.25, .out_dtype = a}});
      }
      add_product(list, {35, 40, 2 * block, a, b, {.trans_b = true, .out_dtype = a}}, Addend::full, a);
    }
  }
}

struct LowRank {
  int64_t m, n, k, rank;
  DType a, b, low, up, out;
};

void add_low_rank(CaseList& list) {
  using enum DType;
  for (bool trans_b : {false, true}) {
    for (const LowRank& p :
         {LowRank{1, 5, 3, 1, f32, f32, f32, f32, f32}, LowRank{70, 37, 21, 4, f32, f32, f32, f32, f32},
          LowRank{66, 64, 96, 16, bf16, bf16, bf16, f32, bf16},
          LowRank{65, 96, 32, 3, f32, bf16, f32, f32, f32},
          LowRank{67, 64, 64, 8, f32, q4_1, f32, f32, f32}}) {
      const auto matrix = [&](DType dtype, int64_t rows, int64_t columns) {
        return normal(dtype, trans_b ? Shape{columns, rows} : Shape{rows, columns}, 0.5);
      };
      const std::vector<CaseInput> inputs = {normal(p.a, Shape{p.m, p.k}), matrix(p.b, p.k, p.n),
                                             normal(p.low, Shape{p.m, p.rank}), matrix(p.up, p.rank, p.n)};
      const MatmulLowRankOptions options{trans_b, 0.5, p.out};
      list.add(inputs, [&](Builder& b, Ids in) {
        matmul_low_rank(b, {in[0], in[1], in[2], in[3]}, options);
      });
      for (const CaseInput& addend : {normal(p.out, Shape{p.m, p.n}), normal(f32, Shape{p.n})}) {
        std::vector<CaseInput> with = inputs;
        with.push_back(addend);
        list.add(with, [&](Builder& b, Ids in) {
          matmul_low_rank(b, {in[0], in[1], in[2], in[3], in[4]}, options);
        });
      }
    }
  }
}

}  // namespace

void add_matmul_cases(CaseList& list) {
  add_layouts(list);
  add_edges(list);
  add_addends(list);
  add_few_columns(list);
  add_rows(list);
  add_block_quantised(list);
  add_low_rank(list);
}

}  // namespace tenon
