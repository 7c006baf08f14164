#include "models/weight_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/gguf_names.h"
#include "models/matrix_shape.h"

namespace tenon {
namespace {

constexpr int64_t kMxBlock = 32;

StoredCode code_of(const CheckpointTensor& tensor) {
  switch (tensor.code) {
    case ByteCode::f8_e4m3:
      return StoredCode::f8_e4m3;
    case ByteCode::f8_e5m2:
      return StoredCode::f8_e5m2;
    case ByteCode::f8_e8m0:
      return StoredCode::f8_e8m0;
    case ByteCode::none:
      return StoredCode::plain;
  }
  CHECK(false, tensor.name);
}

int64_t row_bytes(const StoredPart& part, int64_t columns) {
  if (part.code == StoredCode::plain) return *dtype_bytes(part.dtype, columns);
  return part.code == StoredCode::mxfp4 ? columns / 2 : columns;
}

PartScales scales_of(const Checkpoint& checkpoint, const SourceBlock& block) {
  PartScales out;
  if (block.scales.tensor.empty()) return out;
  const CheckpointTensor& tensor = *checkpoint.find(block.scales.tensor);
  out.data = checkpoint.bytes(tensor).data();
  out.dtype = tensor.dtype;
  if (block.form == StoredForm::mxfp4) {  // a row of scales for each row of values
    out.code = StoredCode::f8_e8m0;
    out.scale_bytes = 1;
    out.columns = kMxBlock;
    out.grid_columns = block.stored_shape[-1] / kMxBlock;
    return out;
  }
  out.code = code_of(tensor);
  out.scale_bytes = dtype_info(tensor.dtype).block_bytes;
  out.rows = block.scales.rows, out.columns = block.scales.columns;
  out.matrix_rows = block.scales.matrix_rows;
  out.grid_rows = block.scales.grid_rows, out.grid_columns = block.scales.grid_columns;
  return out;
}

// A piece of a vector, as one row.
bool is_vector(const SourceBlock& block, int64_t columns) {
  return columns == 1 && as_matrix(block.stored_shape).columns == 1 && block.stride == 1 &&
         block.rope_heads == 0;
}

StoredPart part_of(const Checkpoint& checkpoint, const SourceBlock& block, int64_t columns, DType dtype) {
  const CheckpointTensor& tensor = *checkpoint.find(block.tensor);
  StoredPart out;
  out.bytes = checkpoint.bytes(tensor);
  out.dtype = block.stored;
  out.code = block.form == StoredForm::mxfp4 ? StoredCode::mxfp4 : code_of(tensor);
  out.scales = scales_of(checkpoint, block);
  out.to = block.row * columns + block.column;
  if (is_vector(block, columns)) {
    out.row_bytes = static_cast<int64_t>(out.bytes.size());
    out.rows = 1, out.columns = block.rows, out.from_column = block.from_row;
    return out;
  }
  out.row_bytes = row_bytes(out, as_matrix(block.stored_shape).columns);
  out.unchanged = is_block_quantised(dtype) && dtype == block.stored;
  out.from_row = block.from_row, out.from_column = block.from_column;
  if (block.transposed) {
    out.rows = block.columns, out.columns = block.rows, out.column_stride = block.stride;
    out.to_row = 1, out.to_column = columns;
    return out;
  }
  out.rows = block.rows, out.columns = block.columns, out.row_stride = block.stride;
  if (block.rope_heads > 0) out.head_rows = block.rows / block.rope_heads;
  out.to_row = columns;
  return out;
}

// The place in the stored tensor of an element that a part has; false where it has not.
bool stored_place(const StoredPart& part, int64_t columns, int64_t element, int64_t& row, int64_t& column) {
  const bool turned = part.to_column != 1;
  const int64_t first_row = part.to / columns, first_column = part.to % columns;
  int64_t i = element / columns - first_row, j = element % columns - first_column;
  if (part.rows == 1 && columns == 1) i = 0, j = element - part.to;
  if (turned) std::swap(i, j);
  if (i < 0 || j < 0 || i >= part.rows || j >= part.columns) return false;
  row = part.stored_row(i);
  column = part.from_column + j * part.column_stride;
  return true;
}

}  // namespace

std::vector<StoredPart> weight_parts(const Checkpoint& checkpoint, const WeightSource& source, DType dtype) {
  const int64_t columns = as_matrix(source.shape).columns;
  std::vector<StoredPart> parts;
  const bool other_values =
      std::any_of(source.blocks.begin(), source.blocks.end(),
                  [](const SourceBlock& block) { return gguf_holds_negative_exp(block.tensor); });
  if (other_values) return parts;
  for (const SourceBlock& block : source.blocks) parts.push_back(part_of(checkpoint, block, columns, dtype));
  if (is_stored_as(source, dtype)) {
    StoredPart& whole = parts.front();
    whole.unchanged = true;
  }
  return parts;
}

Error not_finite_error(const Checkpoint& checkpoint, const WeightSource& source, int64_t element) {
  const int64_t columns = as_matrix(source.shape).columns;
  std::string tensor = source.name;
  int64_t row = element / columns, column = element % columns;
  for (const SourceBlock& block : source.blocks) {
    if (!stored_place(part_of(checkpoint, block, columns, DType::f32), columns, element, row, column))
      continue;
    tensor = block.tensor;
    break;
  }
  return bad_file(fmt::format("the value at row {}, column {} is not finite", row, column),
                  fmt::format("{}: {}", checkpoint.path(), tensor),
                  "The file is damaged or the model was saved after it diverged.");
}

}  // namespace tenon
