// linear_attention_grad: a block for a head, its warps holding the columns of the state, tokens from the last
// to the first. The states of a chunk are computed again from the one before it: first the state before every
// kInner tokens, then, kInner tokens at a time, each token's. Sums over columns are added in the order of
// warps, sums over the heads of a key head in a second kernel.
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/linear_attention.h"

namespace tenon::cuda {
namespace {

constexpr int64_t kInner = 8;
constexpr int64_t kMostWarps = 32;

struct LinearGradient {
  LinearOperands in;
  const int32_t* begin;
  const float* states;
  Tensor dout, dq, dk, dv;  // dq and dk by head
  float *dlog_decay, *dbeta;
  float* kept;  // workspace: [heads, outer + kInner, n, p]
  int64_t chunk, outer;
  LinearSizes s;
};

// Adds up what each warp wrote for each element, in the order of warps.
struct WarpSums {
  float* parts;  // [warps, width]
  int width, warps;
  __device__ float total(int i) const {
    float sum = 0;
    for (int w = 0; w < warps; ++w) sum += parts[w * width + i];
    return sum;
  }
};

template <int kRows, int kColumns>
struct HeadBackward {
  using State = StateTile<kRows, kColumns>;
  const LinearGradient& g;
  int64_t head, first;
  WarpSums sums;
  State gradient;  // of the state after the token at hand

  __device__ float* slot(int64_t index) const {
    return g.kept + (head * (g.outer + kInner) + index) * g.s.n * g.s.p;
  }

  // The state after tokens [from, end), which begins as `state`; each token's decayed one is kept on request.
  __device__ void replay(State& state, int64_t from, int64_t end, bool keep) const {
    for (int64_t t = from; t < end; ++t) {
      if (g.begin[t] == t) state.clear();
      const auto token = TokenOperands<kRows, kColumns>::of(g.in, g.s, t, head, first);
      state.multiply_rows(token.decay);
      if (keep) state.store_to(slot(g.outer + t - from), g.s, first);
      token.write_to(state, g.s);
    }
  }

  __device__ void token_back(int64_t t, const State& decayed) {
    const LinearSizes& s = g.s;
    const int64_t at = t * s.heads + head;
    const auto token = TokenOperands<kRows, kColumns>::of(g.in, s, t, head, first);
    float scaled[kColumns], du[kColumns], dv[kColumns], written[kColumns], dbeta = 0;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      scaled[c] = first + c < s.p ? s.scale * load(g.dout, at * s.p + first + c) : 0.0f;
    }
    gradient.add_product(token.q, scaled);
    gradient.column_dots(token.k, du);
    token.misses(decayed, s, written);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      dbeta += du[c] * written[c];
      dv[c] = token.beta * du[c];
      written[c] *= token.beta;
    }
    float* const mine = sums.parts + static_cast<int64_t>(threadIdx.x / kWarp) * sums.width;
    float decay_sum = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float dq = 0, dk = 0, dlog = 0;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        float& d = gradient.value[r][c];
        dq += scaled[c] * (decayed.value[r][c] + token.k[r] * written[c]);
        dk += d * written[c];
        if (s.delta) {
          dk -= decayed.value[r][c] * dv[c];
          d -= token.k[r] * dv[c];
        }
        dlog += d * decayed.value[r][c];
        d = g.begin[t] == t ? 0.0f : d * token.decay[r];
      }
      const int64_t i = State::row(r);
      if (i < s.n) {
        mine[i] = dq;
        mine[s.n + i] = dk;
        mine[2 * s.n + i] = dlog;
      }
      decay_sum += dlog;
    }
    decay_sum = warp_sum(decay_sum);
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    if (lane == 0) {
      mine[3 * s.n] = dbeta;
      mine[3 * s.n + 1] = decay_sum;
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (lane == c && first + c < s.p) store(g.dv, at * s.p + first + c, dv[c]);
    }
    __syncthreads();
    write_sums(at);
    __syncthreads();
  }

  __device__ void write_sums(int64_t at) const {
    const LinearSizes& s = g.s;
    const int n = static_cast<int>(s.n);
    for (int i = static_cast<int>(threadIdx.x); i < 3 * n + 2; i += static_cast<int>(blockDim.x)) {
      const float total = sums.total(i);
      if (i < n) {
        store(g.dq, at * n + i, total);
      } else if (i < 2 * n) {
        store(g.dk, at * n + i - n, total);
      } else if (i < 3 * n) {
        if (s.decays > 1 || n == 1) g.dlog_decay[at * s.decays + i - 2 * n] = total;
      } else if (i == 3 * n) {
        if (g.dbeta != nullptr) g.dbeta[at] = total;
      } else if (s.decays == 1 && n > 1) {
        g.dlog_decay[at] = total;
      }
    }
  }

  __device__ void run() {
    const int64_t size = g.s.n * g.s.p;
    State state;
    gradient.clear();
    for (int64_t chunk = (g.s.tokens + g.chunk - 1) / g.chunk; chunk-- > 0;) {
      const int64_t begin = chunk * g.chunk;
      const int64_t end = begin + g.chunk < g.s.tokens ? begin + g.chunk : g.s.tokens;
      state.load_from(g.states + (chunk * g.s.heads + head) * size, g.s, first);
      for (int64_t t = begin; t < end; t += kInner) {
        state.store_to(slot((t - begin) / kInner), g.s, first);
        if (t + kInner < end) replay(state, t, t + kInner, false);
      }
      for (int64_t inner = (end - begin + kInner - 1) / kInner; inner-- > 0;) {
        const int64_t from = begin + inner * kInner, to = from + kInner < end ? from + kInner : end;
        state.load_from(slot(inner), g.s, first);
        replay(state, from, to, true);
        for (int64_t t = to; t-- > from;) {
          state.load_from(slot(g.outer + t - from), g.s, first);
          token_back(t, state);
        }
      }
    }
  }
};

