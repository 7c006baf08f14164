#include "text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <utility>

#include "text/byte_level.h"
#include "text/unicode.h"

namespace tenon {
namespace {

constexpr std::string_view kMetaspace = "\xe2\x96\x81";
constexpr size_t kShortWord = 48;  // symbols; above it the heap wins

int32_t find_symbol(const BpeModel& model, const Vocabulary& vocabulary, std::string_view text) {
  const int32_t id = vocabulary.find(text);
  if (id >= 0) return id;
  const int32_t inner = model.inner_chars.find(text);
  return inner < 0 ? -1 : vocabulary.size() + inner;
}

// Collects unknown characters until a known one comes.
struct PendingUnknown {
  const BpeModel& model;
  BpeScratch& out;
  uint32_t bytes = 0;

  void flush() {
    if (bytes) push(model.unk, bytes);
    bytes = 0;
  }
  void push(int32_t id, uint32_t size) {
    out.ids.push_back(id);
    out.bytes.push_back(size);
  }
  // A character spelled `text` (with affixes) that takes `size` bytes of the word.
  void unknown(std::string_view text, uint32_t size) {
    if (model.byte_fallback && push_bytes(text)) return;
    if (model.unk < 0) return;
    if (!model.fuse_unk) flush();
    bytes += size;
  }
  bool push_bytes(std::string_view text) {
    for (unsigned char c : text) {
      if (model.byte_ids[c] < 0) return false;
    }
    for (unsigned char c : text) push(model.byte_ids[c], 1);
    return true;
  }
};

void split_bytes(const BpeModel& model, std::string_view word, BpeScratch& scratch) {
  PendingUnknown pending{model, scratch};
  for (unsigned char c : word) {
    const int32_t id = model.byte_ids[c];
    if (id < 0) {
      if (model.unk < 0) continue;
      if (!model.fuse_unk) pending.flush();
      pending.bytes += 1;
      continue;
    }
    pending.flush();
    pending.push(id, 1);
  }
  pending.flush();
}

void split_chars(const BpeModel& model, const Vocabulary& vocabulary, std::string_view word,
                 BpeScratch& scratch) {
  PendingUnknown pending{model, scratch};
  const char* begin = word.data();
  const char* end = begin + word.size();
  const bool plain = model.prefix.empty() && model.suffix.empty();
  std::string affixed;
  for (const char* p = begin; p < end;) {
    const Char c = decode_char(p, end);
    std::string_view text(p, static_cast<size_t>(c.bytes));
    int32_t id;
    if (plain) {
      id = c.value < 128 ? model.ascii_ids[c.value] : find_symbol(model, vocabulary, text);
    } else {
      affixed.assign(p == begin ? "" : model.prefix);
      affixed.append(text);
      if (p + c.bytes == end) affixed.append(model.suffix);
      id = find_symbol(model, vocabulary, affixed);
      if (id < 0) text = affixed;
    }
    const auto bytes = static_cast<uint32_t>(c.bytes);
    if (id >= 0) {
      pending.flush();
      pending.push(id, bytes);
    } else {
      pending.unknown(text, bytes);
    }
    p += c.bytes;
  }
  pending.flush();
}

void merge_short(const MergeTable& merges, BpeScratch& s) {
  size_t n = s.ids.size();
  s.ranks.resize(n);
  s.merged_ids.resize(n);
  const auto look = [&](size_t i) {
    const MergeTable::Rule& rule = merges.find(s.ids[i], s.ids[i + 1]);
    s.ranks[i] = rule.rank;
    s.merged_ids[i] = rule.id;
  };
  for (size_t i = 0; i + 1 < n; ++i) look(i);
  while (n > 1) {
    size_t best = 0;
    uint32_t rank = s.ranks[0];
    for (size_t i = 1; i + 1 < n; ++i) {
      if (s.ranks[i] < rank) {
        rank = s.ranks[i];
        best = i;
      }
    }
    if (rank == MergeTable::kNone) break;
    s.ids[best] = s.merged_ids[best];
    s.bytes[best] += s.bytes[best + 1];
    for (size_t i = best + 1; i + 1 < n; ++i) {
      s.ids[i] = s.ids[i + 1];
      s.bytes[i] = s.bytes[i + 1];
      s.ranks[i] = s.ranks[i + 1];
      s.merged_ids[i] = s.merged_ids[i + 1];
    }
    --n;
    if (best + 1 < n) look(best);
    if (best > 0) look(best - 1);
  }
  s.ids.resize(n);
  s.bytes.resize(n);
}

void merge_long(const MergeTable& merges, BpeScratch& s) {
  const auto n = static_cast<int32_t>(s.ids.size());
  const auto count = static_cast<size_t>(n);
  s.ranks.assign(count, MergeTable::kNone);
  s.merged_ids.resize(count);
  s.previous.resize(count);
  s.next.resize(count);
  s.heap.clear();
  const auto look = [&](int32_t at) {
    const auto i = static_cast<size_t>(at);
    s.ranks[i] = MergeTable::kNone;
    if (s.next[i] >= n) return;
    const MergeTable::Rule& rule = merges.find(s.ids[i], s.ids[static_cast<size_t>(s.next[i])]);
    s.ranks[i] = rule.rank;
    s.merged_ids[i] = rule.id;
    if (rule.rank != MergeTable::kNone) {
      s.heap.push_back(static_cast<uint64_t>(rule.rank) << 32 | static_cast<uint32_t>(at));
    }
  };
  for (int32_t i = 0; i < n; ++i) {
    s.previous[static_cast<size_t>(i)] = i - 1;
    s.next[static_cast<size_t>(i)] = i + 1;
  }
  for (int32_t i = 0; i < n; ++i) look(i);
  std::make_heap(s.heap.begin(), s.heap.end(), std::greater<>());
  const auto look_and_sift = [&](int32_t at) {
    const size_t before = s.heap.size();
    look(at);
    if (s.heap.size() > before) std::push_heap(s.heap.begin(), s.heap.end(), std::greater<>());
  };
  while (!s.heap.empty()) {
    const uint64_t top = s.heap.front();
    std::pop_heap(s.heap.begin(), s.heap.end(), std::greater<>());
    s.heap.pop_back();
    const auto at = static_cast<size_t>(top & UINT32_MAX);
    if (s.ranks[at] != top >> 32) continue;  // the pair has changed since
    const auto gone = static_cast<size_t>(s.next[at]);
    s.ids[at] = s.merged_ids[at];
    s.bytes[at] += s.bytes[gone];
    s.ranks[gone] = MergeTable::kNone;
    s.ids[gone] = -1;
    s.next[at] = s.next[gone];
    if (s.next[at] < n) s.previous[static_cast<size_t>(s.next[at])] = static_cast<int32_t>(at);
    look_and_sift(static_cast<int32_t>(at));
    if (s.previous[at] >= 0) look_and_sift(s.previous[at]);
  }
  size_t kept = 0;
  for (int32_t i = 0; i < n; i = s.next[static_cast<size_t>(i)]) {
    s.ids[kept] = s.ids[static_cast<size_t>(i)];
    s.bytes[kept++] = s.bytes[static_cast<size_t>(i)];
  }
  s.ids.resize(kept);
  s.bytes.resize(kept);
}

// Turns characters that only occur inside tokens, and did not merge, into unknown ones.
void resolve_inner_chars(const BpeModel& model, const Vocabulary& vocabulary, BpeScratch& s) {
  const std::vector<int32_t> ids = std::move(s.ids);
  const std::vector<uint32_t> bytes = std::move(s.bytes);
  s.ids.clear();
  s.bytes.clear();
  PendingUnknown pending{model, s};
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= vocabulary.size()) {
      pending.unknown(model.inner_chars.text(ids[i] - vocabulary.size()), bytes[i]);
    } else if (ids[i] == model.unk && model.fuse_unk) {
      pending.bytes += bytes[i];
    } else {
      pending.flush();
      pending.push(ids[i], bytes[i]);
    }
  }
  pending.flush();
}

