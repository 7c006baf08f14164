// What tests of loading weights to a device share: parts in memory, and what the device makes of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "device/device.h"

namespace tenon {

using Bytes = std::vector<std::byte>;

class LoadingTest : public testing::Test {
 protected:
  // What the device makes of the parts, in a buffer of zeros.
  Bytes loaded(std::span<const StoredPart> parts, const Type& type) {
    auto buffer = device->allocate(type.bytes());
    CHECK(buffer.ok());
    EXPECT_TRUE(device->load((*buffer)->data(), type.dtype, parts).ok());
    auto report = device->finish_loading();
    CHECK(report.ok(), report.error().text());
    bad = report->not_finite;
    Bytes out(static_cast<size_t>(type.bytes()));
    EXPECT_TRUE(device->download(out, (*buffer)->data()).ok());
    return out;
  }

  std::unique_ptr<Device> device;
  std::optional<NotFinite> bad;
};

// A matrix in memory, rows of `columns` values, all of it a part.
inline StoredPart part_of(const Bytes& bytes, DType dtype, int64_t columns) {
  StoredPart part;
  part.bytes = bytes;
  part.dtype = dtype;
  part.row_bytes = *dtype_bytes(dtype, columns);
  part.rows = static_cast<int64_t>(bytes.size()) / part.row_bytes;
  part.columns = columns;
  part.to_row = columns;
  return part;
}

inline Bytes bytes_of(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace tenon
