// Every case of the op table on every kernel of the GPU backend that serves it: right, inside of its buffers,
// the same bits again and in the place of its inputs. On the first GPU, or emulated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "backend/cpu/kernel_harness.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/kernel_list.h"
#include "base/checked_math.h"
#include "ops/op_list.h"

namespace tenon {
namespace {

constexpr int64_t kGuard = 256;
constexpr std::byte kGuardByte{0xa5}, kPoison{0xff};

// Buffers of one call side by side in one block of device memory, guards between them.
class DeviceCall {
 public:
  DeviceCall(Device& device, const KernelDef& kernel, const Prepared& p, std::span<const Alias> shared)
      : device_(device), kernel_(kernel), p_(p), shared_(shared) {
    const OpSite site = site_of(p);
    for (const Bytes& bytes : p.inputs) place(static_cast<int64_t>(bytes.size()));
    for (const Type& type : p.op_case.outputs) place(type.bytes());
    place(kernel.workspace_bytes ? kernel.workspace_bytes(site, device.facts()) : 0);
    host_.assign(static_cast<size_t>(end_), kGuardByte);
    for (size_t i = 0; i < spans_.size(); ++i)
      std::fill_n(host_.begin() + spans_[i].begin, spans_[i].bytes, kPoison);
    for (size_t i = 0; i < p.inputs.size(); ++i) {
      std::copy(p.inputs[i].begin(), p.inputs[i].end(), host_.begin() + spans_[i].begin);
    }
  }

  std::vector<Bytes> run() {
    const auto buffer = device_.allocate(end_);
    EXPECT_TRUE(buffer.ok());
    std::byte* data = (*buffer)->data();
    EXPECT_TRUE(device_.upload(data, host_).ok());
    std::vector<TensorView> in, out;
    for (size_t i = 0; i < p_.inputs.size(); ++i) in.push_back({data + spans_[i].begin, p_.types[i]});
    for (size_t i = 0; i < p_.op_case.outputs.size(); ++i) {
      out.push_back({data + spans_[p_.inputs.size() + i].begin, p_.op_case.outputs[i]});
    }
    for (const Alias& alias : shared_) {
      out[static_cast<size_t>(alias.output)].data = in[static_cast<size_t>(alias.input)].data;
    }
    KernelCall call{.attrs = &p_.op_case.attrs,
                    .inputs = in,
                    .outputs = out,
                    .workspace = {data + spans_.back().begin, static_cast<size_t>(spans_.back().bytes)}};
    const KernelDef* kernel = &kernel_;
    const auto launches = device_.prepare({&kernel, 1}, {&call, 1});
    EXPECT_TRUE(launches.ok()) << launches.error().text();
    if (!launches.ok()) return {};
    const Status ran = (*launches)->run({});
    EXPECT_TRUE(ran.ok()) << ran.error().text();
    Bytes after(host_.size());
    EXPECT_TRUE(device_.download(after, data).ok());
    check_surroundings(after);
    std::vector<Bytes> results;
    for (const TensorView& view : out) {
      const auto begin = after.begin() + (view.data - data);
      results.emplace_back(begin, begin + view.type.bytes());
    }
    return results;
  }

 private:
  struct Span {
    int64_t begin, bytes;
  };
  void place(int64_t bytes) {
    spans_.push_back({end_ + kGuard, bytes});
    end_ = round_up(end_ + kGuard + bytes + kGuard, kArenaAlignment);
  }
  // Guards and inputs that no output shares are as they were.
  void check_surroundings(const Bytes& after) const {
    std::vector<bool> may_change(host_.size(), false);
    for (size_t i = 0; i < spans_.size(); ++i) {
      const bool is_input = i < p_.inputs.size();
      const bool overwritten = std::any_of(shared_.begin(), shared_.end(),
                                           [&](const Alias& a) { return a.input == static_cast<int>(i); });
      if (!is_input || overwritten) std::fill_n(may_change.begin() + spans_[i].begin, spans_[i].bytes, true);
    }
    for (size_t i = 0; i < after.size(); ++i) {
      if (!may_change[i]) {
        ASSERT_EQ(after[i], host_[i]) << "writes outside of its outputs and workspace, at byte " << i;
      }
    }
  }

