#include "run/bench/bench_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "ir/builder.h"
#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/attention_grad.h"
#include "ops/embedding.h"
#include "ops/linear_cross_entropy.h"
#include "ops/matmul.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_grad_input.h"
#include "ops/rope.h"
#include "ops/swiglu.h"
#include "ops/swiglu_grad.h"

namespace tenon {
namespace {

// Sizes of a model of 135 million parameters, and tokens of a training step.
constexpr int64_t kTokens = 2048, kHidden = 576, kWide = 1536, kHeads = 9, kKvHeads = 3, kHeadDim = 64,
                  kRank = 16, kVocab = 49152;

constexpr const char* kCaseProgram = "case";

using Inputs = std::vector<ValueId>;

struct Case {
  std::string what;
  std::vector<Type> inputs;
  std::function<void(Builder&, const Inputs&)> emit;
};

Case matmul_case(std::string what, const Type& a, const Type& b, MatmulOptions options) {
  options.out_dtype = a.dtype;
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

void add_products(std::vector<Case>& out) {
  add_linear(out, "up_proj", kTokens, kWide, kHidden);
  add_linear(out, "up_proj", 512, kWide, kHidden);
  for (int64_t rows : {1, 16}) add_linear(out, "up_proj", rows, kWide, kHidden);
  add_linear(out, "head", 1, kVocab, kHidden);
  for (DType dtype : {DType::f32, DType::bf16}) {
    const auto type = [dtype](int64_t rows, int64_t columns) { return Type{dtype, Shape{rows, columns}}; };
    const auto f32 = [](int64_t rows, int64_t columns) { return Type{DType::f32, Shape{rows, columns}}; };
    out.push_back(matmul_case("down_proj", type(kTokens, kWide), type(kHidden, kWide), {.trans_b = true}));
    out.push_back(matmul_case("gradient of x", type(kTokens, kWide), type(kWide, kHidden), {}));
    out.push_back(matmul_case("LoRA A", type(kTokens, kHidden), f32(kRank, kHidden), {.trans_b = true}));
    out.push_back(matmul_case("LoRA B", type(kTokens, kRank), f32(kWide, kRank), {.trans_b = true}));
    out.push_back(matmul_case("LoRA dA", type(kTokens, kRank), type(kTokens, kHidden), {.trans_a = true}));
    out.push_back(matmul_case("LoRA dB", type(kTokens, kWide), type(kTokens, kRank), {.trans_a = true}));
  }
}

void add_attention(std::vector<Case>& out, DType dtype) {
  const Type q{dtype, Shape{kTokens, kHeads, kHeadDim}}, kv{dtype, Shape{kTokens, kKvHeads, kHeadDim}};
  const Type begin{DType::i32, Shape{kTokens}}, lse{DType::f32, Shape{kTokens, kHeads}};
  const AttentionOptions options{.scale = 0.125};
  out.push_back({"one sequence", {q, kv, kv, begin}, [options](Builder& b, const Inputs& in) {
                   attention(b, in[0], in[1], in[2], in[3], options);
                 }});
  out.push_back({"one sequence", {q, kv, kv, begin, q, lse, q}, [options](Builder& b, const Inputs& in) {
                   attention_grad(b, {in[0], in[1], in[2], in[3], in[4], in[5], in[6]}, options);
                 }});
}

void add_rows(std::vector<Case>& out, DType dtype) {
  const Type x{dtype, Shape{kTokens, kHidden}}, wide{dtype, Shape{kTokens, kWide}};
  const Type w{DType::f32, Shape{kHidden}}, q{dtype, Shape{kTokens, kHeads, kHeadDim}};
  const Type table{DType::f32, Shape{kTokens, 2, kHeadDim / 2}};
  out.push_back({"", {x, w}, [](Builder& b, const Inputs& in) { rms_norm(b, in[0], in[1], 1e-5); }});
  out.push_back({"", {x, w, x}, [](Builder& b, const Inputs& in) {
                   rms_norm_grad_input(b, in[0], in[1], in[2], 1e-5, 0);
                 }});
  out.push_back({"", {q, table}, [](Builder& b, const Inputs& in) { rope(b, in[0], in[1], false); }});
  out.push_back({"", {wide, wide}, [](Builder& b, const Inputs& in) { swiglu(b, in[0], in[1]); }});
  out.push_back(
      {"", {wide, wide, wide}, [](Builder& b, const Inputs& in) { swiglu_grad(b, in[0], in[1], in[2]); }});
}

void add_vocabulary(std::vector<Case>& out) {
  const Type ids{DType::i32, Shape{kTokens}};
  const Type table{DType::q4_1, Shape{kVocab, kHidden}};
  out.push_back(
      {"", {table, ids}, [](Builder& b, const Inputs& in) { embedding(b, in[0], in[1], DType::f32); }});
  const Type hidden{DType::f32, Shape{256, kHidden}}, weight{DType::f32, Shape{kVocab, kHidden}};
  const Type labels{DType::i32, Shape{256}};
  out.push_back({"", {hidden, weight, labels}, [](Builder& b, const Inputs& in) {
                   linear_cross_entropy(b, in[0], in[1], in[2], {});
                 }});
}

std::vector<Case> all_cases() {
  std::vector<Case> out;
  add_products(out);
  for (DType dtype : {DType::f32, DType::bf16}) {
    add_attention(out, dtype);
    add_rows(out, dtype);
  }
  add_vocabulary(out);
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

// All inputs are zero, which every op takes and which costs what other numbers do.
Result<KernelTime> time_case(Program program, Device& device, const KernelBenchSettings& settings) {
  PlanOptions options;
  options.without_kernels = settings.without;
  std::vector<Program> programs;
  programs.push_back(std::move(program));
  ASSIGN_OR_RETURN(const Plan plan,
                   make_plan(std::move(programs), device.facts(), device.kernels(), options));
  ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, Executor::prepare(plan, device, {}));
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
  return executor.run(kCaseProgram);
}

std::vector<std::string> benched_ops() {
  std::vector<std::string> names;
  for (const Case& each : all_cases()) {
    const std::string name(case_program(each).ops[0].def->name);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

Result<std::vector<KernelBenchCase>> bench_kernels(Device& device, const KernelBenchSettings& settings) {
  std::vector<KernelBenchCase> out;
  for (const Case& each : all_cases()) {
    Program program = case_program(each);
    if (!settings.only.empty() && program.ops[0].def->name != settings.only) continue;
    ASSIGN_OR_RETURN(const KernelTime time, time_case(std::move(program), device, settings));
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
