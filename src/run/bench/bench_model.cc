#include "run/bench/bench_model.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "base/half.h"
#include "base/json.h"
#include "io/json_file.h"
#include "models/family.h"

namespace tenon {
namespace {

constexpr float kSpread = 0.02f;  // of random weights, as models are initialised
constexpr size_t kPool = 1 << 20;

// Random bits that repeat after kPool weights: matrices that no unit of a machine can shorten, made at the
// speed of copying. Vectors are ones, which keeps norms as they are.
class RandomWeights {
 public:
  RandomWeights() {
    std::mt19937_64 generator(1);
    std::normal_distribution<float> normal(0.0f, kSpread);
    wide_.resize(kPool);
    for (float& value : wide_) value = normal(generator);
    for (float value : wide_) narrow_.push_back(f32_to_bf16(value));
  }

  Status fill(const StaticValue& value, std::span<std::byte> destination) const {
    if (value.type.shape.rank() < 2) return fill_with_ones(value, destination);
    if (value.type.dtype == DType::f32) return repeat(std::as_bytes(std::span(wide_)), destination);
    if (value.type.dtype == DType::bf16) return repeat(std::as_bytes(std::span(narrow_)), destination);
    return refused(value);
  }

 private:
  static Error refused(const StaticValue& value) {
    return unsupported("random weights are f32 or bf16", value.name + ": " + value.type.text());
  }
  static Status fill_with_ones(const StaticValue& value, std::span<std::byte> destination) {
    if (value.type.dtype != DType::f32) return refused(value);
    const float one = 1.0f;
    for (size_t at = 0; at < destination.size(); at += sizeof(one))
      std::memcpy(destination.data() + at, &one, 4);
    return {};
  }
  static Status repeat(std::span<const std::byte> pool, std::span<std::byte> destination) {
    for (size_t at = 0; at < destination.size(); at += pool.size()) {
      std::memcpy(destination.data() + at, pool.data(), std::min(pool.size(), destination.size() - at));
    }
    return {};
  }

  std::vector<float> wide_;
  std::vector<uint16_t> narrow_;
};

}  // namespace

Result<BenchModel> open_bench_model(const std::string& path) {
  ASSIGN_OR_RETURN(Model model, open_model(path));
  ModelSpec spec = model.spec;
  return BenchModel{std::move(spec), std::move(model)};
}

Result<BenchModel> random_bench_model(const std::string& config) {
  ASSIGN_OR_RETURN(const Json json, read_json_file(config));
  ASSIGN_OR_RETURN(ModelSpec spec, read_model_spec(json, config));
  return BenchModel{std::move(spec), std::nullopt};
}

Result<Plan> plan_bench(std::vector<Program> programs, const BenchModel& model, const Device& device,
                        const std::vector<std::string>& without) {
  return plan_programs(std::move(programs), model.model ? &*model.model : nullptr, device, without);
}

Result<std::unique_ptr<Session>> open_bench_session(Plan plan, const BenchModel& model,
                                                    const AdapterSet* adapter, Device& device) {
  if (model.model) return Session::open(std::move(plan), *model.model, adapter, device);
  return Session::open(std::move(plan), adapter, device,
                       [weights = std::make_shared<RandomWeights>()](const StaticValue& value,
                                                                     std::span<std::byte> destination) {
                         return weights->fill(value, destination);
                       });
}

}  // namespace tenon
