// How the bytes of a stored tensor become values: plain numbers of a dtype, or 8-bit floats and MXFP4, whose
// scales lie in a tensor beside. For models/ alone.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "io/checkpoint.h"
#include "models/stored_block.h"

namespace tenon {

enum class StoredForm : uint8_t {
  plain,
  float8,  // bytes of TensorEntry::code; scales, where there are any, in NAME_scale_inv or NAME_scale
  mxfp4,   // NAME_blocks [experts, out, in / 32, 16] and NAME_scales [experts, out, in / 32]
};

// Scales beside a tensor whose last two axes are matrices: each serves `rows` x `columns` values. A matrix
// has grid_rows x grid_columns of them, stored matrix by matrix, row by row.
struct StoredScales {
  std::string tensor;  // empty: none
  int64_t rows = 1, columns = 1;
  int64_t matrix_rows = 1;
  int64_t grid_rows = 1, grid_columns = 1;
};

// A block of a weight and the stored block that it comes from (stored_block.h), with what the file says of
// the tensor. `rope_heads` > 0: GGUF keeps rotary pairs next to each other in q and k; their rows are put
// back to the half-split order, by head.
struct SourceBlock : StoredBlock {
  Shape stored_shape;  // of values
  DType stored = DType::f32;
  int64_t rope_heads = 0;
  StoredForm form = StoredForm::plain;
  StoredScales scales;
};

// Looks the block's tensor up and says how it is stored; a block of a transposed matrix whose MXFP4 form is
// not transposed is turned round. Whole numbers are read only where the weight is a table of `ids`. False
// where there is no such tensor. Errors: bad_file (a type that cannot be read, scales that are missing or do
// not fit).
Result<bool> find_stored(const Checkpoint& checkpoint, const StoredQuantisation& quantisation,
                         SourceBlock& block, bool ids = false);

// The values of a stored row, all columns: [columns] floats. A tensor of one axis is rows of one value.
void read_stored_row(const Checkpoint& checkpoint, const SourceBlock& block, int64_t row, float* out);

// The columns of a stored row that the block has, and maybe others: `out` has room for a row. Returns the
// first of the block's.
const float* read_block_columns(const Checkpoint& checkpoint, const SourceBlock& block, int64_t row,
                                float* out);

}  // namespace tenon
