#include "text/overlap.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/hash.h"
#include "text/unicode.h"

namespace tenon {
namespace {

constexpr size_t kShingleWords = 5;
constexpr size_t kFewShingles = 64;
constexpr uint64_t kKeptOneIn = 4;

// Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, ideographs.
bool is_word_alone(uint32_t c) {
  return (c >= 0x0e00 && c <= 0x0eff) || (c >= 0x1000 && c <= 0x109f) || (c >= 0x1780 && c <= 0x17ff) ||
         (c >= 0x3040 && c <= 0x30ff) || (c >= 0x3400 && c <= 0x9fff) || (c >= 0xf900 && c <= 0xfaff) ||
         (c >= 0x20000 && c <= 0x3ffff);
}

// Calls `each` with the hash of every word.
template <typename F>
void for_each_word(std::string_view text, F&& each) {
  const CharClasses& classes = CharClasses::get();
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) each(hash_bytes(word));
    word.clear();
  };
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Char c = decode_char(p, end);
    p += c.bytes;
    if (!c.valid() || !(classes.of(c.value) & (kLetter | kMark | kNumber))) {
      end_word();
      continue;
    }
    const bool alone = is_word_alone(c.value);
    if (alone) end_word();
    append_char(word, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.value))));
    if (alone) end_word();
  }
  end_word();
}

uint64_t hash_of_words(const std::array<uint64_t, kShingleWords>& words, size_t newest, size_t count) {
  uint64_t hash = count;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t word = words[(newest + kShingleWords + 1 - count + i) % kShingleWords];
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

void shingles_of(std::string_view text, std::vector<uint64_t>& out) {
  out.clear();
  std::array<uint64_t, kShingleWords> window{};
  size_t words = 0;
  for_each_word(text, [&](uint64_t word) {
    window[words % kShingleWords] = word;
    ++words;
    if (words >= kShingleWords)
      out.push_back(hash_of_words(window, (words - 1) % kShingleWords, kShingleWords));
  });
  if (words > 0 && words < kShingleWords) out.push_back(hash_of_words(window, words - 1, words));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

void EvalOverlap::add(std::string_view text) {
  std::vector<uint64_t> shingles;
  shingles_of(text, shingles);
  if (shingles.size() > kFewShingles) {
    std::erase_if(shingles, [](uint64_t hash) { return hash % kKeptOneIn != 0; });
  }
  const auto row = static_cast<int32_t>(sizes_.size());
  sizes_.push_back(static_cast<int32_t>(shingles.size()));
  for (const uint64_t shingle : shingles) rows_with_[shingle].push_back(row);
}

void EvalOverlap::look(std::string_view text, int64_t train_row, Found& found) const {
  found.seen.resize(sizes_.size());
  shingles_of(text, found.shingles);
  found.counts.clear();
  for (const uint64_t shingle : found.shingles) {
    const auto rows = rows_with_.find(shingle);
    if (rows == rows_with_.end()) continue;
    for (const int32_t row : rows->second) ++found.counts[row];
  }
  for (const auto& [row, count] : found.counts) {
    Seen& seen = found.seen[static_cast<size_t>(row)];
    const double share = static_cast<double>(count) / sizes_[static_cast<size_t>(row)];
    if (share >= kSeenShare && (share > seen.share || (share == seen.share && train_row < seen.train_row))) {
      seen = {train_row, share};
    }
  }
}

void EvalOverlap::merge(Found& into, const Found& from) {
  into.seen.resize(std::max(into.seen.size(), from.seen.size()));
  for (size_t row = 0; row < from.seen.size(); ++row) {
    const Seen& other = from.seen[row];
    Seen& seen = into.seen[row];
    if (other.train_row >= 0 &&
        (other.share > seen.share || (other.share == seen.share && other.train_row < seen.train_row))) {
      seen = other;
    }
  }
}

}  // namespace tenon
