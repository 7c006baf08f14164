#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"

namespace tenon {
namespace {

bool ends_with_word(std::string_view text) {
  return !text.empty() && CharClasses::get().of(char_before(text, text.size()).value) & kWord;
}

bool starts_with_word(std::string_view text) {
  return !text.empty() &&
         CharClasses::get().of(decode_char(text.data(), text.data() + text.size()).value) & kWord;
}

// Where the white space that ends at `end` begins.
size_t space_begin(std::string_view text, size_t end) {
  while (end > 0) {
    const Char c = char_before(text, end);
    if (!(CharClasses::get().of(c.value) & kSpace)) break;
    end -= static_cast<size_t>(c.bytes);
  }
  return end;
}

size_t space_end(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const Char c = decode_char(text.data() + begin, text.data() + text.size());
    if (!(CharClasses::get().of(c.value) & kSpace)) break;
    begin += static_cast<size_t>(c.bytes);
  }
  return begin;
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  if (const auto old = by_content_.find(token.content); old != by_content_.end()) {
    by_id_.erase(tokens_[old->second].id);
    by_id_[token.id] = old->second;
    tokens_[old->second] = std::move(token);
    return;
  }
  by_content_[token.content] = tokens_.size();
  by_id_[token.id] = tokens_.size();
  tokens_.push_back(std::move(token));
}

int32_t AddedTokens::find(std::string_view content) const {
  const auto at = by_content_.find(std::string(content));
  return at == by_content_.end() ? -1 : tokens_[at->second].id;
}

const AddedToken* AddedTokens::by_id(int32_t id) const {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : &tokens_[at->second];
}

void AddedTokens::build(FunctionRef<std::string(std::string_view)> normalise) {
  raw_ = ByteTrie();
  normalised_ = ByteTrie();
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    const std::string text = token.normalized && !token.verbatim ? normalise(token.content) : token.content;
    if (!text.empty()) (token.normalized ? normalised_ : raw_).add(text, static_cast<int32_t>(i));
  }
}

void AddedTokens::split(std::string_view text, bool normalized, bool parse_special,
                        FunctionRef<void(size_t, size_t, const AddedToken*)> visit) const {
  const ByteTrie& trie = normalized ? normalised_ : raw_;
  size_t done = 0;
  const size_t size = trie.empty() ? 0 : text.size();
  for (size_t at = 0; at < size;) {
    if (!trie.starts(static_cast<unsigned char>(text[at]))) {
      ++at;
      continue;
    }
    const ByteTrie::Match match = trie.longest(text.substr(at));
    if (match.value < 0) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + match.bytes;
    at = end;
    const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
    if (token.special && !parse_special) continue;
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    if (token.lstrip) begin = space_begin(text, begin);
    if (token.rstrip) end = space_end(text, end);
    begin = std::max(begin, done);
    end = std::max(end, begin);
    if (begin > done) visit(done, begin, nullptr);
    visit(begin, end, &token);
    done = end;
  }
  if (done < text.size()) visit(done, text.size(), nullptr);
}

}  // namespace tenon
