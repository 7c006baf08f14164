// Sizes beyond the op table's: those at which a kernel's blocks, chunks and splits over threads begin, and
// what must not depend on them.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "backend/cpu/cpu_facts.h"
#include "backend/cpu/kernel_harness.h"
#include "backend/cpu/kernel_list.h"
#include "ops/op_list.h"

namespace tenon {
namespace {

CaseInput normal(DType dtype, Shape shape) {
  CaseInput input;
  input.type = {dtype, shape};
  return input;
}

CaseInput integers(Shape shape, std::vector<double> values) {
  CaseInput input;
  input.type = {DType::i32, shape};
  input.fill = CaseInput::Fill::given;
  input.values = std::move(values);
  return input;
}

OpCase make_case(std::string_view op, Attrs attrs, std::vector<CaseInput> inputs) {
  OpCase out;
  out.name = op;
  out.op = find_op(op);
  out.attrs = std::move(attrs);
  out.inputs = std::move(inputs);
  const std::vector<Type> types = out.input_types();
  out.outputs = *out.op->infer({*out.op, out.attrs, types, {}});
  // The table's way of making inputs that depend on others holds for any size.
  for (const OpCase& other : op_cases()) {
    if (other.op == out.op && other.complete != nullptr) out.complete = other.complete;
  }
  return out;
}

void check_everywhere(const OpCase& op_case) {
  SCOPED_TRACE(op_case.name);
  const Prepared rounded = prepare(op_case, 17);
  std::optional<Prepared> rounded_everywhere;
  ThreadPool one(1), two(2), three(3);
  for (const KernelDef& kernel : cpu_kernels()) {
    if (kernel.op != op_case.op->name || kernel.name.ends_with("_reference")) continue;
    if (!kernel.serves(site_of(rounded), cpu_facts(1))) continue;
    SCOPED_TRACE(kernel.name);
    if (multiplies_bf16(kernel) && !rounded_everywhere) {
      rounded_everywhere = prepare(op_case, 17, SecondOperand::rounded_everywhere);
    }
    const Prepared& prepared = multiplies_bf16(kernel) ? *rounded_everywhere : rounded;
    for (ThreadPool* threads : {&one, &two, &three}) check_kernel(kernel, prepared, *threads);
  }
}

struct Product {
  int64_t m, n, k;
  bool trans_a, trans_b;
  DType a, b, out;
};

TEST(KernelSizes, ProductsOfEverySplit) {
  using enum DType;
  for (const Product& p : {
           Product{16, 16, 2048, true, false, f32, f32, f32},     // split along k
           Product{5, 40, 1300, false, true, bf16, bf16, bf16},   // the same, rounded at the end
           Product{20, 600, 700, false, true, bf16, bf16, bf16},  // own columns, sums outside of the output
           Product{48, 1100, 260, true, false, f32, f32, f32},    // several blocks of own columns
           Product{130, 300, 1000, false, true, bf16, bf16,
                   bf16},                                        // shared panels, sums outside of the output
           Product{60, 2100, 700, false, false, f32, f32, f32},  // several blocks of shared panels
           Product{260, 64, 400, false, true, f32, f32, f32},    // rows of a read in place
           Product{260, 33, 500, false, true, f32, f32, bf16},
           Product{70, 512, 300, false, false, f32, q4_k, f32},  // quantised rows across panels
           Product{9, 768, 512, false, false, bf16, q6_k, f32},
           Product{70, 130, 512, false, true, bf16, q4_0, bf16},
           Product{3, 130, 768, false, true, f32, q5_k, f32},
           Product{1, 130, 576, false, true, f32, q4_1, f32},  // blocks times few rows
           Product{7, 33, 96, false, true, bf16, q8_0, bf16},
           Product{8, 50, 320, false, true, f32, q4_0, f32},
           Product{16, 53, 610, false, true, bf16, bf16, f32},  // tiles of few rows and what is left of them
           Product{1, 53, 30, false, true, f32, f32, f32},
           Product{16, 100, 576, false, true, bf16, bf16,
                   bf16},  // in whole tiles of a unit, the last of 4 rows
           Product{11, 48, 1536, false, true, bf16, bf16, f32},
           Product{2, 17, 32, false, true, bf16, bf16, bf16},
           Product{1, 130, 352, false, true, bf16, bf16, f32},
           Product{15, 20, 520, false, true, bf16, f32, bf16},     // widened and rounded, several chunks
           Product{200, 70, 2100, false, true, bf16, bf16, bf16},  // several blocks of k in a bf16 unit
           Product{130, 1312, 96, false, false, bf16, q4_1, f32},
           Product{40, 100, 77, true, true, bf16, f32, bf16},
           Product{200, 12, 300, true, false, f32, f32, f32},  // few columns
           Product{130, 16, 70, true, false, bf16, bf16, f32},
           Product{800, 70, 96, false, true, f32, q8_0, f32},   // rows as threads come free
           Product{16, 1700, 600, true, false, f32, f32, f32},  // one narrow operand: slices, parts
           Product{830, 7, 1100, true, false, bf16, bf16, f32},
           Product{33, 150, 130, true, false, f32, f32, f32},
           Product{130, 16, 700, false, true, f32, f32, f32},  // few output columns: parts of depth
           Product{61, 24, 333, false, false, f32, bf16, f32},
           Product{200, 40, 1500, false, true, f32, f32, f32},
       }) {
    const Shape a = p.trans_a ? Shape{p.k, p.m} : Shape{p.m, p.k};
    const Shape b = p.trans_b ? Shape{p.n, p.k} : Shape{p.k, p.n};
    const Attrs attrs{{"trans_a", p.trans_a}, {"trans_b", p.trans_b}, {"alpha", 0.25}, {"out_dtype", p.out}};
    check_everywhere(make_case("matmul", attrs, {normal(p.a, a), normal(p.b, b)}));
    check_everywhere(
        make_case("matmul", attrs, {normal(p.a, a), normal(p.b, b), normal(p.out, Shape{p.m, p.n})}));
  }
}

// LoRA's thin products do not depend on how many threads share their rows.
TEST(KernelSizes, ThinProductsAreTheSameOnAnyThreads) {
  constexpr int64_t kTokens = 1100, kRank = 16, kWide = 1700;
  const CaseInput wide = normal(DType::f32, Shape{kTokens, kWide}),
                  low = normal(DType::f32, Shape{kTokens, kRank}),
                  down = normal(DType::f32, Shape{kRank, kWide});
  const auto check = [](std::string_view name, bool trans_a, const CaseInput& a, const CaseInput& b) {
    SCOPED_TRACE(name);
    const Attrs attrs{{"trans_a", trans_a}, {"trans_b", !trans_a}, {"alpha", 0.5}, {"out_dtype", DType::f32}};
    const Prepared product = prepare(make_case("matmul", attrs, {a, b}), 5);
    ThreadPool one(1), two(2), seven(7);
    const auto kernels = cpu_kernels();
    const auto kernel = std::ranges::find(kernels, name, &KernelDef::name);
    ASSERT_NE(kernel, kernels.end());
    const std::vector<Bytes> expected = run_kernel(*kernel, product, one, {});
    EXPECT_EQ(run_kernel(*kernel, product, two, {}), expected);
    EXPECT_EQ(run_kernel(*kernel, product, seven, {}), expected);
  };
  check("matmul_tall_skinny", true, low, wide);
  check("matmul_tall_skinny", true, wide, low);
  check("matmul_narrow_output", false, wide, down);
}

// Several blocks of depth, the low-rank part with the last; where the output is bf16 their sums lie outside
// of it.
TEST(KernelSizes, LowRankProductsOfSeveralBlocks) {
  constexpr int64_t kRows = 130, kColumns = 300, kDepth = 1310, kRank = 19;
  for (const bool trans_b : {false, true}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const auto matrix = [&](int64_t rows) {
        return normal(dtype, trans_b ? Shape{kColumns, rows} : Shape{rows, kColumns});
      };
      const Attrs attrs{{"trans_b", trans_b}, {"alpha", 2.0}, {"out_dtype", dtype}};
      check_everywhere(
          make_case("matmul_low_rank", attrs,
                    {normal(dtype, Shape{kRows, kDepth}), matrix(kDepth), normal(dtype, Shape{kRows, kRank}),
                     matrix(kRank), normal(dtype, Shape{kRows, kColumns})}));
    }
  }
}

// A token's output does not depend on what else is decoded beside it.
TEST(KernelSizes, ProductOfARowIsTheSameInAnyBatch) {
  constexpr int64_t kRows = 16, kColumns = 70, kDepth = 576;
  ThreadPool single(1), two(2);
  using enum DType;
  for (const auto& [rows, weights] : std::vector<std::pair<DType, DType>>{
           {f32, f32}, {f32, bf16}, {bf16, bf16}, {f32, q8_0}, {f32, q4_0}, {f32, q4_1}}) {
    const Attrs attrs{{"trans_a", false}, {"trans_b", true}, {"alpha", 1.0}, {"out_dtype", f32}};
    const CaseInput b = normal(weights, Shape{kColumns, kDepth});
    const Prepared many = prepare(make_case("matmul", attrs, {normal(rows, Shape{kRows, kDepth}), b}), 5);
    Prepared one = prepare(make_case("matmul", attrs, {normal(rows, Shape{1, kDepth}), b}), 5);
    one.inputs[1] = many.inputs[1];
    for (const KernelDef& kernel : cpu_kernels()) {
      if (!kernel.name.starts_with("matmul_few_rows") || !kernel.serves(site_of(one), cpu_facts(1))) continue;
      SCOPED_TRACE(kernel.name);
      const Bytes all = run_kernel(kernel, many, two, {})[0];
      for (int64_t row : {0, 7, 15}) {
        const auto part = [&](const Bytes& bytes, int64_t row_bytes) {
          const auto begin = bytes.begin() + row * row_bytes;
          return Bytes(begin, begin + row_bytes);
        };
        one.inputs[0] = part(many.inputs[0], *dtype_bytes(rows, kDepth));
        EXPECT_EQ(run_kernel(kernel, one, single, {})[0], part(all, kColumns * 4));
      }
    }
  }
}

TEST(KernelSizes, CrossEntropyOfSeveralChunks) {
  constexpr int64_t kTokens = 2100, kVocab = 1500, kHidden = 20;  // about 1050 trained rows
  std::vector<double> labels;
  for (int64_t t = 0; t < kTokens; ++t) {
    labels.push_back(t % 2 == 0 ? static_cast<double>(t * 31 % kVocab) : -100.0);
  }
  const Attrs attrs{{"logit_scale", 0.5}, {"softcap", 3.0}};
  const CaseInput hidden = normal(DType::f32, Shape{kTokens, kHidden}),
                  weight = normal(DType::f32, Shape{kVocab, kHidden});
  const CaseInput row = normal(DType::f32, Shape{kTokens}), given = integers(Shape{kTokens}, labels);
  check_everywhere(make_case("linear_cross_entropy", attrs, {hidden, weight, given}));
  check_everywhere(make_case("linear_cross_entropy_grad_hidden", attrs, {hidden, weight, given, row, row}));
  check_everywhere(make_case("linear_cross_entropy_grad_weight", attrs, {hidden, weight, given, row, row}));
  const Attrs uncapped{{"logit_scale", 0.5}, {"softcap", 0.0}};
  check_everywhere(make_case("linear_cross_entropy_with_grad", uncapped, {hidden, weight, given, row}));
}

TEST(KernelSizes, AttentionOfManyHeadsOnOne) {
  constexpr int64_t kTokens = 150;
  std::vector<double> begins(kTokens, 0.0);
  std::fill(begins.begin() + 100, begins.end(), 100.0);
  const Attrs attrs{{"scale", 0.25}, {"window", int64_t{0}}, {"softcap", 0.0}};
  const CaseInput q = normal(DType::f32, Shape{kTokens, 20, 16}),
                  k = normal(DType::f32, Shape{kTokens, 2, 16});
  const CaseInput begin = integers(Shape{kTokens}, begins), lse = normal(DType::f32, Shape{kTokens, 20});
  check_everywhere(make_case("attention", attrs, {q, k, k, begin}));
  check_everywhere(make_case("attention_grad", attrs, {q, k, k, begin, q, lse, q}));
}

// Blocks of several tiles, which sequences and a window cross.
TEST(KernelSizes, AttentionOfManyTokens) {
  constexpr int64_t kTokens = 450;
  std::vector<double> begins(kTokens, 0.0);
  std::fill(begins.begin() + 130, begins.end(), 130.0);
  std::fill(begins.begin() + 400, begins.end(), 400.0);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int64_t window : {0, 70}) {
      const Attrs attrs{{"scale", 0.3}, {"window", window}, {"softcap", 0.0}};
      const CaseInput q = normal(dtype, Shape{kTokens, 16, 10}), k = normal(dtype, Shape{kTokens, 8, 10});
      const CaseInput begin = integers(Shape{kTokens}, begins), lse = normal(DType::f32, Shape{kTokens, 16});
      check_everywhere(make_case("attention", attrs, {q, k, k, begin}));
      check_everywhere(make_case("attention_grad", attrs, {q, k, k, begin, q, lse, q}));
    }
  }
}

