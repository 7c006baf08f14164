// A model opened from disk: its checkpoint's index, what it is, and where its weights are. Nothing is loaded
// yet.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "io/checkpoint.h"
#include "models/model_spec.h"
#include "models/weight_map.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace tenon {

struct Model {
  std::string path;
  Checkpoint checkpoint;
  ModelSpec spec;
  WeightMap weights;
};

// A Hugging Face folder or a GGUF file. Errors as Checkpoint::open, read_model_spec and map_weights.
Result<Model> open_model(const std::string& path);

// The text side of a model: how its text becomes tokens.
struct ModelText {
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;  // none: the model has none and none was named
  RenderOptions render;                       // of every rendering, in training and in serving
};

// What a rendering may use. `clock` is what a template that asks for the time is told (as base/iso_time.h
// reads it); empty: now. Error: bad_argument ("--clock").
Result<RenderOptions> render_options(std::string_view clock);

// `template_path` names a .jinja file to use in place of the model's own; empty: the model's.
// Errors as render_options, Tokenizer::from_file and ChatTemplate::parse; bad_file where a token id has no
// embedding row.
Result<ModelText> open_text(const Model& model, const std::string& template_path, std::string_view clock);

}  // namespace tenon
