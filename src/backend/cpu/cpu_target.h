// The instruction set that vector kernels run with. The best one is chosen when the program starts; tests run
// all of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// Instruction sets that this binary has and this processor runs, best first: "AVX3", "AVX2", "SCALAR".
std::vector<std::string> cpu_targets();

// Uses one of cpu_targets() from now on, in the whole process; the empty name: the best. CHECKs that it is
// one. No kernel may be running.
void use_cpu_target(std::string_view name);

}  // namespace tenon