template <int kRows, int kColumns>
__global__ void __launch_bounds__(kMostWarps* kWarp) linear_attention_grad(LinearGradient g) {
  TENON_DYNAMIC_SHARED(float, parts);
  const WarpSums sums{parts, static_cast<int>(3 * g.s.n + 2), static_cast<int>(blockDim.x) / kWarp};
  HeadBackward<kRows, kColumns> backward{
      g, static_cast<int64_t>(blockIdx.x), static_cast<int64_t>(threadIdx.x / kWarp) * kColumns, sums, {}};
  backward.run();
}

// out[t, key head] = the sum over its heads of parts[t, head].
__global__ void add_heads(const float* parts, Tensor out, int64_t rows, int64_t per, int64_t n) {
  const int64_t i = thread_in_grid();
  if (i >= rows * n) return;
  float total = 0;
  for (int64_t h = 0; h < per; ++h) total += parts[(i / n * per + h) * n + i % n];
  store(out, i, total);
}

int64_t kept_bytes(const OpSite& site) {
  const Shape &q = site.inputs[0].shape, &v = site.inputs[2].shape;
  const int64_t slots = ceil_div(site.attrs.integer("chunk"), kInner) + kInner;
  return v[1] * slots * q[2] * v[2] * static_cast<int64_t>(sizeof(float));
}
// dq, or dk, by head, where key heads are shared.
int64_t by_head_bytes(const OpSite& site) {
  const Shape &q = site.inputs[0].shape, &v = site.inputs[2].shape;
  return q[1] == v[1] ? 0 : v[0] * v[1] * q[2] * static_cast<int64_t>(sizeof(float));
}
int64_t workspace(const OpSite& site, const DeviceFacts&) {
  return kept_bytes(site) + 2 * by_head_bytes(site);
}

constexpr int64_t kMostColumns = 4 * kMostWarps;
constexpr int64_t kMostElements = 16;  // of state and of gradient, that a thread of a full block can hold

int64_t columns_per_warp(int64_t p) {
  return p <= kMostWarps ? 1 : p <= 2 * kMostWarps ? 2 : 4;
}

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const int64_t n = site.inputs[0].shape[2], p = site.inputs[2].shape[2];
  if (!serves_plain(site, facts) || n > kMostStateRows || p > kMostColumns) return false;
  int64_t rows = 0;
  with_state_rows(n, [&](auto constant) { rows = decltype(constant)::value; });
  return rows * columns_per_warp(p) <= kMostElements;
}

template <int kRows, int kColumns>
void launch_backward(const KernelCall& call, const LinearGradient& g) {
  const auto warps = static_cast<unsigned>(ceil_div(g.s.p, kColumns));
  const size_t shared = warps * static_cast<size_t>(3 * g.s.n + 2) * sizeof(float);
  launch(call, linear_attention_grad<kRows, kColumns>, static_cast<unsigned>(g.s.heads), warps * kWarp,
         shared, g);
}

void run(const KernelCall& call) {
  const LinearSizes s = linear_sizes(call);
  const Attrs& attrs = *call.attrs;
  const bool beta = call.inputs.size() == 8, shared_keys = s.key_heads != s.heads;
  const int64_t outer = ceil_div(attrs.integer("chunk"), kInner);
  const int64_t kept = s.heads * (outer + kInner) * s.n * s.p, by_head = s.tokens * s.heads * s.n;
  float* const work = reinterpret_cast<float*>(call.workspace.data());
  const Tensor dq_by_head{reinterpret_cast<std::byte*>(work + kept), DType::f32};
  const Tensor dk_by_head{reinterpret_cast<std::byte*>(work + kept + by_head), DType::f32};
  const LinearGradient g{
      .in = {input(call, 0), input(call, 1), input(call, 2), input_as<float>(call, 3),
             beta ? input_as<float>(call, 7) : nullptr},
      .begin = input_as<int32_t>(call, 4),
      .states = input_as<float>(call, 5),
      .dout = input(call, 6),
      .dq = shared_keys ? dq_by_head : output(call, 0),
      .dk = shared_keys ? dk_by_head : output(call, 1),
      .dv = output(call, 2),
      .dlog_decay = output_as<float>(call, 3),
      .dbeta = beta ? output_as<float>(call, 4) : nullptr,
      .kept = work,
      .chunk = attrs.integer("chunk"),
      .outer = outer,
      .s = s,
  };
  with_state_rows(s.n, [&](auto rows) {
    constexpr int kRows = decltype(rows)::value;
    const int64_t columns = columns_per_warp(s.p);
    if (columns == 1) return launch_backward<kRows, 1>(call, g);
    if (columns == 2) return launch_backward<kRows, 2>(call, g);
    if constexpr (4 * kRows <= kMostElements) launch_backward<kRows, 4>(call, g);
  });
  if (!shared_keys) return;
  const int64_t rows = s.tokens * s.key_heads, per = s.heads / s.key_heads;
  launch(call, add_heads, blocks_for(rows * s.n), kThreads, 0, static_cast<const float*>(work + kept),
         output(call, 0), rows, per, s.n);
  launch(call, add_heads, blocks_for(rows * s.n), kThreads, 0,
         static_cast<const float*>(work + kept + by_head), output(call, 1), rows, per, s.n);
}

constexpr KernelDef kKernels[] = {{.op = "linear_attention_grad",
                                   .name = "linear_attention_grad_heads",
                                   .serves = serves,
                                   .workspace_bytes = workspace,
                                   .run = run}};

}  // namespace

std::span<const KernelDef> linear_attention_grad_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
