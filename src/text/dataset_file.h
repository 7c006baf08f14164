// A file of rows on disk, addressed by row number: JSONL, a JSON array of objects, CSV or TSV with a header
// line, or plain text (a document whose rows are blocks of whole lines), each also compressed with gzip or
// zstd. The file is mapped; opening it scans it once for where rows begin and keeps 8 bytes a row, so memory
// does not grow with the length of rows. Never parses a row's JSON. Immutable after open: any number of
// threads may read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/mapped_file.h"

namespace tenon {

enum class FileKind { jsonl, json_array, csv, tsv, text };

std::string_view file_kind_name(FileKind kind);

class DatasetFile {
 public:
  // A row of a text file has at most this many bytes: it ends with the last line that ends within them or,
  // where a line is longer, with the last whole character.
  static constexpr int64_t kTextBlockBytes = 2048;

  // The kind is told by the name's ending (.csv, .tsv, .txt, .md) or else by the first character. A
  // compressed file (told by its first bytes) is unpacked once into a file without a name in $TMPDIR (or
  // /tmp), gone when this object is. Errors: not_found, io, bad_file (no rows, a list that is not closed,
  // damaged compression), unsupported (a file of another kind).
  static Result<DatasetFile> open(const std::string& path);

  // The same over bytes in memory; `name` is what errors call them and tells the kind as a path would.
  static Result<DatasetFile> from_bytes(std::string bytes, std::string name);

  FileKind kind() const { return kind_; }
  const std::string& path() const { return path_; }
  int64_t rows() const { return static_cast<int64_t>(begins_.size()); }
  int64_t size_bytes() const { return static_cast<int64_t>(text().size()); }

  // The bytes of one row, without what separates it from the next: a JSON value, or one CSV record,
  // or a block of text.
  std::string_view row(int64_t index) const;

  // "path:line" of byte `offset` of the row, the line counted from 1. Reads the file up to there: for errors.
  std::string where(int64_t index, int64_t offset = 0) const;

  // The header of a CSV or TSV file.
  const std::vector<std::string>& columns() const { return columns_; }

  // A number that changes when the file does: its size, its row count and 64 samples of 4 KiB. For resuming.
  uint64_t fingerprint() const;

 private:
  DatasetFile() = default;
  static Result<DatasetFile> index(DatasetFile file);
  std::string_view text() const;
  Status index_lines();
  Status index_array();
  Status index_records();
  Status index_blocks();

  std::string path_;
  std::optional<MappedFile> map_;
  std::string bytes_;  // where there is no map
  FileKind kind_ = FileKind::jsonl;
  std::vector<uint64_t> begins_;  // of each row
  uint64_t end_ = 0;              // where the last row ends at the latest
  std::vector<std::string> columns_;
};

// One field of a CSV record (RFC 4180) from `position` on, which moves past the field and the delimiter after
// it. `last` is set where the record ends with it. A quote that is not closed runs to the end of the text.
struct DelimitedField {
  std::string value;
  bool last = false;
};
DelimitedField next_field(std::string_view text, size_t& position, char delimiter);

}  // namespace tenon
