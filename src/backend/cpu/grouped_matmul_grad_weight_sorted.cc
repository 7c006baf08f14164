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
  int64_t index_bytes, a_bytes, b_bytes, gemm_bytes;
};

Layout layout_of(std::span<const Type> inputs, const Type& out, int threads) {
  Layout l;
  l.rows = inputs[0].shape[0];
  l.groups = out.shape[0];
  l.m = out.shape[1];
  l.n = out.shape[2];
  const int64_t step = std::min(l.rows, kStep);
  l.index_bytes = aligned(row_groups_length(l.rows, l.groups) * 4);
  l.a_bytes = aligned(*dtype_bytes(inputs[0].dtype, step * l.m));
  l.b_bytes = aligned(*dtype_bytes(inputs[1].dtype, step * l.n));
  l.gemm_bytes = 0;
  for (int64_t k = 1; k <= step; ++k) {
    const GemmSizes sizes{.m = l.m, .n = l.n, .k = k, .b_dtype = inputs[1].dtype};
    l.gemm_bytes = std::max(l.gemm_bytes, aligned(gemm_workspace_bytes(sizes, threads)));
  }
  return l;
}

bool serves(const OpSite& site, const DeviceFacts& facts) {
  return facts.kind == DeviceKind::cpu && is_vector_dtype(site.inputs[0].dtype) &&
         is_vector_dtype(site.inputs[1].dtype);
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const Layout l = layout_of(site.inputs, site.outputs[0], facts.threads);
  return l.index_bytes + l.a_bytes + l.b_bytes + l.gemm_bytes;
}

void copy_rows(const TensorView& from, std::span<const int32_t> rows, std::byte* to) {
  const int64_t row_bytes = *dtype_bytes(from.type.dtype, from.type.shape[1]);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(to + static_cast<int64_t>(i) * row_bytes, from.data + rows[i] * row_bytes,
                static_cast<size_t>(row_bytes));
  }
}

void run(const KernelCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  const Type types[] = {a.type, b.type};
  const Layout l = layout_of(types, out.type, call.threads->size());
  std::byte* memory = call.workspace.data();
  const std::span<const int32_t> group(input_as<int32_t>(call, 2), static_cast<size_t>(l.rows));
  const RowGroups groups = sort_rows(group, l.groups, reinterpret_cast<int32_t*>(memory));
  std::byte *a_rows = memory + l.index_bytes, *b_rows = a_rows + l.a_bytes;
  const std::span<std::byte> scratch(b_rows + l.b_bytes, static_cast<size_t>(l.gemm_bytes));
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
