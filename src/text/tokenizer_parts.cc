#include "text/tokenizer_parts.h"

#include <algorithm>

namespace tenon {
namespace {

// A byte-level step before a byte pair model only spells bytes as characters to look characters up again; the
// model may as well take the bytes.
void take_bytes_directly(TokenizerParts& parts) {
  auto* bpe = std::get_if<BpeModel>(&parts.model);
  if (!bpe || parts.pretokeniser.empty()) return;
  auto* last = std::get_if<PretokeniseByteLevel>(&parts.pretokeniser.back());
  if (!last || !bpe->prefix.empty() || !bpe->suffix.empty() || bpe->byte_fallback) return;
  bpe->byte_level = true;
  last->map_bytes = false;
  if (!last->add_prefix_space) parts.pretokeniser.pop_back();
}

}  // namespace

void finish_parts(TokenizerParts& parts) {
  take_bytes_directly(parts);
  if (auto* bpe = std::get_if<BpeModel>(&parts.model)) finish_bpe(*bpe, parts.vocabulary);
  parts.added.build([&](std::string_view content) {
    AlignedText storage;
    TextView view;
    view.bytes = content;
    view.at_start = true;
    return std::string(normalise(parts.normaliser, view, false, storage).bytes);
  });
  int32_t size = parts.vocabulary.size();
  for (const AddedToken& token : parts.added.all()) size = std::max(size, token.id + 1);
  parts.texts.assign(static_cast<size_t>(size), {});
  parts.specials.assign(static_cast<size_t>(size), false);
  parts.is_added.assign(static_cast<size_t>(size), false);
  for (int32_t id = 0; id < size; ++id) {
    const AddedToken* added = parts.added.by_id(id);
    parts.texts[static_cast<size_t>(id)] =
        added ? std::string_view(added->content) : parts.vocabulary.text(id);
    parts.specials[static_cast<size_t>(id)] = added && added->special;
    parts.is_added[static_cast<size_t>(id)] = added != nullptr;
  }
}

}  // namespace tenon
