#include "io/tensor_file_writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace tenon {

Result<TensorFileWriter> TensorFileWriter::create(const std::string& path, TensorFileLayout layout) {
  ASSIGN_OR_RETURN(FileWriter file, FileWriter::create(path));
  RETURN_IF_ERROR(file.append(layout.header));
  TensorFileWriter writer(std::move(file), std::move(layout));
  RETURN_IF_ERROR(writer.skip_empty());
  return writer;
}

TensorFileWriter::TensorFileWriter(FileWriter file, TensorFileLayout layout)
    : file_(std::move(file)), tensors_(std::move(layout.tensors)), file_bytes_(layout.file_bytes) {}

Status TensorFileWriter::pad_to(int64_t offset_bytes) {
  static constexpr std::array<std::byte, 64> kZeros{};
  CHECK(offset_bytes >= file_.size_bytes(), "tensors of a layout overlap");
  while (file_.size_bytes() < offset_bytes) {
    const int64_t piece = std::min<int64_t>(kZeros.size(), offset_bytes - file_.size_bytes());
    RETURN_IF_ERROR(file_.append(std::span(kZeros).first(static_cast<size_t>(piece))));
  }
  return {};
}

Status TensorFileWriter::skip_empty() {
  while (current_ < tensors_.size()) {
    const TensorEntry& tensor = tensors_[current_];
    if (tensor.size_bytes > 0) return pad_to(tensor.offset_bytes);
    ++current_;
  }
  return {};
}

Status TensorFileWriter::append(std::string_view tensor, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  CHECK(current_ < tensors_.size() && tensors_[current_].name == tensor, tensor);
  const TensorEntry& entry = tensors_[current_];
  const int64_t end = entry.offset_bytes + entry.size_bytes;
  CHECK(static_cast<int64_t>(bytes.size()) <= end - file_.size_bytes(), tensor);
  RETURN_IF_ERROR(file_.append(bytes));
  if (file_.size_bytes() < end) return {};
  ++current_;
  return skip_empty();
}

Status TensorFileWriter::commit() {
  CHECK(current_ == tensors_.size(), "a tensor is missing or incomplete");
  if (file_.size_bytes() < file_bytes_) RETURN_IF_ERROR(pad_to(file_bytes_));
  return file_.commit();
}

}  // namespace tenon
