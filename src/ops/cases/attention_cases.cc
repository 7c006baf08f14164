// attention and its gradient over packed sequences; cache_write and paged_attention over pages.
#include <cmath>

#include "ops/attention.h"
#include "ops/attention_grad.h"
#include "ops/cache_write.h"
#include "ops/cases/case_list.h"
#include "ops/paged_attention.h"

namespace tenon {
namespace {

using Ids = std::span<const ValueId>;

struct Packed {
  std::vector<int64_t> lengths;  // of the sequences, in order
  int64_t heads, kv_heads, head_dim, v_head_dim;
  AttentionOptions options = {};
};

CaseInput sequence_begins(const std::vector<int64_t>& lengths) {
  std::vector<double> begins;
  for (int64_t length : lengths) begins.insert(begins.end(), length, static_cast<double>(begins.size()));
  return given_ids(std::move(begins));
}

// attention_grad's out and lse are what attention gives for its q, k and v.
void run_forward(const OpCase& op_case, ReferenceValues& inputs) {
  const std::vector<Type> types = op_case.input_types();
  const ReferenceValues forward = evaluate_op(attention_op(), op_case.attrs, std::span(types).first(4),
                                              ReferenceValues(inputs.begin(), inputs.begin() + 4));
  for (size_t output = 0; output < 2; ++output) {
    std::vector<double>& target = inputs[4 + output];
    for (size_t i = 0; i < target.size(); ++i) {
      target[i] = round_to_dtype(forward[output][i], types[4 + output].dtype);
    }
  }
}

void add_packed(CaseList& list, const Packed& p, DType dtype) {
  const CaseInput begins = sequence_begins(p.lengths);
  const int64_t tokens = begins.type.shape[0];
  const CaseInput q = normal(dtype, Shape{tokens, p.heads, p.head_dim});
  const CaseInput k = normal(dtype, Shape{tokens, p.kv_heads, p.head_dim});
  const CaseInput v = normal(dtype, Shape{tokens, p.kv_heads, p.v_head_dim});
  const CaseInput out = normal(dtype, Shape{tokens, p.heads, p.v_head_dim});
  const CaseInput lse = normal(DType::f32, Shape{tokens, p.heads});
  std::string label = "sequences";
  for (int64_t length : p.lengths) label += " " + std::to_string(length);
  AttentionOptions options = p.options;
  options.scale = 1.0 / std::sqrt(static_cast<double>(p.head_dim));
  list.add(
      {q, k, v, begins}, [&](Builder& b, Ids in) { attention(b, in[0], in[1], in[2], in[3], options); },
      label);
  list.add(
      {q, k, v, begins, out, lse, out},
      [&](Builder& b, Ids in) {
        attention_grad(b, {in[0], in[1], in[2], in[3], in[4], in[5], in[6]}, options);
      },
      label);
  list.complete_with(run_forward);
}

// Page tables with pages out of order; entries past a stream's last page are poison.
void add_paged(CaseList& list, DType dtype, int64_t heads, int64_t kv_heads, int64_t head_dim,
               int64_t v_head_dim, AttentionOptions options) {
  options.scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  const CaseInput k = normal(dtype, Shape{6, 4, kv_heads, head_dim});
  const CaseInput v = normal(dtype, Shape{6, 4, kv_heads, v_head_dim});
  const CaseInput table = given(DType::i32, Shape{3, 3}, {5, 0, 2, 3, -1, -1, 1, 4, -1});
  const auto emit = [&](Builder& b, Ids in) {
    paged_attention(b, {in[0], in[1], in[2], in[3], in[4], in[5]}, options);
  };
  // One decode token a stream, with an unused row.
  list.add({normal(dtype, Shape{4, heads, head_dim}), k, v, table, given_ids({0, 1, -1, 2}),
            given_ids({9, 0, 0, 7})},
           emit, "decode");
  // Part of a prompt beside decode tokens.
  list.add({normal(dtype, Shape{6, heads, head_dim}), k, v, table, given_ids({0, 0, 0, 2, 1, -1}),
            given_ids({6, 7, 8, 4, 3, 0})},
           emit, "mixed");
  list.add({normal(dtype, Shape{0, heads, head_dim}), k, v, table, given_ids({}), given_ids({})}, emit,
           "empty");
}

// Streams of more keys than any kernel takes at a time.
void add_long_pages(CaseList& list, int64_t heads, int64_t kv_heads, int64_t head_dim,
                    AttentionOptions options) {
  constexpr int64_t kPages = 20, kPageTokens = 16;
  options.scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  std::vector<double> table;
  for (int64_t i = 0; i < 2 * kPages; ++i) table.push_back(static_cast<double>((i * 7 + 3) % (2 * kPages)));
  const CaseInput cache = normal(DType::bf16, Shape{2 * kPages, kPageTokens, kv_heads, head_dim});
  list.add(
      {normal(DType::bf16, Shape{3, heads, head_dim}), cache, cache,
       given(DType::i32, Shape{2, kPages}, table), given_ids({0, -1, 1}), given_ids({317, 0, 128})},
      [&](Builder& b, Ids in) {
        paged_attention(b, {in[0], in[1], in[2], in[3], in[4], in[5]}, options);
      },
      "long");
}

void add_cache_writes(CaseList& list, DType dtype) {
  for (const auto& slots : std::vector<std::vector<double>>{{}, {23}, {5, -1, 0, 17, 2}}) {
    const auto tokens = static_cast<int64_t>(slots.size());
    list.add({normal(dtype, Shape{6, 4, 2, 9}), normal(dtype, Shape{tokens, 2, 9}), given_ids(slots)},
             [](Builder& b, Ids in) { cache_write(b, in[0], in[1], in[2]); });
  }
}

}  // namespace

void add_attention_cases(CaseList& list) {
  const std::vector<Packed> packed = {
      {{}, 2, 1, 8, 8},
      {{1}, 1, 1, 1, 1},
      {{5}, 2, 2, 8, 8},
      {{3, 1, 6}, 4, 2, 16, 16},
      {{3, 1, 6}, 6, 1, 7, 5},
      {{9, 14}, 4, 4, 16, 16, {.window = 4}},
      {{9, 14}, 4, 2, 16, 24, {.softcap = 2.0}},
      {{20, 2}, 3, 3, 12, 12, {.window = 1}},
      {{11, 19, 3}, 4, 2, 64, 64, {.window = 7, .softcap = 5.0}},
      {{6, 7, 8}, 4, 2, 16, 16, {.window = 7, .softcap = 5.0}},  // one less, as long as the window, one more
      {{130}, 2, 1, 32, 32},
      {{1, 1, 1, 70, 65}, 3, 1, 64, 64, {.window = 33}},
  };
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const Packed& p : packed) add_packed(list, p, dtype);
    add_paged(list, dtype, 4, 2, 16, 16, {});
    add_paged(list, dtype, 3, 3, 7, 5, {.window = 3});
    add_paged(list, dtype, 8, 1, 64, 64, {.softcap = 3.0});
    add_cache_writes(list, dtype);
  }
  add_long_pages(list, 2, 2, 32, {});
  add_long_pages(list, 4, 2, 128, {.window = 130});
  add_long_pages(list, 6, 1, 64, {.softcap = 3.0});
}

}  // namespace tenon
