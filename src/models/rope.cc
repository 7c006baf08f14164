#include "models/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

namespace tenon {
namespace {

constexpr int64_t kMostRotated = 65536;  // elements of a head; more are reported, and not listed

std::vector<double> base_frequencies(double theta, int64_t rotary_dim) {
  std::vector<double> inv_freq;
  for (int64_t i = 0; i < std::min(rotary_dim, kMostRotated); i += 2) {
    // In float, as the reference computes them: the exponent and the power are rounded separately.
    const float exponent = static_cast<float>(i) / static_cast<float>(rotary_dim);
    inv_freq.push_back(1.0f / std::pow(static_cast<float>(theta), exponent));
  }
  return inv_freq;
}

// Llama 3.1 (Grattafiori et al. 2024): long waves are slowed by `factor`, short ones kept, those between
// blended.
void scale_llama3(ConfigReader& parameters, std::vector<double>& inv_freq) {
  const double factor = parameters.number("factor");
  const double low = parameters.number("low_freq_factor");
  const double high = parameters.number("high_freq_factor");
  const double original = static_cast<double>(parameters.positive("original_max_position_embeddings"));
  parameters.require(factor > 0 && low > 0 && high > low, "factor",
                     "and its low and high frequency factors contradict");
  for (double& frequency : inv_freq) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength > original / low) {
      frequency /= factor;
    } else if (wavelength > original / high) {
      const double smooth = (original / wavelength - low) / (high - low);
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
    }
  }
}

// yarn (Peng et al. 2023): fast waves kept, slow ones divided by the factor, a linear ramp between.
void scale_yarn(ConfigReader& parameters, double theta, int64_t dim, int64_t max_positions, RopeSpec& spec,
                std::vector<double>& inv_freq) {
  const double original = static_cast<double>(parameters.positive("original_max_position_embeddings"));
  const double factor = parameters.number_or("factor", static_cast<double>(max_positions) / original);
  const double fast = parameters.number_or("beta_fast", 32), slow = parameters.number_or("beta_slow", 1);
  const double mscale = parameters.number_or("mscale", 0), all = parameters.number_or("mscale_all_dim", 0);
  const auto amplitude = [&](double weight) {
    return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1;
  };
  spec.amplitude = mscale != 0 && all != 0 ? amplitude(mscale) / amplitude(all) : amplitude(1);
  spec.amplitude = parameters.number_or("attention_factor", spec.amplitude);
  const auto turning_dim = [&](double rotations) {
    return static_cast<double>(dim) * std::log(original / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = turning_dim(fast), high = turning_dim(slow);
  if (parameters.flag_or("truncate", true)) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inv_freq[i] = inv_freq[i] / factor * ramp + inv_freq[i] * (1 - ramp);
  }
}

// longrope (Ding et al. 2024): one factor a frequency, other ones beyond the original length.
void scale_longrope(ConfigReader& config, ConfigReader& parameters, int64_t max_positions, RopeSpec& spec,
                    std::vector<double>& inv_freq) {
  const int64_t configured = config.positive_or("original_max_position_embeddings", max_positions);
  const int64_t original = parameters.positive_or("original_max_position_embeddings", configured);
  const double factor =
      parameters.number_or("factor", static_cast<double>(max_positions) / static_cast<double>(original));
  spec.amplitude =
      factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original)));
  spec.amplitude = parameters.number_or("attention_factor", spec.amplitude);
  const std::vector<double> near = parameters.numbers_or_empty("short_factor");
  const std::vector<double> far = parameters.numbers_or_empty("long_factor");
  parameters.require(near.size() == inv_freq.size() && far.size() == inv_freq.size(), "short_factor",
                     "and long_factor must have one number a frequency");
  spec.long_from = original;
  for (size_t i = 0; i < std::min({near.size(), far.size(), inv_freq.size()}); ++i) {
    spec.long_inv_freq.push_back(static_cast<float>(inv_freq[i] / far[i]));
    inv_freq[i] /= near[i];
  }
}

// The object that holds the rope of a kind of layer; none: the older keys alone.
std::optional<ConfigReader> rope_parameters(ConfigReader& config, std::string_view layer_type) {
  std::optional<ConfigReader> parameters = config.object("rope_parameters");
  if (!parameters) return config.object("rope_scaling");
  for (const std::string& kind :
       {std::string(layer_type), std::string("full_attention"), std::string("sliding_attention")}) {
    if (kind.empty() || !parameters->is_object(kind)) continue;
    parameters->ignore("full_attention");
    parameters->ignore("sliding_attention");
    return parameters->object(kind);
  }
  return parameters;
}

}  // namespace

