// The kernel harness (kernel_harness.h).
#include "backend/cpu/kernel_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "backend/cpu/convert.h"
#include "backend/cpu/cpu_facts.h"
#include "base/allocation_counter.h"
#include "base/half.h"

namespace tenon {
namespace {

// Multiples of the error that f32 arithmetic makes by rounding each input once. A naive f32 sum of n terms
// also rounds n times, which grows the error by about sqrt(n): ops whose outputs are long sums take n into
// account.
struct ToleranceFactor {
  std::string_view op;
  double factor;  // times sqrt(n), n the longest axis of any input
};
constexpr ToleranceFactor kFactors[] = {
    {"attention", 4},
    {"attention_grad", 4},
    {"column_sum", 3},
    {"embedding_grad", 3},
    {"gather_rows_grad", 3},
    {"linear_cross_entropy", 3},
    {"linear_cross_entropy_grad_hidden", 3},
    {"linear_cross_entropy_grad_weight", 3},
    {"linear_cross_entropy_with_grad", 3},
    {"matmul", 3},
    {"matmul_low_rank", 3},
    {"paged_attention", 4},
    {"rms_norm_grad_weight", 3},
    {"sum", 3},
};
constexpr double kDefaultFactor = 6;

double factor_of(const OpCase& op_case) {
  for (const ToleranceFactor& entry : kFactors) {
    if (entry.op != op_case.op->name) continue;
    int64_t longest = 1;
    for (const CaseInput& input : op_case.inputs) {
      for (int64_t extent : input.type.shape.dims()) longest = std::max(longest, extent);
    }
    return entry.factor * std::sqrt(static_cast<double>(longest));
  }
  return kDefaultFactor;
}

constexpr int64_t kGuard = 256;
constexpr std::byte kGuardByte{0xa5};
constexpr std::byte kPoison{0xff};  // NaN in every float dtype, -1 in integers

// Bytes at a multiple of kArenaAlignment with guards on both sides.
class GuardedBytes {
 public:
  explicit GuardedBytes(int64_t bytes)
      : bytes_(bytes), storage_(static_cast<size_t>(bytes + 2 * kGuard + kArenaAlignment), kGuardByte) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data()) + kGuard;
    offset_ = kGuard + (kArenaAlignment - static_cast<int64_t>(address % kArenaAlignment)) % kArenaAlignment;
    poison();
  }
  std::byte* data() { return storage_.data() + offset_; }
  int64_t bytes() const { return bytes_; }
  std::span<std::byte> span() { return {data(), static_cast<size_t>(bytes_)}; }
  void poison() { std::fill_n(data(), bytes_, kPoison); }
  void assign(const std::vector<std::byte>& from) { std::copy(from.begin(), from.end(), data()); }
  std::vector<std::byte> copy() { return {data(), data() + bytes_}; }
  bool guards_intact() const {
    const auto is_guard = [](std::byte b) { return b == kGuardByte; };
    const auto end = storage_.begin() + offset_ + bytes_;
    return std::all_of(storage_.begin(), storage_.begin() + offset_, is_guard) &&
           std::all_of(end, storage_.end(), is_guard);
  }

 private:
  int64_t bytes_;
  int64_t offset_;
  std::vector<std::byte> storage_;
};

// The f16 scales of a block: where they lie and how large they are, so that values are about 1.
struct BlockScales {
  std::vector<int> offsets;
  float largest;
};
BlockScales block_scales(DType dtype) {
  switch (dtype) {
    case DType::q4_1:
    case DType::q5_1:
      return {{0, 2}, 0.1f};
    case DType::q8_0:
      return {{0}, 0.01f};
    case DType::q2_k:
      return {{80, 82}, 0.03f};
    case DType::q3_k:
      return {{108}, 0.01f};
    case DType::q4_k:
    case DType::q5_k:
      return {{0, 2}, 0.002f};
    case DType::q6_k:
      return {{208}, 0.0005f};
    default:
      return {{0}, 0.1f};
  }
}

// Random blocks and what they decode to.
Bytes random_blocks(const Type& type, uint64_t seed, std::vector<double>& decoded) {
  const BlockScales scales = block_scales(type.dtype);
  std::mt19937_64 generator(seed);
  Bytes bytes(static_cast<size_t>(type.bytes()));
  for (std::byte& b : bytes) b = static_cast<std::byte>(generator());
  std::uniform_real_distribution<float> uniform(-scales.largest, scales.largest);
  const auto block_bytes = static_cast<size_t>(dtype_info(type.dtype).block_bytes);
  for (size_t block = 0; block < bytes.size(); block += block_bytes) {
    for (int offset : scales.offsets) {
      const uint16_t bits = f32_to_f16(uniform(generator));
      std::memcpy(bytes.data() + block + offset, &bits, 2);
    }
  }
  decoded.resize(static_cast<size_t>(type.elements()));
  widen_to_f64(type.dtype, bytes.data(), type.elements(), decoded.data());
  return bytes;
}