void find_metaspace_joins(BpeModel& model, const Vocabulary& vocabulary) {
  model.metaspace_cuts = !model.byte_level && !model.ignore_merges && model.prefix.empty() &&
                         model.suffix.empty() && vocabulary.find(kMetaspace) >= 0;
  model.joins_metaspace.fill(false);
  if (!model.metaspace_cuts) return;
  std::vector<bool> is_byte(static_cast<size_t>(vocabulary.size()));
  for (int32_t id : model.byte_ids) {
    if (id >= 0) is_byte[static_cast<size_t>(id)] = true;
  }
  std::vector<bool> is_merged(is_byte.size());
  model.merges.for_each([&](int32_t left, int32_t right, const MergeTable::Rule& rule) {
    // A byte token's spelling says nothing about the text beside it.
    for (int32_t part : {left, right}) {
      if (part < vocabulary.size() && is_byte[static_cast<size_t>(part)]) model.metaspace_cuts = false;
    }
    is_merged[static_cast<size_t>(rule.id)] = true;
  });
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    if (!is_merged[static_cast<size_t>(id)]) continue;
    for (size_t at = text.find(kMetaspace, 1); at != std::string_view::npos;
         at = text.find(kMetaspace, at + 1)) {
      if (text.substr(0, at).ends_with(kMetaspace)) continue;
      model.joins_metaspace[static_cast<unsigned char>(text[at - 1])] = true;
    }
  }
}

}  // namespace

