// Qwen3 (dense): Llama's block with an RMSNorm over each head of q and k.
#include <array>

#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes = {"qwen3"};
constexpr std::array kGguf = {GgufLayout{"qwen3"}};

Result<ModelSpec> read(ConfigReader& config) {
  DecoderTraits traits;
  traits.qkv_bias = traits.o_bias = config.flag_or("attention_bias", false);
  traits.qk_norm = true;
  traits.windows = read_windows(config);
  return read_decoder(config, traits);
}

}  // namespace

const Family& qwen3_family() {
  static constexpr Family family{"qwen3", kModelTypes, kGguf, read};
  return family;
}

}  // namespace tenon
