// Apertus: a plain MLP with the xIELU activation (Huang 2024), norms over heads of q and k.
#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

Result<ModelSpec> read_apertus(ConfigReader& config) {
  DecoderTraits traits;
  traits.names.mixer_norm = "attention_layernorm";
  traits.names.feed_forward_norm = "feedforward_layernorm";
  traits.activation = "xielu";
  traits.gated = false;
  traits.qk_norm = QkNorm::head;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  ModelSpec spec = read_decoder(config, traits);
  config.require(config.positive_or("output_vocab_size", spec.vocab) == spec.vocab, "output_vocab_size",
                 "must be vocab_size");
  for (const char* key : {"post_norm", "qk_norm"}) config.ignore(key);
  for (size_t i = 0; i < spec.blocks.size(); ++i)
    mlp_of(spec.blocks[i]).activation_path = layer_path(traits, i) + ".mlp.act_fn";
  spec.ignored.emplace_back(".act_fn.eps");  // a bound a millionth below zero
  return spec;
}

constexpr std::array kApertusGguf = {GgufLayout{"apertus"}};

constexpr Family kFamilies[] = {
    {"apertus", {"apertus", "apertus1p5_text"}, kApertusGguf, read_apertus},
};

}  // namespace

std::span<const Family> apertus_families() {
  return kFamilies;
}

}  // namespace tenon