void MergeTable::reserve(size_t rules) {
  rehash(std::bit_ceil(rules * 10 / 7 + 2));
}

void MergeTable::rehash(size_t capacity) {
  if (capacity <= rules_.size()) return;
  const std::vector<Rule> old = std::exchange(rules_, std::vector<Rule>(capacity));
  mask_ = capacity - 1;
  shift_ = 64 - std::countr_zero(capacity);
  for (const Rule& rule : old) {
    if (rule.rank == kNone) continue;
    size_t at = slot_of(rule.pair);
    while (rules_[at].pair != UINT64_MAX) at = (at + 1) & mask_;
    rules_[at] = rule;
  }
}

void MergeTable::add(int32_t left, int32_t right, uint32_t rank, int32_t id) {
  if ((size_ + 1) * 10 > rules_.size() * 7) rehash(rules_.size() * 2);
  const uint64_t pair = key(left, right);
  size_t at = slot_of(pair);
  while (rules_[at].pair != UINT64_MAX && rules_[at].pair != pair) at = (at + 1) & mask_;
  if (rules_[at].pair == UINT64_MAX) ++size_;
  rules_[at] = {pair, rank, id};
}

void finish_bpe(BpeModel& model, const Vocabulary& vocabulary) {
  model.byte_ids.fill(-1);
  for (unsigned b = 0; b < 256; ++b) {
    if (model.byte_level) {
      std::string text;
      append_char(text, byte_level_char(static_cast<unsigned char>(b)));
      model.byte_ids[b] = vocabulary.find(text);
    } else if (model.byte_fallback) {
      model.byte_ids[b] = vocabulary.find(fmt::format("<0x{:02X}>", b));
    }
  }
  for (unsigned c = 0; c < 128; ++c) {
    const char text = static_cast<char>(c);
    model.ascii_ids[c] = find_symbol(model, vocabulary, {&text, 1});
  }
  find_metaspace_joins(model, vocabulary);
}

void encode_bpe(const BpeModel& model, const Vocabulary& vocabulary, std::string_view word,
                BpeScratch& scratch, std::vector<ModelToken>& out) {
  if (model.ignore_merges) {
    const int32_t id = vocabulary.find(model.byte_level ? to_byte_level(word) : word);
    if (id >= 0) {
      out.push_back({id, static_cast<uint32_t>(word.size())});
      return;
    }
  }
  scratch.ids.clear();
  scratch.bytes.clear();
  if (model.byte_level) {
    split_bytes(model, word, scratch);
  } else {
    split_chars(model, vocabulary, word, scratch);
  }
  if (scratch.ids.size() > kShortWord) {
    merge_long(model.merges, scratch);
  } else {
    merge_short(model.merges, scratch);
  }
  if (model.inner_chars.count()) resolve_inner_chars(model, vocabulary, scratch);
  for (size_t i = 0; i < scratch.ids.size(); ++i) out.push_back({scratch.ids[i], scratch.bytes[i]});
}

size_t next_bpe_cut(const BpeModel& model, std::string_view text, size_t from) {
  if (!model.metaspace_cuts) return text.size();
  const char* data = text.data();
  for (size_t at = from + 1; at + 2 < text.size(); ++at) {
    const void* found = std::memchr(data + at, '\xe2', text.size() - 2 - at);
    if (!found) break;
    at = static_cast<size_t>(static_cast<const char*>(found) - data);
    if (data[at + 1] != '\x96' || data[at + 2] != '\x81') continue;
    if (model.joins_metaspace[static_cast<unsigned char>(data[at - 1])]) continue;
    if (at >= from + 3 && text.substr(at - 3, 3) == kMetaspace) continue;
    return at;
  }
  return text.size();
}

}  // namespace tenon
