// Rows of an evaluation set that training has seen, word for word or nearly so. Memory grows with the
// evaluation set alone; training rows stream by.
//
// A text is taken as its words in lower case, without signs (a character of a script that writes no spaces is
// a word), and as the set of its shingles: hashes of five words in a row (Broder 1997), or of the whole text
// where it has fewer words. Of an evaluation row with more than 64 shingles those whose hash is 0 modulo 4
// stand for all. The row is seen where at least kSeenShare of them stand in one training row.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon {

class EvalOverlap {
 public:
  static constexpr double kSeenShare = 0.8;

  // Adds the next evaluation row; rows are numbered from 0.
  void add(std::string_view text);
  int64_t rows() const { return static_cast<int64_t>(sizes_.size()); }

  struct Seen {
    int64_t train_row = -1;  // -1: not seen
    double share = 0;        // of the evaluation row's shingles
  };
  // What one thread has found.
  struct Found {
    std::vector<Seen> seen;  // by evaluation row; the largest share, of several the lowest training row
    std::vector<uint64_t> shingles;
    std::unordered_map<int32_t, int32_t> counts;
  };
  void look(std::string_view text, int64_t train_row, Found& found) const;
  static void merge(Found& into, const Found& from);

 private:
  std::unordered_map<uint64_t, std::vector<int32_t>> rows_with_;  // by shingle
  std::vector<int32_t> sizes_;                                    // shingles of each row
};

// The shingles of a text, sorted, each once.
void shingles_of(std::string_view text, std::vector<uint64_t>& out);

}  // namespace tenon
