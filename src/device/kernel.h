// A kernel as a table entry: which uses of an op it serves, what it needs, and the function that runs it. A
// backend is a list of these (backend/<b>/kernel_list.inc); choosing among them is plan/'s, a pure function
// of types and facts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "device/device_facts.h"
#include "ir/op_def.h"

namespace tenon {

class ThreadPool;

// A tensor where it lies: contiguous, row-major.
struct TensorView {
  std::byte* data = nullptr;
  Type type;
};

// What a kernel fixes for one call before its first run, such as the algorithm of a library.
class KernelState {
 public:
  virtual ~KernelState() = default;
};

// One launch. Lives as long as the executor that prepared it; data pointers do not change between runs.
struct KernelCall {
  const Attrs* attrs = nullptr;
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  std::span<std::byte> workspace;
  ThreadPool* threads = nullptr;       // CPU kernels
  void* stream = nullptr;              // CUDA kernels: cudaStream_t
  std::string_view step;               // the op's name, for errors
  const KernelState* state = nullptr;  // what KernelDef::prepare gave
};

struct KernelDef {
  std::string_view op;    // the op that it serves
  std::string_view name;  // "matmul_packed_avx2"; unique in its backend
  // Whether it can serve this site on this device.
  bool (*serves)(const OpSite& site, const DeviceFacts& facts);
  // Scratch bytes of one launch; null: none. Scratch is aligned to kArenaAlignment.
  int64_t (*workspace_bytes)(const OpSite& site, const DeviceFacts& facts) = nullptr;
  // Time estimate in relative units: among kernels that serve a site, the lowest is chosen, ties by list
  // order.
  double (*cost)(const OpSite& site, const DeviceFacts& facts) = nullptr;  // null: 1
  bool in_place = true;                                                    // honours the op's may-aliases
  bool deterministic = true;  // same bits from the same inputs at the same thread count
  // Called once before the first run, with the call's addresses in place; null: nothing to fix.
  Result<std::unique_ptr<KernelState>> (*prepare)(const KernelCall& call) = nullptr;
  void (*run)(const KernelCall& call);
};

// Every placement starts at a multiple of this: a cache line and the widest vector.
inline constexpr int64_t kArenaAlignment = 64;

}  // namespace tenon
