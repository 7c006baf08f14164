#include "run/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "io/mapped_file.h"
#include "io/safetensors.h"
#include "run/evaluate.h"
#include "run/generator.h"
#include "run/session.h"

namespace tenon {
namespace {

constexpr size_t kGreedyPrompt = 9;

struct ProbeTokens {
  int64_t batch = 0;
  int64_t tokens = 0;  // a row
  std::vector<int32_t> ids;
  std::vector<int32_t> labels;  // as given, not shifted
};

struct OutputTensor {
  TensorSpec spec;
  std::vector<std::byte> bytes;
};

template <typename T>
void add_output(std::vector<OutputTensor>& out, std::string name, DType dtype, Shape shape,
                std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  out.push_back({{std::move(name), dtype, shape}, {bytes.begin(), bytes.end()}});
}

Result<std::vector<int32_t>> read_i32(const MappedFile& file, const SafetensorsHeader& header,
                                      std::string_view name, Shape& shape) {
  for (const TensorEntry& tensor : header.tensors) {
    if (tensor.name != name) continue;
    if (tensor.dtype != DType::i32 || tensor.shape.rank() != 2 || tensor.shape.elements() == 0) {
      return bad_file(fmt::format("it must be i32 [batch, tokens], but is {}{}", dtype_name(tensor.dtype),
                                  tensor.shape.text()),
                      std::string(name));
    }
    shape = tensor.shape;
    std::vector<int32_t> values(static_cast<size_t>(tensor.shape.elements()));
    std::memcpy(values.data(), file.bytes().data() + tensor.offset_bytes, values.size() * 4);
    return values;
  }
  return not_found("the tensor is missing", std::string(name));
}

Result<ProbeTokens> read_tokens(const std::string& path, int64_t vocab) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  auto header = parse_safetensors(file.bytes());
  if (!header.ok()) return std::move(header).error().within(path);
  Shape ids_shape, labels_shape;
  auto ids = read_i32(file, *header, "input_ids", ids_shape);
  if (!ids.ok()) return std::move(ids).error().within(path);
  auto labels = read_i32(file, *header, "labels", labels_shape);
  if (!labels.ok()) return std::move(labels).error().within(path);
  if (ids_shape != labels_shape) return bad_file("input_ids and labels differ in shape", path);
  for (int32_t id : *ids) {
    if (id < 0 || id >= vocab) {
      return bad_file(fmt::format("the token id {} is not in the vocabulary of {}", id, vocab),
                      path + ": input_ids");
    }
  }
  for (int32_t label : *labels) {
    if (label >= vocab) {
      return bad_file(fmt::format("the label {} is not in the vocabulary of {}", label, vocab),
                      path + ": labels");
    }
  }
  return ProbeTokens{ids_shape[0], ids_shape[1], std::move(*ids), std::move(*labels)};
}

// The rows as sequences of one pack, labels shifted inside each.
MicroBatch pack(const ProbeTokens& tokens) {
  MicroBatch batch = empty_batch(static_cast<int32_t>(tokens.ids.size()));
  batch.ids = tokens.ids;
  const size_t width = static_cast<size_t>(tokens.tokens);
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const size_t column = i % width;
    batch.positions[i] = static_cast<int32_t>(column);
    batch.sequence_begin[i] = static_cast<int32_t>(i - column);
    const int32_t next = column + 1 < width ? tokens.labels[i + 1] : kUntrained;
    batch.labels[i] = next < 0 ? kUntrained : next;
    batch.trained_tokens += next >= 0;
  }
  batch.used_tokens = static_cast<int64_t>(tokens.ids.size());
  return batch;
}

double mean_loss(const Session& session, std::string_view program, const MicroBatch& batch) {
  double sum = 0;
  for (float loss : session.output_f32(program, kLossOutput)) sum += loss;
  return sum / static_cast<double>(batch.trained_tokens);
}

// What the parts of a probe share.
struct Probe {
  const ProbeRequest& request;
  const Model& model;
  const AdapterSet* adapter;
  Device& device;
  std::vector<OutputTensor>& out;

  std::vector<AdapterModule> modules() const {
    return adapter ? adapter->modules : std::vector<AdapterModule>{};
  }
};

void add_gradients(const Probe& p, const Session& session) {
  const Program& program = session.plan().find(kLogits)->program;
  std::map<std::string, std::vector<float>> weights;
  for (const Value& value : program.values) {
    if (value.role != Role::output || !value.name.starts_with(kGradientPrefix)) continue;
    const std::string name = value.name.substr(std::strlen(kGradientPrefix));
    std::vector<float> gradient = session.output_f32(kLogits, value.name);
    if (p.model.weights.find(name)) {
      weights[name] = std::move(gradient);
    } else {
      add_output<float>(p.out, "lora_grad." + name, DType::f32, value.type.shape, gradient);
    }
  }
  for (const auto& [tensor, gradient] : to_stored(p.model.weights, weights)) {
    add_output<float>(p.out, "grad." + tensor, DType::f32, gradient.shape, gradient.values);
  }
}

