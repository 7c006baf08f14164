// Ops whose rows do not depend on each other and whose definitions need no memory of their own: the op's own
// definition in double, over blocks of rows on all threads, so that scratch does not grow with the rows.
// Plain, not fast; a vector kernel of the op takes its place where there is one.
#include <array>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_support.h"
#include "base/checked_math.h"
#include "ops/activation.h"
#include "ops/normalise.h"
#include "ops/routing.h"

namespace tenon {
namespace {

constexpr size_t kMostTensors = 4;
constexpr int64_t kBlockElements = 4096;  // of the widest tensor, about

int64_t width_of(const Type& type) {
  return type.shape.rank() == 0 ? 1 : type.shape[-1];
}

int64_t rows_of(const Type& type) {
  const int64_t width = width_of(type);
  return width == 0 ? 0 : type.elements() / width;
}

// Rows of a block, from the widest tensor.
int64_t block_rows(int64_t widest) {
  return std::max<int64_t>(1, kBlockElements / std::max<int64_t>(widest, 1));
}

int64_t scratch_bytes(int64_t widths, int64_t widest) {
  return round_up(widths * block_rows(widest) * 8, kArenaAlignment);
}

bool serves(const OpSite& site, const DeviceFacts& facts) {
  return serves_vector_dtypes(site, facts) && site.inputs.size() + site.outputs.size() <= kMostTensors;
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  int64_t widths = 0, widest = 0;
  for (std::span<const Type> types : {site.inputs, site.outputs}) {
    for (const Type& type : types) {
      widths += width_of(type);
      widest = std::max(widest, width_of(type));
    }
  }
  return scratch_bytes(widths, widest) * facts.threads;
}

void run_rows(const OpDef& op, const KernelCall& call) {
  const size_t inputs = call.inputs.size(), count = inputs + call.outputs.size();
  CHECK(count <= kMostTensors);
  const auto view = [&](size_t i) -> const TensorView& {
    return i < inputs ? call.inputs[i] : call.outputs[i - inputs];
  };
  int64_t widths = 0, widest = 0;
  for (size_t i = 0; i < count; ++i) {
    widths += width_of(view(i).type);
    widest = std::max(widest, width_of(view(i).type));
  }
  const int64_t rows = rows_of(call.outputs[0].type), step = block_rows(widest);
  const int64_t bytes = scratch_bytes(widths, widest), threads = call.threads->size();
  call.threads->parallel_for(threads, 1, [&](Range range) {
    for (int64_t part = range.begin; part < range.end; ++part) {
      for (int64_t begin = part * step; begin < rows; begin += threads * step) {
        const int64_t taken = std::min(step, rows - begin);
        double* scratch = reinterpret_cast<double*>(call.workspace.data() + part * bytes);
        std::array<ReferenceTensor, kMostTensors> tensors;
        for (size_t i = 0; i < count; ++i) {
          const TensorView& tensor = view(i);
          const int64_t width = width_of(tensor.type), element_bytes = *dtype_bytes(tensor.type.dtype, 1);
          tensors[i] = {{tensor.type.dtype, Shape{taken, width}}, scratch};
          if (i < inputs) {
            widen_to_f64(tensor.type.dtype, tensor.data + begin * width * element_bytes, taken * width,
                         scratch);
          }
          scratch += taken * width;
        }
        const std::span<const ReferenceTensor> all(tensors.data(), count);
        op.reference({*call.attrs, all.first(inputs), all.subspan(inputs)});
        for (size_t i = inputs; i < count; ++i) {
          const TensorView& tensor = view(i);
          const int64_t width = width_of(tensor.type), element_bytes = *dtype_bytes(tensor.type.dtype, 1);
          round_from_f64(tensor.type.dtype, tensors[i].data, taken * width,
                         tensor.data + begin * width * element_bytes);
        }
      }
    }
  });
}

}  // namespace

#define TENON_ROW_BLOCKS(op_name)                                                                          \
  const KernelDef& op_name##_row_blocks_kernel() {                                                         \
    static constexpr KernelDef def{.op = #op_name,                                                         \
                                   .name = #op_name "_row_blocks",                                         \
                                   .serves = serves,                                                       \
                                   .workspace_bytes = workspace_bytes,                                     \
                                   .run = [](const KernelCall& call) { run_rows(op_name##_op(), call); }}; \
    return def;                                                                                            \
  }
TENON_ROW_BLOCKS(activation)
TENON_ROW_BLOCKS(activation_grad)
TENON_ROW_BLOCKS(normalise)
TENON_ROW_BLOCKS(normalise_grad)
TENON_ROW_BLOCKS(gather_columns)
TENON_ROW_BLOCKS(gather_columns_grad)
TENON_ROW_BLOCKS(limit_ids)
#undef TENON_ROW_BLOCKS

}  // namespace tenon
