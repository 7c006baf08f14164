#include "run/bench/bench_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "ir/builder.h"
#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/attention_grad.h"
#include "ops/embedding.h"
#include "ops/linear_cross_entropy.h"
#include "ops/linear_cross_entropy_with_grad.h"
#include "ops/matmul.h"
#include "ops/matmul_low_rank.h"
#include "ops/paged_attention.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_grad_input.h"
#include "ops/rope.h"
#include "ops/swiglu.h"
#include "ops/swiglu_grad.h"

namespace tenon {
namespace {

// Sizes of a model of 135 million parameters.
constexpr int64_t kHidden = 576, kWide = 1536, kHeads = 9, kKvHeads = 3, kHeadDim = 64, kRank = 16;

// Those that grow with the work: of a training step, and few where instructions are counted, since valgrind
// multiplies and adds lane by lane.
struct Sizes {
  int64_t tokens, prompt, vocab;
};
constexpr Sizes kTimed{2048, 512, 49152}, kCounted{60, 60, 1024};

constexpr const char* kCaseProgram = "case";

using Inputs = std::vector<ValueId>;

struct Case {
  std::string what;
  std::vector<Type> inputs;
  std::function<void(Builder&, const Inputs&)> emit;
  std::vector<std::vector<int32_t>> integers = {};  // of the last inputs; the others are zero
};

Case matmul_case(std::string what, const Type& a, const Type& b, MatmulOptions options) {
  options.out_dtype = options.trans_a ? DType::f32 : a.dtype;  // gradients of weights are f32
  return {std::move(what), {a, b}, [options](Builder& builder, const Inputs& in) {
            matmul(builder, in[0], in[1], options);
          }};
}

// A linear layer of `rows` tokens, with weights of every kind.
void add_linear(std::vector<Case>& out, std::string_view what, int64_t rows, int64_t n, int64_t k) {
  constexpr std::pair<DType, DType> kDtypes[] = {{DType::f32, DType::f32},   {DType::bf16, DType::bf16},
                                                 {DType::f32, DType::bf16},  {DType::f32, DType::q8_0},
                                                 {DType::bf16, DType::q8_0}, {DType::f32, DType::q4_1},
                                                 {DType::bf16, DType::q4_1}, {DType::f32, DType::q4_0}};
  for (const auto& [a, b] : kDtypes) {
    out.push_back(matmul_case(fmt::format("{}, {} rows", what, rows), {a, Shape{rows, k}}, {b, Shape{n, k}},
                              {.trans_b = true}));
  }
}

void add_products(std::vector<Case>& out, const Sizes& sizes) {
  add_linear(out, "up_proj", sizes.tokens, kWide, kHidden);
  if (sizes.prompt != sizes.tokens) add_linear(out, "up_proj", sizes.prompt, kWide, kHidden);
  for (int64_t rows : {1, 16}) add_linear(out, "up_proj", rows, kWide, kHidden);
  add_linear(out, "head", 1, sizes.vocab, kHidden);
  for (DType dtype : {DType::f32, DType::bf16}) {
    const auto type = [dtype](int64_t rows, int64_t columns) { return Type{dtype, Shape{rows, columns}}; };
    const auto f32 = [](int64_t rows, int64_t columns) { return Type{DType::f32, Shape{rows, columns}}; };
    out.push_back(
        matmul_case("down_proj", type(sizes.tokens, kWide), type(kHidden, kWide), {.trans_b = true}));
    out.push_back(matmul_case("gradient of x", type(sizes.tokens, kWide), type(kWide, kHidden), {}));
    for (int64_t n : {kHidden, kWide}) {
      out.push_back(matmul_case("LoRA A", type(sizes.tokens, n), f32(kRank, n), {.trans_b = true}));
    }
    out.push_back(matmul_case("LoRA B", type(sizes.tokens, kRank), f32(kWide, kRank), {.trans_b = true}));
    for (int64_t n : {kHidden, kWide}) {
      const Type low = type(sizes.tokens, kRank), full = type(sizes.tokens, n);
      out.push_back(matmul_case("gradient of A", low, full, {.trans_a = true}));
      out.push_back(matmul_case("gradient of B", full, low, {.trans_a = true}));
      out.push_back(matmul_case("gradient of LoRA B's input", full, f32(n, kRank), {}));
    }
  }
}

// The linear layers of training with their adapters, forward and as gradients of their inputs.
void add_adapted_products(std::vector<Case>& out, const Sizes& sizes) {
  const auto add = [&](const char* what, int64_t n, int64_t k, bool trans_b) {
    const auto f32 = [](int64_t rows, int64_t columns) { return Type{DType::f32, Shape{rows, columns}}; };
    const Type weight{DType::q4_1, Shape{trans_b ? n : k, trans_b ? k : n}};
    const Type up = trans_b ? f32(n, kRank) : f32(kRank, n);
    out.push_back({what,
                   {f32(sizes.tokens, k), weight, f32(sizes.tokens, kRank), up},
                   [trans_b](Builder& b, const Inputs& in) {
                     matmul_low_rank(b, {in[0], in[1], in[2], in[3]}, {.trans_b = trans_b});
                   }});
  };
  add("up_proj with LoRA", kWide, kHidden, true);
  add("down_proj with LoRA", kHidden, kWide, true);
  add("gradient of x with LoRA", kHidden, kWide, false);
}

void add_attention(std::vector<Case>& out, DType dtype, const Sizes& sizes) {
  const Type q{dtype, Shape{sizes.tokens, kHeads, kHeadDim}},
      kv{dtype, Shape{sizes.tokens, kKvHeads, kHeadDim}};
  const Type begin{DType::i32, Shape{sizes.tokens}}, lse{DType::f32, Shape{sizes.tokens, kHeads}};
  const AttentionOptions options{.scale = 0.125};
  out.push_back({"one sequence", {q, kv, kv, begin}, [options](Builder& b, const Inputs& in) {
                   attention(b, in[0], in[1], in[2], in[3], options);
                 }});
  out.push_back({"one sequence", {q, kv, kv, begin, q, lse, q}, [options](Builder& b, const Inputs& in) {
                   attention_grad(b, {in[0], in[1], in[2], in[3], in[4], in[5], in[6]}, options);
                 }});
}

// One token of each of `streams` sequences, after 511 others.
void add_cached_attention(std::vector<Case>& out, DType dtype, int32_t streams) {
  constexpr int32_t kPageTokens = 16, kPages = 32;
  const Type q{dtype, Shape{streams, kHeads, kHeadDim}};
  const Type cache{dtype, Shape{streams * kPages, kPageTokens, kKvHeads, kHeadDim}};
  const Type table{DType::i32, Shape{streams, kPages}}, each{DType::i32, Shape{streams}};
  std::vector<int32_t> pages(static_cast<size_t>(streams * kPages)), stream(static_cast<size_t>(streams));
  std::iota(pages.begin(), pages.end(), 0);
  std::iota(stream.begin(), stream.end(), 0);
  std::vector<int32_t> positions(stream.size(), kPages * kPageTokens - 1);
  out.push_back({fmt::format("decoding, {} streams", streams),
                 {q, cache, cache, table, each, each},
                 [](Builder& b, const Inputs& in) {
                   paged_attention(b, {in[0], in[1], in[2], in[3], in[4], in[5]}, {.scale = 0.125});
                 },
                 {std::move(pages), std::move(stream), std::move(positions)}});
}

void add_rows(std::vector<Case>& out, DType dtype, const Sizes& sizes) {
  const Type x{dtype, Shape{sizes.tokens, kHidden}}, wide{dtype, Shape{sizes.tokens, kWide}};
  const Type w{DType::f32, Shape{kHidden}}, q{dtype, Shape{sizes.tokens, kHeads, kHeadDim}};
  const Type table{DType::f32, Shape{sizes.tokens, 2, kHeadDim / 2}};
  out.push_back({"", {x, w}, [](Builder& b, const Inputs& in) { rms_norm(b, in[0], in[1], 1e-5); }});
  out.push_back({"", {x, w, x}, [](Builder& b, const Inputs& in) {
                   rms_norm_grad_input(b, in[0], in[1], in[2], 1e-5, 0);
                 }});
  out.push_back({"", {q, table}, [](Builder& b, const Inputs& in) { rope(b, in[0], in[1], false); }});
  out.push_back({"", {wide, wide}, [](Builder& b, const Inputs& in) { swiglu(b, in[0], in[1]); }});
  out.push_back(
      {"", {wide, wide, wide}, [](Builder& b, const Inputs& in) { swiglu_grad(b, in[0], in[1], in[2]); }});
}

void add_vocabulary(std::vector<Case>& out, const Sizes& sizes) {
  const Type ids{DType::i32, Shape{sizes.tokens}};
  const Type table{DType::q4_1, Shape{sizes.vocab, kHidden}};
  out.push_back(
      {"", {table, ids}, [](Builder& b, const Inputs& in) { embedding(b, in[0], in[1], DType::f32); }});
  const Type hidden{DType::f32, Shape{sizes.tokens / 8, kHidden}},
      weight{DType::f32, Shape{sizes.vocab, kHidden}};
  const Type labels{DType::i32, Shape{sizes.tokens / 8}};
  out.push_back({"", {hidden, weight, labels}, [](Builder& b, const Inputs& in) {
                   linear_cross_entropy(b, in[0], in[1], in[2], {});
                 }});
  // As training has it, but for a quarter of its tokens: all of them take seconds.
  const int64_t rows = sizes.tokens / 4;
  for (DType dtype : {DType::f32, DType::bf16}) {
    out.push_back({"head",
                   {{dtype, Shape{rows, kHidden}},
                    {DType::q8_0, Shape{sizes.vocab, kHidden}},
                    {DType::i32, Shape{rows}},
                    {DType::f32, Shape{rows}}},
                   [](Builder& b, const Inputs& in) {
                     linear_cross_entropy_with_grad(b, in[0], in[1], in[2], in[3], {});
                   }});
  }
}

std::vector<Case> all_cases(const Sizes& sizes) {
  std::vector<Case> out;
  add_products(out, sizes);
  add_adapted_products(out, sizes);
  for (DType dtype : {DType::f32, DType::bf16}) {
    add_attention(out, dtype, sizes);
    for (int32_t streams : {1, 16}) add_cached_attention(out, dtype, streams);
    add_rows(out, dtype, sizes);
  }
  add_vocabulary(out, sizes);
  return out;
}

Program case_program(const Case& each) {
  Program program;
  program.name = kCaseProgram;
  Builder builder(program);
  Inputs inputs;
  for (size_t i = 0; i < each.inputs.size(); ++i) {
    inputs.push_back(builder.add_static(Role::input, fmt::format("input {}", i), each.inputs[i]));
  }
  each.emit(builder, inputs);
  for (size_t i = 0; i < program.ops[0].outputs.size(); ++i) {
    builder.mark_output(program.ops[0].outputs[i], fmt::format("output {}", i));
  }
  return program;
}

// Where nothing else is said inputs are zero, which costs what other numbers do.
Status write_integers(const Case& each, Executor& executor) {
  const size_t first = each.inputs.size() - each.integers.size();
  for (size_t i = 0; i < each.integers.size(); ++i) {
    RETURN_IF_ERROR(
        executor.write(fmt::format("input {}", first + i), std::as_bytes(std::span(each.integers[i]))));
  }
  return {};
}

Result<KernelTime> time_case(const Case& each, Program program, Device& device,
                             const KernelBenchSettings& settings) {
  PlanOptions options;
  options.without_kernels = settings.without;
  std::vector<Program> programs;
  programs.push_back(std::move(program));
  ASSIGN_OR_RETURN(const Plan plan,
                   make_plan(std::move(programs), device.facts(), device.kernels(), options));
  ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, Executor::prepare(plan, device, {}));
  RETURN_IF_ERROR(write_integers(each, *executor));
  if (settings.once) {
    RETURN_IF_ERROR(counted_run(*executor));
    return describe_kernels(plan.programs[0])[0];
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  KernelTime best;
  do {
    ASSIGN_OR_RETURN(const std::vector<KernelTime> times, time_kernels(*executor, plan.programs[0], 3));
    if (best.calls == 0 || times[0].seconds < best.seconds) best = times[0];
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < settings.seconds);
  return best;
}

}  // namespace

[[gnu::noinline]] Status counted_run(Executor& executor) {
  RETURN_IF_ERROR(executor.run(kCaseProgram));  // not the last thing here: a jump would end the count
  return {};
}

std::vector<std::string> benched_ops() {
  std::vector<std::string> names;
  for (const Case& each : all_cases(kCounted)) {
    const std::string name(case_program(each).ops[0].def->name);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

Result<std::vector<KernelBenchCase>> bench_kernels(Device& device, const KernelBenchSettings& settings) {
  std::vector<KernelBenchCase> out;
  for (const Case& each : all_cases(settings.once ? kCounted : kTimed)) {
    Program program = case_program(each);
    if (!settings.only.empty() && program.ops[0].def->name != settings.only) continue;
    ASSIGN_OR_RETURN(const KernelTime time, time_case(each, std::move(program), device, settings));
    out.push_back({each.what, time});
  }
  if (!out.empty()) return out;
  const std::vector<std::string> names = benched_ops();
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  return not_found(fmt::format("no case measures the op '{}'", settings.only), "--op",
                   fmt::format("There are: {}.", known));
}

}  // namespace tenon
