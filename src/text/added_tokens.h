// Added tokens: strings that become one token wherever they stand in the text, before the model sees it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "text/byte_trie.h"

namespace tenon {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // matched in the normalised text, not in the text itself
  bool verbatim = false;     // ... as it is spelled, without being normalised
};

class AddedTokens {
 public:
  // A content or id given twice keeps the token given last.
  void add(AddedToken token);

  // -1 where it is none.
  int32_t find(std::string_view content) const;
  const AddedToken* by_id(int32_t id) const;
  const std::vector<AddedToken>& all() const { return tokens_; }

  // Prepares matching. `normalise` gives the form in which a token with `normalized` is matched.
  void build(FunctionRef<std::string(std::string_view)> normalise);

  // Calls visit(begin, end, token) for the stretches of text in order, token null for text between tokens;
  // no such stretch is empty. `normalized` says which set of tokens; tokens with `special` are text unless
  // `parse_special`.
  void split(std::string_view text, bool normalized, bool parse_special,
             FunctionRef<void(size_t begin, size_t end, const AddedToken* token)> visit) const;

 private:
  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::unordered_map<std::string, size_t> by_content_;
  ByteTrie raw_, normalised_;
};

}  // namespace tenon
