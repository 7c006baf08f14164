// wkv, its cached form and its gradient: channels over threads and in vectors, tokens one after another, so
// that a sequence gives the same bits packed, alone or token by token.
#include "backend/cpu/attention_sizes.h"
#include "backend/cpu/kernel_support.h"
#include "ops/wkv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/wkv_channels.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/convert-inl.h"
#include "backend/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kBlock = 64;  // channels that a thread holds at a time

// A number of each channel of a block; those past the last channel are zero and come to nothing.
struct Row {
  HWY_ALIGN float values[kBlock] = {};
};

struct State {
  Row numerator, denominator, largest;
};

// The channels of one block, and their decays and bonuses.
struct Block {
  int64_t channels, begin, count;
  Row decay, bonus;

  Block(const KernelCall& call, int64_t index)
      : channels(call.inputs[0].type.shape[1]),
        begin(index * kBlock),
        count(std::min(kBlock, channels - begin)) {
    std::copy_n(input_as<float>(call, 2) + begin, count, decay.values);
    std::copy_n(input_as<float>(call, 3) + begin, count, bonus.values);
  }
  void read(const TensorView& tensor, int64_t row, Row& out) const {
    widen_row(tensor.type.dtype, tensor.data, row * channels + begin, count, out.values);
  }
  void write(const TensorView& tensor, int64_t row, const Row& values) const {
    const int64_t element_bytes = *dtype_bytes(tensor.type.dtype, 1);
    round_row(tensor.type.dtype, values.values, count,
              tensor.data + (row * channels + begin) * element_bytes);
  }
  void read_state(const float* states, int64_t index, State& out) const {
    const float* from = states + index * kWkvState * channels + begin;
    for (Row* row : {&out.numerator, &out.denominator, &out.largest}) {
      std::copy_n(from, count, row->values);
      from += channels;
    }
  }
  void write_state(float* states, int64_t index, const State& state) const {
    float* to = states + index * kWkvState * channels + begin;
    for (const Row* row : {&state.numerator, &state.denominator, &state.largest}) {
      std::copy_n(row->values, count, to);
      to += channels;
    }
  }
};

// One vector of a state.
struct StateVector {
  VF numerator, denominator, largest;

  StateVector(const State& state, int64_t i)
      : numerator(load(state.numerator.values + i)),
        denominator(load(state.denominator.values + i)),
        largest(load(state.largest.values + i)) {}
};

// What a state and a token's own value weigh in the sums, where the token's exponent is `own_exponent` and
// the state has decayed by `decay`.
struct Weights {
  VF before, own, largest;

  HWY_INLINE Weights(const StateVector& state, VF decay, VF own_exponent) {
    const auto empty = hn::Eq(state.denominator, hn::Zero(DF()));
    const VF decayed = hn::Add(state.largest, decay);
    largest = hn::IfThenElse(empty, own_exponent, hn::Max(decayed, own_exponent));
    before = hn::IfThenZeroElse(empty, exp_of(hn::Sub(decayed, largest)));
    own = exp_of(hn::Sub(own_exponent, largest));
  }
};

// Gives the outputs of a token and moves the state past it.
void take_token(const Block& block, const Row& k, const Row& v, State& state, Row& out) {
  const VF zero = hn::Zero(DF());
  for (int64_t i = 0; i < block.count; i += kLanes) {
    const StateVector s(state, i);
    const VF key = load(k.values + i), value = load(v.values + i);
    const Weights read(s, zero, hn::Add(key, load(block.bonus.values + i)));
    store(hn::Div(hn::MulAdd(read.before, s.numerator, hn::Mul(read.own, value)),
                  hn::MulAdd(read.before, s.denominator, read.own)),
          out.values + i);
    const Weights kept(s, load(block.decay.values + i), key);
    store(hn::MulAdd(kept.before, s.numerator, hn::Mul(kept.own, value)), state.numerator.values + i);
    store(hn::MulAdd(kept.before, s.denominator, kept.own), state.denominator.values + i);
    store(kept.largest, state.largest.values + i);
  }
}

template <typename F>
void for_blocks(const KernelCall& call, F body) {
  call.threads->parallel_for(ceil_div(call.inputs[0].type.shape[1], kBlock), 1, [&](Range range) {
    for (int64_t index = range.begin; index < range.end; ++index) body(Block(call, index));
  });
}

void wkv_packed(const KernelCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0], chunk = call.attrs->integer("chunk");
  const int32_t* begin = input_as<int32_t>(call, 4);
  for_blocks(call, [&](const Block& block) {
    Row k, v, out;
    State state;
    for (int64_t t = 0; t < tokens; ++t) {
      if (t % chunk == 0) block.write_state(output_as<float>(call, 1), t / chunk, state);
      if (begin[t] == t) state = State();
      block.read(call.inputs[0], t, k);
      block.read(call.inputs[1], t, v);
      take_token(block, k, v, state, out);
      block.write(call.outputs[0], t, out);
    }
  });
}

void wkv_of_streams(const KernelCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0];
  const int32_t *streams = input_as<int32_t>(call, 5), *positions = input_as<int32_t>(call, 6);
  float* states = output_as<float>(call, 1);
  for_blocks(call, [&](const Block& block) {
    Row k, v, out;
    State state;
    for (int64_t t = 0; t < tokens; ++t) {
      if (streams[t] < 0) {
        block.write(call.outputs[0], t, Row());
        continue;
      }
      if (positions[t] == 0)
        state = State();
      else
        block.read_state(states, streams[t], state);
      block.read(call.inputs[0], t, k);
      block.read(call.inputs[1], t, v);
      take_token(block, k, v, state, out);
      block.write_state(states, streams[t], state);
      block.write(call.outputs[0], t, out);
    }
  });
}

