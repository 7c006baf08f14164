// Choosing keys and attending to them: packed, paged, and the gradient.
#include "ops/biased_sparse_attention.h"
#include "ops/block_top_k.h"
#include "ops/cases/case_list.h"
#include "ops/entry_ids.h"
#include "ops/entry_pool.h"
#include "ops/index_top_k.h"
#include "ops/ngram_ids.h"
#include "ops/sparse_attention.h"

namespace tenon {
namespace {

using Ids = std::span<const ValueId>;

// The out and lse of a gradient are what the attention gives for its other inputs: the first four, and those
// after dout.
void run_forward(const OpCase& op_case, ReferenceValues& inputs) {
  const std::vector<Type> types = op_case.input_types();
  std::vector<Type> given(types.begin(), types.begin() + 4);
  given.insert(given.end(), types.begin() + 7, types.end());
  ReferenceValues values(inputs.begin(), inputs.begin() + 4);
  values.insert(values.end(), inputs.begin() + 7, inputs.end());
  const OpDef& op =
      op_case.op == &sparse_attention_grad_op() ? sparse_attention_op() : biased_sparse_attention_op();
  const ReferenceValues forward = evaluate_op(op, op_case.attrs, given, values);
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

void add_entry_choices(CaseList& list, DType dtype) {
  const CaseInput q = normal(dtype, Shape{6, 3, 4}), k = normal(dtype, Shape{6, 1, 4});
  const CaseInput weights = normal(DType::f32, Shape{6, 3}), begin = given_ids({0, 0, 2, 2, 2, 2});
  const CaseInput paged_q = normal(dtype, Shape{3, 3, 4}), cache = normal(dtype, Shape{3, 4, 1, 4});
  const CaseInput table = given(DType::i32, Shape{1, 3}, {2, 0, 1}), stream = given_ids({0, -1, 0});
  const CaseInput positions = given_ids({8, 0, 1});
  for (const int64_t n : {1, 3}) {
    list.add({q, k, weights, begin}, [&](Builder& b, Ids in) {
      entry_top_k(b, in[0], in[1], in[2], in[3], {.n = n, .scale = 0.5, .stride = 2});
    });
    list.add({paged_q, cache, normal(DType::f32, Shape{3, 3}), table, stream, positions}, [&](Builder& b,
                                                                                              Ids in) {
      entry_top_k_paged(b, {in[0], in[1], in[2], in[3], in[4], in[5]}, {.n = n, .scale = 0.5, .stride = 2});
    });
    for (const int64_t local : {0, 1}) {
      const BlockTopKOptions options{.n = n, .block = 2, .local = local};
      list.add({q, k, begin}, [&](Builder& b, Ids in) { block_top_k(b, in[0], in[1], in[2], options); });
      list.add({paged_q, cache, table, stream, positions}, [&](Builder& b, Ids in) {
        block_top_k_paged(b, {in[0], in[1], in[2], in[3], in[4]}, options);
      });
    }
  }
}

void add_entry_ids(CaseList& list) {
  const CaseInput entries = given(DType::i32, Shape{5, 2}, {-1, -1, 1, -1, -1, -1, 3, -1, 3, -1});
  const CaseInput positions = given_ids({0, 1, 0, 1, 2}), begin = given_ids({0, 0, 2, 2, 2});
  list.add({entries, positions, begin}, [](Builder& b, Ids in) { block_ids(b, in[0], {in[1], in[2]}, 2); });
  list.add({entries, positions, begin}, [](Builder& b, Ids in) {
    window_entry_ids(b, in[0], {in[1], in[2]}, 2);
  });
  list.add({positions, begin}, [](Builder& b, Ids in) { every_entry(b, {in[0], in[1]}, 2, 2); });
  const CaseInput at = given(DType::i32, Shape{3, 2}, {1, 5, -1, -1, 3, -1}), places = given_ids({6, 0, 4});
  list.add({at, places}, [](Builder& b, Ids in) { block_ids(b, in[0], {in[1], {}}, 2); });
  list.add({at, places}, [](Builder& b, Ids in) { window_entry_ids(b, in[0], {in[1], {}}, 3); });
  list.add({places}, [](Builder& b, Ids in) { every_entry(b, {in[0], {}}, 3, 2); });
  list.add({places}, [](Builder& b, Ids in) { shift_ids(b, in[0], -3); });
}

void add_ngram_ids(CaseList& list) {
  const NgramOptions options{
      .multipliers = {7, 1000003, 99991}, .sizes = {11, 13, 17, 19}, .heads = 2, .end = 2};
  list.add({given_ids({5, 6, 2, 8, 5, 6, 8}), given_ids({0, 0, 0, 0, 4, 4, 4})},
           [&](Builder& b, Ids in) { ngram_ids(b, in[0], in[1], options); });
  list.add({given_ids({5, 2, 9, 6}), given(DType::i32, Shape{2, 2}, {3, 4, 5, 6}), given_ids({0, 0, -1, 1}),
            given_ids({7, 8, 0, 0})},
           [&](Builder& b, Ids in) {
             ngram_ids_cached(b, in[0], {in[1], in[2], in[3]}, options);
           });
}

void add_entry_pools(CaseList& list, DType dtype) {
  const CaseInput begin = given_ids({0, 0, 0, 3, 3, 3, 3});
  for (const int64_t parts : {1, 2}) {
    const int64_t columns = 3 * parts;
    const CaseInput x = normal(dtype, Shape{7, columns}), bias = normal(DType::f32, Shape{2, columns});
    list.add({x, x, bias, begin}, [&](Builder& b, Ids in) {
      entry_pool(b, {in[0], in[1], in[2]}, in[3], parts);
    });
    list.add({x, x, bias, begin, normal(dtype, Shape{7, 3})}, [&](Builder& b, Ids in) {
      entry_pool_grad(b, {in[0], in[1], in[2]}, in[3], in[4], parts);
    });
    list.add({x, x, bias, normal(dtype, Shape{2, 2 * parts, 2 * columns}), given_ids({0, 0, 0, -1, 1, 1, 1}),
              given_ids({5, 6, 7, 0, 0, 1, 2})},
             [&](Builder& b, Ids in) {
               entry_pool_cached(b, {in[0], in[1], in[2]}, {in[3], in[4], in[5]}, parts);
             });
  }
}

// With and without sinks, for one and two groups of heads.
void add_biased_attentions(CaseList& list, DType dtype) {
  const CaseInput q = normal(dtype, Shape{3, 4, 6}), k = normal(dtype, Shape{4, 2, 6});
  const CaseInput v = normal(dtype, Shape{4, 2, 5}), out = normal(dtype, Shape{3, 4, 5});
  const CaseInput sinks = normal(DType::f32, Shape{4});
  for (const CaseInput& ids :
       {given(DType::i32, Shape{3, 1, 3}, {0, 2, -1, -1, -1, -1, 0, 1, 3}),
        given(DType::i32, Shape{3, 2, 2}, {0, -1, 2, 3, -1, -1, -1, -1, 0, 1, 2, 3})}) {
    for (const bool with_sinks : {false, true}) {
      const auto and_sinks = [&](std::vector<CaseInput> inputs) {
        if (with_sinks) inputs.push_back(sinks);
        return inputs;
      };
      list.add(and_sinks({q, k, v, ids}), [&](Builder& b, Ids in) {
        biased_sparse_attention(b, {in[0], in[1], in[2], in[3], with_sinks ? in[4] : ValueId{}}, 0.4);
      });
      list.add(and_sinks({q, k, v, ids, out, normal(DType::f32, Shape{3, 4}), out}), [&](Builder& b, Ids in) {
        biased_sparse_attention_grad(b, {in.begin(), in.end()}, with_sinks, 0.4);
      });
      list.complete_with(run_forward);
      list.add(and_sinks({q, normal(dtype, Shape{3, 4, 2, 6}), normal(dtype, Shape{3, 4, 2, 5}),
                          given(DType::i32, Shape{1, 3}, {2, 0, 1}), given_ids({0, -1, 0}), ids}),
               [&](Builder& b, Ids in) {
                 biased_sparse_paged_attention(b, {in[0], in[1], in[2], in[3], in[4], in[5]},
                                               with_sinks ? in[6] : ValueId{}, 0.4);
               });
    }
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
    add_entry_choices(list, dtype);
    add_entry_pools(list, dtype);
    add_attentions(list, dtype);
    add_biased_attentions(list, dtype);
  }
  add_entry_ids(list);
  add_ngram_ids(list);
}

}  // namespace tenon
