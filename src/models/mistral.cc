// Mistral 7B and its descendants: Llama's block, in early versions with a sliding window on every layer.
#include <array>

#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes = {"mistral"};

Result<ModelSpec> read(ConfigReader& config) {
  DecoderTraits traits;
  traits.windows = read_windows(config);
  return read_decoder(config, traits);
}

}  // namespace

const Family& mistral_family() {
  static constexpr Family family{"mistral", kModelTypes, {}, read};
  return family;
}

}  // namespace tenon
