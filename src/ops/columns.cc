#include "ops/columns.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}};

int64_t rows_of(const Shape& shape) {
  return shape[-1] == 0 ? 0 : shape.elements() / shape[-1];
}

Type with_columns(Type type, int64_t columns) {
  type.shape[-1] = columns;
  return type;
}

Status check_x(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  return expect(site, site.inputs[0].shape.rank() >= 1, "x has no innermost axis");
}

InferredTypes infer_slice(const OpSite& site) {
  RETURN_IF_ERROR(check_x(site));
  const int64_t begin = site.attrs.integer("begin"), count = site.attrs.integer("count");
  RETURN_IF_ERROR(expect(site, begin >= 0 && count > 0 && begin + count <= site.inputs[0].shape[-1],
                         "the columns are not those of x"));
  return std::vector<Type>{with_columns(site.inputs[0], count)};
}

InferredTypes infer_pad(const OpSite& site) {
  RETURN_IF_ERROR(check_x(site));
  const int64_t begin = site.attrs.integer("begin"), width = site.attrs.integer("width");
  RETURN_IF_ERROR(
      expect(site, begin >= 0 && begin + site.inputs[0].shape[-1] <= width, "x does not fit the width"));
  return std::vector<Type>{with_columns(site.inputs[0], width)};
}

InferredTypes infer_concat(const OpSite& site) {
  RETURN_IF_ERROR(expect(site, !site.inputs.empty(), "there is nothing to join"));
  int64_t columns = 0;
  const Type& first = site.inputs[0];
  RETURN_IF_ERROR(expect(site, first.shape.rank() >= 1, "x has no innermost axis"));
  for (const Type& type : site.inputs) {
    RETURN_IF_ERROR(expect(
        site, type.shape.rank() == first.shape.rank() && with_columns(type, 1) == with_columns(first, 1),
        "the inputs differ in more than their columns"));
    columns += type.shape[-1];
  }
  return std::vector<Type>{with_columns(first, columns)};
}

InferredTypes infer_repeat(const OpSite& site) {
  RETURN_IF_ERROR(check_x(site));
  const int64_t times = site.attrs.integer("times");
  RETURN_IF_ERROR(expect(site, times > 0, "times is not positive"));
  return std::vector<Type>{with_columns(site.inputs[0], site.inputs[0].shape[-1] * times)};
}

InferredTypes infer_fold(const OpSite& site) {
  RETURN_IF_ERROR(check_x(site));
  const int64_t times = site.attrs.integer("times");
  RETURN_IF_ERROR(
      expect(site, times > 0 && site.inputs[0].shape[-1] % times == 0, "x is not that many equal parts"));
  return std::vector<Type>{with_columns(site.inputs[0], site.inputs[0].shape[-1] / times)};
}

std::vector<ValueId> gradient_slice(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  return {pad_columns(site.builder, site.output_gradients[0], site.op.attrs.integer("begin"),
                      site.builder.shape(site.op.inputs[0])[-1])};
}

std::vector<ValueId> gradient_pad(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  return {slice_columns(site.builder, site.output_gradients[0], site.op.attrs.integer("begin"),
                        site.builder.shape(site.op.inputs[0])[-1])};
}

std::vector<ValueId> gradient_concat(const GradientSite& site) {
  std::vector<ValueId> gradients(site.op.inputs.size());
  int64_t begin = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const int64_t count = site.builder.shape(site.op.inputs[i])[-1];
    if (site.needed[i]) gradients[i] = slice_columns(site.builder, site.output_gradients[0], begin, count);
    begin += count;
  }
  return gradients;
}

std::vector<ValueId> gradient_repeat(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  return {fold_columns(site.builder, site.output_gradients[0], site.op.attrs.integer("times"))};
}

std::vector<ValueId> gradient_fold(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  return {repeat_columns(site.builder, site.output_gradients[0], site.op.attrs.integer("times"))};
}

void reference_slice(const ReferenceCall& call) {
  const int64_t n = call.inputs[0].type.shape[-1], count = call.outputs[0].type.shape[-1];
  for (int64_t r = 0; r < rows_of(call.outputs[0].type.shape); ++r) {
    std::copy_n(call.inputs[0].data + r * n + call.attrs.integer("begin"), count,
                call.outputs[0].data + r * count);
  }
}

