// What can be said of a path: gathered as facts (cli/facts.h) by kind. Used by `tenon inspect`.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "io/checkpoint.h"
#include "text/tokenizer.h"

namespace tenon {

// Files, metadata, tensors by dtype, parameters; with `all_tensors` a line a tensor. Model facts are the
// caller's.
Json checkpoint_facts(const Checkpoint& checkpoint, bool all_tensors);

// A PEFT adapter: its settings, modules and parameters.
Result<Json> adapter_facts(const Checkpoint& adapter, bool all_tensors);

// Vocabulary size, special tokens, chat templates.
Json tokenizer_facts(const Tokenizer& tokenizer);

// tokenizer_facts() of what is at `path`; null where there is none, and the error as text where it is not
// usable.
Json tokenizer_facts_of(const std::string& path);

// A safetensors file alone.
Result<Json> safetensors_facts(const std::string& path, bool all_tensors);

}  // namespace tenon
