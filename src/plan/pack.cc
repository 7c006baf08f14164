#include "plan/pack.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.h"

namespace tenon {
namespace {

using Order = std::vector<int32_t>;

int32_t end_of_time(std::span<const PackBlock> blocks) {
  int32_t end = 0;
  for (const PackBlock& block : blocks) end = std::max(end, block.last + 1);
  return end;
}

// Block indices by ascending key; equal keys stay in index order, so the order is a function of the blocks.
template <typename Key>
Order order_by(std::span<const PackBlock> blocks, Key key) {
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return key(blocks[a]) < key(blocks[b]); });
  return order;
}

// Gives each block, in order, the lowest gap that is free during its life.
Packing lowest_gap(std::span<const PackBlock> blocks, const Order& order) {
  struct Placed {
    int64_t begin, end;
    int32_t first, last;
  };
  std::vector<Placed> placed;  // by begin
  placed.reserve(blocks.size());
  Packing packing{std::vector<int64_t>(blocks.size(), 0), 0};
  for (const int32_t index : order) {
    const PackBlock& block = blocks[index];
    if (block.bytes == 0) continue;
    int64_t offset = 0;
    for (const Placed& other : placed) {
      if (other.last < block.first || other.first > block.last) continue;
      if (other.begin - offset >= block.bytes) break;
      offset = std::max(offset, other.end);
    }
    const Placed now{offset, offset + block.bytes, block.first, block.last};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), now,
                                   [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
                  now);
    packing.offsets[index] = offset;
    packing.peak_bytes = std::max(packing.peak_bytes, now.end);
  }
  return packing;
}

// Free ranges of an arena that grows at the top.
class FreeList {
 public:
  // The smallest free range that holds `bytes`; else the range at the top, grown.
  int64_t take(int64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit != by_size_.end()) {
      const auto [size, begin] = *fit;
      erase(begin, size);
      if (size > bytes) insert(begin + bytes, size - bytes);
      return begin;
    }
    int64_t begin = top_;
    if (!by_begin_.empty()) {
      const auto [last_begin, last_size] = *by_begin_.rbegin();
      if (last_begin + last_size == top_) {
        begin = last_begin;
        erase(last_begin, last_size);
      }
    }
    top_ = begin + bytes;
    return begin;
  }

  void give_back(int64_t begin, int64_t bytes) {
    auto next = by_begin_.lower_bound(begin);
    if (next != by_begin_.begin()) {
      const auto [before, size] = *std::prev(next);
      if (before + size == begin) {
        erase(before, size);
        begin = before;
        bytes += size;
      }
    }
    next = by_begin_.lower_bound(begin);
    if (next != by_begin_.end() && next->first == begin + bytes) {
      const auto [after, size] = *next;
      erase(after, size);
      bytes += size;
    }
    insert(begin, bytes);
  }

  int64_t top() const { return top_; }

 private:
  void insert(int64_t begin, int64_t size) {
    by_begin_.emplace(begin, size);
    by_size_.emplace(size, begin);
  }
  void erase(int64_t begin, int64_t size) {
    by_begin_.erase(begin);
    by_size_.erase({size, begin});
  }

  std::map<int64_t, int64_t> by_begin_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t top_ = 0;
};

// Allocates and frees as a run would, step by step, with the best fit.
Packing best_fit_in_time(std::span<const PackBlock> blocks) {
  const Order births = order_by(blocks, [](const PackBlock& b) { return std::pair(b.first, -b.bytes); });
  const Order deaths = order_by(blocks, [](const PackBlock& b) { return b.last; });
  Packing packing{std::vector<int64_t>(blocks.size(), 0), 0};
  FreeList free_list;
  size_t dead = 0;
  for (const int32_t index : births) {
    const PackBlock& block = blocks[index];
    for (; blocks[deaths[dead]].last < block.first; ++dead) {
      const PackBlock& gone = blocks[deaths[dead]];
      if (gone.bytes > 0) free_list.give_back(packing.offsets[deaths[dead]], gone.bytes);
    }
    if (block.bytes > 0) packing.offsets[index] = free_list.take(block.bytes);
  }
  packing.peak_bytes = free_list.top();
  return packing;
}

// Heights of the steps: the maximum over a range, and setting a range to one height.
class Skyline {
 public:
  explicit Skyline(int32_t steps) {
    while (leaves_ < steps) leaves_ *= 2;
    nodes_.assign(2 * static_cast<size_t>(leaves_), Node{});
  }
  int64_t highest(int32_t first, int32_t last) { return highest(1, 0, leaves_ - 1, first, last); }
  void raise(int32_t first, int32_t last, int64_t height) { raise(1, 0, leaves_ - 1, first, last, height); }

 private:
  // `floor` holds for every step below the node: heights only grow, so it need not be pushed down.
  struct Node {
    int64_t highest = 0;
    int64_t floor = 0;
  };