double largest_magnitude(const std::vector<double>& values) {
  double largest = 0;
  for (double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// The gradients of norms subtract near numbers where rows are short, which moving the inputs does not show: a
// few units in the last place of r * dy * weight, with r at most 1 / the smallest rms.
double cancellation_floor(const OpCase& op_case, const ReferenceValues& values) {
  const bool weighted = op_case.op->name == "rms_norm_grad_input";
  if (!weighted && op_case.op->name != "normalise_grad") return 0;
  const auto n = static_cast<size_t>(op_case.inputs[0].type.shape[-1]);
  double largest_r = 0;
  for (size_t row = 0; n > 0 && row < values[0].size() / n; ++row) {
    double squares = 0;
    for (size_t i = 0; i < n; ++i) squares += values[0][row * n + i] * values[0][row * n + i];
    largest_r =
        std::max(largest_r, 1 / std::sqrt(squares / static_cast<double>(n) + op_case.attrs.real("eps")));
  }
  if (!weighted) return 0x1p-21 * largest_r * largest_magnitude(values[1]);
  const double weight = largest_magnitude(values[1]) + std::abs(op_case.attrs.real("weight_offset"));
  return 0x1p-21 * largest_r * largest_magnitude(values[2]) * weight;
}

// b of a product is read in a's dtype; the reference kernel, which rounds nothing, reads it as it is. Blocks,
// and the weight of the vocabulary head, may be either.
void round_second_operand(const OpCase& op_case, SecondOperand second, ReferenceValues& values) {
  const bool everywhere = second == SecondOperand::rounded_everywhere;
  const bool low_rank = op_case.op->name == "matmul_low_rank";
  const bool head = everywhere && op_case.op->name.starts_with("linear_cross_entropy");
  if (op_case.op->name != "matmul" && !low_rank && !head) return;
  for (size_t b : {1, 3}) {
    if (b == 3 && !low_rank) continue;
    if (op_case.inputs[b - 1].type.dtype != DType::bf16) continue;
    if (is_block_quantised(op_case.inputs[b].type.dtype) && !everywhere) continue;
    for (double& value : values[b]) value = round_to_dtype(value, DType::bf16);
  }
}

// Whether what one product gives, softmax or gradient of it, is an operand of another: kernels that multiply
// bf16 round it to that on its way.
bool has_two_products(const OpCase& op_case) {
  const std::string_view op = op_case.op->name;
  return op == "attention" || op == "attention_grad" || op == "linear_cross_entropy_with_grad";
}

// The largest change of each output when every floating input is moved by up to half a unit in the last place
// of the dtype that the maths is done in: the error that the same maths makes before its sums are rounded.
std::vector<double> naive_errors(const OpCase& op_case, double half_unit, std::span<const Type> types,
                                 const ReferenceValues& values, const ReferenceValues& expected) {
  std::vector<double> errors(expected.size(), 0.0);
  std::mt19937_64 generator(5);
  std::uniform_real_distribution<double> relative(-half_unit, half_unit);
  for (int round = 0; round < 2; ++round) {
    ReferenceValues moved = values;
    for (size_t i = 0; i < moved.size(); ++i) {
      if (types[i].dtype == DType::i32) continue;
      for (double& value : moved[i]) value *= 1 + relative(generator);
    }
    const ReferenceValues result = evaluate_op(*op_case.op, op_case.attrs, types, moved);
    for (size_t o = 0; o < result.size(); ++o) {
      for (size_t i = 0; i < result[o].size(); ++i) {
        errors[o] = std::max(errors[o], std::abs(result[o][i] - expected[o][i]));
      }
    }
  }
  return errors;
}

}  // namespace

Prepared prepare(const OpCase& op_case, uint64_t seed, SecondOperand second) {
  Prepared out{op_case, op_case.input_types(), {}, {}, {}};
  ReferenceValues values = case_inputs(op_case, seed);
  for (size_t i = 0; i < values.size(); ++i) {
    const Type& type = out.types[i];
    if (is_block_quantised(type.dtype)) {
      out.inputs.push_back(random_blocks(type, seed + i, values[i]));
      continue;
    }
    out.inputs.emplace_back(static_cast<size_t>(type.bytes()));
    round_from_f64(type.dtype, values[i].data(), type.elements(), out.inputs.back().data());
  }
  if (op_case.complete != nullptr) {
    op_case.complete(op_case, values);
    for (size_t i = 0; i < values.size(); ++i) {
      const Type& type = out.types[i];
      if (is_block_quantised(type.dtype)) continue;
      round_from_f64(type.dtype, values[i].data(), type.elements(), out.inputs[i].data());
      widen_to_f64(type.dtype, out.inputs[i].data(), type.elements(), values[i].data());
    }
  }
  if (second != SecondOperand::as_is) round_second_operand(op_case, second, values);
  out.expected = evaluate_op(*op_case.op, op_case.attrs, out.types, values);
  const bool rounds_between = second == SecondOperand::rounded_everywhere && has_two_products(op_case);
  const double half_unit = rounds_between ? 0x1p-9 : 0x1p-24;
  out.tolerance = naive_errors(op_case, half_unit, out.types, values, out.expected);
  for (double& tolerance : out.tolerance) {
    tolerance = tolerance * factor_of(op_case) + cancellation_floor(op_case, values);
  }
  return out;
}

namespace {

// Half a unit in the last place of `value` in a dtype.
double rounding_floor(DType dtype, double value) {
  switch (dtype) {
    case DType::bf16:
      return std::abs(value) * 0x1p-8 + 1e-38;
    case DType::f16:
      return std::abs(value) * 0x1p-11 + 0x1p-25;
    case DType::f32:
      return std::abs(value) * 0x1p-22 + 1e-38;
    case DType::f64:
      return std::abs(value) * 0x1p-50 + 1e-300;
    default:
      return 0;
  }
}

}  // namespace

bool multiplies_bf16(const KernelDef& kernel) {
  return kernel.name.find("_bf16_") != std::string_view::npos;  // names end in the unit
}

OpSite site_of(const Prepared& p) {
  return {*p.op_case.op, p.op_case.attrs, p.types, p.op_case.outputs};
}

std::vector<Bytes> run_kernel(const KernelDef& kernel, const Prepared& p, ThreadPool& threads,
                              std::span<const Alias> shared) {
  DeviceFacts facts = cpu_facts(threads.size());
  const OpSite site = site_of(p);
  std::vector<GuardedBytes> inputs, outputs;
  for (const Bytes& bytes : p.inputs) inputs.emplace_back(static_cast<int64_t>(bytes.size())).assign(bytes);
  for (const Type& type : p.op_case.outputs) outputs.emplace_back(type.bytes());
  GuardedBytes workspace(kernel.workspace_bytes ? kernel.workspace_bytes(site, facts) : 0);

  std::vector<TensorView> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) in.push_back({inputs[i].data(), p.types[i]});
  for (size_t i = 0; i < outputs.size(); ++i) out.push_back({outputs[i].data(), p.op_case.outputs[i]});
  for (const Alias& alias : shared) {
    out[static_cast<size_t>(alias.output)].data = in[static_cast<size_t>(alias.input)].data;
  }
  KernelCall call{.attrs = &p.op_case.attrs,
                  .inputs = in,
                  .outputs = out,
                  .workspace = workspace.span(),
                  .threads = &threads};
  const int64_t allocations = heap_allocations();
  kernel.run(call);
  if (!kernel.name.ends_with("_reference")) {
    EXPECT_EQ(heap_allocations(), allocations) << "allocates";
  }

  EXPECT_TRUE(workspace.guards_intact()) << "writes outside of its workspace";
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(inputs[i].guards_intact()) << "writes outside of input " << i;
    const bool overwritten = std::any_of(
        shared.begin(), shared.end(), [&](const Alias& alias) { return alias.input == static_cast<int>(i); });
    if (!overwritten) {
      EXPECT_EQ(inputs[i].copy(), p.inputs[i]) << "writes input " << i;
    }
  }
  std::vector<Bytes> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i].guards_intact()) << "writes outside of output " << i;
    results.emplace_back(out[i].data, out[i].data + out[i].type.bytes());
  }
  return results;
}

