#include "models/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/json.h"
#include "base/nearest_name.h"
#include "models/config_forms.h"
#include "models/left_out.h"

namespace tenon {

#define TENON_FAMILIES(name) std::span<const Family> name##_families();
#include "models/family_list.inc"
#undef TENON_FAMILIES

namespace {

// Keys that change no arithmetic of a forward pass, whatever the family: ids, dropouts (all zero when a model
// is frozen or evaluated), initialisation, caches and records of other programs.
constexpr std::string_view kHarmless[] = {
#include "models/harmless_keys.inc"
};

// Keys that switch on what their families otherwise do not have: harmless where false.
constexpr std::string_view kSwitches[] = {"rope_interleaved", "use_mrope", "add_cross_attention",
                                          "is_encoder_decoder", "output_router_logits"};

template <size_t kCount>
bool is_among(const std::string_view (&keys)[kCount], std::string_view key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

Status refuse_unread(ConfigReader& config) {
  for (const auto& [key, value] : config.unread()) {
    const std::string_view name = std::string_view(key).substr(key.rfind('.') + 1);
    if (is_among(kHarmless, key) || is_among(kHarmless, name)) continue;
    if (is_among(kSwitches, name)) {
      config.require(*value == Json(false), key, "must be false for this architecture");
      RETURN_IF_ERROR(config.status());
      continue;
    }
    return unsupported(fmt::format("the key '{}' is not known for this architecture", key), config.subject(),
                       "It may change the arithmetic. Remove it if it does not.");
  }
  return {};
}

// Configurations that came before their architecture had a model_type, by the class that they name.
constexpr std::pair<std::string_view, std::string_view> kByClass[] = {{"MiniCPM3ForCausalLM", "minicpm3"}};

std::string read_model_type(ConfigReader& config) {
  const std::string given = config.text_or("model_type", "");
  if (!given.empty()) return given;
  for (const std::string& name : config.texts_or_empty("architectures")) {
    for (const auto& [known, model_type] : kByClass) {
      if (name == known) return std::string(model_type);
    }
  }
  return {};
}

// Experts are listed one by one, so that their number is bounded before a family reads it.
Status check_expert_count(const Json& config, const std::string& subject) {
  constexpr int64_t kMostExperts = 65536;
  for (const char* key : {"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"}) {
    const auto at = config.find(key);
    if (at != config.end() && at->is_number() && at->get<double>() > kMostExperts)
      return bad_file(fmt::format("the key '{}' is implausibly large", key), subject);
  }
  return {};
}

Status check_choice(const MoeSpec& moe, const std::string& subject) {
  const int64_t choices = moe.experts + moe.identity_experts + (moe.skip_choice ? 1 : 0);
  if (moe.top_k.k <= choices) return {};
  return bad_file(fmt::format("{} experts are chosen for a token, of {}", moe.top_k.k, choices), subject);
}

Status check_spec(const ModelSpec& spec, const std::string& subject) {
  if (spec.logit_softcap < 0) return bad_file("the limit that logits are capped at is negative", subject);
  for (const BlockSpec& block : spec.blocks) {
    if (const auto* moe = std::get_if<MoeSpec>(&block.feed_forward))
      RETURN_IF_ERROR(check_choice(*moe, subject));
    if (const auto* a = std::get_if<AttentionExpertsSpec>(&block.mixer))
      RETURN_IF_ERROR(check_choice(a->experts, subject));
    if (block.aside) RETURN_IF_ERROR(check_choice(block.aside->moe, subject));
    if (block.shortcut) RETURN_IF_ERROR(check_choice(*block.shortcut, subject));
  }
  return {};
}

// Layers after the last that predict further tokens (DeepSeek-V3, section 2.2): read by speculative decoding
// alone.
void ignore_next_token_layers(ConfigReader& config, ModelSpec& spec) {
  if (!config.has("num_nextn_predict_layers")) return;
  const int64_t more = std::min<int64_t>(config.integer("num_nextn_predict_layers"), 16);
  for (int64_t i = 0; i < more; ++i) {
    const int64_t layer = static_cast<int64_t>(spec.blocks.size()) + i;
    spec.ignored.push_back(fmt::format("model.layers.{}.", layer));
    spec.ignored.push_back(fmt::format("blk.{}.", layer));
  }
}

}  // namespace

std::span<const Family* const> all_families() {
  static const std::vector<const Family*> families = [] {
    std::vector<const Family*> all;
#define TENON_FAMILIES(name) \
  for (const Family& family : name##_families()) all.push_back(&family);
#include "models/family_list.inc"
#undef TENON_FAMILIES
    return all;
  }();
  return families;
}

const Family* find_family(std::string_view model_type) {
  for (const Family* family : all_families()) {
    for (std::string_view known : family->model_types) {
      if (!known.empty() && known == model_type) return family;
    }
  }
  return nullptr;
}

const GgufLayout* find_gguf_layout(std::string_view architecture) {
  for (const Family* family : all_families()) {
    for (const GgufLayout& layout : family->gguf) {
      if (layout.architecture == architecture) return &layout;
    }
  }
  return nullptr;
}

Result<ModelSpec> read_model_spec(const Json& config, std::string subject) {
  if (!config.is_object()) return bad_file("it is not a JSON object", std::move(subject));
  const Json language = language_config(config);
  ConfigReader reader(language, std::move(subject));
  const std::string model_type = read_model_type(reader);
  RETURN_IF_ERROR(reader.status());
  if (model_type.empty()) {
    return bad_file("the key 'model_type' is missing", reader.subject(), "It names the architecture.");
  }
  const Family* family = find_family(model_type);
  if (!family) {
    if (const LeftOut* out = find_left_out(model_type)) {
      return unsupported(fmt::format("the architecture '{}' is not supported: {}", model_type, out->reason),
                         reader.subject(), "`tenon models` lists what is.");
    }
    std::vector<std::string_view> known;
    for (const Family* each : all_families())
      known.insert(known.end(), each->model_types.begin(), each->model_types.end());
    const std::string near = did_you_mean(model_type, known);
    return unsupported(fmt::format("the architecture '{}' is not supported", model_type), reader.subject(),
                       near.empty() ? "`tenon models` lists what is." : near);
  }
  ASSIGN_OR_RETURN(const StoredQuantisation quantisation, read_quantisation(language, reader.subject()));
  reader.ignore("quantization_config");
  RETURN_IF_ERROR(check_expert_count(language, reader.subject()));
  ASSIGN_OR_RETURN(ModelSpec spec, family->read(reader));
  RETURN_IF_ERROR(reader.status());
  RETURN_IF_ERROR(check_spec(spec, reader.subject()));
  RETURN_IF_ERROR(refuse_unread(reader));
  const std::vector<std::string> architectures = reader.texts_or_empty("architectures");
  spec.quantisation = quantisation;
  spec.multimodal = is_multimodal(config);
  ignore_next_token_layers(reader, spec);
  spec.family = family->name;
  spec.architecture = architectures.empty() ? model_type : architectures[0];
  return spec;
}

}  // namespace tenon
