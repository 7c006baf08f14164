// Tokenised examples, and packs of them: the fixed budget of token slots that one micro-step of training
// sees. Pure values; never tokenises, never reads files. A pack holds whole examples in the order given, each
// its own sequence: attention stays inside a sequence, positions restart at 0, and the last token of a
// sequence predicts nothing.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon {

// The label of a position whose prediction does not count.
inline constexpr int32_t kUntrained = -100;

// One example. labels[t] is ids[t] where that token is trained on and kUntrained elsewhere: the label of the
// token itself. The shift by one (t predicts t + 1) happens in packing.
struct TokenizedExample {
  std::vector<int32_t> ids;
  std::vector<int32_t> labels;  // as long as ids

  // Tokens that are predicted and count. The first token of a sequence has nothing to be predicted from.
  int64_t trained_tokens() const;
};

struct PackedRow {
  int64_t row = 0;     // of the data set
  int32_t begin = 0;   // first slot
  int32_t tokens = 0;  // slots
  int32_t trained_tokens = 0;
};

// Every vector has exactly `tokens_per_step` entries. Slots from used_tokens on are one-token sequences of
// token 0 with no label, so that every slot is a valid input and none is trained on.
struct MicroBatch {
  std::vector<int32_t> ids;
  std::vector<int32_t> positions;       // within the sequence
  std::vector<int32_t> sequence_begin;  // slot of the first token of this slot's sequence
  std::vector<int32_t> labels;          // what slot t predicts: the id of slot t + 1, or kUntrained
  std::vector<PackedRow> rows;          // in slot order
  int64_t used_tokens = 0;
  int64_t trained_tokens = 0;  // labels that are not kUntrained
  bool epoch_end = false;      // no row of this epoch is left after this batch
};

// An empty batch of that many slots. tokens_per_step >= 1.
MicroBatch empty_batch(int32_t tokens_per_step);

// Appends one example as the next sequence; false, with nothing changed, where it does not fit.
bool append_example(MicroBatch& batch, const TokenizedExample& example, int64_t row);

}  // namespace tenon
