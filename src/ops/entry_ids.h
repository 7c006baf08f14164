// From chosen entries (ops/index_top_k.h) to the ids of keys. entries [tokens, n] i32, -1: none; positions
// [tokens] i32; sequence_begin [tokens] i32 where ids are tokens of a pack, absent where they are positions
// of a stream. No gradient flows.
//
// block_ids: the `stride` tokens of each entry, and the tokens after the last whole entry up to the token
// itself: [tokens, n * stride + stride - 1], the unused -1. window_entry_ids, for keys that stand beside
// entries (id 2 * i a key, 2 * i + 1 an entry): the last `window` keys up to the token, then the entries:
// [tokens, window + n]. every_entry: all entries up to the token, [tokens, n], of a stride. shift_ids:
// ids + shift, 0 where that is less; any shape.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& block_ids_op();
const OpDef& window_entry_ids_op();
const OpDef& every_entry_op();
const OpDef& shift_ids_op();

// sequence_begin: invalid where ids are positions.
struct TokenPlaces {
  ValueId positions, sequence_begin;
};
ValueId block_ids(Builder& builder, ValueId entries, const TokenPlaces& places, int64_t stride);
ValueId window_entry_ids(Builder& builder, ValueId entries, const TokenPlaces& places, int64_t window);
ValueId every_entry(Builder& builder, const TokenPlaces& places, int64_t n, int64_t stride);
ValueId shift_ids(Builder& builder, ValueId ids, int64_t shift);

}  // namespace tenon