Result<double> probe_logits(const Probe& p, const ProbeTokens& tokens, const MicroBatch& batch) {
  const int64_t count = static_cast<int64_t>(batch.ids.size());
  std::vector<Program> programs = {
      probe_program(p.model.spec, p.modules(), count, p.request.gradients, p.request)};
  ASSIGN_OR_RETURN(Plan plan, plan_programs(std::move(programs), p.model, p.device, p.request.without));
  ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                   Session::open(std::move(plan), p.model, p.adapter, p.device));
  write_batch(*session, batch);
  std::vector<int32_t> rows(batch.ids.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
  session->write(kRowsInput, rows);
  if (p.request.gradients != ProbeGradients::none) {
    const float seed = 1.0f / static_cast<float>(batch.trained_tokens);
    session->write(kLossSeedInput, std::span(&seed, 1));
  }
  RETURN_IF_ERROR(session->run(kLogits));
  const std::vector<float> logits = session->output_f32(kLogits, kLogitsOutput);
  add_output<float>(p.out, "logits", DType::f32, Shape{tokens.batch, tokens.tokens, p.model.spec.vocab},
                    logits);
  const double loss = mean_loss(*session, kLogits, batch);
  const float loss_f32 = static_cast<float>(loss);
  add_output<float>(p.out, "loss", DType::f32, Shape{1}, std::span(&loss_f32, 1));
  add_gradients(p, *session);
  RETURN_IF_ERROR(session->status());
  return loss;
}

Status probe_greedy(const Probe& p, const ProbeTokens& tokens) {
  const size_t prompt = std::min(kGreedyPrompt, static_cast<size_t>(tokens.tokens));
  GeneratorSettings settings;
  static_cast<ProgramSettings&>(settings) = p.request;
  settings.context_tokens = static_cast<int64_t>(prompt) + p.request.greedy;
  ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator,
                   Generator::open(p.model, p.adapter, p.device, settings));
  std::vector<int32_t> ids(tokens.ids.begin(), tokens.ids.begin() + static_cast<std::ptrdiff_t>(prompt));
  ASSIGN_OR_RETURN(const Reply reply, generate(*generator, ids, p.request.greedy, {}, {}, {}));
  ids.insert(ids.end(), reply.ids.begin(), reply.ids.end());
  add_output<int32_t>(p.out, "greedy_ids", DType::i32, Shape{1, static_cast<int64_t>(ids.size())}, ids);
  return {};
}

Status probe_training(const Probe& p, const MicroBatch& batch) {
  TrainSettings settings;
  static_cast<ProgramSettings&>(settings) = p.request;
  settings.tokens = static_cast<int64_t>(batch.ids.size());
  settings.adamw.weight_decay = 0.01;
  settings.adamw.max_norm = p.request.clip;
  TrainPrograms programs = train_programs(p.model.spec, p.modules(), settings);
  std::vector<Program> planned = {std::move(programs.train_step), std::move(programs.optimiser_step)};
  ASSIGN_OR_RETURN(Plan plan, plan_programs(std::move(planned), p.model, p.device, p.request.without));
  ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                   Session::open(std::move(plan), p.model, p.adapter, p.device));
  write_batch(*session, batch);
  const float seed = 1.0f / static_cast<float>(batch.trained_tokens);
  session->write(kLossSeedInput, std::span(&seed, 1));
  std::vector<float> losses;
  for (int64_t step = 1; step <= p.request.train_steps; ++step) {
    RETURN_IF_ERROR(session->run(kTrainStep));
    losses.push_back(static_cast<float>(mean_loss(*session, kTrainStep, batch)));
    session->write(kHyperInput, optimiser_hyper(p.request.lr, step, settings.adamw));
    RETURN_IF_ERROR(session->run(kOptimiserStep));
  }
  add_output<float>(p.out, "train_losses", DType::f32, Shape{static_cast<int64_t>(losses.size())}, losses);
  return {};
}

Status write_outputs(const std::string& path, const std::vector<OutputTensor>& out) {
  std::vector<TensorSpec> specs;
  for (const OutputTensor& tensor : out) specs.push_back(tensor.spec);
  ASSIGN_OR_RETURN(TensorFileWriter writer, create_safetensors(path, specs, {}));
  for (const OutputTensor& tensor : out) RETURN_IF_ERROR(writer.append(tensor.spec.name, tensor.bytes));
  return writer.commit();
}

}  // namespace

Result<ProbeSummary> probe(const ProbeRequest& asked, Device& device) {
  ProbeRequest request = asked;
  ASSIGN_OR_RETURN(const Model model, open_model(request.model));
  request.weights = choose_weight_dtypes(model, request.weight_choice, device.facts());
  const bool needs_adapter = request.gradients == ProbeGradients::adapter || request.train_steps > 0;
  if (needs_adapter && request.adapter.empty()) {
    return bad_argument("gradients of the adapter and training need one", "--adapter",
                        "Name an adapter folder.");
  }
  std::optional<AdapterSet> adapter;
  if (!request.adapter.empty()) {
    ASSIGN_OR_RETURN(adapter, read_adapter(request.adapter, forward_program(model.spec, 1, request)));
  }
  ASSIGN_OR_RETURN(const ProbeTokens tokens, read_tokens(request.tokens, model.spec.vocab));
  const MicroBatch batch = pack(tokens);
  if (batch.trained_tokens == 0) return bad_file("no label is trained on", request.tokens + ": labels");
  std::vector<OutputTensor> out;
  const Probe p{request, model, adapter ? &*adapter : nullptr, device, out};
  ProbeSummary summary;
  ASSIGN_OR_RETURN(summary.loss, probe_logits(p, tokens, batch));
  if (request.greedy > 0) RETURN_IF_ERROR(probe_greedy(p, tokens));
  if (request.train_steps > 0) RETURN_IF_ERROR(probe_training(p, batch));
  RETURN_IF_ERROR(write_outputs(request.out, out));
  summary.trained_tokens = batch.trained_tokens;
  summary.tensors_written = static_cast<int64_t>(out.size());
  return summary;
}

}  // namespace tenon
