// What a model folder or file holds, as an index: tensors by name with their bytes in mapped files, the
// configuration, and the files beside it. Reads headers only; knows no model family and converts nothing.
// Immutable after opening and safe to read from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "io/gguf.h"
#include "io/tensor_entry.h"

namespace tenon {

enum class CheckpointFormat { huggingface, gguf };

// Whether a folder without weights (a configuration to plan from) may be opened.
enum class WeightFiles { required, optional };

struct CheckpointTensor : TensorEntry {
  int32_t file = 0;  // index into Checkpoint::files()
};

struct CheckpointData;

class Checkpoint {
 public:
  // A Hugging Face folder (config.json with model.safetensors, or model.safetensors.index.json and its
  // shards), a .gguf file, or a folder that holds exactly one and no safetensors. Errors: not_found (the
  // path, or files that the index names, all listed), bad_file, unsupported, bad_argument (ambiguous folder),
  // io.
  static Result<Checkpoint> open(const std::string& path, WeightFiles weights = WeightFiles::required);

  // A PEFT adapter folder: adapter_config.json, which config() then returns, and adapter_model.safetensors.
  static Result<Checkpoint> open_adapter(const std::string& folder);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  CheckpointFormat format() const;
  const std::string& path() const;    // as given to open
  const std::string& folder() const;  // that holds the files

  // Weight files, in the order of their names.
  std::span<const std::string> files() const;
  // Sorted by name; names are unique.
  std::span<const CheckpointTensor> tensors() const;
  // A tensor, or an array of f32 among GGUF's metadata by its key, which is none of tensors().
  const CheckpointTensor* find(std::string_view name) const;  // null where missing
  // find(), with an error (not_found) that names the tensor and the checkpoint.
  Result<const CheckpointTensor*> require(std::string_view name) const;
  // The tensor's bytes, in a mapped file that lives as long as this object. May be unaligned for the dtype.
  std::span<const std::byte> bytes(const CheckpointTensor& tensor) const;
  // CHECKs that the tensor is there.
  std::span<const std::byte> bytes(std::string_view name) const;

  // config.json or adapter_config.json: an object. CHECKs that the format is huggingface.
  const Json& config() const;
  // generation_config.json; null where missing, and for GGUF.
  const Json* generation_config() const;
  // CHECKs that the format is gguf.
  const GgufFile& gguf() const;

  // The path of a file in the folder ("tokenizer.json", "chat_template.jinja"), if it is there; nothing for
  // GGUF, which carries its tokenizer in its metadata.
  std::optional<std::string> side_file(std::string_view name) const;

 private:
  explicit Checkpoint(std::unique_ptr<CheckpointData> data);

  std::unique_ptr<CheckpointData> data_;
};

}  // namespace tenon
