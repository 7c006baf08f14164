// Qwen2, Qwen2.5 (biases on q, k and v) and Qwen3 (norms over heads of q and k), dense.
#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

constexpr std::array kQwen2Gguf = {GgufLayout{"qwen2"}};
constexpr std::array kQwen3Gguf = {GgufLayout{"qwen3"}};

Result<ModelSpec> read_qwen2(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(true);
  ModelSpec spec = read_decoder(config, traits);
  set_windows(spec, read_windows(config));
  return spec;
}

Result<ModelSpec> read_qwen3(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.qk_norm = QkNorm::head;
  ModelSpec spec = read_decoder(config, traits);
  set_windows(spec, read_windows(config));
  return spec;
}

constexpr Family kFamilies[] = {
    {"qwen2", {"qwen2"}, kQwen2Gguf, read_qwen2},
    {"qwen3", {"qwen3"}, kQwen3Gguf, read_qwen3},
};

}  // namespace

std::span<const Family> qwen_families() {
  return kFamilies;
}

}  // namespace tenon
