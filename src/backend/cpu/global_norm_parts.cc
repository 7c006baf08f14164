// global_norm in double over parts of fixed length of each input, added in order: the same bits for any
// thread count.
#include <cmath>

#include "backend/cpu/kernel_support.h"
#include "base/checked_math.h"

namespace tenon {
namespace {

constexpr int64_t kPart = 4096;

double sum_squares(const float* x, int64_t count) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += static_cast<double>(x[i]) * x[i];
  return total;
}

// Every thread counts the parts of all inputs and takes its own.
void sum_parts(const KernelCall& call, int thread, double* totals) {
  int64_t index = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const float* x = input_as<float>(call, i);
    const int64_t n = call.inputs[i].type.elements();
    for (int64_t begin = 0; begin < n; begin += kPart, ++index) {
      if (index % call.threads->size() != thread) continue;
      totals[index] = sum_squares(x + begin, std::min(kPart, n - begin));
    }
  }
}

int64_t part_count(int64_t elements) {
  return ceil_div(elements, kPart);
}

void run(const KernelCall& call) {
  double* totals = reinterpret_cast<double*>(call.workspace.data());
  call.threads->run([&](int thread) { sum_parts(call, thread, totals); });
  int64_t parts = 0;
  for (const TensorView& input : call.inputs) parts += part_count(input.type.elements());
  double total = 0;
  for (int64_t p = 0; p < parts; ++p) total += totals[p];
  *output_as<float>(call, 0) = static_cast<float>(std::sqrt(total));
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts&) {
  int64_t parts = 0;
  for (const Type& type : site.inputs) parts += part_count(type.elements());
  return parts * 8;
}

}  // namespace

const KernelDef& global_norm_parts_kernel() {
  static constexpr KernelDef def{.op = "global_norm",
                                 .name = "global_norm_parts",
                                 .serves = serves_all,
                                 .workspace_bytes = workspace_bytes,
                                 .run = run};
  return def;
}

}  // namespace tenon
