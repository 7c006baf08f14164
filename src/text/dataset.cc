#include "text/dataset.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

// nlohmann's text is "[json...] parse error at line L, column C: REASON"; the place is given as the subject.
std::string reason_of(const Json::parse_error& error) {
  const std::string_view text = error.what();
  const size_t column = text.find("column ");
  const size_t colon = column == std::string_view::npos ? column : text.find(": ", column);
  return std::string(colon == std::string_view::npos ? text : text.substr(colon + 2));
}

Result<Json> parse_json_row(const DatasetFile& file, int64_t index) {
  const std::string_view text = file.row(index);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const int64_t offset = error.byte > 0 ? static_cast<int64_t>(std::min(error.byte - 1, text.size())) : 0;
    return bad_file("not valid JSON at byte " + std::to_string(offset) + " of the row: " + reason_of(error),
                    file.where(index, offset));
  } catch (const Json::exception& error) {
    return bad_file(std::string("not readable as JSON: ") + error.what(), file.where(index));
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

Result<Json> parse_row(const DatasetFile& file, int64_t index) {
  const bool is_json = file.kind() == FileKind::jsonl || file.kind() == FileKind::json_array;
  return is_json ? parse_json_row(file, index) : parse_record(file, index);
}

}  // namespace

Result<Dataset> Dataset::open(const std::string& path) {
  ASSIGN_OR_RETURN(DatasetFile file, DatasetFile::open(path));
  return detect(std::move(file));
}

Result<Dataset> Dataset::from_bytes(std::string bytes, std::string name) {
  ASSIGN_OR_RETURN(DatasetFile file, DatasetFile::from_bytes(std::move(bytes), std::move(name)));
  return detect(std::move(file));
}

Result<Dataset> Dataset::detect(DatasetFile file) {
  Dataset dataset(std::move(file));
  ASSIGN_OR_RETURN(Json first, parse_row(dataset.file_, 0));
  const Result<RowFormat> format = detect_row_format(first);
  if (!format.ok()) return Error(format.error()).within(dataset.file_.where(0));
  dataset.format_ = *format;
  if (*format == RowFormat::preference_pair || *format == RowFormat::preference_label) {
    return Error(parse_conversation(std::move(first), *format).error()).within(dataset.file_.where(0));
  }
  return dataset;
}

Result<Conversation> Dataset::conversation(int64_t row) const {
  ASSIGN_OR_RETURN(Json value, parse_row(file_, row));
  const Result<RowFormat> format = detect_row_format(value);
  if (!format.ok()) return Error(format.error()).within(file_.where(row));
  if (*format != format_) {
    return bad_file("the row is of format '" + std::string(row_format_name(*format)) +
                        "', the first row of '" + std::string(row_format_name(format_)) + "'",
                    file_.where(row), "One file holds rows of one format.");
  }
  Result<Conversation> conversation = parse_conversation(std::move(value), format_);
  if (!conversation.ok()) return std::move(conversation).error().within(file_.where(row));
  return conversation;
}

Result<LoadedRow> load_row(const Dataset& dataset, int64_t row, const RowSettings& settings) {
  ASSIGN_OR_RETURN(const Conversation conversation, dataset.conversation(row));
  LoadedRow loaded;
  Result<RenderedExample> rendered = render_conversation(conversation, settings.render);
  if (!rendered.ok()) return std::move(rendered).error().within(dataset.file().where(row));
  loaded.rendered = std::move(*rendered);
  Result<TokenizedRow> tokens = tokenize_example(loaded.rendered, settings.tokens);
  if (!tokens.ok()) return std::move(tokens).error().within(dataset.file().where(row));
  loaded.tokens = std::move(*tokens);
  return loaded;
}

}  // namespace tenon
