#include "text/wordpiece.h"

#include <algorithm>

#include "text/unicode.h"

namespace tenon {
namespace {

int64_t count_chars(std::string_view text) {
  const char* end = text.data() + text.size();
  int64_t count = 0;
  for (const char* p = text.data(); p < end; ++count) p += decode_char(p, end).bytes;
  return count;
}

}  // namespace

void encode_wordpiece(const WordPieceModel& model, const Vocabulary& vocabulary, std::string_view word,
                      std::vector<ModelToken>& out) {
  const ModelToken unknown{model.unk, static_cast<uint32_t>(word.size())};
  if (count_chars(word) > model.max_chars) {
    out.push_back(unknown);
    return;
  }
  const size_t first = out.size();
  std::string candidate;
  for (size_t begin = 0; begin < word.size();) {
    const std::string& prefix = begin == 0 ? model.word_prefix : model.prefix;
    size_t end = word.size();
    int32_t id = -1;
    while (end > begin) {
      candidate.assign(prefix).append(word.substr(begin, end - begin));
      id = vocabulary.find(candidate);
      if (id >= 0) break;
      end -= static_cast<size_t>(char_before(word, end).bytes);
    }
    if (id < 0) {
      out.resize(first);
      out.push_back(unknown);
      return;
    }
    out.push_back({id, static_cast<uint32_t>(end - begin)});
    begin = end;
  }
}

void encode_wordlevel(const WordLevelModel& model, const Vocabulary& vocabulary, std::string_view word,
                      std::vector<ModelToken>& out) {
  int32_t id = vocabulary.find(word);
  if (id < 0) id = model.unk;
  if (id >= 0) out.push_back({id, static_cast<uint32_t>(word.size())});
}

}  // namespace tenon
