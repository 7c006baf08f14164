// causal_conv, its cached form and its gradients: channels over threads, in vectors; taps are few.
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/causal_conv_channels.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/convert-inl.h"
#include "backend/cpu/simd-inl.h"
#include "base/checked_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kBlock = 256;  // channels that a thread holds at a time
constexpr int64_t kMostTaps = 16;

// y += x * w, element by element.
HWY_INLINE void add_products(float* y, const float* x, const float* w, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) store(hn::MulAdd(load(x + i), load(w + i), load(y + i)), y + i);
}

// Rows of a tensor [rows, channels] at one block of channels. Rows read are zero up to whole vectors.
struct Block {
  int64_t channels, begin, count;

  void read(const TensorView& tensor, int64_t row, float* out) const {
    widen_row(tensor.type.dtype, tensor.data, row * channels + begin, count, out);
  }
  void write(const TensorView& tensor, int64_t row, const float* values) const {
    const int64_t element_bytes = *dtype_bytes(tensor.type.dtype, 1);
    round_row(tensor.type.dtype, values, count, tensor.data + (row * channels + begin) * element_bytes);
  }
};

// The taps of a block's channels, a row each.
struct Taps {
  HWY_ALIGN float rows[kMostTaps][kBlock] = {};

  Taps(const TensorView& w, const Block& block) {
    const int64_t taps = w.type.shape[1];
    float channel[kMostTaps];
    for (int64_t c = 0; c < block.count; ++c) {
      widen_row(w.type.dtype, w.data, (block.begin + c) * taps, taps, channel);
      for (int64_t j = 0; j < taps; ++j) rows[j][c] = channel[j];
    }
  }
};

template <typename F>
void for_blocks(const KernelCall& call, int64_t channels, F body) {
  call.threads->parallel_for(ceil_div(channels, kBlock), 1, [&](Range range) {
    for (int64_t b = range.begin; b < range.end; ++b)
      body(Block{channels, b * kBlock, std::min(kBlock, channels - b * kBlock)});
  });
}

void convolve_packed(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &w = call.inputs[1];
  const int64_t tokens = x.type.shape[0], taps = w.type.shape[1], dilation = call.attrs->integer("dilation");
  const int32_t* begin = input_as<int32_t>(call, 2);
  for_blocks(call, x.type.shape[1], [&](const Block& block) {
    HWY_ALIGN float sum[kBlock] = {}, row[kBlock] = {};
    const Taps filter(w, block);
    for (int64_t t = 0; t < tokens; ++t) {
      std::fill_n(sum, kBlock, 0.0f);
      for (int64_t j = 0; j < taps; ++j) {
        const int64_t from = t - (taps - 1 - j) * dilation;
        if (from < begin[t]) continue;
        block.read(x, from, row);
        add_products(sum, row, filter.rows[j], block.count);
      }
      block.write(call.outputs[0], t, sum);
    }
  });
}

void convolve_cached(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &w = call.inputs[1], &state = call.outputs[1];
  const int64_t tokens = x.type.shape[0], taps = w.type.shape[1], dilation = call.attrs->integer("dilation");
  const int64_t rows = state.type.shape[1];
  const int32_t *streams = input_as<int32_t>(call, 3), *positions = input_as<int32_t>(call, 4);
  for_blocks(call, x.type.shape[1], [&](const Block& block) {
    HWY_ALIGN float sum[kBlock] = {}, row[kBlock] = {};
    const Taps filter(w, block);
    for (int64_t t = 0; t < tokens; ++t) {
      std::fill_n(sum, kBlock, 0.0f);
      for (int64_t j = 0; streams[t] >= 0 && j < taps; ++j) {
        const int64_t at = positions[t] - (taps - 1 - j) * dilation;
        if (at < 0) continue;
        if (at == positions[t])
          block.read(x, t, row);
        else
          block.read(state, streams[t] * rows + at % rows, row);
        add_products(sum, row, filter.rows[j], block.count);
      }
      block.write(call.outputs[0], t, sum);
      if (streams[t] < 0) continue;
      block.read(x, t, row);
      block.write(state, streams[t] * rows + positions[t] % rows, row);
    }
  });
}

void grad_input(const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &w = call.inputs[1];
  const int64_t tokens = dy.type.shape[0], taps = w.type.shape[1], dilation = call.attrs->integer("dilation");
  const int32_t* begin = input_as<int32_t>(call, 2);
  for_blocks(call, dy.type.shape[1], [&](const Block& block) {
    HWY_ALIGN float sum[kBlock] = {}, row[kBlock] = {};
    const Taps filter(w, block);
    for (int64_t s = 0; s < tokens; ++s) {
      std::fill_n(sum, kBlock, 0.0f);
      for (int64_t j = taps; j-- > 0;) {
        const int64_t t = s + (taps - 1 - j) * dilation;
        if (t >= tokens || begin[t] > s) continue;
        block.read(dy, t, row);
        add_products(sum, row, filter.rows[j], block.count);
      }
      block.write(call.outputs[0], s, sum);
    }
  });
}

void grad_weight(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &dy = call.inputs[1];
  const int64_t tokens = x.type.shape[0], taps = call.attrs->integer("taps");
  const int64_t dilation = call.attrs->integer("dilation");
  const int32_t* begin = input_as<int32_t>(call, 2);
  float* out = output_as<float>(call, 0);
  for_blocks(call, x.type.shape[1], [&](const Block& block) {
    HWY_ALIGN float sum[kBlock] = {}, row[kBlock] = {}, gradient[kBlock] = {};
    for (int64_t j = 0; j < taps; ++j) {
      std::fill_n(sum, kBlock, 0.0f);
      for (int64_t t = 0; t < tokens; ++t) {
        const int64_t from = t - (taps - 1 - j) * dilation;
        if (from < begin[t]) continue;
        block.read(x, from, row);
        block.read(dy, t, gradient);
        add_products(sum, row, gradient, block.count);
      }
      for (int64_t c = 0; c < block.count; ++c) out[(block.begin + c) * taps + j] = sum[c];
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const int64_t taps = site.attrs.has("taps") ? site.attrs.integer("taps") : site.inputs[1].shape[1];
  return serves_vector_dtypes(site, facts) && taps <= 16;
}

HWY_EXPORT(convolve_packed);
HWY_EXPORT(convolve_cached);
HWY_EXPORT(grad_input);
HWY_EXPORT(grad_weight);

}  // namespace

const KernelDef& causal_conv_channels_kernel() {
  static constexpr KernelDef def{.op = "causal_conv",
                                 .name = "causal_conv_channels",
                                 .serves = serves,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(convolve_packed)(call);
                                 }};
  return def;
}

const KernelDef& causal_conv_cached_channels_kernel() {
  static constexpr KernelDef def{.op = "causal_conv_cached",
                                 .name = "causal_conv_cached_channels",
                                 .serves = serves,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(convolve_cached)(call);
                                 }};
  return def;
}

const KernelDef& causal_conv_grad_input_channels_kernel() {
  static constexpr KernelDef def{.op = "causal_conv_grad_input",
                                 .name = "causal_conv_grad_input_channels",
                                 .serves = serves,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(grad_input)(call);
                                 }};
  return def;
}

const KernelDef& causal_conv_grad_weight_channels_kernel() {
  static constexpr KernelDef def{.op = "causal_conv_grad_weight",
                                 .name = "causal_conv_grad_weight_channels",
                                 .serves = serves,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(grad_weight)(call);
                                 }};
  return def;
}

}  // namespace tenon
#endif
