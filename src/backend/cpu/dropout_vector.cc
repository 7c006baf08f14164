// dropout: Philox4x32-10 (ops/philox.h) for a vector of counters at a time, the same words bit for bit.
#include "backend/cpu/kernel_support.h"
#include "ops/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/dropout_vector.cc"
#include "hwy/foreach_target.h"
//
#include <array>

#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

using DU = hn::ScalableTag<uint32_t>;
using VU = hn::Vec<DU>;
constexpr int64_t kWords = 4 * static_cast<int64_t>(kLanes);  // of a vector of counters

struct DropoutCall {
  std::array<uint32_t, 2> seed;
  uint64_t stream, threshold;
  float scale;
};

#if HWY_TARGET != HWY_SCALAR
struct Product {
  VU high, low;
};
// The halves of the 64-bit products, lane by lane.
HWY_INLINE Product multiply_wide(VU a, VU b) {
  const DU d;
  const auto even = hn::BitCast(d, hn::MulEven(a, b));  // low, high of lanes 0, 2, ...
  const auto odd = hn::BitCast(
      d, hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(hn::Repartition<uint64_t, DU>(), a))),
                     hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(hn::Repartition<uint64_t, DU>(), b)))));
  return {hn::OddEven(odd, hn::DupOdd(even)), hn::OddEven(hn::DupEven(odd), even)};
}
#endif

// Words of counters [block, block + kLanes), in order.
HWY_INLINE void draw(const DropoutCall& dropout, uint64_t block, uint32_t* words) {
#if HWY_TARGET == HWY_SCALAR
  const auto drawn = philox_block(dropout.seed, dropout.stream, block);
  std::copy(drawn.begin(), drawn.end(), words);
#else
  const DU d;
  // Lanes do not carry into the high word: a vector starts at a multiple of kLanes.
  VU c0 = hn::Add(hn::Set(d, static_cast<uint32_t>(block)), hn::Iota(d, 0));
  VU c1 = hn::Set(d, static_cast<uint32_t>(block >> 32));
  VU c2 = hn::Set(d, static_cast<uint32_t>(dropout.stream));
  VU c3 = hn::Set(d, static_cast<uint32_t>(dropout.stream >> 32));
  uint32_t key0 = dropout.seed[0], key1 = dropout.seed[1];
  for (int round = 0; round < 10; ++round) {
    const Product p0 = multiply_wide(hn::Set(d, 0xD2511F53u), c0),
                  p1 = multiply_wide(hn::Set(d, 0xCD9E8D57u), c2);
    c0 = hn::Xor(hn::Xor(p1.high, c1), hn::Set(d, key0));
    c1 = p1.low;
    c2 = hn::Xor(hn::Xor(p0.high, c3), hn::Set(d, key1));
    c3 = p0.low;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
#endif
}

template <typename T>
void drop_range(const DropoutCall& dropout, const T* x, T* out, Range range) {
  const DU du;
  const VF scale = hn::Set(DF(), dropout.scale);
  const VU threshold = hn::Set(du, static_cast<uint32_t>(dropout.threshold));
  uint32_t words[kWords];
  for (int64_t i = range.begin; i < range.end; i += kWords) {
    draw(dropout, static_cast<uint64_t>(i) / 4, words);
    for (int64_t j = 0; j < kWords && i + j < range.end; j += static_cast<int64_t>(kLanes)) {
      const size_t rest = static_cast<size_t>(std::min<int64_t>(range.end - i - j, kLanes));
      const VF value = rest == kLanes ? load(x + i + j) : load_part(x + i + j, rest);
      const auto dropped = hn::RebindMask(DF(), hn::Lt(hn::LoadU(du, words + j), threshold));
      const VF kept = hn::IfThenZeroElse(dropped, hn::Mul(value, scale));
      if (rest == kLanes) {
        store(kept, out + i + j);
      } else {
        store_part(kept, out + i + j, rest);
      }
    }
  }
}

void drop(const KernelCall& call) {
  const double rate = call.attrs->real("rate");
  const int32_t* seed = input_as<int32_t>(call, 1);
  const DropoutCall dropout{{static_cast<uint32_t>(seed[0]), static_cast<uint32_t>(seed[1])},
                            static_cast<uint64_t>(call.attrs->integer("stream")),
                            dropout_threshold(rate),
                            static_cast<float>(1 / (1 - rate))};
  const Type& type = call.outputs[0].type;
  call.threads->parallel_for(type.elements(), kElementGrain, [&](Range range) {
    if (type.dtype == DType::bf16) {
      drop_range(dropout, input_as<bf16>(call, 0), output_as<bf16>(call, 0), range);
    } else {
      drop_range(dropout, input_as<float>(call, 0), output_as<float>(call, 0), range);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {
HWY_EXPORT(drop);
}  // namespace

const KernelDef& dropout_vector_kernel() {
  static constexpr KernelDef def{.op = "dropout",
                                 .name = "dropout_vector",
                                 .serves = serves_vector_dtypes,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(drop)
                                   (call);
                                 }};
  return def;
}

}  // namespace tenon
#endif