  int64_t highest(size_t node, int32_t low, int32_t high, int32_t first, int32_t last) const {
    if (first <= low && high <= last) return nodes_[node].highest;
    const int32_t middle = low + (high - low) / 2;
    int64_t most = nodes_[node].floor;
    if (first <= middle) most = std::max(most, highest(2 * node, low, middle, first, last));
    if (last > middle) most = std::max(most, highest(2 * node + 1, middle + 1, high, first, last));
    return most;
  }
  void raise(size_t node, int32_t low, int32_t high, int32_t first, int32_t last, int64_t height) {
    nodes_[node].highest = std::max(nodes_[node].highest, height);
    if (first <= low && high <= last) {
      nodes_[node].floor = std::max(nodes_[node].floor, height);
      return;
    }
    const int32_t middle = low + (high - low) / 2;
    if (first <= middle) raise(2 * node, low, middle, first, last, height);
    if (last > middle) raise(2 * node + 1, middle + 1, high, first, last, height);
  }

  int32_t leaves_ = 1;
  std::vector<Node> nodes_;
};

// Lays the longest-lived blocks first, each on top of what is there: exact where lifetimes nest, as those of
// a forward and its backward pass do.
Packing stack_by_life(std::span<const PackBlock> blocks) {
  const Order order =
      order_by(blocks, [](const PackBlock& b) { return std::pair(b.first - b.last, -b.bytes); });
  Packing packing{std::vector<int64_t>(blocks.size(), 0), 0};
  Skyline skyline(end_of_time(blocks));
  for (const int32_t index : order) {
    const PackBlock& block = blocks[index];
    if (block.bytes == 0) continue;
    packing.offsets[index] = skyline.highest(block.first, block.last);
    const int64_t top = packing.offsets[index] + block.bytes;
    skyline.raise(block.first, block.last, top);
    packing.peak_bytes = std::max(packing.peak_bytes, top);
  }
  return packing;
}

// Packs again and again, each time giving the block that ended highest an earlier turn. Small programs are
// where a greedy order can be far from the bound, and where many rounds cost nothing.
Packing promote_highest(std::span<const PackBlock> blocks, Order order, int64_t bound) {
  constexpr int64_t kMaxRounds = 200;
  constexpr int64_t kMaxWork = 100'000'000;  // pairs of blocks looked at, about a tenth of a second
  const auto count = static_cast<int64_t>(blocks.size());
  const int64_t rounds = std::min(kMaxRounds, kMaxWork / std::max<int64_t>(1, count * count));
  Packing best = lowest_gap(blocks, order);
  Packing latest = best;
  for (int64_t round = 0; round < rounds && best.peak_bytes > bound; ++round) {
    const auto highest = std::find_if(order.begin(), order.end(), [&](int32_t index) {
      return latest.offsets[index] + blocks[index].bytes == latest.peak_bytes;
    });
    const auto turn = order.begin() + (highest - order.begin()) / 2;
    std::rotate(turn, highest, highest + 1);
    latest = lowest_gap(blocks, order);
    if (latest.peak_bytes < best.peak_bytes) best = latest;
  }
  return best;
}

std::vector<Order> greedy_orders(std::span<const PackBlock> blocks) {
  const auto life = [](const PackBlock& b) { return static_cast<int64_t>(b.last) - b.first + 1; };
  return {order_by(blocks, [](const PackBlock& b) { return -b.bytes; }),
          order_by(blocks, [&](const PackBlock& b) { return std::pair(-life(b), -b.bytes); }),
          order_by(blocks, [](const PackBlock& b) { return std::pair(b.first, -b.bytes); })};
}

}  // namespace

MostLive most_live(std::span<const PackBlock> blocks) {
  std::vector<int64_t> change(static_cast<size_t>(end_of_time(blocks)) + 1, 0);
  for (const PackBlock& block : blocks) {
    CHECK(block.first >= 0 && block.first <= block.last, "a block without a life");
    change[block.first] += block.bytes;
    change[block.last + 1] -= block.bytes;
  }
  MostLive most;
  int64_t live = 0;
  for (size_t step = 0; step < change.size(); ++step) {
    live += change[step];
    if (live > most.bytes) most = {live, static_cast<int32_t>(step)};
  }
  return most;
}

Packing pack_blocks(std::span<const PackBlock> blocks) {
  const int64_t bound = most_live(blocks).bytes;
  Packing best = best_fit_in_time(blocks);
  const auto try_next = [&](auto pack) {
    if (best.peak_bytes == bound) return;
    Packing other = pack();
    if (other.peak_bytes < best.peak_bytes) best = std::move(other);
  };
  try_next([&] { return stack_by_life(blocks); });
  if (blocks.size() > kThoroughPackBlocks) return best;
  for (const Order& order : greedy_orders(blocks)) {
    try_next([&] { return promote_highest(blocks, order, bound); });
  }
  return best;
}

Packing pack_without_reuse(std::span<const PackBlock> blocks) {
  Packing packing;
  for (const PackBlock& block : blocks) {
    packing.offsets.push_back(packing.peak_bytes);
    packing.peak_bytes += block.bytes;
  }
  return packing;
}

}  // namespace tenon
