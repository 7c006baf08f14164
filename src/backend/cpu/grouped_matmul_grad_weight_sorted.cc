// grouped_matmul_grad_weight: rows are sorted by group; each group's rows of a and b are copied together and
// their product (gemm.h) added in steps of at most kStep rows, so that the workspace does not depend on the
// routing.
#include <cstring>

#include "backend/cpu/gemm.h"
#include "backend/cpu/kernel_support.h"
#include "backend/cpu/row_groups.h"
#include "base/checked_math.h"

namespace tenon {
namespace {

constexpr int64_t kStep = 256;

int64_t aligned(int64_t bytes) {
  return round_up(bytes, kArenaAlignment);
}

struct Layout {
  int64_t rows, groups, m, n;
  int64_t index_bytes, a_bytes, b_bytes;

  int64_t gemm_begin() const { return index_bytes + a_bytes + b_bytes; }
};

Layout layout_of(const Type& a, const Type& b, const Type& out) {
  Layout l;
  l.rows = a.shape[0];
  l.groups = out.shape[0];
  l.m = out.shape[1];
  l.n = out.shape[2];
  const int64_t step = std::min(l.rows, kStep);
  l.index_bytes = aligned(row_groups_length(l.rows, l.groups) * 4);
  l.a_bytes = aligned(*dtype_bytes(a.dtype, step * l.m));
  l.b_bytes = aligned(*dtype_bytes(b.dtype, step * l.n));
  return l;
}

bool serves(const OpSite& site, const DeviceFacts& facts) {
  return facts.kind == DeviceKind::cpu && is_vector_dtype(site.inputs[0].dtype) &&
         is_vector_dtype(site.inputs[1].dtype);
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const Layout l = layout_of(site.inputs[0], site.inputs[1], site.outputs[0]);
  int64_t gemm_bytes = 0;
  for (int64_t k = 1; k <= std::min(l.rows, kStep); ++k) {
    const GemmSizes sizes{.m = l.m, .n = l.n, .k = k, .b_dtype = site.inputs[1].dtype};
    gemm_bytes = std::max(gemm_bytes, aligned(gemm_workspace_bytes(sizes, facts.threads)));
  }
  return l.gemm_begin() + gemm_bytes;
}

void run(const KernelCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  const Layout l = layout_of(a.type, b.type, out.type);
  std::byte* memory = call.workspace.data();
  const std::span<const int32_t> group(input_as<int32_t>(call, 2), static_cast<size_t>(l.rows));
  const RowGroups groups = sort_rows(group, l.groups, reinterpret_cast<int32_t*>(memory));
  std::byte *a_rows = memory + l.index_bytes, *b_rows = a_rows + l.a_bytes;
  const std::span<std::byte> scratch = call.workspace.subspan(static_cast<size_t>(l.gemm_begin()));
  std::memset(out.data, 0, static_cast<size_t>(out.type.bytes()));
  Gemm product;
  product.m = l.m;
  product.n = l.n;
  product.a = {a_rows, a.type.dtype, l.m, true};
  product.b = {b_rows, b.type.dtype, l.n};
  product.alpha = static_cast<float>(call.attrs->real("alpha"));
  product.out_stride = l.n;
  for (int64_t g = 0; g < l.groups; ++g) {
    std::span<const int32_t> rows = groups.rows(g);
    product.out = out.data + g * l.m * l.n * 4;
    while (!rows.empty()) {
      const auto step = rows.first(std::min(rows.size(), static_cast<size_t>(kStep)));
      copy_rows(a, step, a_rows);
      copy_rows(b, step, b_rows);
      product.k = static_cast<int64_t>(step.size());
      gemm(product, scratch, *call.threads);
      product.addend = {product.out, DType::f32, l.n};
      rows = rows.subspan(step.size());
    }
    product.addend = {};
  }
}

}  // namespace

const KernelDef& grouped_matmul_grad_weight_sorted_kernel() {
  static constexpr KernelDef def{.op = "grouped_matmul_grad_weight",
                                 .name = "grouped_matmul_grad_weight_sorted",
                                 .serves = serves,
                                 .workspace_bytes = workspace_bytes,
                                 .run = run};
  return def;
}

}  // namespace tenon
