// The extents of a tensor, outermost first, row-major. At most kMaxRank dimensions; a scalar has rank 0.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "base/check.h"

namespace tenon {

inline constexpr int kMaxRank = 6;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
    CHECK(rank_ <= kMaxRank);
    for (int i = 0; i < rank_; ++i) dims_[i] = dims[i];
  }

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i < 0 ? rank_ + i : i]; }  // -1 is the innermost
  int64_t& operator[](int i) { return dims_[i < 0 ? rank_ + i : i]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

  // The product of the extents. Shapes from files go through checked_elements() first.
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[i];
    return n;
  }
  // The product, or nothing when an extent is negative or the product overflows.
  std::optional<int64_t> checked_elements() const;

  // All extents but the last, multiplied: the number of rows of a row-major matrix.
  int64_t rows() const {
    return rank_ == 0 ? 1 : rank_ == 1 ? 1 : elements() / (dims_[rank_ - 1] ? dims_[rank_ - 1] : 1);
  }

  std::string text() const;  // "[2, 3]"

  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace tenon
