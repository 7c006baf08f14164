#include "ops/op_cases.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "base/half.h"
#include "ops/cases/case_list.h"
#include "ops/philox.h"

namespace tenon {
namespace {

// The words that element i of input `stream` is made of.
std::array<uint32_t, 4> words(uint64_t seed, uint64_t stream, int64_t i) {
  return philox_block({static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}, stream,
                      static_cast<uint64_t>(i));
}

double normal_variate(const std::array<uint32_t, 4>& random) {  // Box and Muller 1958
  const double u = (random[0] + 1.0) / 4294967297.0, v = random[1] / 4294967296.0;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

double element(const CaseInput& input, const std::array<uint32_t, 4>& random, int64_t i) {
  switch (input.fill) {
    case CaseInput::Fill::normal:
      return input.offset + input.scale * normal_variate(random);
    case CaseInput::Fill::positive:
      return std::abs(input.offset + input.scale * normal_variate(random));
    case CaseInput::Fill::below:
      return static_cast<double>(random[0] % static_cast<uint64_t>(input.limit));
    case CaseInput::Fill::given:
      return input.values[static_cast<size_t>(i)];
  }
  CHECK(false, "unknown fill");
}

CaseInput filled(CaseInput::Fill fill, DType dtype, Shape shape) {
  CaseInput input;
  input.type = Type{dtype, shape};
  input.fill = fill;
  return input;
}

}  // namespace

CaseInput normal(DType dtype, Shape shape, double scale, double offset) {
  CaseInput input = filled(CaseInput::Fill::normal, dtype, shape);
  input.scale = scale;
  input.offset = offset;
  return input;
}

CaseInput positive(DType dtype, Shape shape, double scale) {
  CaseInput input = filled(CaseInput::Fill::positive, dtype, shape);
  input.scale = scale;
  return input;
}

CaseInput ids_below(int64_t limit, int64_t count) {
  CaseInput input = filled(CaseInput::Fill::below, DType::i32, Shape{count});
  input.limit = limit;
  return input;
}

CaseInput given(DType dtype, Shape shape, std::vector<double> values) {
  CHECK(shape.elements() == static_cast<int64_t>(values.size()));
  CaseInput input = filled(CaseInput::Fill::given, dtype, shape);
  input.values = std::move(values);
  return input;
}

CaseInput given_ids(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return given(DType::i32, Shape{count}, std::move(values));
}

void CaseList::add(std::vector<CaseInput> inputs, Emit emit, std::string_view label) {
  Program program;
  Builder builder(program);
  std::vector<ValueId> ids;
  std::string types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ids.push_back(builder.add_static(Role::input, fmt::format("in{}", i), inputs[i].type));
    types += (i == 0 ? "" : ", ") + inputs[i].type.text();
  }
  emit(builder, ids);
  CHECK(program.ops.size() == 1, label);
  const Op& op = program.ops[0];
  OpCase op_case;
  op_case.name = fmt::format("{}({}) {} {}", op.def->name, types, op.attrs.to_text(), label);
  op_case.op = op.def;
  op_case.attrs = op.attrs;
  op_case.inputs = std::move(inputs);
  op_case.outputs = site_types(program, op).outputs;
  cases_.push_back(std::move(op_case));
}

std::vector<Type> OpCase::input_types() const {
  std::vector<Type> types;
  for (const CaseInput& input : inputs) types.push_back(input.type);
  return types;
}

std::vector<OpCase> op_cases() {
  CaseList list;
  add_elementwise_cases(list);
  add_matmul_cases(list);
  add_row_cases(list);
  add_attention_cases(list);
  add_family_cases(list);
  add_recurrence_cases(list);
  add_sparse_cases(list);
  add_loss_cases(list);
  add_update_cases(list);
  return list.take();
}

ReferenceValues case_inputs(const OpCase& op_case, uint64_t seed) {
  ReferenceValues values;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    const CaseInput& input = op_case.inputs[i];
    std::vector<double> data(static_cast<size_t>(input.type.elements()));
    for (size_t j = 0; j < data.size(); ++j) {
      const auto at = static_cast<int64_t>(j);
      data[j] = round_to_dtype(element(input, words(seed, i, at), at), input.type.dtype);
    }
    values.push_back(std::move(data));
  }
  if (op_case.complete != nullptr) op_case.complete(op_case, values);
  return values;
}

double round_to_dtype(double value, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return static_cast<float>(value);
    case DType::bf16:
      return bf16_to_f32(f32_to_bf16(static_cast<float>(value)));
    case DType::f16:
      return f16_to_f32(f32_to_f16(static_cast<float>(value)));
    default:
      return value;
  }
}

}  // namespace tenon
