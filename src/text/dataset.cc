#include "text/dataset.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/json.h"

namespace tenon {
namespace {

// nlohmann's text is "[json...] parse error at line L, column C: REASON"; the place is given as the subject.
std::string reason_of(const JsonError& error) {
  const std::string_view text = error.what();
  const size_t column = text.find("column ");
  const size_t colon = column == std::string_view::npos ? column : text.find(": ", column);
  return std::string(colon == std::string_view::npos ? text : text.substr(colon + 2));
}

Result<Json> parse_json_row(const DatasetFile& file, int64_t index) {
  const std::string_view text = file.row(index);
  try {
    return Json::parse(text);
  } catch (const JsonError& error) {
    const int64_t offset =
        error.byte() > 0 ? static_cast<int64_t>(std::min(error.byte() - 1, text.size())) : 0;
    return bad_file("not valid JSON at byte " + std::to_string(offset) + " of the row: " + reason_of(error),
                    file.where(index, offset));
  }
}

Result<Json> parse_record(const DatasetFile& file, int64_t index) {
  const std::string_view text = file.row(index);
  const char delimiter = file.kind() == FileKind::csv ? ',' : '\t';
  Json row = Json::object();
  size_t at = 0, column = 0;
  bool last = false;
  while (!last) {
    DelimitedField field = next_field(text, at, delimiter);
    last = field.last;
    if (column < file.columns().size()) row[file.columns()[column]] = std::move(field.value);
    ++column;
  }
  if (column != file.columns().size()) {
    return bad_file("the record has " + std::to_string(column) + " fields, the header has " +
                        std::to_string(file.columns().size()),
                    file.where(index));
  }
  return row;
}

// A block of a text file; all but the last of a file go on in the next row.
Conversation text_block(const DatasetFile& file, int64_t index) {
  Conversation out;
  out.format = RowFormat::text;
  out.completion = file.row(index);
  out.continues = index + 1 < file.rows();
  return out;
}

Status rename_columns(Json& row, const ColumnNames& columns, const std::string& where) {
  for (const auto& [key, column] : columns) {
    const auto it = row.find(column);
    if (it == row.end()) {
      return bad_file("there is no column '" + column + "'", where, "The columns are: " + key_names(row));
    }
    Json value = std::move(*it);
    row.erase(column);
    row[key] = std::move(value);
  }
  return {};
}

Result<Json> parse_row(const DatasetFile& file, int64_t index, const ColumnNames& columns) {
  const bool is_json = file.kind() == FileKind::jsonl || file.kind() == FileKind::json_array;
  ASSIGN_OR_RETURN(Json row, is_json ? parse_json_row(file, index) : parse_record(file, index));
  if (!columns.empty() && row.is_object()) RETURN_IF_ERROR(rename_columns(row, columns, file.where(index)));
  return row;
}

// A row as JSON, of the format its file has.
Result<Json> row_of_format(const DatasetFile& file, int64_t index, RowFormat want,
                           const ColumnNames& columns) {
  ASSIGN_OR_RETURN(Json value, parse_row(file, index, columns));
  const Result<RowFormat> format = detect_row_format(value);
  if (!format.ok()) return Error(format.error()).within(file.where(index));
  if (*format != want) {
    return bad_file("the row is of format '" + std::string(row_format_name(*format)) +
                        "', the first row of '" + std::string(row_format_name(want)) + "'",
                    file.where(index), "One file holds rows of one format.");
  }
  return value;
}

bool is_preference(RowFormat format) {
  return format == RowFormat::preference_pair || format == RowFormat::preference_label;
}

}  // namespace

Result<ColumnNames> column_names(const std::vector<std::string>& assignments) {
  ColumnNames names;
  for (const std::string& text : assignments) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
      return bad_argument("'" + text + "' is not of the form key=column", "--columns",
                          "Write for example prompt=question,completion=answer.");
    }
    names.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return names;
}

Dataset::Dataset(std::string name, std::vector<std::string> source_names, std::vector<Part> parts,
                 Mixture mixture, ColumnNames columns)
    : name_(std::move(name)),
      source_names_(std::move(source_names)),
      parts_(std::move(parts)),
      mixture_(std::move(mixture)),
      columns_(std::move(columns)) {
  int64_t row = 0;
  for (Part& part : parts_) {
    part.first_row = row;
    row += part.file.rows();
  }
}

Result<Dataset> Dataset::open(const std::string& text, ColumnNames columns) {
  ASSIGN_OR_RETURN(const std::vector<DataSource> sources, data_sources(text));
  std::vector<Part> parts;
  std::vector<MixtureSource> counts;
  std::vector<std::string> names;
  for (const DataSource& source : sources) {
    MixtureSource count{0, source.weight};
    for (const std::string& path : source.files) {
      ASSIGN_OR_RETURN(DatasetFile file, DatasetFile::open(path));
      ASSIGN_OR_RETURN(Part part, detect(std::move(file), columns));
      count.rows += part.file.rows();
      parts.push_back(std::move(part));
    }
    counts.push_back(count);
    names.push_back(source.name);
  }
  return Dataset(text, std::move(names), std::move(parts), Mixture(std::move(counts)), std::move(columns));
}

