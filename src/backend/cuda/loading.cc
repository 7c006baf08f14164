#include "backend/cuda/loading.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"

namespace tenon::cuda {
namespace {

constexpr int64_t kColumnStep = 256;  // whole blocks of every dtype
constexpr int64_t kScaleAlignment = 8;

// Values that are read together and their bytes.
struct Unit {
  int64_t values, bytes;
};

Unit unit_of(const StoredPart& part) {
  if (part.code == StoredCode::mxfp4) return {32, 16};
  if (part.code != StoredCode::plain) return {1, 1};
  const DTypeInfo& info = dtype_info(part.dtype);
  return {info.block_elements, info.block_bytes};
}

PackedLayout layout_of(const StoredPart& part, int64_t first_column, int64_t columns) {
  const Unit unit = unit_of(part);
  const int64_t first = part.from_column + first_column * part.column_stride;
  const int64_t last = first + (columns - 1) * part.column_stride;
  const int64_t begin = first / unit.values, end = last / unit.values + 1;
  PackedLayout out;
  out.from_bytes = begin * unit.bytes;
  out.bytes = (end - begin) * unit.bytes;
  out.skip = first - begin * unit.values;
  out.scales_at = out.bytes;
  if (part.scales.data != nullptr) {
    const PartScales& scales = part.scales;
    const int64_t first_scale = begin * unit.values / scales.columns;
    const int64_t end_scale = last / scales.columns + 1;
    out.scales_at = round_up(out.bytes, kScaleAlignment);
    out.scales_from_bytes = first_scale * scales.scale_bytes;
    out.scales_bytes = (end_scale - first_scale) * scales.scale_bytes;
    out.scales_skip = begin * unit.values - first_scale * scales.columns;
  }
  out.pitch = part.unchanged ? out.bytes : round_up(out.scales_at + out.scales_bytes, kPackedRowAlignment);
  return out;
}

Status visit_flat(const StoredPart& part, std::span<const std::byte> bytes, int64_t to_bytes,
                  int64_t capacity_bytes, FunctionRef<Status(const Chunk&)> visit) {
  for (size_t at = 0; at < bytes.size();) {
    Chunk chunk;
    chunk.part = &part;
    chunk.flat = bytes.subspan(at, std::min(bytes.size() - at, static_cast<size_t>(capacity_bytes)));
    chunk.to_bytes = to_bytes + static_cast<int64_t>(at);
    RETURN_IF_ERROR(visit(chunk));
    at += chunk.flat.size();
  }
  return {};
}

// Rows that follow one another in the file are one piece; of others, those too large for a chunk are cut.
Status visit_unchanged(const StoredPart& part, DType dtype, int64_t capacity_bytes,
                       FunctionRef<Status(const Chunk&)> visit) {
  const auto row = static_cast<size_t>(part.row_bytes);
  const auto bytes_at = [&](int64_t i, int64_t rows) {
    return part.bytes.subspan(static_cast<size_t>(part.stored_row(i)) * row, static_cast<size_t>(rows) * row);
  };
  const int64_t to_bytes = *dtype_bytes(dtype, part.to);
  if (part.consecutive_rows()) {
    return visit_flat(part, bytes_at(0, part.rows), to_bytes, capacity_bytes, visit);
  }
  const int64_t rows_per_chunk = capacity_bytes / part.row_bytes;
  for (int64_t i = 0; i < part.rows; i += std::max<int64_t>(rows_per_chunk, 1)) {
    const int64_t to = to_bytes + i * part.row_bytes;
    if (rows_per_chunk == 0) {
      RETURN_IF_ERROR(visit_flat(part, bytes_at(i, 1), to, capacity_bytes, visit));
      continue;
    }
    Chunk chunk{&part, i, std::min(rows_per_chunk, part.rows - i), 0, part.columns, {}, {}, to};
    chunk.layout = layout_of(part, 0, part.columns);
    RETURN_IF_ERROR(visit(chunk));
  }
  return {};
}

// The most columns of a row that fit.
int64_t columns_per_chunk(const StoredPart& part, int64_t capacity_bytes) {
  int64_t columns = part.columns;
  while (layout_of(part, 0, columns).pitch + kPackedRowAlignment + kScaleAlignment > capacity_bytes) {
    CHECK(columns > kColumnStep, "a chunk holds no columns");
    columns = round_up(columns / 2, kColumnStep);
  }
  return columns;
}

}  // namespace

Status for_each_chunk(const StoredPart& part, DType dtype, int64_t capacity_bytes,
                      FunctionRef<Status(const Chunk&)> visit) {
  CHECK(capacity_bytes >= kLeastChunkBytes);
  if (part.rows == 0 || part.columns == 0) return {};
  if (part.unchanged) return visit_unchanged(part, dtype, capacity_bytes, visit);
  const int64_t columns = columns_per_chunk(part, capacity_bytes);
  for (int64_t j = 0; j < part.columns; j += columns) {
    Chunk chunk{&part, 0, 0, j, std::min(columns, part.columns - j), {}, {}, 0};
    chunk.layout = layout_of(part, j, chunk.columns);
    for (int64_t i = 0; i < part.rows; i += chunk.rows) {
      chunk.first_row = i;
      chunk.rows = std::min(part.rows - i, std::max<int64_t>(1, capacity_bytes / chunk.layout.pitch));
      RETURN_IF_ERROR(visit(chunk));
    }
  }
  return {};
}

Loaded loaded_report(int64_t bytes, unsigned long long not_finite) {
  Loaded out{bytes, std::nullopt};
  if (not_finite != kAllFinite) {
    constexpr unsigned long long kElement = (1ull << kElementBits) - 1;
    out.not_finite = {static_cast<int64_t>(not_finite >> kElementBits),
                      static_cast<int64_t>(not_finite & kElement)};
  }
  return out;
}

void pack(const Chunk& chunk, Range range, std::byte* packed) {
  if (!chunk.flat.empty()) {
    std::memcpy(packed + range.begin, chunk.flat.data() + range.begin, static_cast<size_t>(range.size()));
    return;
  }
  const StoredPart& part = *chunk.part;
  const PackedLayout& layout = chunk.layout;
  const bool whole =
      part.consecutive_rows() && layout.bytes == part.row_bytes && layout.pitch == layout.bytes;
  const auto stored = [&](int64_t i) {
    return part.bytes.data() + part.stored_row(chunk.first_row + i) * part.row_bytes + layout.from_bytes;
  };
  if (whole) {
    std::memcpy(packed + range.begin * layout.pitch, stored(range.begin),
                static_cast<size_t>(range.size() * layout.pitch));
    return;
  }
  for (int64_t i = range.begin; i < range.end; ++i) {
    std::byte* to = packed + i * layout.pitch;
    std::memcpy(to, stored(i), static_cast<size_t>(layout.bytes));
    if (layout.scales_bytes == 0) continue;
    const std::byte* scales = part.scales.row(part.stored_row(chunk.first_row + i));
    std::memcpy(to + layout.scales_at, scales + layout.scales_from_bytes,
                static_cast<size_t>(layout.scales_bytes));
  }
}

}  // namespace tenon::cuda
