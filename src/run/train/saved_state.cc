#include "run/train/saved_state.h"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/json.h"
#include "io/digest.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"

namespace tenon {
namespace {

constexpr const char* kFormatKey = "tenon.state";
constexpr const char* kFormatValue = "1";
constexpr const char* kProgressKey = "progress";
constexpr const char* kRecordKey = "record_bytes";
constexpr const char* kDigestKey = "digest";

// What training changes: trained values, whatever their role, and the state of the optimiser.
std::vector<const StaticValue*> saved_values(const Plan& plan, std::span<const TrainedValue> trained) {
  std::set<std::string_view> names;
  for (const TrainedValue& value : trained) names.insert(value.name);
  std::vector<const StaticValue*> values;
  for (const StaticValue& value : plan.statics) {
    if (value.role == Role::optimiser_state || names.contains(value.name)) values.push_back(&value);
  }
  return values;
}

// The format has no block types; their bytes are kept as they are.
TensorSpec spec_of(const StaticValue& value) {
  if (!safetensors_dtype_name(value.type.dtype).empty())
    return {value.name, value.type.dtype, value.type.shape};
  return {value.name, DType::u8, Shape{value.type.bytes()}};
}

std::vector<std::byte> read_value(Session& session, const StaticValue& value) {
  std::vector<std::byte> bytes(static_cast<size_t>(value.type.bytes()));
  const Status status = session.executor().read(value.name, bytes);
  CHECK(status.ok(), value.name);
  return bytes;
}

// One digest over the digests of the tensors, in the order of the file.
class TensorDigest {
 public:
  void add(std::span<const std::byte> bytes) { digests_ += digest(bytes); }
  std::string text() const { return digest(std::as_bytes(std::span(digests_))); }

 private:
  std::string digests_;
};

Json progress_json(const TrainProgress& p) {
  Json json{{"step", p.step},
            {"micro_steps", p.micro_steps},
            {"epoch", p.data.epoch},
            {"cursor", p.data.cursor},
            {"first_loss", p.first_loss},
            {"last_loss", p.last_loss},
            {"evaluated_step", p.evaluated_step},
            {"best_step", p.best_step},
            {"evaluations_since_best", p.evaluations_since_best},
            {"first_losses", p.losses.first},
            {"recent_losses", p.losses.recent},
            {"setbacks", p.setbacks}};
  if (p.best_loss) json["best_loss"] = *p.best_loss;
  return json;
}

// Throws what the JSON library throws.
TrainProgress progress_from(const Json& json) {
  TrainProgress p;
  json.at("step").get_to(p.step);
  json.at("micro_steps").get_to(p.micro_steps);
  json.at("epoch").get_to(p.data.epoch);
  json.at("cursor").get_to(p.data.cursor);
  json.at("first_loss").get_to(p.first_loss);
  json.at("last_loss").get_to(p.last_loss);
  json.at("evaluated_step").get_to(p.evaluated_step);
  json.at("best_step").get_to(p.best_step);
  json.at("evaluations_since_best").get_to(p.evaluations_since_best);
  json.at("first_losses").get_to(p.losses.first);
  json.at("recent_losses").get_to(p.losses.recent);
  json.at("setbacks").get_to(p.setbacks);
  if (json.contains("best_loss")) p.best_loss = json.at("best_loss").get<double>();
  return p;
}

struct StateFile {
  MappedFile file;
  SafetensorsHeader header;

