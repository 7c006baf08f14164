// What the attention kernels in AMX's tile registers share: operands packed in bf16 and products of tiles of
// them (gemm_bf16_tile.h). Heads' dimensions are padded with zeros to whole tiles. Included once per Highway
// target.
#if defined(TENON_BACKEND_CPU_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_ATTENTION_TILES_INL_H_
#undef TENON_BACKEND_CPU_ATTENTION_TILES_INL_H_
#else
#define TENON_BACKEND_CPU_ATTENTION_TILES_INL_H_
#endif

#include <cstdint>

#include "backend/cpu/attention_tiles_sizes.h"
#include "backend/cpu/attention_visible-inl.h"
#include "backend/cpu/gemm_bf16_pack-inl.h"
#include "backend/cpu/gemm_bf16_tile.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// Tile registers are a thread's while it multiplies.
struct TileSession {
  TileSession() { begin_bf16_tiles(); }
  ~TileSession() { end_bf16_tiles(); }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
};

// A row-major operand with k innermost.
struct TileRows {
  const uint16_t* data;
  int64_t stride;  // elements
};

// Panels of kBf16PanelColumns columns, in pairs along k.
struct TilePanels {
  const uint32_t* data;
  int64_t stride;  // words from panel to panel
};

// out[kBf16TileRows, panels] (+)= a · b over `depth`, a multiple of kBf16DepthUnit, for panels [panels.begin,
// panels.end) of b and of out.
HWY_INLINE void multiply_tiles(TileRows a, TilePanels b, Range panels, int64_t depth, bool add, F32Tile out) {
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    multiply_bf16_block({a.data, a.stride, b.data + panel * b.stride, depth}, add,
                        out.data + panel * kBf16PanelColumns, out.stride);
  }
}

// The rows [first, first + kBf16TileRows) of a tile of queries: the panels of keys that one of them sees.
HWY_INLINE Range panels_seen(const VisibleTile& tile, int64_t first) {
  const int64_t last = std::min(first + kBf16TileRows, tile.rows.size()) - 1;
  const Range keys{tile.keys_of(first).begin, tile.keys_of(last).end};
  if (keys.size() <= 0) return {0, 0};
  return {keys.begin / kBf16PanelColumns, ceil_div(keys.end, kBf16PanelColumns)};
}

// Rows of `columns` numbers (a multiple of kBf16PanelColumns), `stride` apart in both, rounded to bf16.
HWY_INLINE void narrow_rows(const float* from, int64_t rows, int64_t columns, int64_t stride, uint16_t* out) {
  bf16* to = reinterpret_cast<bf16*>(out);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; j += static_cast<int64_t>(kLanes)) {
      store(load(from + i * stride + j), to + i * stride + j);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
