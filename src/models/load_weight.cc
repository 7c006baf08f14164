// The values of weights between a checkpoint's tensors and the host's memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "io/dequantise.h"
#include "models/gguf_names.h"
#include "models/matrix_shape.h"
#include "models/weight_map.h"

namespace tenon {
namespace {

// Stored row of row i of a block that is not transposed: pairs (2i, 2i + 1) of a head hold rows i and i +
// head_dim / 2 where GGUF permuted them.
int64_t stored_row(const SourceBlock& block, int64_t i) {
  if (block.rope_heads == 0) return block.from_row + i * block.stride;
  const int64_t head_dim = block.rows / block.rope_heads;
  const int64_t head = i / head_dim, within = i % head_dim, half = head_dim / 2;
  return head * head_dim + 2 * (within % half) + within / half;
}

Status check_finite(const Checkpoint& checkpoint, const SourceBlock& block, const float* row,
                    int64_t elements, int64_t row_index) {
  for (int64_t i = 0; i < elements; ++i) {
    if (!std::isfinite(row[i])) {
      return bad_file(fmt::format("the value at row {}, column {} is not finite", row_index, i),
                      fmt::format("{}: {}", checkpoint.path(), block.tensor),
                      "The file is damaged or the model was saved after it diverged.");
    }
  }
  return {};
}

// The values of a row that the file has as -exp(x), where it does.
void undo_negative_exp(const SourceBlock& block, std::vector<float>& row) {
  if (!gguf_holds_negative_exp(block.tensor)) return;
  for (float& value : row) value = std::log(-value);
}

// Puts `elements` values at element `at` of a matrix of `dtype`.
void narrow(const float* from, DType dtype, std::byte* matrix, int64_t at, int64_t elements) {
  quantise_row(dtype, from, matrix + *dtype_bytes(dtype, at), elements);
}

// Rows of a block that are whole rows of the stored tensor and of the weight, in the order of the rows.
Status load_rows(const Checkpoint& checkpoint, const SourceBlock& block, const MatrixShape& logical,
                 DType dtype, std::byte* destination) {
  const MatrixShape stored = as_matrix(block.stored_shape);
  const std::span<const std::byte> bytes = checkpoint.bytes(block.tensor);
  const bool one_row =
      stored.columns == 1 && block.stride == 1 && block.rope_heads == 0 && logical.columns == 1;
  const int64_t rows = one_row ? 1 : block.rows, elements = one_row ? block.rows : block.columns;
  const int64_t stored_row_bytes = static_cast<int64_t>(bytes.size()) / stored.rows;
  std::vector<float> row(static_cast<size_t>(one_row ? elements : stored.columns));
  for (int64_t r = 0; r < rows; ++r) {
    const std::byte* from = bytes.data() + stored_row(block, r) * stored_row_bytes;
    if (dtype == block.stored && is_block_quantised(dtype)) {
      std::memcpy(destination + (block.row + r) * stored_row_bytes, from,
                  static_cast<size_t>(stored_row_bytes));
      continue;
    }
    const float* begin = row.data();
    if (one_row) {
      dequantise_row(block.stored, from, row.data(), elements);
    } else {
      begin = read_block_columns(checkpoint, block, stored_row(block, r), row.data());
    }
    undo_negative_exp(block, row);
    RETURN_IF_ERROR(check_finite(checkpoint, block, begin, elements, stored_row(block, r)));
    narrow(begin, dtype, destination, (block.row + r) * logical.columns + block.column, elements);
  }
  return {};
}

Status load_transposed(const Checkpoint& checkpoint, const SourceBlock& block, const MatrixShape& logical,
                       DType dtype, std::byte* destination) {
  const MatrixShape stored = as_matrix(block.stored_shape);
  std::vector<float> row(static_cast<size_t>(stored.columns));
  for (int64_t j = 0; j < block.columns; ++j) {
    read_stored_row(checkpoint, block, block.from_row + j, row.data());
    RETURN_IF_ERROR(check_finite(checkpoint, block, row.data(), stored.columns, block.from_row + j));
    for (int64_t i = 0; i < block.rows; ++i) {
      narrow(&row[static_cast<size_t>(block.from_column + i * block.stride)], dtype, destination,
             (block.row + i) * logical.columns + block.column + j, 1);
    }
  }
  return {};
}

}  // namespace

bool has_whole_rows(const WeightSource& source) {
  const int64_t columns = as_matrix(source.shape).columns;
  return std::all_of(source.blocks.begin(), source.blocks.end(), [&](const SourceBlock& block) {
    return !block.transposed && block.column == 0 && block.from_column == 0 && block.columns == columns &&
           as_matrix(block.stored_shape).columns == columns;
  });
}

bool is_stored_as(const WeightSource& source, DType dtype) {
  return source.whole && source.stored() == dtype && source.blocks[0].rope_heads == 0 &&
         !gguf_holds_negative_exp(source.tensor());
}

Status load_weight(const Checkpoint& checkpoint, const WeightSource& source, DType dtype,
                   std::span<std::byte> destination) {
  const MatrixShape logical = as_matrix(source.shape);
  int64_t covered = 0;
  for (const SourceBlock& block : source.blocks) covered += block.rows * block.columns;
  if (covered < source.shape.elements()) std::fill(destination.begin(), destination.end(), std::byte{0});
  for (const SourceBlock& block : source.blocks) {
    RETURN_IF_ERROR((block.transposed ? load_transposed : load_rows)(checkpoint, block, logical, dtype,
                                                                     destination.data()));
  }
  return {};
}

std::map<std::string, StoredGradient> to_stored(const WeightMap& map,
                                                const std::map<std::string, std::vector<float>>& logical) {
  std::map<std::string, StoredGradient> out;
  for (const auto& [name, values] : logical) {
    const WeightSource* source = map.find(name);
    CHECK(source != nullptr, name);
    const int64_t columns = as_matrix(source->shape).columns;
    for (const SourceBlock& block : source->blocks) {
      StoredGradient& to = out[block.tensor];
      to.shape = block.stored_shape;
      to.values.resize(static_cast<size_t>(to.shape.elements()));
      const int64_t stored_columns = as_matrix(block.stored_shape).columns;
      for (int64_t i = 0; i < block.rows; ++i) {
        for (int64_t j = 0; j < block.columns; ++j) {
          const int64_t row = block.transposed ? block.from_row + j : stored_row(block, i);
          const int64_t column =
              block.transposed ? block.from_column + i * block.stride : block.from_column + j;
          to.values[static_cast<size_t>(row * stored_columns + column)] +=
              values[static_cast<size_t>((block.row + i) * columns + block.column + j)];
        }
      }
    }
  }
  return out;
}

}  // namespace tenon
