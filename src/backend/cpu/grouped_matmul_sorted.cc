// grouped_matmul: rows are sorted by group, each group's rows copied together and multiplied with its matrix
// in one product (gemm.h), and the results put back. Cost follows the rows; a group without rows is not read.
#include <cstring>

#include "backend/cpu/convert.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/kernel_support.h"
#include "backend/cpu/row_groups.h"
#include "base/checked_math.h"

namespace tenon {
namespace {

// Sizes beyond this many rows take the same workspace (gemm_blocking.cc).
constexpr int64_t kDistinctSizes = 64;

int64_t aligned(int64_t bytes) {
  return round_up(bytes, kArenaAlignment);
}

struct Layout {
  int64_t rows, groups, n, k;
  int64_t index_bytes, packed_bytes, product_bytes;

  int64_t gemm_begin() const { return index_bytes + packed_bytes + product_bytes; }
};

Layout layout_of(const Type& x, const Type& w, const Type& out) {
  Layout l;
  l.rows = out.shape[0];
  l.n = out.shape[1];
  l.k = x.shape[1];
  l.groups = w.shape[0];
  l.index_bytes = aligned(row_groups_length(l.rows, l.groups) * 4);
  l.packed_bytes = aligned(x.bytes());
  l.product_bytes = aligned(l.rows * l.n * 4);
  return l;
}

bool serves(const OpSite& site, const DeviceFacts& facts) {
  return facts.kind == DeviceKind::cpu && is_vector_dtype(site.inputs[0].dtype);
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const Layout l = layout_of(site.inputs[0], site.inputs[1], site.outputs[0]);
  int64_t gemm_bytes = 0;
  for (int64_t m = 1; m <= std::min(l.rows, kDistinctSizes); ++m) {
    const GemmSizes sizes{.m = m,
                          .n = l.n,
                          .k = l.k,
                          .b_dtype = site.inputs[1].dtype,
                          .b_transposed = site.attrs.flag("trans_b")};
    gemm_bytes = std::max(gemm_bytes, aligned(gemm_workspace_bytes(sizes, facts.threads)));
  }
  return l.gemm_begin() + gemm_bytes;
}

// Products of the sorted rows, f32 [rows in groups, n].
void multiply_groups(const KernelCall& call, const Layout& l, const RowGroups& groups, std::byte* packed,
                     float* products, std::span<std::byte> scratch) {
  const TensorView &x = call.inputs[0], &w = call.inputs[1];
  const int64_t matrix_bytes = w.type.bytes() / l.groups;
  for (int64_t g = 0; g < l.groups; ++g) {
    const std::span<const int32_t> rows = groups.rows(g);
    if (rows.empty()) continue;
    copy_rows(x, rows, packed);
    Gemm product;
    product.m = static_cast<int64_t>(rows.size());
    product.n = l.n;
    product.k = l.k;
    product.a = {packed, x.type.dtype, l.k};
    product.b = {w.data + g * matrix_bytes, w.type.dtype, w.type.shape[2], call.attrs->flag("trans_b")};
    product.alpha = static_cast<float>(call.attrs->real("alpha"));
    product.out = reinterpret_cast<std::byte*>(products + groups.begins[static_cast<size_t>(g)] * l.n);
    product.out_stride = l.n;
    gemm(product, scratch, *call.threads);
  }
}

// out row r = products' row + addend's row r; rows without a group have no product.
void put_back(const KernelCall& call, const Layout& l, const RowGroups& groups, const float* products) {
  const TensorView& out = call.outputs[0];
  const bool has_addend = call.inputs.size() == 4;
  const int64_t out_row_bytes = *dtype_bytes(out.type.dtype, l.n);
  const int32_t* group = input_as<int32_t>(call, 2);
  for (int64_t r = 0; r < l.rows; ++r) {
    if (group[r] >= 0) continue;
    std::byte* to = out.data + r * out_row_bytes;
    if (!has_addend)
      std::memset(to, 0, static_cast<size_t>(out_row_bytes));
    else if (to != call.inputs[3].data + r * out_row_bytes)
      std::memcpy(to, call.inputs[3].data + r * out_row_bytes, static_cast<size_t>(out_row_bytes));
  }
  const int64_t sorted = groups.begins[static_cast<size_t>(l.groups)];
  call.threads->parallel_for(sorted, 4, [&](Range range) {
    constexpr int64_t kPart = 512;
    float sum[kPart];
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int64_t r = groups.order[static_cast<size_t>(i)];
      for (int64_t j = 0; j < l.n; j += kPart) {
        const int64_t count = std::min(kPart, l.n - j);
        const float* product = products + i * l.n + j;
        if (has_addend) widen_to_f32(out.type.dtype, call.inputs[3].data, r * l.n + j, count, sum);
        for (int64_t p = 0; p < count; ++p) sum[p] = has_addend ? sum[p] + product[p] : product[p];
        round_from_f32(out.type.dtype, sum, count, out.data + r * out_row_bytes + j * out_row_bytes / l.n);
      }
    }
  });
}

void run(const KernelCall& call) {
  const Layout l = layout_of(call.inputs[0].type, call.inputs[1].type, call.outputs[0].type);
  std::byte* memory = call.workspace.data();
  const std::span<const int32_t> group(input_as<int32_t>(call, 2), static_cast<size_t>(l.rows));
  const RowGroups groups = sort_rows(group, l.groups, reinterpret_cast<int32_t*>(memory));
  std::byte* packed = memory + l.index_bytes;
  float* products = reinterpret_cast<float*>(packed + l.packed_bytes);
  const std::span<std::byte> scratch = call.workspace.subspan(static_cast<size_t>(l.gemm_begin()));
  multiply_groups(call, l, groups, packed, products, scratch);
  put_back(call, l, groups, products);
}

}  // namespace

const KernelDef& grouped_matmul_sorted_kernel() {
  static constexpr KernelDef def{.op = "grouped_matmul",
                                 .name = "grouped_matmul_sorted",
                                 .serves = serves,
                                 .workspace_bytes = workspace_bytes,
                                 .run = run};
  return def;
}

}  // namespace tenon
