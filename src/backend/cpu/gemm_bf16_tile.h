// The innermost tiles of a bf16 product, one for each unit that multiplies bf16: 16-bit pairs of AVX-512
// (avx512_bf16) and the tile registers of AMX (amx_bf16). Sums are f32. A machine that lacks the unit must
// not call its tile.
#pragma once

#include <cstdint>
#include <span>

namespace tenon {

inline constexpr int64_t kBf16PanelColumns = 32;  // two vectors of f32 sums, two tile registers
inline constexpr int64_t kBf16DotRows = 12;       // 24 sums, 2 vectors of b and 1 of a: 27 of 32 registers
inline constexpr int64_t kBf16TileRows = 32;      // 2 x 2 tile registers of sums, 2 of a and 2 of b: all 8
inline constexpr int64_t kBf16DepthUnit = 32;     // panels are padded with zeros to multiples of this

// A part of the depth of a tile: rows of a, k innermost, and a panel of b, whose row p holds elements 2p and
// 2p + 1 of kBf16PanelColumns columns side by side.
struct Bf16Segment {
  const uint16_t* a = nullptr;
  int64_t a_stride = 0;  // elements from row to row
  const uint32_t* b = nullptr;
  int64_t depth = 0;   // multiple of the unit's granularity: 2 (pairs), kBf16DepthUnit (tiles)
  float scale = 1.0f;  // of the sums so far, this segment's included
};

// sums[rows, kBf16PanelColumns] of the segments, one after the other.
using Bf16Tile = void (*)(std::span<const Bf16Segment> segments, float* sums);
void multiply_bf16_pairs(std::span<const Bf16Segment> segments, float* sums);  // kBf16DotRows rows
void multiply_bf16_tiles(std::span<const Bf16Segment> segments, float* sums);  // kBf16TileRows rows

// The product of one segment over kBf16TileRows x kBf16PanelColumns sums that lie `stride` floats from row to
// row, added to them where `add`; the segment's scale is not looked at.
void multiply_bf16_block(const Bf16Segment& segment, bool add, float* sums, int64_t stride);

// Around the tiles of one thread.
void begin_bf16_tiles();
void end_bf16_tiles();

}  // namespace tenon