// Two streams of 50 pages of 16 tokens: several chunks of positions.
struct PagedCase {
  int64_t heads = 12, kv_heads = 1, head_dim = 24, window = 0;
  std::vector<double> streams, positions;

  OpCase make() const {
    std::vector<double> table;
    for (int64_t i = 0; i < 100; ++i) table.push_back(static_cast<double>(i * 37 % 100));
    const auto tokens = static_cast<int64_t>(streams.size());
    const CaseInput cache = normal(DType::f32, Shape{100, 16, kv_heads, head_dim});
    return make_case(
        "paged_attention", {{"scale", 0.2}, {"window", window}, {"softcap", 0.0}},
        {normal(DType::f32, Shape{tokens, heads, head_dim}), cache, cache, integers(Shape{2, 50}, table),
         integers(Shape{tokens}, streams), integers(Shape{tokens}, positions)});
  }
};

TEST(KernelSizes, PagedAttentionOfSeveralChunks) {
  PagedCase decode;
  decode.streams = {1, 0};
  decode.positions = {799, 511};
  check_everywhere(decode.make());
  PagedCase prefill;
  for (int64_t t = 0; t < 21; ++t) {
    prefill.streams.push_back(t < 18 ? 0.0 : 1.0);
    prefill.positions.push_back(static_cast<double>(t < 18 ? 505 + t : 3 * t));
  }
  check_everywhere(prefill.make());
  prefill.window = 40;
  check_everywhere(prefill.make());
}

