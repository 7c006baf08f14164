// Reads the stages of a tokenizer.json (the format of the tokenizers library) into TokenizerParts. Elements
// of an unknown type are errors that name them.
#pragma once

#include "text/json_reader.h"
#include "text/tokenizer_parts.h"

namespace tenon {

Status read_json_model(JsonValue model, TokenizerParts& parts);
Status read_json_vocabulary(JsonValue vocab, Vocabulary& vocabulary);
Status read_json_added_tokens(JsonValue tokens, TokenizerParts& parts);
Status read_json_normaliser(JsonValue element, Normaliser& steps);
Status read_json_pretokeniser(JsonValue element, Pretokeniser& steps);
Status read_json_postprocessor(JsonValue element, Postprocessor& steps);
Status read_json_decoder(JsonValue element, Decoder& steps);

// The whole file, before finish_parts(). `name` is the subject of errors.
Result<std::unique_ptr<TokenizerParts>> read_tokenizer_json(std::string_view text, const std::string& name);

}  // namespace tenon
