// A GGUF file's metadata in the form of Hugging Face's config.json, so that families read one form only.
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "io/checkpoint.h"
#include "models/model_spec.h"

namespace tenon {

// Keys as in ggml/docs/gguf.md. Rope factors come from the tensor rope_freqs.weight where there is one; the
// head is tied where there is no output.weight. Errors: unsupported (the architecture), not_found or bad_file
// (a key).
Result<Json> gguf_config(const Checkpoint& checkpoint);

// config.json of a Hugging Face folder, or gguf_config().
Result<Json> checkpoint_config(const Checkpoint& checkpoint);

// What the model is. Errors as checkpoint_config and read_model_spec.
Result<ModelSpec> checkpoint_spec(const Checkpoint& checkpoint);

}  // namespace tenon