Result<Dataset> Dataset::from_bytes(std::string bytes, std::string name, ColumnNames columns) {
  ASSIGN_OR_RETURN(DatasetFile file, DatasetFile::from_bytes(std::move(bytes), name));
  ASSIGN_OR_RETURN(Part part, detect(std::move(file), columns));
  Mixture mixture({{part.file.rows(), std::nullopt}});
  std::vector<Part> parts;
  parts.push_back(std::move(part));
  std::vector<std::string> names = {name};
  return Dataset(std::move(name), std::move(names), std::move(parts), std::move(mixture), std::move(columns));
}

Result<Dataset::Part> Dataset::detect(DatasetFile file, const ColumnNames& columns) {
  if (file.kind() == FileKind::text) return Part{std::move(file), RowFormat::text, 0};
  ASSIGN_OR_RETURN(const Json first, parse_row(file, 0, columns));
  const Result<RowFormat> format = detect_row_format(first);
  if (!format.ok()) return Error(format.error()).within(file.where(0));
  return Part{std::move(file), *format, 0};
}

const Dataset::Part& Dataset::part_of(int64_t row) const {
  CHECK(row >= 0 && row < rows());
  const auto after = std::upper_bound(parts_.begin(), parts_.end(), row,
                                      [](int64_t at, const Part& part) { return at < part.first_row; });
  return *(after - 1);
}

int64_t Dataset::size_bytes() const {
  int64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.file.size_bytes();
  return bytes;
}

bool Dataset::has(RowFormat format) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.format == format; });
}

bool Dataset::has_chat() const {
  return has(RowFormat::messages) || has(RowFormat::sharegpt) || has(RowFormat::instruction) ||
         first_preference_row() >= 0;
}

int64_t Dataset::first_preference_row() const {
  for (const Part& part : parts_)
    if (is_preference(part.format)) return part.first_row;
  return -1;
}

std::string Dataset::where(int64_t row) const {
  const Part& part = part_of(row);
  return part.file.where(row - part.first_row);
}

std::string_view Dataset::bytes(int64_t row) const {
  const Part& part = part_of(row);
  return part.file.row(row - part.first_row);
}

uint64_t Dataset::fingerprint() const {
  uint64_t hash = hash_bytes("");
  for (const Part& part : parts_) hash = hash_bytes(std::to_string(part.file.fingerprint()), hash);
  for (const MixtureSource& source : mixture_.sources()) {
    hash = hash_bytes(std::to_string(source.rows) + ":" + std::to_string(source.weight.value_or(0)), hash);
  }
  return hash;
}

Result<Conversation> Dataset::conversation(int64_t row) const {
  const Part& part = part_of(row);
  const int64_t index = row - part.first_row;
  if (part.file.kind() == FileKind::text) return text_block(part.file, index);
  ASSIGN_OR_RETURN(Json value, row_of_format(part.file, index, part.format, columns_));
  Result<Conversation> conversation = parse_conversation(std::move(value), part.format);
  if (!conversation.ok()) return std::move(conversation).error().within(part.file.where(index));
  return conversation;
}

Result<Preference> Dataset::preference(int64_t row) const {
  const Part& part = part_of(row);
  const int64_t index = row - part.first_row;
  ASSIGN_OR_RETURN(Json value, row_of_format(part.file, index, part.format, columns_));
  Result<Preference> preference = parse_preference(std::move(value), part.format);
  if (!preference.ok()) return std::move(preference).error().within(part.file.where(index));
  return preference;
}

Status check_trainable(const Dataset& dataset) {
  const int64_t row = dataset.first_preference_row();
  if (row < 0) return {};
  return dataset.conversation(row).error();
}

Result<LoadedRow> load_row(const Dataset& dataset, int64_t row, const RowSettings& settings) {
  LoadedRow loaded;
  ASSIGN_OR_RETURN(loaded.conversation, dataset.conversation(row));
  Result<RenderedExample> rendered = render_conversation(loaded.conversation, settings.render);
  if (!rendered.ok()) return std::move(rendered).error().within(dataset.where(row));
  loaded.rendered = std::move(*rendered);
  Result<TokenizedRow> tokens = tokenize_example(loaded.rendered, settings.tokens);
  if (!tokens.ok()) return std::move(tokens).error().within(dataset.where(row));
  loaded.tokens = std::move(*tokens);
  return loaded;
}

}  // namespace tenon
