#include "io/crc32c.h"

#include <array>

namespace tenon {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
  uint32_t value = ~0u;
  for (const std::byte byte : bytes)
    value = (value >> 8) ^ kTable[(value ^ static_cast<uint32_t>(byte)) & 0xff];
  return ~value;
}

}  // namespace tenon
