// paged_attention: every key and value row is read once for all heads and tokens that share it. Threads take
// (token group, kv head) in turn, and chunks of positions too where there are few tokens.
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/paged_attention_streaming.cc"
#include "hwy/foreach_target.h"
//
#include <limits>

#include "backend/cpu/paged_attention_partials-inl.h"
#include "backend/cpu/paged_attention_sizes.h"
#include "backend/cpu/paged_attention_tiles-inl.h"
#include "backend/cpu/simd-inl.h"
#include "base/check.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kRowsMergedAlone = 32;  // up to here waking the other threads costs more than merging

enum Input : size_t { kQ, kKeyCache, kValueCache, kPageTable, kStream, kPositions };

HWY_INLINE int64_t block_of(int64_t position) {
  return position / kBlockPositions * kBlockPositions;
}

// Rows (token by token, heads within) of one stream and kv head.
struct RowSet {
  int64_t first_token, tokens;
  int64_t kv_head, head, heads;  // heads [head, head + heads) of each token
  int64_t stream;
  int64_t begin, end;  // positions that any row attends to

  int64_t rows() const { return tokens * heads; }
};

template <typename T>
class PagedCall {
 public:
  PagedCall(const KernelCall& call, const PagedSizes& sizes)
      : call_(call), sizes_(sizes), a_(sizes.attention) {}

  // Loads the rows' queries and positions; returns the set with its range of positions.
  RowSet load_rows(RowSet set, const PagedScratch& s) const {
    set.begin = std::numeric_limits<int64_t>::max();
    set.end = 0;
    for (int64_t i = 0; i < set.tokens; ++i) {
      const int64_t t = set.first_token + i, position = position_of(t);
      for (int64_t h = 0; h < set.heads; ++h) {
        const int64_t row = i * set.heads + h;
        s.begins[row] = a_.begin(0, position);
        s.ends[row] = position + 1;
        load_query(input_as<T>(call_, kQ) + (t * a_.heads + set.head + h) * a_.head_dim,
                   s.queries + row * sizes_.padded_dim());
      }
      set.begin = std::min(set.begin, a_.begin(0, position));
      set.end = std::max(set.end, position + 1);
    }
    return set;
  }

  // The rows' partials over positions of one chunk. The block of positions that is read after the last one,
  // where there is one, is the first of `after`.
  void attend_chunk(const RowSet& set, int64_t chunk, const RowSet& after, const PagedScratch& s) const {
    for (int64_t r = 0; r < set.rows(); ++r) clear(partial_at(s.partials, r));
    const int64_t end = std::min(set.end, (chunk + 1) * kChunkPositions);
    int64_t begin = std::max(set.begin, chunk * kChunkPositions);
    CacheRows<T> keys[2], values[2];
    find_rows(set, begin, end, keys[0], values[0]);
    for (int now = 0; begin < end; now ^= 1) {
      const int64_t base = block_of(begin), next = base + kBlockPositions;
      if (next < end) {
        find_rows(set, next, end, keys[now ^ 1], values[now ^ 1]);
      } else {
        find_rows(after, after.begin, after.end, keys[now ^ 1], values[now ^ 1]);
      }
      attend_block(set, base, keys[now], values[now], keys[now ^ 1], values[now ^ 1], s);
      begin = next;
    }
  }

  // What is read first for a token before `end`; nothing where there is none.
  RowSet first_rows(int64_t token, int64_t end, int64_t kv_head) const {
    RowSet set{};
    if (token >= end || input_as<int32_t>(call_, kStream)[token] < 0) return set;
    const int64_t position = position_of(token);
    set.kv_head = kv_head;
    set.stream = input_as<int32_t>(call_, kStream)[token];
    set.begin = a_.begin(0, position);
    set.end = position + 1;
    return set;
  }

  void merge(const RowSet& set, const PagedScratch& s) const {
    for (int64_t r = 0; r < set.rows(); ++r) {
      merge_partial(partial_at(s.partials, r), partial_at(s.totals, r));
    }
  }

