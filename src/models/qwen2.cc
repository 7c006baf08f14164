// Qwen2 and Qwen2.5: Llama's block with biases on q, k and v.
#include <array>

#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes = {"qwen2"};
constexpr std::array kGguf = {GgufLayout{"qwen2"}};

Result<ModelSpec> read(ConfigReader& config) {
  DecoderTraits traits;
  traits.qkv_bias = true;
  traits.windows = read_windows(config);
  return read_decoder(config, traits);
}

}  // namespace

const Family& qwen2_family() {
  static constexpr Family family{"qwen2", kModelTypes, kGguf, read};
  return family;
}

}  // namespace tenon
