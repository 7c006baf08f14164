#include "text/data_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "io/folder.h"

namespace tenon {
namespace {

constexpr std::array<std::string_view, 7> kEndings = {".jsonl", ".ndjson", ".json", ".csv",
                                                      ".tsv",   ".txt",    ".md"};

bool is_data_name(std::string_view name) {
  if (name.starts_with('.')) return false;
  for (const std::string_view packed : {".gz", ".zst"})
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

template <typename Wanted>
Result<std::vector<std::string>> files_in(const std::string& folder, Wanted wanted) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, list_folder(folder));
  std::vector<std::string> files;
  for (const std::string& name : names) {
    std::string path = join_path(folder, name);
    if (wanted(name) && is_file(path)) files.push_back(std::move(path));
  }
  return files;
}

Result<std::vector<std::string>> files_of(const std::string& name) {
  if (is_file(name)) return std::vector<std::string>{name};
  if (is_folder(name)) {
    ASSIGN_OR_RETURN(std::vector<std::string> files, files_in(name, is_data_name));
    if (!files.empty()) return files;
    return not_found("the folder holds no data file", name,
                     fmt::format("Data files end in {}, also with .gz or .zst.", fmt::join(kEndings, ", ")));
  }
  if (name.find_first_of("*?") == std::string::npos)
    return not_found("there is no such file or folder", name);
  const std::string pattern = name.substr(name.rfind('/') + 1);
  ASSIGN_OR_RETURN(
      std::vector<std::string> files,
      files_in(parent_folder(name), [&](const std::string& file) { return matches_pattern(pattern, file); }));
  if (files.empty()) return not_found("no file fits the pattern", name);
  return files;
}

Result<DataSource> source_of(const std::string& text) {
  DataSource source{text, {}, std::nullopt};
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos && !is_file(text) && !is_folder(text)) {
    double weight = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + colon + 1, end, weight);
    if (read.ec != std::errc() || read.ptr != end || !std::isfinite(weight) || weight <= 0) {
      return bad_argument(fmt::format("'{}' is not a weight above 0", text.substr(colon + 1)), text,
                          "Write FILE:WEIGHT, as in a.jsonl:0.7.");
    }
    source.name = text.substr(0, colon);
    source.weight = weight;
  }
  ASSIGN_OR_RETURN(source.files, files_of(source.name));
  return source;
}

Status add_sources(const std::string& text, std::vector<DataSource>& sources) {
  if (is_file(text)) {
    sources.push_back({text, {text}, std::nullopt});
    return {};
  }
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    ASSIGN_OR_RETURN(DataSource source, source_of(text.substr(at, end - at)));
    sources.push_back(std::move(source));
    at = end + 1;
  }
  return {};
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0;
  size_t star = std::string_view::npos, star_name = 0;  // where to take one character more
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<std::vector<DataSource>> data_sources(const std::vector<std::string>& texts) {
  std::vector<DataSource> sources;
  for (const std::string& text : texts) RETURN_IF_ERROR(add_sources(text, sources));
  const auto weighted = std::count_if(sources.begin(), sources.end(),
                                      [](const DataSource& source) { return source.weight.has_value(); });
  if (weighted != 0 && weighted != std::ssize(sources)) {
    return bad_argument("some sources have a weight and some have none",
                        fmt::format("{}", fmt::join(texts, ",")), "Give every source a weight, or none.");
  }
  return sources;
}

}  // namespace tenon
