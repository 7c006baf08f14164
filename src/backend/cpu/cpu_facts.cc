// Bit positions are those of the CPUID chapter of the Intel Software Developer's Manual, volume 2A.
#include "backend/cpu/cpu_facts.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string>

namespace tenon {
namespace {

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

bool bit(uint32_t word, int index) {
  return (word >> index & 1) != 0;
}

// The register state that the operating system saves (XCR0).
uint64_t saved_state() {
  if (!bit(cpuid(1).ecx, 27)) return 0;  // OSXSAVE
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Linux gives the tile registers of AMX to a process that asks for them (Documentation/arch/x86/xstate.rst).
bool permits_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  static const bool permitted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return permitted;
}

std::vector<std::string> features() {
  const Registers basic = cpuid(1), extended = cpuid(7), more = cpuid(7, 1);
  const uint64_t state = saved_state();
  const bool ymm = (state & 0x6) == 0x6, zmm = (state & 0xe6) == 0xe6, tiles = (state & 0x60000) == 0x60000;
  std::vector<std::string> names;
  const bool avx2 =
      ymm && bit(basic.ecx, 12) && bit(basic.ecx, 29) && bit(extended.ebx, 5) && bit(extended.ebx, 8);
  if (!avx2) return names;
  names.emplace_back("avx2");
  const bool avx512 = zmm && bit(extended.ebx, 16) && bit(extended.ebx, 17) && bit(extended.ebx, 28) &&
                      bit(extended.ebx, 30) && bit(extended.ebx, 31);
  if (avx512) {
    names.emplace_back("avx512");
    if (bit(extended.ecx, 11)) names.emplace_back("avx512_vnni");
    if (bit(more.eax, 5)) names.emplace_back("avx512_bf16");
  }
  if (!tiles || !permits_tiles()) return names;
  if (bit(extended.edx, 22)) names.emplace_back("amx_bf16");
  if (bit(extended.edx, 25)) names.emplace_back("amx_int8");
  return names;
}

std::string brand() {
  std::array<char, 49> text{};
  if (cpuid(0x80000000).eax < 0x80000004) return "x86-64";
  for (uint32_t i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002 + i);
    std::memcpy(text.data() + i * 16, &r, 16);
  }
  std::string name(text.data());
  const auto first = name.find_first_not_of(' ');
  if (first == std::string::npos) return "x86-64";
  return name.substr(first, name.find_last_not_of(' ') - first + 1);
}

int64_t memory_bytes() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  int64_t limit = 0;  // stays 0 where the file says "max"
  if (std::ifstream file("/sys/fs/cgroup/memory.max"); file >> limit && limit > 0)
    bytes = std::min(bytes, limit);
  return bytes;
}

double megahertz() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("cpu MHz")) return std::atof(line.c_str() + line.find(':') + 1);
  }
  return 0;
}

}  // namespace

DeviceFacts cpu_facts(int threads) {
  DeviceFacts facts;
  facts.kind = DeviceKind::cpu;
  facts.name = brand();
  facts.features = features();
  facts.threads = threads;
  facts.memory_bytes = memory_bytes();
  const int flops_per_cycle = facts.has("avx512") ? 64 : facts.has("avx2") ? 32 : 4;  // two FMA units
  facts.gflops_f32 = megahertz() * 1e-3 * flops_per_cycle * threads;
  facts.gflops_bf16 = facts.gflops_f32;
  return facts;
}

}  // namespace tenon