  Device& device_;
  const KernelDef& kernel_;
  const Prepared& p_;
  std::span<const Alias> shared_;
  std::vector<Span> spans_;
  int64_t end_ = 0;
  Bytes host_;
};

// What a kernel on tensor cores rounds to bf16 before it multiplies, beside its inputs: attention weights and
// what leads back through them, and the gradient of logits. In units of the outputs' magnitude.
double inner_rounding(const KernelDef& kernel, const Prepared& p) {
  const bool gradient_of_logits =
      kernel.name.starts_with("linear_cross_entropy_") && p.types[0].dtype == DType::bf16;
  const bool low_rank =
      kernel.name == "matmul_low_rank_cublaslt" && p.op_case.outputs[0].dtype == DType::bf16;
  const bool tensor_cores = kernel.name.ends_with("_flash") || kernel.name.ends_with("_warpgroup");
  return tensor_cores || gradient_of_logits || low_rank ? 0x1p-8 : 0;
}

void allow_inner_rounding(const KernelDef& kernel, Prepared& p) {
  for (size_t o = 0; o < p.expected.size(); ++o) {
    double largest = 0;
    for (double value : p.expected[o]) largest = std::max(largest, std::abs(value));
    p.tolerance[o] += inner_rounding(kernel, p) * largest;
  }
}

void check_on_device(Device& device, const KernelDef& kernel, Prepared p) {
  allow_inner_rounding(kernel, p);
  const std::vector<Alias> must = aliases_of_kind(p, AliasKind::must);
  const std::vector<Bytes> first = DeviceCall(device, kernel, p, must).run();
  if (testing::Test::HasFailure()) return;
  expect_close(p, first);
  EXPECT_EQ(DeviceCall(device, kernel, p, must).run(), first) << "two runs differ";
  if (!kernel.in_place) return;
  for (const Alias& alias : aliases_of_kind(p, AliasKind::may)) {
    std::vector<Alias> shared = must;
    shared.push_back(alias);
    EXPECT_EQ(DeviceCall(device, kernel, p, shared).run(), first)
        << "output " << alias.output << " in the place of input " << alias.input << " differs";
  }
}

Device* opened_device() {
  static const Result<std::unique_ptr<Device>> device = open_cuda_device({.graphs = false});
  return device.ok() ? device.value().get() : nullptr;
}

bool needs_kernel(std::string_view op) {
  return op != "reshape";  // a view: no kernel runs
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDef* op : all_ops()) {
    if (needs_kernel(op->name)) names.emplace_back(op->name);
  }
  return names;
}

class CudaKernels : public testing::TestWithParam<std::string> {};

TEST_P(CudaKernels, AgreeWithTheReferenceOnEveryCase) {
  Device* device = opened_device();
  if (device == nullptr) GTEST_SKIP() << "no GPU";
  for (const OpCase& op_case : op_cases()) {
    if (op_case.op->name != GetParam()) continue;
    SCOPED_TRACE(op_case.name);
    const Prepared p = prepare(op_case, 3, SecondOperand::rounded_everywhere);
    int served = 0;
    for (const KernelDef& kernel : device->kernels()) {
      if (kernel.op != op_case.op->name || !kernel.serves(site_of(p), device->facts())) continue;
      ++served;
      SCOPED_TRACE(kernel.name);
      check_on_device(*device, kernel, p);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GE(served, 1) << "no kernel serves this case";
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaKernels, testing::ValuesIn(op_names()),
                         [](const auto& info) { return info.param; });

TEST(CudaKernelList, NamesAreUniqueAndOpsExist) {
  std::vector<std::string_view> names;
  for (const KernelDef& kernel : cuda::all_kernels()) {
    EXPECT_NE(find_op(kernel.op), nullptr) << kernel.name;
    names.push_back(kernel.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(CudaKernelList, HasAKernelForEveryOpThatNeedsOne) {
  const auto kernels = cuda::all_kernels();
  for (const OpDef* op : all_ops()) {
    const bool has =
        std::any_of(kernels.begin(), kernels.end(), [&](const KernelDef& k) { return k.op == op->name; });
    EXPECT_EQ(has, needs_kernel(op->name)) << op->name;
  }
}

}  // namespace
}  // namespace tenon
