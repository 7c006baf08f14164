// Rows of a hashed table for the last tokens of each token (n-gram embedding). With token ids x and
// multipliers m, the hash of the last n is x[t] * m[0] ^ x[t - 1] * m[1] ^ ... ^ x[t - n + 1] * m[n - 1] in
// 64 bits, for n = 2 .. multipliers; each n has `heads` heads, and a head's row is the hash modulo its size
// after the rows of the heads before. Tokens before the sequence, and those up to an `end` token before t,
// count as `end`. ids [tokens] i32, sequence_begin [tokens] i32; out [tokens, sizes] i32. No gradient flows.
//
// ngram_ids_cached, for new tokens of streams: ids, state i32 [streams, multipliers - 1] (the token of
// position p at p modulo its length), stream and positions [tokens] i32; out, and the state updated in place.
// Tokens of a stream come in order; a token whose stream is -1 gives zeros.
#pragma once

#include "ir/builder.h"
#include "ops/causal_conv.h"

namespace tenon {

const OpDef& ngram_ids_op();
const OpDef& ngram_ids_cached_op();

struct NgramOptions {
  std::vector<int64_t> multipliers;  // positive, small enough that no product overflows
  std::vector<int64_t> sizes;        // of the heads, (multipliers - 1) * heads
  int64_t heads = 1;
  int64_t end = 0;
  bool operator==(const NgramOptions&) const = default;
};
ValueId ngram_ids(Builder& builder, ValueId ids, ValueId sequence_begin, const NgramOptions& options);
ValueId ngram_ids_cached(Builder& builder, ValueId ids, const StreamInputs& streams,
                         const NgramOptions& options);

}  // namespace tenon
