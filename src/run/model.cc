#include "run/model.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "base/iso_time.h"
#include "base/json.h"
#include "io/write_file.h"
#include "models/family.h"
#include "models/gguf_config.h"

namespace tenon {

Result<Model> open_model(const std::string& path) {
  ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::open(path));
  ASSIGN_OR_RETURN(ModelSpec spec, checkpoint_spec(checkpoint));
  ASSIGN_OR_RETURN(WeightMap weights, map_weights(spec, checkpoint));
  return Model{path, std::move(checkpoint), std::move(spec), std::move(weights)};
}

Result<RenderOptions> render_options(std::string_view clock) {
  RenderOptions options;
  if (clock.empty()) {
    options.clock_unix_seconds = static_cast<int64_t>(std::time(nullptr));
    return options;
  }
  auto time = parse_iso_time(clock);
  if (!time.ok()) return std::move(time).error().within("--clock");
  options.clock_unix_seconds = time->unix_seconds;
  options.utc_offset_seconds = time->utc_offset_seconds;
  return options;
}

Result<ModelText> open_text(const Model& model, const std::string& template_path, std::string_view clock) {
  ASSIGN_OR_RETURN(const RenderOptions render, render_options(clock));
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::from_file(model.path));
  if (tokenizer.vocab_size() > model.spec.vocab) {
    return bad_file(fmt::format("the tokenizer has {} ids, but the model has {} embedding rows",
                                tokenizer.vocab_size(), model.spec.vocab),
                    model.path, "The tokenizer and the weights are not of the same model.");
  }
  std::string source;
  std::string name = template_path;
  if (!template_path.empty()) {
    ASSIGN_OR_RETURN(source, read_file(template_path));
  } else if (!tokenizer.special().chat_templates.empty()) {
    source = tokenizer.special().chat_templates.front().text;
    for (const ChatTemplateText& each : tokenizer.special().chat_templates) {
      if (each.name == "default") source = each.text;
    }
    name = model.path + ": chat template";
  }
  ModelText text{std::move(tokenizer), std::nullopt, render};
  if (!source.empty()) {
    ASSIGN_OR_RETURN(text.chat_template, ChatTemplate::parse(std::move(source), std::move(name)));
  }
  return text;
}

}  // namespace tenon
