#include "io/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "io/describe.h"
#include "io/folder.h"
#include "io/json_file.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"

namespace tenon {

struct CheckpointData {
  CheckpointFormat format = CheckpointFormat::huggingface;
  std::string path;
  std::string folder;
  std::vector<std::string> files;
  std::vector<MappedFile> maps;  // one for each file
  std::vector<CheckpointTensor> tensors;
  std::vector<CheckpointTensor> metadata_arrays;  // in the file's order
  Json config;
  std::optional<Json> generation_config;
  std::optional<GgufFile> gguf;
};

namespace {

using WeightMap = std::map<std::string, std::string, std::less<>>;  // tensor name -> shard

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kFetchAgain = "Download the checkpoint again, or write it anew with its maker.";
constexpr size_t kMostListed = 8;

Result<Json> read_object(const std::string& path) {
  ASSIGN_OR_RETURN(Json value, read_json_file(path));
  if (!value.is_object()) return bad_file("the file must hold a JSON object", path, std::string(kFetchAgain));
  return value;
}

std::string listed(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMostListed);
  std::string out;
  for (size_t i = 0; i < shown; ++i) out += (i ? ", " : "") + printable(names[i]);
  if (shown < names.size()) out += fmt::format(" and {} more", names.size() - shown);
  return out;
}

// Maps the file and adds its tensors; the caller sorts.
Status add_safetensors(const std::string& path, CheckpointData& data) {
  ASSIGN_OR_RETURN(MappedFile map, MappedFile::open(path));
  auto header = parse_safetensors(map.bytes());
  if (!header.ok()) return std::move(header).error().within(path);
  const auto file = static_cast<int32_t>(data.files.size());
  for (TensorEntry& entry : header->tensors) data.tensors.push_back({std::move(entry), file});
  data.files.push_back(path);
  data.maps.push_back(std::move(map));
  return {};
}

// Names are unique inside a file; across files a name twice is refused.
Status sort_tensors(CheckpointData& data) {
  std::ranges::sort(data.tensors, {},
                    [](const CheckpointTensor& t) { return std::pair(std::string_view(t.name), t.file); });
  const auto twice = std::ranges::adjacent_find(data.tensors, {}, &CheckpointTensor::name);
  if (twice == data.tensors.end()) return {};
  return bad_file(
      fmt::format("the tensor is in two files, {} and {}", data.files[static_cast<size_t>(twice->file)],
                  data.files[static_cast<size_t>((twice + 1)->file)]),
      printable(twice->name), std::string(kFetchAgain));
}

// "weight_map" of an index file. Shards must be plain names: an index must not reach outside its folder.
Result<WeightMap> read_index(const std::string& path) {
  ASSIGN_OR_RETURN(const Json index, read_object(path));
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty())
    return bad_file("the index lacks the object 'weight_map', or it is empty", path,
                    std::string(kFetchAgain));
  WeightMap out;
  for (const auto& [tensor, shard] : map->items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : std::string();
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      return bad_file(fmt::format("the shard of {} is not a plain file name: {}", printable(tensor),
                                  shard.is_string() ? printable(name) : printable(shard.type_name())),
                      path, std::string(kFetchAgain));
    out.emplace(tensor, name);
  }
  return out;
}

// Every tensor of the index is in the shard it names, and the shards hold no other.
Status check_index(const std::string& index_path, const WeightMap& map, const CheckpointData& data) {
  std::vector<std::string> absent;
  std::vector<std::string> extra;
  size_t found = 0;
  for (const CheckpointTensor& tensor : data.tensors) {
    const auto entry = map.find(tensor.name);
    const bool agrees = entry != map.end() &&
                        join_path(data.folder, entry->second) == data.files[static_cast<size_t>(tensor.file)];
    if (agrees) ++found;
    if (!agrees) extra.push_back(tensor.name);
  }
  if (found != map.size()) {
    for (const auto& [name, shard] : map) {
      const auto at = std::ranges::lower_bound(data.tensors, name, {}, &CheckpointTensor::name);
      if (at == data.tensors.end() || at->name != name) absent.push_back(fmt::format("{} ({})", name, shard));
    }
  }
  if (!absent.empty())
    return bad_file("the shards lack tensors that the index names: " + listed(absent), index_path,
                    std::string(kFetchAgain));
  if (!extra.empty())
    return bad_file("the shards hold tensors that the index puts elsewhere or not at all: " + listed(extra),
                    index_path, std::string(kFetchAgain));
  return {};
}

