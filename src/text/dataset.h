// A data set: files of rows, mixed by weights where they have some, and the way of one row from bytes to
// tokens. Opening costs one scan of the files; a row is parsed when it is asked for. Immutable: any number of
// threads may read.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/conversation.h"
#include "text/conversation_render.h"
#include "text/data_sources.h"
#include "text/dataset_file.h"
#include "text/dataset_tokens.h"
#include "text/mixture.h"

namespace tenon {

// The key that a row format knows, and the column of the data that holds it.
using ColumnNames = std::vector<std::pair<std::string, std::string>>;

// Reads "prompt=question", "completion=Best Answer". Error: bad_argument.
Result<ColumnNames> column_names(const std::vector<std::string>& assignments);

class Dataset {
 public:
  // `sources` as data_sources() reads them. The format of a file is that of its first row; a later row of
  // another format is an error when it is read. Errors: as data_sources() and DatasetFile::open; bad_file
  // (the first row has no known format, or a column is not there; subject "path:line").
  static Result<Dataset> open(const std::vector<std::string>& sources, ColumnNames columns = {});
  static Result<Dataset> open(const std::string& source, ColumnNames columns = {});
  static Result<Dataset> from_bytes(std::string bytes, std::string name, ColumnNames columns = {});

  int64_t rows() const { return mixture_.rows(); }
  const Mixture& mixture() const { return mixture_; }
  const std::string& name() const { return name_; }  // sources as given to open(), joined by commas
  const std::vector<std::string>& source_names() const { return source_names_; }  // as mixture().sources()
  size_t files() const { return parts_.size(); }
  const DatasetFile& file(size_t index) const { return parts_[index].file; }
  int64_t size_bytes() const;

  RowFormat format(int64_t row) const { return part_of(row).format; }
  bool has(RowFormat format) const;
  bool has_chat() const;  // rows that go through a chat template
  // A row of answers with a preference: to be read and shown, not trained on. -1 where there is none.
  int64_t first_preference_row() const;

  // "path:line"
  std::string where(int64_t row) const;

  // The bytes of the row as they stand in its file.
  std::string_view bytes(int64_t row) const;

  // Errors: bad_file, unsupported; the subject is "path:line" and the place in the row.
  Result<Conversation> conversation(int64_t row) const;
  // Of a preference row.
  Result<Preference> preference(int64_t row) const;

  // A number that changes when a file, the order of files or the weights do. For resuming.
  uint64_t fingerprint() const;

 private:
  struct Part {
    DatasetFile file;
    RowFormat format = RowFormat::text;
    int64_t first_row = 0;
  };

  Dataset(std::string name, std::vector<std::string> source_names, std::vector<Part> parts, Mixture mixture,
          ColumnNames columns);
  static Result<Part> detect(DatasetFile file, const ColumnNames& columns);
  const Part& part_of(int64_t row) const;

  std::string name_;
  std::vector<std::string> source_names_;
  std::vector<Part> parts_;
  Mixture mixture_;
  ColumnNames columns_;
};

// Error: unsupported where rows are answers with a preference, which no loss here learns from.
Status check_trainable(const Dataset& dataset);

struct RowSettings {
  RenderSettings render;
  TokenSettings tokens;
};

struct LoadedRow {
  Conversation conversation;
  RenderedExample rendered;
  TokenizedRow tokens;
};

// One row, all the way. The subject of an error begins with "path:line".
Result<LoadedRow> load_row(const Dataset& dataset, int64_t row, const RowSettings& settings);

}  // namespace tenon
