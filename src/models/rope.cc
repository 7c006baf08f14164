#include "models/rope.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace tenon {
namespace {

std::vector<double> base_frequencies(double theta, int64_t rotary_dim) {
  std::vector<double> inv_freq;
  for (int64_t i = 0; i < rotary_dim; i += 2) {
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

}  // namespace

RopeSpec read_rope(ConfigReader& config, int64_t rotary_dim) {
  config.require(rotary_dim > 0 && rotary_dim % 2 == 0, "head_dim", "must be even for rotary embedding");
  double theta = config.number_or("rope_theta", 10000.0);
  std::optional<ConfigReader> parameters = config.object("rope_parameters");
  if (!parameters) parameters = config.object("rope_scaling");
  std::string kind = "default";
  if (parameters) {
    theta = parameters->number_or("rope_theta", theta);
    kind = parameters->text_or("rope_type", parameters->text_or("type", "default"));
  }
  config.require(theta > 0, "rope_theta", "must be positive");
  std::vector<double> inv_freq = base_frequencies(theta, rotary_dim);
  if (kind == "linear") {
    const double factor = parameters->number("factor");
    parameters->require(factor > 0, "factor", "must be positive");
    for (double& frequency : inv_freq) frequency /= factor;
  } else if (kind == "llama3") {
    scale_llama3(*parameters, inv_freq);
  } else if (kind == "factors") {
    const std::vector<double> factors = parameters->numbers_or_empty("factors");
    parameters->require(factors.size() == inv_freq.size(), "factors", "must have one number a frequency");
    for (size_t i = 0; i < factors.size() && i < inv_freq.size(); ++i) inv_freq[i] /= factors[i];
  } else if (kind != "default") {
    config.fail(unsupported(fmt::format("the rope type '{}' is not supported", kind), config.subject(),
                            "Supported: default, linear, llama3."));
  }
  if (parameters) {
    if (const Status status = parameters->status(); !status.ok()) config.fail(status.error());
  }
  RopeSpec spec;
  spec.inv_freq.assign(inv_freq.begin(), inv_freq.end());
  return spec;
}

}  // namespace tenon
