// An index that cannot be mixed up with another kind of index: StrongId<struct ValueTag>.
#pragma once

#include <cstdint>
#include <functional>

namespace tenon {

template <typename Tag>
struct StrongId {
  int32_t index = -1;

  bool valid() const { return index >= 0; }
  auto operator<=>(const StrongId&) const = default;
};

}  // namespace tenon

template <typename Tag>
struct std::hash<tenon::StrongId<Tag>> {
  size_t operator()(tenon::StrongId<Tag> id) const { return static_cast<size_t>(id.index); }
};
