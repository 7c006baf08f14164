#include "models/stored_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked_math.h"
#include "io/dequantise.h"
#include "io/narrow_floats.h"

namespace tenon {
namespace {

constexpr int64_t kMxBlock = 32;

std::string subject_of(const Checkpoint& checkpoint, const std::string& tensor) {
  return fmt::format("{}: {}", checkpoint.path(), tensor);
}

Error scales_do_not_fit(const Checkpoint& checkpoint, const CheckpointTensor& scales, const Shape& values) {
  return bad_file(fmt::format("its shape {} does not fit the values' {}", scales.shape.text(), values.text()),
                  subject_of(checkpoint, scales.name),
                  "The checkpoint is damaged, or quantised in an unknown way.");
}

// Cuts matrices of `rows` x `columns` into what one of `count` scales a matrix serves: all of it, a row, or a
// block of the configuration's size.
bool cut_matrix(const StoredQuantisation& quantisation, int64_t rows, int64_t columns, int64_t count,
                StoredScales& out) {
  out.matrix_rows = rows;
  if (count == 1) {
    out.rows = rows, out.columns = columns;
  } else if (quantisation.block_rows > 0) {
    out.rows = quantisation.block_rows, out.columns = quantisation.block_columns;
  } else {
    out.rows = 1, out.columns = columns;
  }
  out.grid_rows = ceil_div(rows, out.rows);
  out.grid_columns = ceil_div(columns, out.columns);
  return out.grid_rows * out.grid_columns == count;
}

Status find_scales(const Checkpoint& checkpoint, const StoredQuantisation& quantisation, SourceBlock& block) {
  const CheckpointTensor* scales = checkpoint.find(block.tensor + "_scale_inv");
  if (!scales) scales = checkpoint.find(block.tensor + "_scale");
  if (!scales) {
    return bad_file("it holds 8-bit floats, but there is no tensor with their scales",
                    subject_of(checkpoint, block.tensor), "The file is incomplete.");
  }
  const bool readable = scales->code != ByteCode::none || can_dequantise(scales->dtype);
  const Shape& shape = block.stored_shape;
  const int64_t elements = scales->shape.elements();
  if (!readable || shape.rank() < 2 || shape.elements() == 0 || elements == 0)
    return scales_do_not_fit(checkpoint, *scales, shape);
  block.scales.tensor = scales->name;
  const int64_t rows = shape[-2], columns = shape[-1], matrices = shape.elements() / (rows * columns);
  const bool one = elements == 1;
  const bool fits = one ? cut_matrix(quantisation, matrices * rows, columns, 1, block.scales)
                        : elements % matrices == 0 &&
                              cut_matrix(quantisation, rows, columns, elements / matrices, block.scales);
  return fits ? Status() : Status(scales_do_not_fit(checkpoint, *scales, shape));
}

// Row and column of a block of matrices [in, out] where they are stored as [out, in].
void turn_round(int64_t in, int64_t out, SourceBlock& block) {
  CHECK(block.transposed, block.tensor);
  const int64_t matrix = block.from_row / in, row = block.from_row % in;
  block.from_row = matrix * out + block.from_column;
  block.from_column = row;
  block.transposed = false;
}

Result<bool> find_mxfp4(const Checkpoint& checkpoint, SourceBlock& block) {
  const CheckpointTensor* blocks = checkpoint.find(block.tensor + "_blocks");
  if (!blocks) return false;
  ASSIGN_OR_RETURN(const CheckpointTensor* scales, checkpoint.require(block.tensor + "_scales"));
  const Shape& shape = blocks->shape;
  const bool bytes = blocks->dtype == DType::u8 && scales->dtype == DType::u8;
  if (!bytes || shape.rank() != 4 || shape[3] != kMxBlock / 2 || shape.elements() == 0 ||
      scales->shape != (Shape{shape[0], shape[1], shape[2]}) || !block.transposed)
    return scales_do_not_fit(checkpoint, *scales, shape);
  block.form = StoredForm::mxfp4;
  block.tensor = blocks->name;
  block.stored = DType::u8;
  block.stored_shape = Shape{shape[0], shape[1], shape[2] * kMxBlock};
  block.scales.tensor = scales->name;
  turn_round(shape[2] * kMxBlock, shape[1], block);
  return true;
}

// One row of the scales that serve a row of values.
void read_scales(const Checkpoint& checkpoint, const StoredScales& scales, int64_t row, float* out) {
  const CheckpointTensor& tensor = *checkpoint.find(scales.tensor);
  const int64_t within = row % scales.matrix_rows;
  const int64_t grid_row = row / scales.matrix_rows * scales.grid_rows + within / scales.rows;
  const int64_t element_bytes = dtype_info(tensor.dtype).block_bytes;
  const std::byte* from = checkpoint.bytes(tensor).data() + grid_row * scales.grid_columns * element_bytes;
  if (tensor.code != ByteCode::none) return decode_row(tensor.code, from, out, scales.grid_columns);
  dequantise_row(tensor.dtype, from, out, scales.grid_columns);
}

void read_float8_row(const Checkpoint& checkpoint, const SourceBlock& block, int64_t row, float* out) {
  const CheckpointTensor& tensor = *checkpoint.find(block.tensor);
  const int64_t columns = block.stored_shape[-1];
  decode_row(tensor.code, checkpoint.bytes(tensor).data() + row * columns, out, columns);
  std::vector<float> factors(static_cast<size_t>(block.scales.grid_columns));
  read_scales(checkpoint, block.scales, row, factors.data());
  for (int64_t i = 0; i < columns; ++i) out[i] *= factors[static_cast<size_t>(i / block.scales.columns)];
}

}  // namespace

Result<bool> find_stored(const Checkpoint& checkpoint, const StoredQuantisation& quantisation,
                         SourceBlock& block, bool ids) {
  const CheckpointTensor* tensor = checkpoint.find(block.tensor);
  if (!tensor) return find_mxfp4(checkpoint, block);
  block.stored = tensor->dtype;
  block.stored_shape = tensor->shape;
  if (tensor->code != ByteCode::none) {
    block.form = StoredForm::float8;
    RETURN_IF_ERROR(find_scales(checkpoint, quantisation, block));
    return true;
  }
  if (can_dequantise(tensor->dtype)) return true;
  if (ids && (tensor->dtype == DType::i64 || tensor->dtype == DType::i32)) return true;
  return bad_file(fmt::format("weights of type {} are not supported", dtype_name(tensor->dtype)),
                  subject_of(checkpoint, tensor->name), "Convert the checkpoint to BF16, F16 or F32.");
}

void read_stored_row(const Checkpoint& checkpoint, const SourceBlock& block, int64_t row, float* out) {
  const std::span<const std::byte> bytes = checkpoint.bytes(block.tensor);
  const int64_t columns = block.stored_shape.rank() < 2 ? 1 : block.stored_shape[-1];
  switch (block.form) {
    case StoredForm::float8:
      return read_float8_row(checkpoint, block, row, out);
    case StoredForm::mxfp4: {
      const std::byte* scales = checkpoint.bytes(block.scales.tensor).data() + row * columns / kMxBlock;
      return decode_mxfp4_row(bytes.data() + row * columns / 2, scales, out, columns);
    }
    case StoredForm::plain:
      const int64_t row_bytes = static_cast<int64_t>(bytes.size()) * columns / block.stored_shape.elements();
      return dequantise_row(block.stored, bytes.data() + row * row_bytes, out, columns);
  }
}

const float* read_block_columns(const Checkpoint& checkpoint, const SourceBlock& block, int64_t row,
                                float* out) {
  const int64_t columns = block.stored_shape.rank() < 2 ? 1 : block.stored_shape[-1];
  const int64_t unit = dtype_info(block.stored).block_elements;  // that are decoded together
  if (block.form != StoredForm::plain || block.columns == columns || block.transposed) {
    read_stored_row(checkpoint, block, row, out);
    return out + block.from_column;
  }
  const int64_t begin = block.from_column / unit, end = ceil_div(block.from_column + block.columns, unit);
  const std::span<const std::byte> bytes = checkpoint.bytes(block.tensor);
  const std::byte* from = bytes.data() + *dtype_bytes(block.stored, row * columns + begin * unit);
  dequantise_row(block.stored, from, out, (end - begin) * unit);
  return out + block.from_column - begin * unit;
}

}  // namespace tenon
