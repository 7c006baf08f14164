// Streams tensors into a file whose header is already known (io/safetensors.h and io/gguf.h make the header).
// Knows no format: it writes the header, then each tensor's bytes at its offset with zero bytes between, and
// the file appears only at commit(). Holds no tensor in memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/tensor_entry.h"
#include "io/write_file.h"

namespace tenon {

// Header bytes and where each tensor goes: ascending, not overlapping, after the header.
struct TensorFileLayout {
  std::string header;
  std::vector<TensorEntry> tensors;
  int64_t file_bytes = 0;  // zero bytes after the last tensor fill the file up to this
};

class TensorFileWriter {
 public:
  static Result<TensorFileWriter> create(const std::string& path, TensorFileLayout layout);

  // The next bytes of a tensor, in any number of pieces. Tensors come in the order of the layout; another
  // order, or more bytes than the tensor has, is a bug of the caller (CHECK).
  Status append(std::string_view tensor, std::span<const std::byte> bytes);

  // CHECKs that every tensor is complete, then makes the file appear.
  Status commit();

 private:
  TensorFileWriter(FileWriter file, TensorFileLayout layout);
  Status pad_to(int64_t offset_bytes);
  Status skip_empty();

  FileWriter file_;
  std::vector<TensorEntry> tensors_;
  size_t current_ = 0;
  int64_t file_bytes_ = 0;
};

}  // namespace tenon