void reference_pad(const ReferenceCall& call) {
  const int64_t n = call.inputs[0].type.shape[-1], width = call.outputs[0].type.shape[-1];
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  for (int64_t r = 0; r < rows_of(call.outputs[0].type.shape); ++r) {
    std::copy_n(call.inputs[0].data + r * n, n,
                call.outputs[0].data + r * width + call.attrs.integer("begin"));
  }
}

void reference_concat(const ReferenceCall& call) {
  const int64_t width = call.outputs[0].type.shape[-1];
  int64_t begin = 0;
  for (const ReferenceTensor& input : call.inputs) {
    const int64_t n = input.type.shape[-1];
    for (int64_t r = 0; r < rows_of(call.outputs[0].type.shape); ++r) {
      std::copy_n(input.data + r * n, n, call.outputs[0].data + r * width + begin);
    }
    begin += n;
  }
}

void reference_repeat(const ReferenceCall& call) {
  const int64_t n = call.inputs[0].type.shape[-1], width = call.outputs[0].type.shape[-1];
  for (int64_t i = 0; i < call.outputs[0].type.elements(); ++i) {
    call.outputs[0].data[i] = call.inputs[0].data[i / width * n + i % width % n];
  }
}

void reference_fold(const ReferenceCall& call) {
  const int64_t width = call.inputs[0].type.shape[-1], n = call.outputs[0].type.shape[-1];
  for (int64_t i = 0; i < call.outputs[0].type.elements(); ++i) {
    double total = 0;
    for (int64_t at = i % n; at < width; at += n) total += call.inputs[0].data[i / n * width + at];
    call.outputs[0].data[i] = total;
  }
}

constexpr auto kMoves = [](const OpSite& site) { return streaming_cost(site, 0); };

}  // namespace

const OpDef& slice_columns_op() {
  static constexpr OpDef def{.name = "slice_columns",
                             .infer = infer_slice,
                             .gradient = gradient_slice,
                             .cost = kMoves,
                             .reference = reference_slice};
  return def;
}

const OpDef& pad_columns_op() {
  static constexpr OpDef def{.name = "pad_columns",
                             .infer = infer_pad,
                             .gradient = gradient_pad,
                             .cost = kMoves,
                             .reference = reference_pad};
  return def;
}

const OpDef& concat_columns_op() {
  static constexpr OpDef def{.name = "concat_columns",
                             .infer = infer_concat,
                             .gradient = gradient_concat,
                             .cost = kMoves,
                             .reference = reference_concat};
  return def;
}

const OpDef& repeat_columns_op() {
  static constexpr OpDef def{.name = "repeat_columns",
                             .infer = infer_repeat,
                             .gradient = gradient_repeat,
                             .cost = kMoves,
                             .reference = reference_repeat};
  return def;
}

const OpDef& fold_columns_op() {
  static constexpr OpDef def{.name = "fold_columns",
                             .infer = infer_fold,
                             .gradient = gradient_fold,
                             .cost = kMoves,
                             .reference = reference_fold};
  return def;
}

ValueId slice_columns(Builder& builder, ValueId x, int64_t begin, int64_t count) {
  return builder.emit_one(slice_columns_op(), {x}, {{"begin", begin}, {"count", count}});
}

ValueId pad_columns(Builder& builder, ValueId x, int64_t begin, int64_t width) {
  return builder.emit_one(pad_columns_op(), {x}, {{"begin", begin}, {"width", width}});
}

ValueId concat_columns(Builder& builder, std::vector<ValueId> inputs) {
  return builder.emit_one(concat_columns_op(), std::move(inputs));
}

ValueId repeat_columns(Builder& builder, ValueId x, int64_t times) {
  return builder.emit_one(repeat_columns_op(), {x}, {{"times", times}});
}

ValueId fold_columns(Builder& builder, ValueId x, int64_t times) {
  return builder.emit_one(fold_columns_op(), {x}, {{"times", times}});
}

}  // namespace tenon
