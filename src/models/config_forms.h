// The forms that a config.json comes in, put into the one that families read: the text part of a multimodal
// model, and names that stand for another architecture. Pure.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "models/stored_block.h"

namespace tenon {

// The configuration of the language model alone. Where there is a `text_config`, that, with what transformers
// takes for keys that it leaves out, and the outer file's `quantization_config` and `tie_word_embeddings`.
Json language_config(const Json& config);

// Whether the file describes more than a language model.
bool is_multimodal(const Json& config);

// How the weights are quantised, by `quantization_config`; the method is empty where they are not. Errors:
// unsupported (a method whose weights cannot be read, by name), bad_file.
Result<StoredQuantisation> read_quantisation(const Json& config, const std::string& subject);

}  // namespace tenon