// A token's result does not depend on what else is in the batch, nor on how threads share the work.
TEST(KernelSizes, PagedAttentionOfATokenIsTheSameInAnyBatch) {
  PagedCase alone, batch;
  alone.streams = {0};
  alone.positions = {600};
  for (int64_t t = 0; t < 20; ++t) {
    batch.streams.push_back(0.0);
    batch.positions.push_back(static_cast<double>(590 + t));
  }
  Prepared one = prepare(alone.make(), 5), many = prepare(batch.make(), 5);
  const size_t row = one.inputs[0].size();
  one.inputs[1] = many.inputs[1];
  one.inputs[2] = many.inputs[2];
  std::copy_n(many.inputs[0].begin() + static_cast<std::ptrdiff_t>(10 * row), row, one.inputs[0].begin());
  ThreadPool single(1), two(2);
  for (const KernelDef& kernel : cpu_kernels()) {
    if (kernel.op != "paged_attention" || kernel.name.ends_with("_reference")) continue;
    const Bytes all = run_kernel(kernel, many, two, {})[0];
    const Bytes expected(all.begin() + static_cast<std::ptrdiff_t>(10 * row),
                         all.begin() + static_cast<std::ptrdiff_t>(11 * row));
    EXPECT_EQ(run_kernel(kernel, one, two, {})[0], expected);
    EXPECT_EQ(run_kernel(kernel, one, single, {})[0], expected);
  }
}

}  // namespace
}  // namespace tenon
