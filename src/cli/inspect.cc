#include "cli/inspect.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <span>

#include "base/json.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"

namespace tenon {
namespace {

// Counts of tensors, elements and bytes, in all and by dtype.
struct TensorSums {
  struct Sum {
    int64_t tensors = 0;
    int64_t elements = 0;
    int64_t bytes = 0;
  };
  Sum all;
  std::map<DType, Sum> by_dtype;

  void add(const TensorEntry& tensor) {
    for (Sum* sum : {&all, &by_dtype[tensor.dtype]}) {
      ++sum->tensors;
      sum->elements += tensor.shape.elements();
      sum->bytes += tensor.size_bytes;
    }
  }
};

Json tensor_json(const TensorEntry& tensor) {
  return {{"name", tensor.name},
          {"dtype", dtype_name(tensor.dtype)},
          {"shape", tensor.shape.dims()},
          {"bytes", tensor.size_bytes}};
}

template <typename Tensors>
void add_tensor_facts(const Tensors& tensors, bool all_tensors, Json& facts) {
  TensorSums sums;
  for (const TensorEntry& tensor : tensors) sums.add(tensor);
  facts["parameters"] = sums.all.elements;
  facts["weights_bytes"] = sums.all.bytes;
  facts["tensors"] = sums.all.tensors;
  Json dtypes = Json::array();
  for (const auto& [dtype, sum] : sums.by_dtype)
    dtypes.push_back({{"dtype", dtype_name(dtype)},
                      {"tensors", sum.tensors},
                      {"parameters", sum.elements},
                      {"bytes", sum.bytes}});
  facts["dtypes"] = dtypes;
  if (!all_tensors) return;
  Json list = Json::array();
  for (const TensorEntry& tensor : tensors) list.push_back(tensor_json(tensor));
  facts["tensor_list"] = list;
}

Json token_json(const Tokenizer& tokenizer, std::optional<int32_t> id) {
  if (!id) return nullptr;
  return fmt::format("{} ({})", tokenizer.token(*id), *id);
}

// The first of the keys that the object has, else null.
Json value_of(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? Json() : Json(*found);
}

}  // namespace

Json checkpoint_facts(const Checkpoint& checkpoint, bool all_tensors) {
  Json facts;
  facts["path"] = checkpoint.path();
  if (checkpoint.format() == CheckpointFormat::gguf) {
    const GgufFile& gguf = checkpoint.gguf();
    facts["format"] = fmt::format("GGUF version {}", gguf.version);
    const auto text = [&](std::string_view key) -> Json {
      const GgufValue* value = gguf.find(key);
      const auto string = value == nullptr ? std::nullopt : value->string();
      return string ? Json(*string) : Json();
    };
    facts["name"] = text("general.name");
    facts["architecture"] = text("general.architecture");
  } else {
    facts["format"] = "Hugging Face folder";
    facts["architecture"] = value_of(checkpoint.config(), "architectures");
    facts["model_type"] = value_of(checkpoint.config(), "model_type");
  }
  facts["files"] = checkpoint.files().size();
  add_tensor_facts(checkpoint.tensors(), all_tensors, facts);
  return facts;
}

Result<Json> adapter_facts(const Checkpoint& adapter, bool all_tensors) {
  Json facts;
  facts["path"] = adapter.path();
  facts["format"] = "PEFT adapter";
  const Json& config = adapter.config();
  for (const std::string_view key :
       {"peft_type", "base_model_name_or_path", "r", "lora_alpha", "lora_dropout", "use_rslora", "use_dora",
        "target_modules", "modules_to_save", "rank_pattern"})
    if (config.contains(key)) facts[std::string(key)] = value_of(config, key);
  std::set<std::string> modules;
  for (const CheckpointTensor& tensor : adapter.tensors()) {
    const size_t end = tensor.name.find(".lora_");
    if (end != std::string::npos) modules.insert(tensor.name.substr(0, end));
  }
  facts["modules"] = modules.size();
  add_tensor_facts(adapter.tensors(), all_tensors, facts);
  return facts;
}

Json tokenizer_facts(const Tokenizer& tokenizer) {
  const SpecialTokens& special = tokenizer.special();
  Json facts;
  facts["vocabulary"] = tokenizer.vocab_size();
  facts["bos"] = token_json(tokenizer, special.bos);
  Json eos = Json::array();
  for (const int32_t id : special.eos) eos.push_back(token_json(tokenizer, id));
  facts["eos"] = eos;
  facts["pad"] = token_json(tokenizer, special.pad);
  facts["unk"] = token_json(tokenizer, special.unk);
  facts["adds_bos"] = special.add_bos;
  facts["adds_eos"] = special.add_eos;
  Json templates = Json::array();
  for (const ChatTemplateText& chat_template : special.chat_templates)
    templates.push_back(chat_template.name);
  facts["chat_templates"] = templates;
  return facts;
}

Json tokenizer_facts_of(const std::string& path) {
  const auto tokenizer = Tokenizer::from_file(path);
  if (tokenizer.ok()) return tokenizer_facts(*tokenizer);
  if (tokenizer.error().code == ErrorCode::not_found) return nullptr;
  return fmt::format("not usable: {}", tokenizer.error().text());
}

Result<Json> safetensors_facts(const std::string& path, bool all_tensors) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  auto header = parse_safetensors(file.bytes());
  if (!header.ok()) return std::move(header).error().within(path);
  Json facts;
  facts["path"] = path;
  facts["format"] = "safetensors file";
  if (!header->metadata.empty()) facts["metadata"] = header->metadata;
  add_tensor_facts(header->tensors, all_tensors, facts);
  return facts;
}

}  // namespace tenon
