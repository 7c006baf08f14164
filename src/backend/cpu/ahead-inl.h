// Asking for memory ahead of products that stream an operand once: so evenly that few requests at a time
// stand beside the products that they hide behind. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_AHEAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_AHEAD_INL_H_
#undef TENON_BACKEND_CPU_AHEAD_INL_H_
#else
#define TENON_BACKEND_CPU_AHEAD_INL_H_
#endif

#include <cstdint>

#include "base/checked_math.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// Steps of a tile's depth between two calls of Ahead::ask.
constexpr int64_t kStepsOfAsking = 4;

// A block of a matrix, `rows` by `columns` of `stride` elements from row to row, that is asked for line by
// line in the order of memory, for the second cache.
template <typename T>
class Ahead {
 public:
  static constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));

  Ahead(const T* block, int64_t rows, int64_t columns, int64_t stride)
      : line_(block),
        row_end_(block + columns),
        rows_(rows),
        stride_(stride),
        skip_(stride - round_up(columns, kLine)) {}

  // The next `lines` of them, none where all have been.
  HWY_INLINE void ask(int64_t lines) {
    for (int64_t i = 0; i < lines && rows_ > 0; ++i) {
      __builtin_prefetch(line_, 0, 2);
      line_ += kLine;
      if (line_ < row_end_) continue;
      line_ += skip_;
      row_end_ += stride_;
      --rows_;
    }
  }

 private:
  const T *line_, *row_end_;
  int64_t rows_, stride_, skip_;
};

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
