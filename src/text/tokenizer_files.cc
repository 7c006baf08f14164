// Finds out what kind of tokenizer a path holds and reads it.
#include <array>

#include "io/folder.h"
#include "io/mapped_file.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_gguf.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_plain.h"

namespace tenon {
namespace {

using Parts = std::unique_ptr<TokenizerParts>;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Result<Parts> read_json_file_parts(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path, MapAdvice::sequential));
  return read_tokenizer_json(text_of(file), path);
}

Result<Parts> read_gguf_parts(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  return read_tokenizer_gguf(file.bytes(), path);
}

Result<Parts> read_model_parts(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  if (looks_like_tiktoken(text_of(file))) return read_tiktoken(text_of(file), path);
  auto parts = std::make_unique<TokenizerParts>();
  const auto read = [&]() -> Status {
    ASSIGN_OR_RETURN(const SentencePieceModel model, parse_sentencepiece(text_of(file)));
    RETURN_IF_ERROR(build_sentencepiece(model, *parts));
    set_added_specials(*parts, model.bos >= 0, false);
    return {};
  };
  if (Status status = read(); !status.ok()) return std::move(status).error().within(path);
  return parts;
}

Result<Parts> read_tekken_parts(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  return read_tekken(text_of(file), path);
}

Result<Parts> read_vocab_parts(const std::string& path) {
  const std::string folder = parent_folder(path);
  ASSIGN_OR_RETURN(const MappedFile vocab, MappedFile::open(path));
  ASSIGN_OR_RETURN(const MappedFile merges, MappedFile::open(join_path(folder, "merges.txt")));
  ASSIGN_OR_RETURN(const std::string tokenizer_class, read_tokenizer_class(folder));
  return read_vocab_and_merges(text_of(vocab), text_of(merges), tokenizer_class, path);
}

// The file of a model folder that holds the tokenizer, best first.
Result<std::string> find_in_folder(const std::string& folder) {
  constexpr std::array kNames = {"tokenizer.json", "tokenizer.model", "tokenizer.model.v3", "spiece.model",
                                 "tekken.json",    "tiktoken.model",  "vocab.json"};
  for (const char* name : kNames) {
    const std::string path = join_path(folder, name);
    if (is_file(path)) return path;
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, list_folder(folder));
  for (const char* suffix : {".tiktoken", ".gguf"}) {
    for (const std::string& name : names) {
      if (name.ends_with(suffix)) return join_path(folder, name);
    }
  }
  return not_found("no tokenizer in this folder", folder,
                   "expected tokenizer.json, tokenizer.model, vocab.json, *.tiktoken or *.gguf");
}

// "tokenizer.model", and as Mistral names its versions "tokenizer.model.v3".
bool is_model_name(std::string_view path) {
  const size_t version = path.rfind(".v");
  if (version != std::string_view::npos && version + 3 == path.size() && path.back() >= '0' &&
      path.back() <= '9')
    path = path.substr(0, version);
  return path.ends_with(".model");
}

Result<Parts> read_parts(const std::string& path) {
  if (path.ends_with("vocab.json")) return read_vocab_parts(path);
  if (path.ends_with("tekken.json")) return read_tekken_parts(path);
  if (path.ends_with(".json")) return read_json_file_parts(path);
  if (path.ends_with(".gguf")) return read_gguf_parts(path);
  if (is_model_name(path) || path.ends_with(".tiktoken")) return read_model_parts(path);
  return unsupported("not a tokenizer file of a known kind", path,
                     "expected tokenizer.json, *.model, *.tiktoken or *.gguf");
}

}  // namespace

Result<Tokenizer> Tokenizer::from_file(const std::filesystem::path& given) {
  std::string path = given.string();
  if (is_folder(path)) {
    ASSIGN_OR_RETURN(path, find_in_folder(path));
  } else if (!is_file(path)) {
    return not_found("there is no such file or folder", path);
  }
  ASSIGN_OR_RETURN(Parts parts, read_parts(path));
  if (!path.ends_with(".gguf")) {
    const std::string folder = parent_folder(path);
    RETURN_IF_ERROR(read_extra_tokens(folder, *parts));
    RETURN_IF_ERROR(read_special_tokens(folder, *parts));
  }
  finish_parts(*parts);
  return Tokenizer(std::move(parts));
}

}  // namespace tenon