  Partial partial_at(float* partials, int64_t row) const {
    return {partials + row * sizes_.partial_floats(), sizes_.padded_v_dim()};
  }

  void write_rows(const RowSet& set, float* totals) const {
    for (int64_t row = 0; row < set.rows(); ++row) {
      const int64_t t = set.first_token + row / set.heads, h = set.head + row % set.heads;
      const Partial total = partial_at(totals, row);
      write_row(total.values, 1.0f / total.sum(),
                output_as<T>(call_, 0) + (t * a_.heads + h) * a_.v_head_dim);
    }
  }

 private:
  int64_t position_of(int64_t token) const {
    const int64_t position = input_as<int32_t>(call_, kPositions)[token];
    CHECK(position >= 0 && position < sizes_.max_pages * sizes_.page_tokens,
          "a position is outside the page table");
    return position;
  }

  void load_query(const T* q, float* out) const {
    const VF scale = hn::Set(DF(), a_.scale);
    for (int64_t i = 0; i < sizes_.padded_dim(); i += kPairStep) {
      const int64_t count = std::clamp<int64_t>(a_.head_dim - i, 0, kPairStep);
      const Two v = count == kPairStep ? load_two(q + i) : load_two_part(q + i, count);
      store_two({hn::Mul(v.first, scale), hn::Mul(v.second, scale)}, out + i);
    }
  }

  void write_row(const float* values, float inverse, T* out) const {
    const VF factor = hn::Set(DF(), inverse);
    for (int64_t i = 0; i < a_.v_head_dim; i += kPairStep) {
      const Two v = load_two(values + i), scaled{hn::Mul(v.first, factor), hn::Mul(v.second, factor)};
      const int64_t rest = a_.v_head_dim - i;
      if (rest >= kPairStep) {
        store_two(scaled, out + i);
      } else {
        store_two_part(scaled, out + i, rest);
      }
    }
  }

  // Where the key and value rows of the positions from `begin` on lie, up to `end` or the end of their block.
  void find_rows(const RowSet& set, int64_t begin, int64_t end, CacheRows<T>& keys,
                 CacheRows<T>& values) const {
    const int64_t base = block_of(begin);
    const Range here{begin - base, std::min(end - base, kBlockPositions)};
    keys.here = values.here = here;
    if (here.size() <= 0) return;
    const int32_t* table = input_as<int32_t>(call_, kPageTable) + set.stream * sizes_.max_pages;
    const int64_t key_step = a_.kv_heads * a_.head_dim, value_step = a_.kv_heads * a_.v_head_dim;
    const T* key_cache = input_as<T>(call_, kKeyCache) + set.kv_head * a_.head_dim;
    const T* value_cache = input_as<T>(call_, kValueCache) + set.kv_head * a_.v_head_dim;
    int64_t entry = begin / sizes_.page_tokens, slot = begin % sizes_.page_tokens;
    for (int64_t j = here.begin; j < here.end; ++entry, slot = 0) {
      const int64_t page = table[entry];
      CHECK(page >= 0 && page < sizes_.pages, "a page is outside the cache");
      const int64_t end = std::min(here.end, j + sizes_.page_tokens - slot);
      const T* key = key_cache + (page * sizes_.page_tokens + slot) * key_step;
      const T* value = value_cache + (page * sizes_.page_tokens + slot) * value_step;
      for (; j < end; ++j, key += key_step, value += value_step) {
        keys.rows[j] = key;
        values.rows[j] = value;
      }
    }
  }