// Gradients of both sums of the state after a token, then before it, and of decay and bonus.
struct Gradients {
  Row numerator, denominator, decay, bonus;
};

void token_backward(const Block& block, const Row& k, const Row& v, const Row& dout, const State& before,
                    bool begins, Gradients& g, Row& dk, Row& dv) {
  const VF zero = hn::Zero(DF());
  for (int64_t i = 0; i < block.count; i += kLanes) {
    const StateVector s(before, i);
    const VF key = load(k.values + i), value = load(v.values + i);
    const VF d_num = load(g.numerator.values + i), d_den = load(g.denominator.values + i);
    const Weights read(s, zero, hn::Add(key, load(block.bonus.values + i)));
    const Weights kept(s, load(block.decay.values + i), key);
    const VF denominator = hn::MulAdd(read.before, s.denominator, read.own);
    const VF out = hn::Div(hn::MulAdd(read.before, s.numerator, hn::Mul(read.own, value)), denominator);
    const VF d_read_num = hn::Div(load(dout.values + i), denominator);
    const VF d_read_den = hn::Neg(hn::Mul(out, d_read_num));
    // The value less the output, without the cancellation where the token's own value is most of it.
    const VF lead = hn::Div(hn::Mul(read.before, hn::MulSub(value, s.denominator, s.numerator)), denominator);
    const VF d_own = hn::Mul(read.own, hn::Mul(d_read_num, lead));
    store(hn::MulAdd(kept.own, hn::MulAdd(d_num, value, d_den), d_own), dk.values + i);
    store(hn::MulAdd(kept.own, d_num, hn::Mul(read.own, d_read_num)), dv.values + i);
    const VF d_decay = hn::MulAdd(d_num, s.numerator, hn::Mul(d_den, s.denominator));
    store(hn::MulAdd(kept.before, d_decay, load(g.decay.values + i)), g.decay.values + i);
    store(hn::Add(d_own, load(g.bonus.values + i)), g.bonus.values + i);
    const VF num_before = hn::MulAdd(kept.before, d_num, hn::Mul(read.before, d_read_num));
    const VF den_before = hn::MulAdd(kept.before, d_den, hn::Mul(read.before, d_read_den));
    store(begins ? zero : num_before, g.numerator.values + i);
    store(begins ? zero : den_before, g.denominator.values + i);
  }
}

// `states` holds the state before each token of a chunk.
void block_backward(const KernelCall& call, const Block& block, State* states) {
  const int64_t tokens = call.inputs[0].type.shape[0], chunk = call.attrs->integer("chunk");
  const int32_t* begin = input_as<int32_t>(call, 4);
  Row k, v, dout, dk, dv;
  Gradients g;
  for (int64_t n = ceil_div(tokens, chunk); n-- > 0;) {
    const int64_t first = n * chunk, end = std::min(tokens, first + chunk);
    State state;
    block.read_state(input_as<float>(call, 5), n, state);
    for (int64_t t = first; t < end; ++t) {
      if (begin[t] == t) state = State();
      states[t - first] = state;
      block.read(call.inputs[0], t, k);
      block.read(call.inputs[1], t, v);
      take_token(block, k, v, state, dout);
    }
    for (int64_t t = end; t-- > first;) {
      block.read(call.inputs[0], t, k);
      block.read(call.inputs[1], t, v);
      block.read(call.inputs[6], t, dout);
      token_backward(block, k, v, dout, states[t - first], begin[t] == t, g, dk, dv);
      block.write(call.outputs[0], t, dk);
      block.write(call.outputs[1], t, dv);
    }
  }
  block.write(call.outputs[2], 0, g.decay);
  block.write(call.outputs[3], 0, g.bonus);
}

void wkv_backward(const KernelCall& call) {
  const int64_t blocks = ceil_div(call.inputs[0].type.shape[1], kBlock), threads = call.threads->size();
  const int64_t chunk = call.attrs->integer("chunk");
  State* states = reinterpret_cast<State*>(call.workspace.data());
  call.threads->parallel_for(threads, 1, [&](Range range) {
    for (int64_t part = range.begin; part < range.end; ++part) {
      for (int64_t index = part; index < blocks; index += threads)
        block_backward(call, Block(call, index), states + part * chunk);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(wkv_packed);
HWY_EXPORT(wkv_of_streams);
HWY_EXPORT(wkv_backward);

int64_t grad_workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  constexpr int64_t kBlockBytes = 64 * kWkvState * static_cast<int64_t>(sizeof(float));
  return site.attrs.integer("chunk") * facts.threads * kBlockBytes;
}

}  // namespace

const KernelDef& wkv_channels_kernel() {
  static constexpr KernelDef def{
      .op = "wkv", .name = "wkv_channels", .serves = serves_vector_dtypes, .run = [](const KernelCall& call) {
        HWY_DYNAMIC_DISPATCH(wkv_packed)(call);
      }};
  return def;
}

const KernelDef& wkv_cached_channels_kernel() {
  static constexpr KernelDef def{.op = "wkv_cached",
                                 .name = "wkv_cached_channels",
                                 .serves = serves_vector_dtypes,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(wkv_of_streams)(call);
                                 }};
  return def;
}

const KernelDef& wkv_grad_channels_kernel() {
  static constexpr KernelDef def{.op = "wkv_grad",
                                 .name = "wkv_grad_channels",
                                 .serves = serves_vector_dtypes,
                                 .workspace_bytes = grad_workspace_bytes,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(wkv_backward)(call);
                                 }};
  return def;
}

}  // namespace tenon
#endif