Status add_shards(CheckpointData& data) {
  const std::string index_path = join_path(data.folder, kIndex);
  ASSIGN_OR_RETURN(const WeightMap map, read_index(index_path));
  std::vector<std::string> shards;
  for (const auto& [tensor, shard] : map) shards.push_back(shard);
  std::ranges::sort(shards);
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  std::vector<std::string> missing;
  for (const std::string& shard : shards) {
    if (!is_file(join_path(data.folder, shard))) missing.push_back(shard);
  }
  if (!missing.empty()) {
    return not_found(
        fmt::format("{} of {} weight files are missing: {}", missing.size(), shards.size(), listed(missing)),
        index_path, "Download the missing files into the same folder.");
  }
  for (const std::string& shard : shards)
    RETURN_IF_ERROR(add_safetensors(join_path(data.folder, shard), data));
  RETURN_IF_ERROR(sort_tensors(data));
  return check_index(index_path, map, data);
}

// What a folder holds, by name.
struct Listing {
  bool single = false;
  bool index = false;
  bool config = false;
  std::vector<std::string> gguf;
  std::vector<std::string> pickled;      // PyTorch files, which can run code when read
  std::vector<std::string> safetensors;  // of other names
};

Result<Listing> look_into(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, list_folder(folder));
  Listing out;
  for (const std::string& name : names) {
    if (name == kSingle) {
      out.single = true;
    } else if (name == kIndex) {
      out.index = true;
    } else if (name == kConfig) {
      out.config = true;
    } else if (name.ends_with(".gguf")) {
      out.gguf.push_back(name);
    } else if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth")) {
      out.pickled.push_back(name);
    } else if (name.ends_with(".safetensors")) {
      out.safetensors.push_back(name);
    }
  }
  return out;
}

Error no_weights(const std::string& folder, const Listing& listing) {
  const std::string message = fmt::format("the folder holds neither {} nor {}", kSingle, kIndex);
  if (!listing.pickled.empty()) {
    return unsupported(message + ", only PyTorch files: " + listed(listing.pickled), folder,
                       "Convert them with transformers: save_pretrained(..., safe_serialization=True).");
  }
  if (!listing.safetensors.empty()) {
    return not_found(message + ", but other safetensors files: " + listed(listing.safetensors), folder,
                     fmt::format("Download {}, or rename a single file to {}.", kIndex, kSingle));
  }
  return not_found(message + " nor a .gguf file", folder, "Download the weights, or check the path.");
}

Result<CheckpointData> open_huggingface(const std::string& folder, const Listing& listing,
                                        WeightFiles weights) {
  CheckpointData data;
  data.folder = folder;
  if (!listing.config) {
    return not_found(fmt::format("the folder holds weights but no {}", kConfig), folder,
                     fmt::format("Download {} into the same folder.", kConfig));
  }
  ASSIGN_OR_RETURN(data.config, read_object(join_path(folder, kConfig)));
  const std::string generation = join_path(folder, "generation_config.json");
  if (is_file(generation)) {
    ASSIGN_OR_RETURN(data.generation_config, read_object(generation));
  }
  if (listing.single && listing.index) {
    return bad_argument(fmt::format("the folder holds both {} and {}", kSingle, kIndex), folder,
                        "Remove the one that does not belong to the model.");
  }
  if (listing.single) {
    RETURN_IF_ERROR(add_safetensors(join_path(folder, kSingle), data));
    RETURN_IF_ERROR(sort_tensors(data));
  } else if (listing.index) {
    RETURN_IF_ERROR(add_shards(data));
  } else if (weights == WeightFiles::required) {
    return no_weights(folder, listing);
  }
  return data;
}

// Arrays of f32 among the metadata, which lie in the file as tensors do.
std::vector<CheckpointTensor> metadata_arrays(const GgufFile& gguf, std::span<const std::byte> file) {
  std::vector<CheckpointTensor> out;
  for (const GgufEntry& entry : gguf.metadata) {
    const GgufValue& value = entry.value;
    if (value.type != GgufType::array || value.element_type != GgufType::f32) continue;
    CheckpointTensor tensor;
    tensor.name = std::string(entry.key);
    tensor.shape = Shape{value.count};
    tensor.offset_bytes = value.raw.data() - file.data();
    tensor.size_bytes = static_cast<int64_t>(value.raw.size());
    out.push_back(std::move(tensor));
  }
  return out;
}

Result<CheckpointData> open_gguf(const std::string& path) {
  CheckpointData data;
  data.format = CheckpointFormat::gguf;
  data.folder = parent_folder(path);
  ASSIGN_OR_RETURN(MappedFile map, MappedFile::open(path));
  auto file = parse_gguf(map.bytes());
  if (!file.ok()) return std::move(file).error().within(path);
  const GgufValue* parts = file->find("split.count");
  if (parts && parts->integer().value_or(0) > 1) {
    return unsupported(fmt::format("the file is one of {} parts", *parts->integer()), path,
                       "Join them first: llama-gguf-split --merge FIRST_PART OUT.gguf.");
  }
  for (const TensorEntry& entry : file->tensors) data.tensors.push_back({entry, 0});
  data.metadata_arrays = metadata_arrays(*file, map.bytes());
  data.files.push_back(path);
  data.maps.push_back(std::move(map));
  data.gguf = std::move(file).value();
  RETURN_IF_ERROR(sort_tensors(data));
  return data;
}

