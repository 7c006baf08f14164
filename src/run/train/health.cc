#include "run/train/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tenon {
namespace {

constexpr double kSpikeScore = 10;        // robust standard deviations
constexpr size_t kSpikeLosses = 20;       // known before a spike can be told
constexpr double kDeviationFloor = 0.05;  // of the median, and of a loss of 1

constexpr double kFallen = 0.995;  // recent over first losses; above: not falling

constexpr double kHighestRate = 2e-2;  // learning rate times scale
constexpr double kLowestRate = 1e-7;
constexpr double kHighestScale = 32;
constexpr double kLowestScale = 1.0 / 32;

constexpr size_t kBaseline = 5;     // looks that say what is normal for a layer
constexpr size_t kRecentLooks = 3;  // looks that say how it is now
constexpr double kDrift = 30;       // times its normal, and times the drift of the other layers
constexpr int64_t kDeadLooks = 5;
constexpr double kLarge = 100;  // times the median layer

double median(std::vector<double> values) {
  CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

void keep_last(std::vector<double>& values, double value, size_t most) {
  if (values.size() == most) values.erase(values.begin());
  values.push_back(value);
}

// "a, b, c and 4 more"
std::string some_names(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::string out;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) out += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kShown) out += fmt::format(" and {} more", names.size() - kShown);
  return out;
}

}  // namespace

void LossHistory::add(double loss) {
  if (first.size() < kFirst) first.push_back(loss);
  keep_last(recent, loss, kRecent);
}

std::optional<double> loss_spike(const LossHistory& history, double loss) {
  if (history.recent.size() < kSpikeLosses || !std::isfinite(loss)) return std::nullopt;
  if (loss <= median(history.first)) return std::nullopt;
  const double middle = median(history.recent);
  std::vector<double> distances;
  for (const double each : history.recent) distances.push_back(std::abs(each - middle));
  const double floor = kDeviationFloor * std::max(1.0, middle);
  const double score = (loss - middle) / std::max(1.4826 * median(std::move(distances)), floor);
  return score > kSpikeScore ? std::optional(score) : std::nullopt;
}

std::optional<HealthFinding> loss_not_falling(const LossHistory& history, int64_t step) {
  constexpr int64_t kFirstLook = 100;
  int64_t look = kFirstLook;
  while (look < step) look *= 2;
  if (look != step || history.recent.size() < LossHistory::kRecent) return std::nullopt;
  const double before = median(history.first), now = median(history.recent);
  if (now <= kFallen * before) return std::nullopt;
  return HealthFinding{
      "loss_not_falling",
      fmt::format(
          "the loss does not fall: {:.4g} over the first {} steps, {:.4g} over the last {}; raise --lr, "
          "or check with `tenon inspect` what is trained on",
          before, history.first.size(), now, history.recent.size())};
}

std::vector<HealthFinding> implausible_settings(const TrainRecipe& recipe,
                                                std::span<const AdapterModule> modules) {
  std::vector<HealthFinding> findings;
  if (modules.empty()) return findings;
  const auto by_scale = [](const AdapterModule& a, const AdapterModule& b) { return a.scale < b.scale; };
  const AdapterModule& high = *std::max_element(modules.begin(), modules.end(), by_scale);
  const AdapterModule& low = *std::min_element(modules.begin(), modules.end(), by_scale);
  const auto scale_finding = [&](const AdapterModule& module, std::string_view what,
                                 std::string_view advice) {
    findings.push_back(
        {"scale", fmt::format("alpha is {} for the rank: {} at rank {} is scaled by {:.3g}; {}", what,
                              module.module, module.rank, module.scale, advice)});
  };
  if (high.scale > kHighestScale) scale_finding(high, "large", "--alpha of once or twice --rank is usual");
  if (low.scale < kLowestScale) scale_finding(low, "small", "--alpha of once or twice --rank is usual");
  if (recipe.lr * high.scale > kHighestRate) {
    findings.push_back(
        {"learning_rate", fmt::format("--lr {:.3g} is high for an adapter scaled by {:.3g}; 1e-5 "
                                      "to 1e-3 is usual",
                                      recipe.lr, high.scale)});
  }
  if (recipe.lr * high.scale < kLowestRate) {
    findings.push_back(
        {"learning_rate", fmt::format("--lr {:.3g} is low for an adapter scaled by {:.3g}; 1e-5 "
                                      "to 1e-3 is usual",
                                      recipe.lr, high.scale)});
  }
  return findings;
}

std::vector<HealthFinding> LayerHealth::observe(std::span<const LayerNorms> layers) {
  layers_.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    Layer& layer = layers_[i];
    const double norm = layers[i].gradient;
    if (layer.first.size() < kBaseline) layer.first.push_back(norm);
    keep_last(layer.recent, norm, kRecentLooks);
    layer.zeros = norm == 0 ? layer.zeros + 1 : 0;
  }
  std::vector<HealthFinding> findings;
  for (auto finding : {drift(layers), dead(layers), large(layers)}) {
    if (finding) findings.push_back(std::move(*finding));
  }
  return findings;
}

// A layer has drifted when its gradients grew far more than those of its neighbours.
std::optional<HealthFinding> LayerHealth::drift(std::span<const LayerNorms> layers) {
  if (said_drift_ || layers_.empty() || layers_[0].first.size() < kBaseline) return std::nullopt;
  std::vector<double> growth;
  for (const Layer& layer : layers_) {
    const double before = median(layer.first);
    growth.push_back(before > 0 ? median(layer.recent) / before : 0);
  }
  const double usual = std::max(1.0, median(growth));
  const size_t worst = static_cast<size_t>(std::max_element(growth.begin(), growth.end()) - growth.begin());
  if (growth[worst] < kDrift * usual) return std::nullopt;
  said_drift_ = true;
  return HealthFinding{
      "gradient_drift",
      fmt::format("the gradient of {} has grown {:.0f} times, of the layers on the whole {:.1f} "
                  "times; lower --lr or --clip",
                  layers[worst].name, growth[worst], usual)};
}

std::optional<HealthFinding> LayerHealth::dead(std::span<const LayerNorms> layers) {
  if (said_dead_) return std::nullopt;
  std::vector<std::string> names;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].zeros >= kDeadLooks) names.push_back(layers[i].name);
  }
  if (names.empty()) return std::nullopt;
  said_dead_ = true;
  return HealthFinding{"dead_layers",
                       fmt::format("no gradient reaches {} of {} layers ({}); leave them out with --targets",
                                   names.size(), layers_.size(), some_names(names))};
}

std::optional<HealthFinding> LayerHealth::large(std::span<const LayerNorms> layers) {
  if (said_large_ || layers.size() < 3) return std::nullopt;
  std::vector<double> changes;
  for (const LayerNorms& layer : layers) changes.push_back(layer.change);
  const double usual = median(changes);
  const size_t worst =
      static_cast<size_t>(std::max_element(changes.begin(), changes.end()) - changes.begin());
  if (usual == 0 || changes[worst] < kLarge * usual) return std::nullopt;
  said_large_ = true;
  return HealthFinding{
      "large_layers",
      fmt::format("the adapter of {} is {:.0f} times as large as that of the median layer; lower "
                  "--lr, or its rank with --rank-pattern",
                  layers[worst].name, changes[worst] / usual)};
}

}  // namespace tenon
