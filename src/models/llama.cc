// Llama 1 to 3.2 and what copies its block: Yi, SmolLM2, and many fine-tunes.
#include <array>

#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes = {"llama"};
constexpr std::array kGguf = {GgufLayout{"llama", /*permuted_rope=*/true}};

Result<ModelSpec> read(ConfigReader& config) {
  DecoderTraits traits;
  traits.qkv_bias = traits.o_bias = config.flag_or("attention_bias", false);
  traits.mlp_bias = config.flag_or("mlp_bias", false);
  return read_decoder(config, traits);
}

}  // namespace

const Family& llama_family() {
  static constexpr Family family{"llama", kModelTypes, kGguf, read};
  return family;
}

}  // namespace tenon
