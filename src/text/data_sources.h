// What `--data` names: files, folders and patterns, each with a weight where sources are mixed. Knows only
// names; never opens a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tenon {

struct DataSource {
  std::string name;                // as given, without the weight
  std::vector<std::string> files;  // in byte order of their paths
  std::optional<double> weight;    // > 0
};

// Reads "a.jsonl", "folder/", "data/*.jsonl.gz", each of them with ":0.7" behind it, and several between
// commas; all texts together are one list. A folder stands for the data
// files in it, by their endings (.jsonl, .ndjson, .json, .csv, .tsv, .txt, .md, each also .gz or .zst), not
// those of folders inside. In a pattern `*` stands for any characters and `?` for one, in the last part of
// the path. What names an existing file is that file, commas and colons included. Either every source has a
// weight or none has. Errors: bad_argument (a weight that is no positive number, or missing), not_found (no
// such file; a folder or pattern without a data file).
Result<std::vector<DataSource>> data_sources(const std::vector<std::string>& texts);

// Whether `*` and `?` of the pattern stand for the name. Linear in the product of their lengths.
bool matches_pattern(std::string_view pattern, std::string_view name);

}  // namespace tenon