  std::span<const std::byte> bytes(const TensorEntry& tensor) const {
    return file.bytes().subspan(static_cast<size_t>(tensor.offset_bytes),
                                static_cast<size_t>(tensor.size_bytes));
  }
};

Error not_a_state(const std::string& path, std::string_view what) {
  return bad_file(fmt::format("not a checkpoint of a run: {}", what), path,
                  "Remove it to go on from an older one.");
}

Result<StateFile> open_state(const std::string& path) {
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  auto header = parse_safetensors(file.bytes());
  if (!header.ok()) return std::move(header).error().within(path);
  const auto format = header->metadata.find(kFormatKey);
  if (format == header->metadata.end() || format->second != kFormatValue)
    return not_a_state(path, "its metadata does not say so");
  for (const char* key : {kProgressKey, kRecordKey, kDigestKey}) {
    if (!header->metadata.contains(key)) return not_a_state(path, fmt::format("{} is missing", key));
  }
  return StateFile{std::move(file), std::move(*header)};
}

Result<StateFile> open_checked_state(const std::string& path) {
  ASSIGN_OR_RETURN(StateFile state, open_state(path));
  TensorDigest sum;
  for (const TensorEntry& tensor : state.header.tensors) sum.add(state.bytes(tensor));
  if (sum.text() != state.header.metadata.find(kDigestKey)->second) {
    return bad_file("the checkpoint is damaged: its bytes are not those that were saved", path,
                    "Remove it to go on from an older one, and check the disk.");
  }
  return state;
}

}  // namespace

Status save_state(const std::string& path, const SavedState& state, Session& session,
                  std::span<const TrainedValue> trained) {
  std::vector<TensorSpec> specs;
  TensorDigest sum;
  const std::vector<const StaticValue*> values = saved_values(session.plan(), trained);
  for (const StaticValue* value : values) {
    specs.push_back(spec_of(*value));
    sum.add(read_value(session, *value));
  }
  const TextMetadata metadata = {{kFormatKey, kFormatValue},
                                 {kProgressKey, progress_json(state.progress).dump()},
                                 {kRecordKey, std::to_string(state.record_bytes)},
                                 {kDigestKey, sum.text()}};
  ASSIGN_OR_RETURN(TensorFileWriter writer, create_safetensors(path, specs, metadata));
  for (const StaticValue* value : values)
    RETURN_IF_ERROR(writer.append(value->name, read_value(session, *value)));
  return writer.commit();
}

Result<SavedState> read_state(const std::string& path) {
  ASSIGN_OR_RETURN(const StateFile file, open_state(path));
  try {
    SavedState state;
    state.progress = progress_from(Json::parse(file.header.metadata.find(kProgressKey)->second));
    state.record_bytes = std::stoll(file.header.metadata.find(kRecordKey)->second);
    return state;
  } catch (const std::exception& error) {
    return not_a_state(path, error.what());
  }
}

Status restore_state(const std::string& path, Session& session, std::span<const TrainedValue> trained) {
  ASSIGN_OR_RETURN(const StateFile file, open_checked_state(path));
  const std::vector<const StaticValue*> values = saved_values(session.plan(), trained);
  std::map<std::string_view, const TensorEntry*> tensors;
  for (const TensorEntry& tensor : file.header.tensors) tensors.emplace(tensor.name, &tensor);
  for (const StaticValue* value : values) {
    const auto found = tensors.find(value->name);
    if (found == tensors.end()) return not_a_state(path, fmt::format("{} is missing", value->name));
    const TensorSpec spec = spec_of(*value);
    if (found->second->dtype != spec.dtype || found->second->shape != spec.shape)
      return not_a_state(path, fmt::format("{} has another type than in this run", value->name));
  }
  if (tensors.size() != values.size()) {
    return not_a_state(
        path, fmt::format("it holds {} tensors, but this run has {}", tensors.size(), values.size()));
  }
  for (const StaticValue* value : values)
    RETURN_IF_ERROR(session.executor().write(value->name, file.bytes(*tensors.at(value->name))));
  return {};
}

Result<AdapterSet> adapter_of_state(const std::string& path, const AdapterSet& adapter) {
  ASSIGN_OR_RETURN(const StateFile file, open_checked_state(path));
  AdapterSet out = adapter;
  size_t found = 0;
  for (const TensorEntry& tensor : file.header.tensors) {
    const auto at = out.values.find(tensor.name);
    if (at == out.values.end()) continue;
    if (tensor.dtype != DType::f32 || tensor.size_bytes != static_cast<int64_t>(at->second.size() * 4))
      return not_a_state(path, fmt::format("{} has another type than in this run", tensor.name));
    std::memcpy(at->second.data(), file.bytes(tensor).data(), static_cast<size_t>(tensor.size_bytes));
    ++found;
  }
  if (found != out.values.size()) return not_a_state(path, "it lacks values of the adapter");
  return out;
}

}  // namespace tenon