  void attend_block(const RowSet& set, int64_t base, const CacheRows<T>& keys, const CacheRows<T>& values,
                    const CacheRows<T>& next_keys, const CacheRows<T>& next_values,
                    const PagedScratch& s) const {
    CacheRows<T> none;
    none.here = {0, 0};
    const int64_t stride = sizes_.padded_dim();
    each_row_group(set.rows(), [&](auto rows, int64_t r) HWY_ATTR {
      score_rows<rows()>(s.queries + r * stride, stride, keys, r == 0 ? next_keys : none, a_.head_dim,
                         s.scores + r * kBlockPositions);
    });
    for (int64_t r = 0; r < set.rows(); ++r) {
      update_partial(a_, s.scores + r * kBlockPositions,
                     {std::max<int64_t>(s.begins[r] - base, 0), std::min(s.ends[r] - base, kBlockPositions)},
                     partial_at(s.partials, r));
    }
    each_row_group(set.rows(), [&](auto rows, int64_t r) HWY_ATTR {
      add_all_values<rows()>(s.scores + r * kBlockPositions, values, r == 0 ? next_values : none,
                             a_.v_head_dim, s.partials + r * sizes_.partial_floats(),
                             sizes_.partial_floats());
    });
  }

  const KernelCall& call_;
  const PagedSizes& sizes_;
  const AttentionSizes& a_;
};

// Tokens [first, end) cut where the stream changes; f(first, count, stream) for those that have one.
template <typename F>
HWY_INLINE void each_stream(const int32_t* streams, int64_t first, int64_t end, F f) {
  while (first < end) {
    int64_t next = first + 1;
    while (next < end && streams[next] == streams[first]) ++next;
    if (streams[first] >= 0) f(first, next - first, streams[first]);
    first = next;
  }
}

// Whole tokens: each unit is a group of tokens, a kv head and up to kMostGroup of its heads.
template <typename T>
void attend_tokens(const KernelCall& call, const PagedSizes& sizes, int thread, const PagedScratch& s) {
  const AttentionSizes& a = sizes.attention;
  const PagedCall<T> paged(call, sizes);
  const int64_t per_group = a.kv_heads * a.subgroups();
  const int64_t units = ceil_div(a.tokens, kUnitTokens) * per_group;
  for (int64_t unit = thread; unit < units; unit += call.threads->size()) {
    const int64_t first = unit / per_group * kUnitTokens, kv_head = unit % per_group / a.subgroups();
    const int64_t head = unit % a.subgroups() * kMostGroup;
    const int64_t end = std::min(first + kUnitTokens, a.tokens);
    each_stream(input_as<int32_t>(call, kStream), first, end,
                [&](int64_t token, int64_t count, int64_t stream) {
                  const RowSet set = paged.load_rows({token, count, kv_head, kv_head * a.group() + head,
                                                      std::min(kMostGroup, a.group() - head), stream, 0, 0},
                                                     s);
                  for (int64_t r = 0; r < set.rows(); ++r) clear(paged.partial_at(s.totals, r));
                  const RowSet next_stream = paged.first_rows(token + count, end, kv_head);
                  for (int64_t c = set.begin / kChunkPositions; c * kChunkPositions < set.end; ++c) {
                    RowSet after = set;
                    after.begin = (c + 1) * kChunkPositions;
                    paged.attend_chunk(set, c, after.begin < set.end ? after : next_stream, s);
                    paged.merge(set, s);
                  }
                  paged.write_rows(set, s.totals);
                });
  }
}

// Single chunks of single tokens, those of one chunk one after the other, so that threads get equal shares;
// their partials go to the shared part of the workspace.
template <typename T>
void attend_chunks(const KernelCall& call, const PagedSizes& sizes, int thread, const PagedScratch& s) {
  const AttentionSizes& a = sizes.attention;
  const PagedCall<T> paged(call, sizes);
  float* shared = reinterpret_cast<float*>(call.workspace.data());
  const int64_t floats = sizes.partial_floats(), chunks = sizes.chunks(), groups = a.kv_heads * a.subgroups();
  int64_t unit = 0;
  for (int64_t t = 0; t < a.tokens; ++t) {
    const int64_t stream = input_as<int32_t>(call, kStream)[t];
    if (stream < 0) continue;
    const int64_t units = groups * sizes.chunks_of(input_as<int32_t>(call, kPositions)[t]);
    for (int64_t i = 0; i < units; ++i, ++unit) {
      if (unit % call.threads->size() != thread) continue;
      const int64_t chunk = i / groups, kv_head = i % groups / a.subgroups();
      const int64_t head = i % a.subgroups() * kMostGroup;
      const RowSet set = paged.load_rows(
          {t, 1, kv_head, kv_head * a.group() + head, std::min(kMostGroup, a.group() - head), stream, 0, 0},
          s);
      paged.attend_chunk(set, chunk, RowSet{}, s);
      for (int64_t r = 0; r < set.rows(); ++r) {
        float* place = shared + ((t * a.heads + set.head + r) * chunks + chunk) * floats;
        std::copy_n(s.partials + r * floats, floats, place);
      }
    }
  }
}