void expect_close(const Prepared& p, const std::vector<Bytes>& results) {
  for (size_t o = 0; o < results.size(); ++o) {
    const Type& type = p.op_case.outputs[o];
    std::vector<double> values(static_cast<size_t>(type.elements()));
    widen_to_f64(type.dtype, results[o].data(), type.elements(), values.data());
    for (size_t i = 0; i < values.size(); ++i) {
      const double expected = p.expected[o][i];
      const double allowed = p.tolerance[o] + rounding_floor(type.dtype, expected);
      ASSERT_TRUE(values[i] == expected || std::abs(values[i] - expected) <= allowed)
          << "output " << o << "[" << i << "] is " << values[i] << ", expected " << expected << " within "
          << allowed;
    }
  }
}

std::vector<Alias> aliases_of_kind(const Prepared& p, AliasKind kind) {
  std::vector<Alias> out;
  for (const Alias& alias : op_aliases(site_of(p))) {
    if (alias.kind == kind) out.push_back(alias);
  }
  return out;
}

void check_kernel(const KernelDef& kernel, const Prepared& p, ThreadPool& threads) {
  const std::vector<Alias> must = aliases_of_kind(p, AliasKind::must);
  const std::vector<Bytes> first = run_kernel(kernel, p, threads, must);
  expect_close(p, first);
  if (kernel.deterministic) {
    EXPECT_EQ(run_kernel(kernel, p, threads, must), first) << "two runs differ";
  }
  if (!kernel.in_place) return;
  for (const Alias& alias : aliases_of_kind(p, AliasKind::may)) {
    std::vector<Alias> shared = must;
    shared.push_back(alias);
    EXPECT_EQ(run_kernel(kernel, p, threads, shared), first)
        << "output " << alias.output << " in the place of input " << alias.input << " differs";
  }
}

}  // namespace tenon
