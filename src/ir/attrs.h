// The attributes of an op: a small sorted map from name to plain value. Being data, they print, compare and
// hash without a line of code per op. Reading a missing name or another type is a bug of the op (CHECK).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"

namespace tenon {

using AttrValue = std::variant<bool, int64_t, double, DType, std::string, std::vector<int64_t>>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string_view, AttrValue>> entries);

  void set(std::string_view name, AttrValue value);
  bool has(std::string_view name) const { return find(name) != nullptr; }

  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  DType dtype(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::vector<int64_t>& integers(std::string_view name) const;

  std::string to_text() const;  // "eps=1e-05 trans_b=true", sorted by name; doubles round-trip
  bool operator==(const Attrs&) const = default;

 private:
  const AttrValue* find(std::string_view name) const;

  std::vector<std::pair<std::string, AttrValue>> entries_;  // sorted by name
};

}  // namespace tenon