template <typename T>
void merge_chunks(const KernelCall& call, const PagedSizes& sizes, Range rows, const PagedScratch& s) {
  const AttentionSizes& a = sizes.attention;
  const PagedCall<T> paged(call, sizes);
  float* shared = reinterpret_cast<float*>(call.workspace.data());
  const int64_t chunks = sizes.chunks();
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t t = row / a.heads;
    if (input_as<int32_t>(call, kStream)[t] < 0) continue;
    const Partial total = paged.partial_at(s.totals, 0);
    clear(total);
    for (int64_t c = 0; c < sizes.chunks_of(input_as<int32_t>(call, kPositions)[t]); ++c) {
      merge_partial(paged.partial_at(shared, row * chunks + c), total);
    }
    paged.write_rows({t, 1, 0, row % a.heads, 1, 0, 0, 0}, s.totals);
  }
}

template <typename T>
void attend_typed(const KernelCall& call, const PagedSizes& sizes) {
  const int64_t scratch_bytes = PagedScratch(sizes, nullptr).bytes;
  const auto scratch_of = [&](int thread) {
    return PagedScratch(sizes, call.workspace.data() + sizes.shared_bytes() + thread * scratch_bytes);
  };
  if (!sizes.split_chunks) {
    call.threads->run([&](int thread) { attend_tokens<T>(call, sizes, thread, scratch_of(thread)); });
    return;
  }
  call.threads->run([&](int thread) { attend_chunks<T>(call, sizes, thread, scratch_of(thread)); });
  const int64_t rows = sizes.attention.tokens * sizes.attention.heads;
  if (rows <= kRowsMergedAlone) return merge_chunks<T>(call, sizes, {0, rows}, scratch_of(0));
  call.threads->run([&](int thread) {
    merge_chunks<T>(call, sizes, split_range(rows, call.threads->size(), thread), scratch_of(thread));
  });
}

void attend_paged(const KernelCall& call) {
  const PagedSizes sizes(*call.attrs, call.inputs[kQ].type.shape, call.inputs[kValueCache].type.shape,
                         call.inputs[kPageTable].type.shape, call.threads->size());
  const TensorView& out = call.outputs[0];
  const int64_t row_bytes = *dtype_bytes(out.type.dtype, sizes.attention.heads * sizes.attention.v_head_dim);
  const int32_t* streams = input_as<int32_t>(call, kStream);
  for (int64_t t = 0; t < sizes.attention.tokens; ++t) {
    CHECK(streams[t] < call.inputs[kPageTable].type.shape[0], "a stream is outside the page table");
    if (streams[t] < 0) std::fill_n(out.data + t * row_bytes, row_bytes, std::byte{0});
  }
  if (out.type.dtype == DType::bf16) return attend_typed<bf16>(call, sizes);
  attend_typed<float>(call, sizes);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(attend_paged);

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const PagedSizes sizes(site.attrs, site.inputs[0].shape, site.inputs[2].shape, site.inputs[3].shape,
                         facts.threads);
  return sizes.shared_bytes() + PagedScratch(sizes, nullptr).bytes * facts.threads;
}

}  // namespace

const KernelDef& paged_attention_streaming_kernel() {
  static constexpr KernelDef def{.op = "paged_attention",
                                 .name = "paged_attention_streaming",
                                 .serves = serves_vector_dtypes,
                                 .workspace_bytes = workspace_bytes,
                                 .run = [](const KernelCall& call) {
                                   HWY_DYNAMIC_DISPATCH(attend_paged)(call);
                                 }};
  return def;
}

}  // namespace tenon
#endif
