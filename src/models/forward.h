// Builds the forward part of a Program from a ModelSpec: token ids to the hidden states before the head, over
// packed sequences (training, evaluation) or over a paged cache (prefill, decoding). One way for both, so
// that what is trained is what is served.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/builder.h"
#include "models/model_spec.h"

namespace tenon {

// Paged cache of decoding: one k and one v value a layer, [pages, page_tokens, kv_heads, head_dim]. Latent
// attention has one for both, [pages, page_tokens, 1, latent + rope_dim]; layers with a window have rings
// (models/cache_layout.h).
struct CacheOptions {
  int64_t streams = 1;
  int64_t pages = 0;  // in all, shared by the streams
  int64_t page_tokens = 16;
  int64_t max_pages = 0;   // a stream's, at most
  int64_t run_tokens = 1;  // the most that one run writes to a stream, whichever program it is of
  DType dtype = DType::f32;
};

struct ForwardOptions {
  int64_t tokens = 0;                 // of one run
  DType compute = DType::f32;         // of activations
  std::optional<CacheOptions> cache;  // none: packed sequences
  // The dtype that a matrix or a stack of them has in memory; norms and biases are always f32.
  DType weight_dtype = DType::f32;
  // Matrices that have another, by name: block-quantised ones that stay as the file has them.
  std::map<std::string, DType, std::less<>> weight_dtypes = {};

  DType matrix_dtype(std::string_view name) const {
    const auto other = weight_dtypes.find(name);
    return other == weight_dtypes.end() ? weight_dtype : other->second;
  }
  // Put before the names of inputs sized by tokens or rows, so that programs of several sizes can be planned
  // together.
  std::string input_prefix;
};

// Inputs that the caller writes before each run, all i32. Packed: ids, positions and sequence_begin [tokens].
// Cached: ids, positions, slots and stream [tokens], and page_table [streams, max_pages]; slots and
// page_table once more for each size of ring; and where frequencies of rope depend on it (depends_on_length,
// models/rope.h) sequence_length [tokens], for which all of a token's sequence is rotated.
inline constexpr const char* kIdsInput = "ids";
inline constexpr const char* kPositionsInput = "positions";
inline constexpr const char* kSequenceBeginInput = "sequence_begin";
inline constexpr const char* kSlotsInput = "slots";
inline constexpr const char* kStreamInput = "stream";
inline constexpr const char* kSequenceLengthInput = "sequence_length";
inline constexpr const char* kPageTableInput = "page_table";
inline constexpr const char* kLabelsInput = "labels";
inline constexpr const char* kRowsInput = "rows";

// Hidden states after the final norm, [tokens, hidden] in the compute dtype.
ValueId build_forward(Builder& builder, const ModelSpec& spec, const ForwardOptions& options);

// Logits f32 [rows, vocab] of `rows` of the hidden states, chosen by an input (kRowsInput, [rows] i32).
ValueId build_logits(Builder& builder, const ModelSpec& spec, ValueId hidden, int64_t rows,
                     const ForwardOptions& options);

// Loss by token and predicted ids, over labels (kLabelsInput, [tokens] i32, negative: not trained).
struct LossOutputs {
  ValueId loss;       // f32 [tokens]
  ValueId predicted;  // i32 [tokens]
};
LossOutputs build_loss(Builder& builder, const ModelSpec& spec, ValueId hidden,
                       const ForwardOptions& options);

}  // namespace tenon