RopeSpec plain_rope(double theta, int64_t rotary_dim) {
  RopeSpec spec;
  const std::vector<double> inv_freq = base_frequencies(theta, rotary_dim);
  spec.inv_freq.assign(inv_freq.begin(), inv_freq.end());
  return spec;
}

double yarn_score_factor(ConfigReader& config) {
  std::optional<ConfigReader> parameters = rope_parameters(config, "");
  if (!parameters || !parameters->has("mscale_all_dim")) return 1;
  const double all = parameters->number("mscale_all_dim"), factor = parameters->number_or("factor", 1);
  if (all == 0 || factor <= 1) return 1;
  const double m = 0.1 * all * std::log(factor) + 1;
  return m * m;
}

RopeSpec read_rope(ConfigReader& config, const RopeSizes& sizes) {
  double theta = config.number_or("rope_theta", 10000.0);
  double rotary = config.number_or("partial_rotary_factor", sizes.rotary);
  std::optional<ConfigReader> parameters = rope_parameters(config, sizes.layer_type);
  std::string kind = "default";
  if (parameters) {
    theta = parameters->number_or("rope_theta", theta);
    rotary = parameters->number_or("partial_rotary_factor", rotary);
    kind = parameters->text_or("rope_type", parameters->text_or("type", "default"));
    parameters->ignore("type");
  }
  if (sizes.whole) rotary = 1;
  const int64_t dim = static_cast<int64_t>(static_cast<double>(sizes.head_dim) * rotary);
  config.require(dim > 0 && dim % 2 == 0, "head_dim", "must be even for rotary embedding");
  config.require(sizes.head_dim <= kMostRotated, "head_dim", "is implausibly large");
  config.require(theta > 0, "rope_theta", "must be positive");
  RopeSpec spec;
  spec.theta = theta;
  std::vector<double> inv_freq = base_frequencies(theta, dim);
  if (kind == "linear") {
    const double factor = parameters->number("factor");
    parameters->require(factor > 0, "factor", "must be positive");
    for (double& frequency : inv_freq) frequency /= factor;
  } else if (kind == "dynamic") {
    spec.dynamic_factor = parameters->number("factor");
    spec.long_from = parameters->positive_or("original_max_position_embeddings", sizes.max_positions);
    parameters->require(spec.long_from > 0 && spec.dynamic_factor > 0, "factor", "has no length to begin at");
  } else if (kind == "llama3") {
    scale_llama3(*parameters, inv_freq);
  } else if (kind == "yarn") {
    scale_yarn(*parameters, theta, dim, sizes.max_positions, spec, inv_freq);
    parameters->ignore("max_position_embeddings");
  } else if (kind == "longrope" || kind == "su") {
    scale_longrope(config, *parameters, sizes.max_positions, spec, inv_freq);
  } else if (kind == "proportional") {
    inv_freq = base_frequencies(theta, sizes.head_dim);
    const double factor = parameters->number_or("factor", 1);
    for (size_t i = 0; i < inv_freq.size(); ++i)
      inv_freq[i] = static_cast<int64_t>(2 * i) < dim ? inv_freq[i] / factor : 0;
  } else if (kind == "factors") {
    const std::vector<double> factors = parameters->numbers_or_empty("factors");
    parameters->require(factors.size() == inv_freq.size(), "factors", "must have one number a frequency");
    for (size_t i = 0; i < factors.size() && i < inv_freq.size(); ++i) inv_freq[i] /= factors[i];
  } else if (kind != "default") {
    config.fail(unsupported(fmt::format("the rope type '{}' is not supported", kind), config.subject(),
                            "Supported: default, linear, dynamic, yarn, longrope, llama3, proportional."));
  }
  if (parameters) {
    if (const Status status = parameters->status(); !status.ok()) config.fail(status.error());
  }
  spec.inv_freq.assign(inv_freq.begin(), inv_freq.end());
  return spec;
}

bool depends_on_length(const ModelSpec& spec) {
  return std::any_of(spec.ropes.begin(), spec.ropes.end(),
                     [](const RopeSpec& rope) { return rope.long_from > 0; });
}

int64_t frequency_regime(const ModelSpec& spec, int64_t length) {
  int64_t beyond = 0;
  for (const RopeSpec& rope : spec.ropes) {
    if (rope.long_from == 0 || length <= rope.long_from) continue;
    if (rope.dynamic_factor > 0) return length;
    ++beyond;
  }
  return beyond;
}

}  // namespace tenon
