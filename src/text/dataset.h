// A data set: a file of rows that are all of one format, and the way of one row from bytes to tokens. Opening
// costs one scan of the file; a row is parsed when it is asked for. Immutable: any number of threads may
// read.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "text/conversation.h"
#include "text/conversation_render.h"
#include "text/dataset_file.h"
#include "text/dataset_tokens.h"

namespace tenon {

class Dataset {
 public:
  // The format is that of the first row; a later row of another format is an error when it is read. Errors:
  // as DatasetFile::open; bad_file (the first row has no known format; subject "path:line"); unsupported
  // (preference rows).
  static Result<Dataset> open(const std::string& path);
  static Result<Dataset> from_bytes(std::string bytes, std::string name);

  int64_t rows() const { return file_.rows(); }
  RowFormat format() const { return format_; }
  const DatasetFile& file() const { return file_; }

  // Errors: bad_file, unsupported; the subject is "path:line" and the place in the row.
  Result<Conversation> conversation(int64_t row) const;

 private:
  explicit Dataset(DatasetFile file) : file_(std::move(file)) {}
  static Result<Dataset> detect(DatasetFile file);

  DatasetFile file_;
  RowFormat format_ = RowFormat::text;
};

struct RowSettings {
  RenderSettings render;
  TokenSettings tokens;
};

struct LoadedRow {
  RenderedExample rendered;
  TokenizedRow tokens;
};

// One row, all the way. The subject of an error begins with "path:line".
Result<LoadedRow> load_row(const Dataset& dataset, int64_t row, const RowSettings& settings);

}  // namespace tenon
