#include "run/merge.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/half.h"
#include "base/json.h"
#include "io/folder.h"
#include "io/safetensors.h"
#include "io/write_file.h"
#include "models/config_forms.h"
#include "models/gguf_config.h"
#include "run/adapter_set.h"
#include "run/generator.h"
#include "run/model.h"
#include "run/session.h"

namespace tenon {
namespace {

constexpr int64_t kCheckTokens = 24;

struct Shard {
  std::string name;
  std::vector<TensorSpec> tensors;
};

Result<DType> merged_dtype(const std::string& wanted, const WeightSource& source) {
  if (wanted == "auto") {
    const bool narrow = source.blocks[0].form != StoredForm::plain || is_block_quantised(source.stored());
    return narrow ? DType::bf16 : source.stored();
  }
  const std::optional<DType> dtype = dtype_from_name(wanted);
  if (!dtype || !dtype_info(*dtype).is_float)
    return bad_argument(fmt::format("'{}' is not a float type", wanted), "--dtype");
  return source.shape.rank() > 1 ? *dtype : DType::f32;
}

Result<std::vector<Shard>> make_shards(const Model& model, const MergeRequest& request) {
  std::vector<Shard> shards(1);
  int64_t bytes = 0;
  for (const WeightSource& source : model.weights.sources) {
    ASSIGN_OR_RETURN(const DType dtype, merged_dtype(request.dtype, source));
    const int64_t size = *dtype_bytes(dtype, source.shape.elements());
    if (bytes > 0 && bytes + size > request.shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += size;
    shards.back().tensors.push_back({source.name, dtype, source.shape});
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].name = shards.size() == 1
                         ? "model.safetensors"
                         : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  }
  return shards;
}

// W += scale * B·A, in float with double sums over the rank.
void add_low_rank(const AdapterSet& adapter, const AdapterModule& module, std::vector<float>& weight) {
  const std::vector<float>& a = adapter.values.at(module.a_name());
  const std::vector<float>& b = adapter.values.at(module.b_name());
  std::vector<double> row(static_cast<size_t>(module.in));
  for (int64_t o = 0; o < module.out; ++o) {
    std::fill(row.begin(), row.end(), 0.0);
    for (int64_t r = 0; r < module.rank; ++r) {
      const double factor = module.scale * b[static_cast<size_t>(o * module.rank + r)];
      const float* a_row = a.data() + r * module.in;
      for (int64_t i = 0; i < module.in; ++i) row[static_cast<size_t>(i)] += factor * a_row[i];
    }
    float* w = weight.data() + o * module.in;
    for (int64_t i = 0; i < module.in; ++i) w[i] += static_cast<float>(row[static_cast<size_t>(i)]);
  }
}

std::vector<std::byte> narrow(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> out(static_cast<size_t>(*dtype_bytes(dtype, static_cast<int64_t>(values.size()))));
  if (dtype == DType::f32) {
    std::memcpy(out.data(), values.data(), out.size());
    return out;
  }
  uint16_t* to = reinterpret_cast<uint16_t*>(out.data());
  for (size_t i = 0; i < values.size(); ++i)
    to[i] = dtype == DType::bf16 ? f32_to_bf16(values[i]) : f32_to_f16(values[i]);
  return out;
}

Status write_index(const std::vector<Shard>& shards, int64_t bytes, const std::string& folder) {
  if (shards.size() == 1) return {};
  Json index;
  index["metadata"]["total_size"] = bytes;
  for (const Shard& shard : shards) {
    for (const TensorSpec& tensor : shard.tensors) index["weight_map"][tensor.name] = shard.name;
  }
  return write_file_atomic(join_path(folder, "model.safetensors.index.json"), index.dump(2) + "\n");
}

// The files that make the folder a model: configuration, and what the tokenizer needs.
Status copy_side_files(const Model& model, const std::string& folder) {
  ASSIGN_OR_RETURN(const Json whole, checkpoint_config(model.checkpoint));
  Json config = language_config(whole);
  config.erase("quantization_config");  // of the file that was read
  RETURN_IF_ERROR(write_file_atomic(join_path(folder, "config.json"), config.dump(2) + "\n"));
  for (const char* name :
       {"generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
        "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "chat_template.jinja"}) {
    const std::optional<std::string> path = model.checkpoint.side_file(name);
    if (!path) continue;
    ASSIGN_OR_RETURN(const std::string bytes, read_file(*path));
    RETURN_IF_ERROR(write_file_atomic(join_path(folder, name), bytes));
  }
  return {};
}

struct Merger {
  const Model& model;
  const AdapterSet& adapter;
  const MergeRequest& request;
  MergeResult result;

  Status write_shard(const Shard& shard, const std::string& folder) {
    ASSIGN_OR_RETURN(TensorFileWriter writer,
                     create_safetensors(join_path(folder, shard.name), shard.tensors, {{"format", "pt"}}));
    for (const TensorSpec& tensor : shard.tensors) {
      std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
      RETURN_IF_ERROR(load_weight(model.checkpoint, *model.weights.find(tensor.name), DType::f32,
                                  std::as_writable_bytes(std::span(values))));
      for (const AdapterModule& module : adapter.modules) {
        if (module.module + ".weight" != tensor.name) continue;
        add_low_rank(adapter, module, values);
        ++result.merged;
      }
      const std::vector<std::byte> bytes = narrow(values, tensor.dtype);
      RETURN_IF_ERROR(writer.append(tensor.name, bytes));
      result.bytes += static_cast<int64_t>(bytes.size());
      ++result.weights;
      if (request.progress)
        request.progress(result.weights, static_cast<int64_t>(model.weights.sources.size()));
    }
    return writer.commit();
  }

  Status write_all(const std::vector<Shard>& shards, const std::string& folder) {
    RETURN_IF_ERROR(make_folders(folder));
    for (const Shard& shard : shards) RETURN_IF_ERROR(write_shard(shard, folder));
    RETURN_IF_ERROR(write_index(shards, result.bytes, folder));
    RETURN_IF_ERROR(copy_side_files(model, folder));
    result.shards = static_cast<int64_t>(shards.size());
    return {};
  }
};

Result<std::vector<float>> check_logits(const Model& model, const AdapterSet* adapter, Device& device) {
  ProgramSettings settings;
  const std::vector<AdapterModule> modules = adapter ? adapter->modules : std::vector<AdapterModule>{};
  std::vector<Program> programs = {
      probe_program(model.spec, modules, kCheckTokens, ProbeGradients::none, settings)};
  ASSIGN_OR_RETURN(Plan plan, plan_programs(std::move(programs), model, device, {}));
  ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                   Session::open(std::move(plan), model, adapter, device));
  std::vector<int32_t> ids, positions, begin(kCheckTokens, 0), labels(kCheckTokens, -100), rows;
  for (int32_t i = 0; i < kCheckTokens; ++i) {
    ids.push_back(static_cast<int32_t>((int64_t{i} * 7919 + 13) % model.spec.vocab));
    positions.push_back(i);
    rows.push_back(i);
  }
  session->write(kIdsInput, ids);
  session->write(kPositionsInput, positions);
  session->write(kSequenceBeginInput, begin);
  session->write(kLabelsInput, labels);
  session->write(kRowsInput, rows);
  RETURN_IF_ERROR(session->run(kLogits));
  std::vector<float> logits = session->output_f32(kLogits, kLogitsOutput);
  RETURN_IF_ERROR(session->status());
  return logits;
}

double distance(const std::vector<float>& from, const std::vector<float>& to) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    difference += std::pow(double{from[i]} - to[i], 2);
    norm += std::pow(double{to[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

Status check_merge(const Model& model, const AdapterSet& adapter, const std::string& folder, Device& device,
                   MergeResult& result) {
  ASSIGN_OR_RETURN(const std::vector<float> live, check_logits(model, &adapter, device));
  ASSIGN_OR_RETURN(const std::vector<float> base, check_logits(model, nullptr, device));
  ASSIGN_OR_RETURN(const Model merged_model, open_model(folder));
  ASSIGN_OR_RETURN(const std::vector<float> merged, check_logits(merged_model, nullptr, device));
  result.base_distance = distance(base, live);
  result.merged_distance = distance(merged, live);
  if (result.merged_distance <= result.base_distance / 2) return {};
  return bad_argument(
      fmt::format("the merged model's logits are {:.2e} from the live adapter's, and the base model's "
                  "{:.2e}: the merge loses the adapter's effect",
                  result.merged_distance, result.base_distance),
      folder, "Merge with --dtype f32.");
}

}  // namespace

Result<MergeResult> merge_adapter(const MergeRequest& request, Device& device) {
  if (is_folder(request.out) || is_file(request.out)) {
    return bad_argument("it exists already", request.out, "Name a folder that does not exist yet.");
  }
  ASSIGN_OR_RETURN(const Model model, open_model(request.model));
  for (const WeightSource& source : model.weights.sources) {
    if (source.whole && source.tensor() == source.name) continue;
    if (model.checkpoint.format() == CheckpointFormat::gguf) continue;
    return unsupported("merging into a model whose file cuts or renames weights is not supported yet",
                       source.name, "Serve the adapter beside its base model.");
  }
  ASSIGN_OR_RETURN(const AdapterSet adapter,
                   read_adapter(request.adapter, forward_program(model.spec, 1, {})));
  for (const AdapterModule& module : adapter.modules) {
    if (model.weights.find(module.module + ".weight")) continue;
    return unsupported("the adapter changes a layer that has no weight of its own", module.module,
                       "Serve the adapter beside its base model.");
  }
  ASSIGN_OR_RETURN(const std::vector<Shard> shards, make_shards(model, request));
  const std::string partial = request.out + ".partial";
  RETURN_IF_ERROR(remove_folder(partial));  // of a merge that was killed
  Merger merger{model, adapter, request, {}};
  Status done = merger.write_all(shards, partial);
  if (done.ok() && request.check) done = check_merge(model, adapter, partial, device, merger.result);
  if (done.ok()) done = rename_durable(partial, request.out);
  if (done.ok()) return merger.result;
  (void)remove_folder(partial);  // the error that led here is the one to report
  return std::move(done).error();
}

}  // namespace tenon
