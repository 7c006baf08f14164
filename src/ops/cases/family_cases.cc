// Ops that model families are built from: activations, norms without weights, broadcasts, columns, permute,
// routing, grouped matmul, biased attention.
#include <cmath>

#include "ops/activation.h"
#include "ops/biased_attention.h"
#include "ops/broadcast.h"
#include "ops/cases/case_list.h"
#include "ops/columns.h"
#include "ops/detach.h"
#include "ops/grouped_matmul.h"
#include "ops/mix_rows.h"
#include "ops/normalise.h"
#include "ops/permute.h"
#include "ops/position_scale.h"
#include "ops/rope_table_by_length.h"
#include "ops/routing.h"
#include "ops/sequence_length.h"
#include "ops/sinkhorn.h"

namespace tenon {
namespace {

using Ids = std::span<const ValueId>;

const Shape kShapes[] = {Shape{0, 8}, Shape{1, 1}, Shape{7, 5}, Shape{2, 3, 16}};

void add_activations(CaseList& list, DType dtype) {
  struct Kind {
    ActivationKind kind;
    double a = 0, b = 0;
  };
  for (const Kind& k :
       {Kind{ActivationKind::relu}, Kind{ActivationKind::relu2}, Kind{ActivationKind::gelu},
        Kind{ActivationKind::gelu_tanh}, Kind{ActivationKind::swish, 1.702}, Kind{ActivationKind::sigmoid},
        Kind{ActivationKind::tanh}, Kind{ActivationKind::softplus}, Kind{ActivationKind::sqrt_softplus},
        Kind{ActivationKind::clamp, -0.5, 0.75}, Kind{ActivationKind::softcap, 3.0},
        Kind{ActivationKind::exp}, Kind{ActivationKind::negative_exp, -1e-6}}) {
    for (const Shape& shape : kShapes) {
      const CaseInput x = normal(dtype, shape, 2.0);
      list.add({x}, [&](Builder& b, Ids in) { activation(b, in[0], k.kind, k.a, k.b); });
      list.add({x, x}, [&](Builder& b, Ids in) { activation_grad(b, in[0], in[1], k.kind, k.a, k.b); });
    }
  }
}

// Kinds that are not defined everywhere.
void add_partial_activations(CaseList& list, DType dtype) {
  for (const Shape& shape : kShapes) {
    const CaseInput below = normal(dtype, shape, 0.5, -4.0), above = normal(dtype, shape, 0.25, 2.5);
    const CaseInput dy = normal(dtype, shape);
    const auto add_kind = [&](const CaseInput& x, ActivationKind kind) {
      list.add({x}, [&](Builder& b, Ids in) { activation(b, in[0], kind); });
      list.add({x, dy}, [&](Builder& b, Ids in) { activation_grad(b, in[0], in[1], kind); });
    };
    add_kind(below, ActivationKind::complement);
    add_kind(above, ActivationKind::reciprocal);
    add_kind(above, ActivationKind::sqrt);
  }
}

void add_normalises(CaseList& list, DType dtype) {
  for (NormaliseKind kind : {NormaliseKind::rms, NormaliseKind::layer, NormaliseKind::l2, NormaliseKind::sum,
                             NormaliseKind::softmax}) {
    for (const Shape& shape : kShapes) {
      const CaseInput x = kind == NormaliseKind::sum ? positive(dtype, shape) : normal(dtype, shape);
      list.add({x}, [&](Builder& b, Ids in) { normalise(b, in[0], kind, 1e-3); });
      list.add({x, normal(dtype, shape)},
               [&](Builder& b, Ids in) { normalise_grad(b, in[0], in[1], kind, 1e-3); });
    }
  }
}

void add_stream_mixes(CaseList& list, DType dtype) {
  const CaseInput x = normal(dtype, Shape{5, 3, 7}), dout = normal(dtype, Shape{5, 2, 7});
  list.add({x, normal(DType::f32, Shape{5, 2, 3})}, [](Builder& b, Ids in) { mix_rows(b, in[0], in[1]); });
  list.add({x, normal(DType::f32, Shape{5, 3, 2})},
           [](Builder& b, Ids in) { mix_rows(b, in[0], in[1], true); });
  list.add({normal(dtype, Shape{4, 1, 1}), normal(DType::f32, Shape{4, 1, 1})},
           [](Builder& b, Ids in) { mix_rows(b, in[0], in[1]); });
  list.add({dout, x}, [](Builder& b, Ids in) { mix_rows_grad_weights(b, in[0], in[1]); });
}

void add_sinkhorns(CaseList& list) {
  for (const int64_t n : {1, 4}) {
    const CaseInput x = normal(DType::f32, Shape{3, n, n}, 2.0);
    for (const int64_t iterations : {1, 5}) {
      const SinkhornOptions options{.iterations = iterations, .eps = 1e-3};
      list.add({x}, [&](Builder& b, Ids in) { sinkhorn(b, in[0], options); });
      list.add({x, normal(DType::f32, Shape{3, n, n})},
               [&](Builder& b, Ids in) { sinkhorn_grad(b, in[0], in[1], options); });
    }
  }
}

void add_broadcasts(CaseList& list, DType dtype) {
  for (const Shape& shape : {Shape{0, 8}, Shape{1, 1}, Shape{7, 5}, Shape{2, 3, 16}}) {
    const CaseInput x = normal(dtype, shape);
    const CaseInput row = normal(DType::f32, Shape{shape[-1]});
    const int64_t rows = shape.elements() / shape[-1];
    list.add({x}, [](Builder& b, Ids in) { detach(b, in[0]); });
    list.add({x, row}, [](Builder& b, Ids in) { add_row(b, in[0], in[1]); });
    list.add({x, row}, [](Builder& b, Ids in) { mul_row(b, in[0], in[1], 1.0); });
    list.add({x, normal(DType::f32, Shape{rows})}, [](Builder& b, Ids in) { mul_column(b, in[0], in[1]); });
    list.add({x, normal(dtype, Shape{rows, 1})}, [](Builder& b, Ids in) { mul_column(b, in[0], in[1]); });
    list.add({x, x}, [&](Builder& b, Ids in) { row_dot(b, in[0], in[1], DType::f32, Shape{rows}); });
  }
}

void add_columns(CaseList& list, DType dtype) {
  for (const Shape& shape : {Shape{0, 12}, Shape{5, 12}, Shape{2, 3, 12}}) {
    const CaseInput x = normal(dtype, shape);
    list.add({x}, [](Builder& b, Ids in) { slice_columns(b, in[0], 3, 7); });
    list.add({x}, [](Builder& b, Ids in) { pad_columns(b, in[0], 2, 17); });
    list.add({x, x, x}, [](Builder& b, Ids in) { concat_columns(b, {in[0], in[1], in[2]}); });
    list.add({x}, [](Builder& b, Ids in) { repeat_columns(b, in[0], 3); });
    list.add({x}, [](Builder& b, Ids in) { fold_columns(b, in[0], 4); });
  }
  list.add({normal(dtype, Shape{2, 3, 5})}, [](Builder& b, Ids in) { permute(b, in[0], {2, 0, 1}); });
  list.add({normal(dtype, Shape{4, 3})}, [](Builder& b, Ids in) { permute(b, in[0], {1, 0}); });
}

CaseInput chosen(const Shape& shape, std::vector<double> values) {
  return given(DType::i32, shape, std::move(values));
}

void add_routing(CaseList& list, DType dtype) {
  const CaseInput scores = normal(dtype, Shape{5, 8});
  list.add({scores}, [](Builder& b, Ids in) { top_k(b, in[0], {.k = 3}); });
  list.add({scores}, [](Builder& b, Ids in) {
    top_k(b, in[0], {.k = 2, .groups = 4, .group_limit = 2, .group_sum = 2});
  });
  list.add(
      {given(dtype, Shape{1, 4}, {1, 2, 2, 1})}, [](Builder& b, Ids in) { top_k(b, in[0], {.k = 3}); },
      "ties");
  const CaseInput ids = chosen(Shape{3, 2}, {0, 4, 3, 1, 4, 2});
  list.add({normal(dtype, Shape{3, 5}), ids}, [](Builder& b, Ids in) { gather_columns(b, in[0], in[1]); });
  list.add({normal(dtype, Shape{3, 2}), ids},
           [](Builder& b, Ids in) { gather_columns_grad(b, in[0], in[1], 5); });
  if (dtype == DType::f32) list.add({ids}, [](Builder& b, Ids in) { limit_ids(b, in[0], 3); });
  const CaseInput logits = normal(dtype, Shape{3, 5}, 2.0);
  for (const int64_t excluded : {0, 1}) {
    list.add({logits, ids}, [&](Builder& b, Ids in) { near_best(b, in[0], in[1], excluded, 0.4); });
    list.add({logits, ids, logits},
             [&](Builder& b, Ids in) { near_best_grad(b, in[0], in[1], in[2], excluded, 0.4); });
  }
}

void add_grouped(CaseList& list, DType dtype) {
  const CaseInput group = given_ids({2, 0, -1, 2, 1});
  const CaseInput x = normal(dtype, Shape{5, 6}), y = normal(dtype, Shape{5, 4});
  list.add({x, normal(DType::f32, Shape{4, 4, 6}), group},
           [](Builder& b, Ids in) { grouped_matmul(b, in[0], in[1], in[2]); });
  list.add({x, normal(DType::f32, Shape{4, 6, 4}), group, y}, [](Builder& b, Ids in) {
    grouped_matmul(b, in[0], in[1], in[2], {.trans_b = false, .alpha = 0.5, .addend = in[3]});
  });
  list.add({x, y, group},
           [](Builder& b, Ids in) { grouped_matmul_grad_weight(b, in[0], in[1], in[2], 4, 0.5); });
}

// biased_attention_grad's out and lse are what biased_attention gives for its other inputs.
void run_forward(const OpCase& op_case, ReferenceValues& inputs) {
  const std::vector<Type> types = op_case.input_types();
  std::vector<Type> forward_types(types.begin(), types.begin() + 4);
  ReferenceValues forward_inputs(inputs.begin(), inputs.begin() + 4);
  for (size_t i = 7; i < inputs.size(); ++i) {
    forward_types.push_back(types[i]);
    forward_inputs.push_back(inputs[i]);
  }
  const ReferenceValues forward =
      evaluate_op(biased_attention_op(), op_case.attrs, forward_types, forward_inputs);
  for (size_t output = 0; output < 2; ++output) {
    for (size_t i = 0; i < forward[output].size(); ++i) {
      inputs[4 + output][i] = round_to_dtype(forward[output][i], types[4 + output].dtype);
    }
  }
}

// Relative positions, some beyond what a query sees and some keys beyond them, and sinks by token.
void add_relative(CaseList& list, DType dtype) {
  const CaseInput begins = given_ids({0, 0, 0, 3, 3, 3, 3, 3, 3});
  const CaseInput q = normal(dtype, Shape{9, 4, 6}), k = normal(dtype, Shape{9, 2, 6});
  const CaseInput v = normal(dtype, Shape{9, 2, 5}), out = normal(dtype, Shape{9, 4, 5});
  const CaseInput lse = normal(DType::f32, Shape{9, 4});
  for (const bool sinks : {false, true}) {
    BiasedAttentionOptions options;
    options.scale = 0.4;
    options.window = sinks ? 4 : 0;
    const auto biases = [&](Ids in, size_t first) {
      AttentionBiases found;
      if (sinks) found.sinks = in[first++];
      found.relative = in[first];
      return found;
    };
    std::vector<CaseInput> forward = {q, k, v, begins}, backward = {q, k, v, begins, out, lse, out};
    std::vector<CaseInput> paged = {normal(dtype, Shape{3, 4, 6}),
                                    normal(dtype, Shape{3, 4, 2, 6}),
                                    normal(dtype, Shape{3, 4, 2, 5}),
                                    given(DType::i32, Shape{1, 3}, {2, 0, 1}),
                                    given_ids({0, -1, 0}),
                                    given_ids({8, 0, 9})};
    for (auto* inputs : {&forward, &backward, &paged}) {
      const int64_t tokens = inputs == &paged ? 3 : 9;
      if (sinks) inputs->push_back(normal(DType::f32, Shape{tokens, 4}));
      inputs->push_back(normal(dtype, Shape{tokens, 4, sinks ? 5 : 3}));
    }
    list.add(forward, [&](Builder& b, Ids in) {
      biased_attention(b, in[0], in[1], in[2], in[3], biases(in, 4), options);
    });
    list.add(paged, [&](Builder& b, Ids in) {
      biased_paged_attention(b, {in[0], in[1], in[2], in[3], in[4], in[5]}, biases(in, 6), options);
    });
    list.add(backward, [&](Builder& b, Ids in) {
      biased_attention_grad(b, {in.begin(), in.end()}, biases(in, 7), options);
    });
    list.complete_with(run_forward);
  }
}

void add_biased(CaseList& list, DType dtype) {
  const CaseInput begins = given_ids({0, 0, 0, 3, 3, 3, 3, 3, 3});
  const CaseInput q = normal(dtype, Shape{9, 4, 6}), k = normal(dtype, Shape{9, 2, 6});
  const CaseInput v = normal(dtype, Shape{9, 2, 5}), out = normal(dtype, Shape{9, 4, 5});
  const CaseInput lse = normal(DType::f32, Shape{9, 4}), heads = normal(DType::f32, Shape{4});
  const CaseInput cache_k = normal(dtype, Shape{3, 4, 2, 6}), cache_v = normal(dtype, Shape{3, 4, 2, 5});
  const CaseInput table = given(DType::i32, Shape{1, 3}, {2, 0, 1});
  for (const bool sinks : {false, true}) {
    for (const Alibi alibi : {Alibi::none, Alibi::plain, Alibi::bf16}) {
      BiasedAttentionOptions options;
      options.scale = 0.4;
      options.chunk = alibi == Alibi::none ? 4 : 0;
      options.window = sinks ? 3 : 0;
      options.alibi = alibi;
      options.alibi_scale = 0.5;
      const auto biases = [&](Ids in, size_t first) {
        AttentionBiases found;
        if (sinks) found.sinks = in[first++];
        if (alibi != Alibi::none) found.slopes = in[first];
        return found;
      };
      std::vector<CaseInput> forward = {q, k, v, begins}, backward = {q, k, v, begins, out, lse, out};
      std::vector<CaseInput> paged = {
          normal(dtype, Shape{3, 4, 6}), cache_k, cache_v, table, given_ids({0, -1, 0}),
          given_ids({8, 0, 9})};
      for (auto* inputs : {&forward, &backward, &paged}) {
        if (sinks) inputs->push_back(heads);
        if (alibi != Alibi::none) inputs->push_back(heads);
      }
      list.add(forward, [&](Builder& b, Ids in) {
        biased_attention(b, in[0], in[1], in[2], in[3], biases(in, 4), options);
      });
      list.add(paged, [&](Builder& b, Ids in) {
        biased_paged_attention(b, {in[0], in[1], in[2], in[3], in[4], in[5]}, biases(in, 6), options);
      });
      list.add(backward, [&](Builder& b, Ids in) {
        biased_attention_grad(b, {in.begin(), in.end()}, biases(in, 7), options);
      });
      list.complete_with(run_forward);
    }
  }
}

}  // namespace

void add_family_cases(CaseList& list) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    add_activations(list, dtype);
    add_partial_activations(list, dtype);
    add_normalises(list, dtype);
    add_stream_mixes(list, dtype);
    add_broadcasts(list, dtype);
    add_columns(list, dtype);
    add_routing(list, dtype);
    add_grouped(list, dtype);
    add_biased(list, dtype);
    add_relative(list, dtype);
  }
  add_sinkhorns(list);
  list.add({given(DType::f32, Shape{3, 2}, {4, 1, 0, 3, 2, 5}), given_ids({2, 0, 0, 1})},
           [](Builder& b, Ids in) { lookup_ids(b, in[0], in[1]); });
  for (double factor : {0.0, 2.0}) {
    list.add({given_ids({0, 1, 2, 0, 1, 2, 3, 4, 5, 6}), given_ids({3, 3, 3, 7, 7, 7, 7, 7, 7, 7}),
              given(DType::f32, Shape{3}, {1.0, 0.1, 0.01}), given(DType::f32, Shape{3}, {0.5, 0.02, 0.001})},
             [&](Builder& b, Ids in) {
               rope_table_by_length(b, in[0], in[1], in[2], in[3], {4, factor, 1000.0, 1.25});
             });
  }
  list.add({given_ids({0, 1, 2, 0, 1, 2, 3, 4, 5, 0}), given_ids({0, 0, 0, 3, 3, 3, 3, 3, 3, 9})},
           [](Builder& b, Ids in) { sequence_length(b, in[0], in[1]); });
  list.add({given_ids({}), given_ids({})}, [](Builder& b, Ids in) { sequence_length(b, in[0], in[1]); });
  list.add({given_ids({0, 7, 8, 100, 8191})},
           [](Builder& b, Ids in) { position_scale(b, in[0], {.beta = 0.1, .shift = 1, .period = 8}); });
  list.add({given_ids({0, 7, 8, 100, 8191})}, [](Builder& b, Ids in) {
    position_scale(b, in[0], {.beta = 0.1, .shift = 1, .period = 8, .power = true});
  });
}

}  // namespace tenon
