#include "text/dataset_file.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "text/dataset_unpack.h"

namespace tenon {
namespace {

constexpr const char* kNoRowHint = "Give a file with at least one row of messages or text.";

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kKindsHint =
    "Rows come as JSONL (one JSON object a line), as one JSON list of objects, as .csv or as .tsv with a "
    "header line, or as plain text in .txt or .md; each may be packed with gzip or zstd. Parquet: write "
    "it as JSONL, as in pandas.read_parquet(FILE).to_json(OUT, orient='records', lines=True).";

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

std::string_view trim_right(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

size_t text_begin(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? 3 : 0;
}

// The place after the string that begins at text[at] == '"', or the end of the text.
size_t skip_string(std::string_view text, size_t at) {
  size_t from = at + 1;
  while (from < text.size()) {
    const void* hit = std::memchr(text.data() + from, '"', text.size() - from);
    if (!hit) break;
    const size_t quote = static_cast<size_t>(static_cast<const char*>(hit) - text.data());
    size_t slashes = 0;
    while (text[quote - 1 - slashes] == '\\') ++slashes;  // stops at the opening quote
    from = quote + 1;
    if (slashes % 2 == 0) return from;
  }
  return text.size();
}

Result<FileKind> kind_of(std::string_view text, const std::string& path) {
  std::string_view name = path;
  for (const std::string_view packed : {".gz", ".zst"})
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  if (name.ends_with(".csv")) return FileKind::csv;
  if (name.ends_with(".tsv")) return FileKind::tsv;
  if (name.ends_with(".txt") || name.ends_with(".md")) return FileKind::text;
  const size_t at = skip_space(text, text_begin(text));
  if (at == text.size()) return bad_file("the file holds no row", path, kNoRowHint);
  if (text[at] == '[') return FileKind::json_array;
  if (text[at] == '{') return FileKind::jsonl;
  return unsupported("this is not a kind of data file that Tenon reads", path, std::string(kKindsHint));
}

}  // namespace

std::string_view file_kind_name(FileKind kind) {
  switch (kind) {
    case FileKind::jsonl:
      return "JSONL";
    case FileKind::json_array:
      return "JSON list";
    case FileKind::csv:
      return "CSV";
    case FileKind::tsv:
      return "TSV";
    case FileKind::text:
      return "text";
  }
  CHECK(false, "unknown file kind");
}

DelimitedField next_field(std::string_view text, size_t& position, char delimiter) {
  DelimitedField field;
  size_t at = position;
  if (at < text.size() && text[at] == '"') {
    for (++at; at < text.size(); ++at) {
      if (text[at] == '"') {
        if (at + 1 >= text.size() || text[at + 1] != '"') break;
        ++at;
      }
      field.value += text[at];
    }
    ++at;
  }
  const size_t rest = std::min(at, text.size());
  size_t end = rest;
  while (end < text.size() && text[end] != delimiter && text[end] != '\n') ++end;
  field.last = end >= text.size() || text[end] == '\n';
  std::string_view tail = text.substr(rest, end - rest);
  if (field.last && tail.ends_with('\r')) tail.remove_suffix(1);
  field.value += tail;
  position = std::min(end + 1, text.size());
  return field;
}

Result<DatasetFile> DatasetFile::open(const std::string& path) {
  ASSIGN_OR_RETURN(MappedFile map, MappedFile::open(path, MapAdvice::sequential));
  if (const auto compression = compression_of(map.bytes())) {
    ASSIGN_OR_RETURN(map, unpack_to_disk(map.bytes(), *compression, path));
  }
  DatasetFile file;
  file.path_ = path;
  file.map_ = std::move(map);
  return index(std::move(file));
}

Result<DatasetFile> DatasetFile::from_bytes(std::string bytes, std::string name) {
  DatasetFile file;
  file.path_ = std::move(name);
  file.bytes_ = std::move(bytes);
  return index(std::move(file));
}

Result<DatasetFile> DatasetFile::index(DatasetFile file) {
  ASSIGN_OR_RETURN(file.kind_, kind_of(file.text(), file.path_));
  switch (file.kind_) {
    case FileKind::jsonl:
      RETURN_IF_ERROR(file.index_lines());
      break;
    case FileKind::json_array:
      RETURN_IF_ERROR(file.index_array());
      break;
    case FileKind::csv:
    case FileKind::tsv:
      RETURN_IF_ERROR(file.index_records());
      break;
    case FileKind::text:
      RETURN_IF_ERROR(file.index_blocks());
      break;
  }
  if (file.begins_.empty()) return bad_file("the file holds no row", file.path_, kNoRowHint);
  if (file.map_) file.map_->advise(MapAdvice::normal, 0, file.size_bytes());
  return file;
}

std::string_view DatasetFile::text() const {
  if (!map_) return bytes_;
  return {reinterpret_cast<const char*>(map_->bytes().data()), map_->bytes().size()};
}

Status DatasetFile::index_lines() {
  const std::string_view all = text();
  end_ = all.size();
  size_t at = text_begin(all);
  while (at < all.size()) {
    const void* hit = std::memchr(all.data() + at, '\n', all.size() - at);
    const size_t line_end =
        hit ? static_cast<size_t>(static_cast<const char*>(hit) - all.data()) : all.size();
    const size_t begin = skip_space(all, at);
    if (begin < line_end) begins_.push_back(begin);
    at = std::max(line_end + 1, begin);  // past blank lines too
  }
  return {};
}

Status DatasetFile::index_array() {
  const std::string_view all = text();
  size_t at = skip_space(all, skip_space(all, text_begin(all)) + 1);
  if (at < all.size() && all[at] == ']') return {};
  int64_t depth = 1;
  begins_.push_back(at);
  while (at < all.size() && depth > 0) {
    switch (all[at]) {
      case '"':
        at = skip_string(all, at);
        continue;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        --depth;
        break;
      case ',':
        if (depth == 1) begins_.push_back(skip_space(all, at + 1));
        break;
      default:
        break;
    }
    ++at;
  }
  if (depth > 0) {
    return bad_file("the list of rows is not closed", where(rows() - 1),
                    "The file is cut short, or the row that begins here is broken.");
  }
  end_ = at - 1;
  if (begins_.back() >= end_) return bad_file("the last row of the list is empty", where(rows() - 1));
  if (skip_space(all, at) != all.size()) {
    return bad_file("there is more after the end of the list of rows", where(rows() - 1),
                    "One file holds one list; put one object a line to append rows.");
  }
  return {};
}

Status DatasetFile::index_records() {
  const std::string_view all = text();
  const char delimiter = kind_ == FileKind::csv ? ',' : '\t';
  end_ = all.size();
  size_t at = text_begin(all);
  bool header = true;
  while (at < all.size()) {
    if (all[at] == '\n' || all.substr(at, 2) == "\r\n") {
      at += all[at] == '\n' ? 1 : 2;
      continue;
    }
    if (!header) begins_.push_back(at);
    bool last = false;
    while (!last) {
      DelimitedField field = next_field(all, at, delimiter);
      last = field.last;
      if (header) columns_.push_back(std::move(field.value));
    }
    header = false;
  }
  return {};
}

Status DatasetFile::index_blocks() {
  const std::string_view all = text();
  end_ = all.size();
  for (size_t at = text_begin(all); at < all.size();) {
    begins_.push_back(at);
    size_t end = std::min(at + static_cast<size_t>(kTextBlockBytes), all.size());
    if (end < all.size()) {
      const size_t line = all.rfind('\n', end - 1);
      if (line != std::string_view::npos && line >= at) {
        end = line + 1;
      } else {
        const size_t full = end;
        while (end > full - 3 && (static_cast<unsigned char>(all[end]) & 0xc0) == 0x80) --end;
      }
    }
    at = end;
  }
  return {};
}

std::string_view DatasetFile::row(int64_t index) const {
  CHECK(index >= 0 && index < rows());
  const size_t at = static_cast<size_t>(index);
  const size_t limit = index + 1 < rows() ? begins_[at + 1] : end_;
  const std::string_view row = text().substr(begins_[at], limit - begins_[at]);
  switch (kind_) {
    case FileKind::json_array:
      if (index + 1 < rows()) return trim_right(row.substr(0, row.rfind(',')));
      return trim_right(row);
    case FileKind::jsonl:
      return trim_right(row);
    case FileKind::csv:
    case FileKind::tsv:
    case FileKind::text:
      return row;  // of records, next_field() stops at the end of the record; trailing tabs are empty fields
  }
  CHECK(false, "unknown file kind");
}

std::string DatasetFile::where(int64_t index, int64_t offset) const {
  CHECK(index >= 0 && index < rows());
  const std::string_view before =
      text().substr(0, begins_[static_cast<size_t>(index)] + static_cast<size_t>(offset));
  return path_ + ":" + std::to_string(1 + std::count(before.begin(), before.end(), '\n'));
}

uint64_t DatasetFile::fingerprint() const {
  constexpr size_t kSamples = 64, kSampleBytes = 4096;
  const std::string_view all = text();
  uint64_t hash = hash_bytes(std::to_string(all.size()) + "/" + std::to_string(rows()));
  for (size_t i = 0; i < kSamples; ++i) {
    hash = hash_bytes(all.substr(all.size() / kSamples * i, kSampleBytes), hash);
  }
  return hash_bytes(all.substr(all.size() - std::min(all.size(), kSampleBytes)), hash);
}

}  // namespace tenon
