// Runs one kernel on one op case in guarded, poisoned buffers and compares it with the fp64 reference on the
// same rounded inputs. For tests alone.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/threads.h"
#include "device/kernel.h"
#include "ops/op_cases.h"

namespace tenon {

using Bytes = std::vector<std::byte>;

// A case with its inputs as bytes, what the reference gives for them, and the tolerance of each output beside
// the rounding of its dtype.
struct Prepared {
  OpCase op_case;
  std::vector<Type> types;
  std::vector<Bytes> inputs;
  ReferenceValues expected;
  std::vector<double> tolerance;
};

// b of a product is read in a's dtype; the reference kernel, which rounds nothing, reads it as it is. Blocks
// and the weight of the vocabulary head may be either: `rounded` leaves them as they are.
enum class SecondOperand { rounded, rounded_everywhere, as_is };
Prepared prepare(const OpCase& op_case, uint64_t seed, SecondOperand second = SecondOperand::rounded);

// Whether a kernel is one that rounds both operands of its products to bf16.
bool multiplies_bf16(const KernelDef& kernel);

OpSite site_of(const Prepared& prepared);

// One run with every buffer fresh; `shared` lists outputs that lie in an input's place. Fails the test where
// the kernel allocates, or writes an input or outside of its outputs and workspace.
std::vector<Bytes> run_kernel(const KernelDef& kernel, const Prepared& prepared, ThreadPool& threads,
                              std::span<const Alias> shared);

// Every element of every output within its tolerance and the rounding of its dtype.
void expect_close(const Prepared& prepared, const std::vector<Bytes>& results);

std::vector<Alias> aliases_of_kind(const Prepared& prepared, AliasKind kind);

// Right within the tolerance, the same bits in a second run, and the same bits for each may-alias.
void check_kernel(const KernelDef& kernel, const Prepared& prepared, ThreadPool& threads);

}  // namespace tenon
