#include "ir/attrs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace tenon {
namespace {

template <typename T>
const T& get(const AttrValue* value, std::string_view name) {
  CHECK(value != nullptr, name);
  const T* typed = std::get_if<T>(value);
  CHECK(typed != nullptr, name);
  return *typed;
}

struct Printer {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return fmt::format("{}", v); }
  std::string operator()(DType v) const { return std::string(dtype_name(v)); }
  std::string operator()(const std::string& v) const { return fmt::format("\"{}\"", v); }
  std::string operator()(const std::vector<int64_t>& v) const {
    return fmt::format("[{}]", fmt::join(v, ","));
  }
};

}  // namespace

Attrs::Attrs(std::initializer_list<std::pair<std::string_view, AttrValue>> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

void Attrs::set(std::string_view name, AttrValue value) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                             [](const auto& entry, std::string_view key) { return entry.first < key; });
  if (at != entries_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries_.emplace(at, std::string(name), std::move(value));
  }
}

const AttrValue* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key == name) return &value;
  }
  return nullptr;
}

bool Attrs::flag(std::string_view name) const {
  return get<bool>(find(name), name);
}
int64_t Attrs::integer(std::string_view name) const {
  return get<int64_t>(find(name), name);
}
double Attrs::real(std::string_view name) const {
  return get<double>(find(name), name);
}
DType Attrs::dtype(std::string_view name) const {
  return get<DType>(find(name), name);
}
const std::string& Attrs::text(std::string_view name) const {
  return get<std::string>(find(name), name);
}
const std::vector<int64_t>& Attrs::integers(std::string_view name) const {
  return get<std::vector<int64_t>>(find(name), name);
}

std::string Attrs::to_text() const {
  std::string out;
  for (const auto& [name, value] : entries_) {
    if (!out.empty()) out += ' ';
    out += fmt::format("{}={}", name, std::visit(Printer{}, value));
  }
  return out;
}

}  // namespace tenon
