#include "text/vocabulary.h"

#include "base/check.h"

namespace tenon {

void Vocabulary::reserve(size_t tokens, size_t text_bytes) {
  texts_.reserve(text_bytes);
  spans_.reserve(tokens);
  grow(std::bit_ceil(tokens * 2 + 16));
}

void Vocabulary::grow(size_t capacity) {
  if (capacity <= slots_.size()) return;
  slots_.assign(capacity, Slot{});
  shift_ = 64 - std::countr_zero(capacity);
  for (int32_t id = 0; id < size(); ++id) {
    if (spans_[static_cast<size_t>(id)].findable) point(id);
  }
}

bool Vocabulary::add_entry(std::string_view text, int32_t id, bool findable) {
  CHECK(id >= 0 && id <= kMaxTokenId);
  if (has(id)) return false;
  CHECK(texts_.size() + text.size() <= UINT32_MAX);
  if ((static_cast<size_t>(count_) + 1) * 2 > slots_.size()) grow(slots_.size() * 2);
  if (static_cast<size_t>(id) >= spans_.size()) spans_.resize(static_cast<size_t>(id) + 1);
  spans_[static_cast<size_t>(id)] = {static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(text.size()),
                                     true, findable};
  texts_.append(text);
  ++count_;
  if (findable) point(id);
  return true;
}

void Vocabulary::prefer(int32_t id) {
  if (has(id)) point(id);
}

// Lets the slot of the text of `id` say `id`.
void Vocabulary::point(int32_t id) {
  const Probe own = probe(text(id));
  size_t at = own.at;
  while (slots_[at].id >= 0 &&
         !(slots_[at].print == own.print && (is_exact(own.print) || same(slots_[at], own.text)))) {
    at = (at + 1) & (slots_.size() - 1);
  }
  slots_[at] = {own.print, id, spans_[static_cast<size_t>(id)].begin};
}

}  // namespace tenon