Result<CheckpointData> open_folder(const std::string& folder, WeightFiles weights) {
  ASSIGN_OR_RETURN(const Listing listing, look_into(folder));
  if (!listing.single && !listing.index && !listing.gguf.empty()) {
    if (listing.gguf.size() == 1) return open_gguf(join_path(folder, listing.gguf[0]));
    return bad_argument(
        fmt::format("the folder holds {} GGUF files: {}", listing.gguf.size(), listed(listing.gguf)), folder,
        "Name the one file that is meant.");
  }
  const bool anything = listing.config || listing.single || listing.index;
  if (!anything) return no_weights(folder, listing);
  return open_huggingface(folder, listing, weights);
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& path, WeightFiles weights) {
  const bool folder = is_folder(path);
  if (!folder && !path.ends_with(".gguf") && is_file(path)) {
    return bad_argument("neither a folder nor a .gguf file", path,
                        "Name the folder that holds the model's config.json.");
  }
  auto data = folder ? open_folder(path, weights) : open_gguf(path);
  if (!data.ok()) return std::move(data).error();
  data->path = path;
  return Checkpoint(std::make_unique<CheckpointData>(std::move(data).value()));
}

Result<Checkpoint> Checkpoint::open_adapter(const std::string& folder) {
  CheckpointData data;
  data.path = folder;
  data.folder = folder;
  const std::string config = join_path(folder, "adapter_config.json");
  const std::string weights = join_path(folder, "adapter_model.safetensors");
  if (!is_folder(folder)) return not_found("the adapter folder is not there", folder, "Check the path.");
  if (!is_file(config))
    return not_found("the folder holds no adapter_config.json", folder,
                     "Name the folder that PEFT or Tenon saved the adapter in.");
  if (!is_file(weights)) {
    if (is_file(join_path(folder, "adapter_model.bin"))) {
      return unsupported("the adapter is a PyTorch file, adapter_model.bin", folder,
                         "Save it again with PEFT: save_pretrained(..., safe_serialization=True).");
    }
    return not_found("the folder holds no adapter_model.safetensors", folder,
                     "Download it into the same folder.");
  }
  ASSIGN_OR_RETURN(data.config, read_object(config));
  RETURN_IF_ERROR(add_safetensors(weights, data));
  RETURN_IF_ERROR(sort_tensors(data));
  return Checkpoint(std::make_unique<CheckpointData>(std::move(data)));
}

Checkpoint::Checkpoint(std::unique_ptr<CheckpointData> data) : data_(std::move(data)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

CheckpointFormat Checkpoint::format() const {
  return data_->format;
}
const std::string& Checkpoint::path() const {
  return data_->path;
}
const std::string& Checkpoint::folder() const {
  return data_->folder;
}
std::span<const std::string> Checkpoint::files() const {
  return data_->files;
}
std::span<const CheckpointTensor> Checkpoint::tensors() const {
  return data_->tensors;
}

const CheckpointTensor* Checkpoint::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(data_->tensors, name, {}, &CheckpointTensor::name);
  if (at != data_->tensors.end() && at->name == name) return &*at;
  const auto array = std::ranges::find(data_->metadata_arrays, name, &CheckpointTensor::name);
  return array == data_->metadata_arrays.end() ? nullptr : &*array;
}

Result<const CheckpointTensor*> Checkpoint::require(std::string_view name) const {
  if (const CheckpointTensor* tensor = find(name)) return tensor;
  return not_found(fmt::format("there is no tensor {} among the {}", printable(name), data_->tensors.size()),
                   data_->path,
                   "The checkpoint is incomplete, or of another kind than its configuration says.");
}

std::span<const std::byte> Checkpoint::bytes(const CheckpointTensor& tensor) const {
  return data_->maps[static_cast<size_t>(tensor.file)].bytes().subspan(
      static_cast<size_t>(tensor.offset_bytes), static_cast<size_t>(tensor.size_bytes));
}

std::span<const std::byte> Checkpoint::bytes(std::string_view name) const {
  const CheckpointTensor* tensor = find(name);
  CHECK(tensor, name);
  return bytes(*tensor);
}

const Json& Checkpoint::config() const {
  CHECK(data_->format == CheckpointFormat::huggingface);
  return data_->config;
}

const Json* Checkpoint::generation_config() const {
  return data_->generation_config ? &*data_->generation_config : nullptr;
}

const GgufFile& Checkpoint::gguf() const {
  CHECK(data_->format == CheckpointFormat::gguf);
  return *data_->gguf;
}

std::optional<std::string> Checkpoint::side_file(std::string_view name) const {
  if (data_->format == CheckpointFormat::gguf) return std::nullopt;
  std::string path = join_path(data_->folder, name);
  if (!is_file(path)) return std::nullopt;
  return path;
}

}  // namespace tenon
