#include "text/charsmap.h"

#include <cstring>

namespace tenon {
namespace {

// darts-clone units: bit 31 marks a value, bit 8 a node with a value below it, bits 10-30 the offset (shifted
// by 8 more where bit 9 is set), bits 0-7 with bit 31 the label.
bool has_leaf(uint32_t unit) {
  return unit >> 8 & 1;
}
uint32_t value_of(uint32_t unit) {
  return unit & 0x7fffffff;
}
uint32_t label_of(uint32_t unit) {
  return unit & 0x800000ff;
}
uint32_t offset_of(uint32_t unit) {
  return unit >> 10 << ((unit & 0x200) >> 6);
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  Charsmap map;
  if (bytes.empty()) return map;
  uint32_t array_bytes = 0;
  if (bytes.size() < 4) return bad_file("precompiled character map is cut short");
  std::memcpy(&array_bytes, bytes.data(), 4);
  if (array_bytes % 4 != 0 || array_bytes == 0 || array_bytes > bytes.size() - 4) {
    return bad_file("precompiled character map has a wrong array size");
  }
  map.units_.resize(array_bytes / 4);
  std::memcpy(map.units_.data(), bytes.data() + 4, array_bytes);
  map.strings_ = bytes.substr(4 + array_bytes);
  return map;
}

std::string_view Charsmap::replacement(uint32_t offset) const {
  if (offset >= strings_.size()) return {};
  const std::string_view rest = std::string_view(strings_).substr(offset);
  return rest.substr(0, rest.find('\0'));
}

template <typename F>
void Charsmap::walk(std::string_view text, F&& found) const {
  if (units_.empty()) return;
  uint32_t at = offset_of(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || label_of(units_[at]) != byte) return;
    const uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) return;
    if (!found(Match{i + 1, replacement(value_of(units_[at]))})) return;
  }
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view text) const {
  std::optional<Match> best;
  walk(text, [&](const Match& match) {
    best = match;
    return true;
  });
  return best;
}

std::optional<Charsmap::Match> Charsmap::shortest(std::string_view text) const {
  std::optional<Match> first;
  walk(text, [&](const Match& match) {
    first = match;
    return false;
  });
  return first;
}

}  // namespace tenon
