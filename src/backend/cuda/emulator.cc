#ifdef TENON_CUDA_EMULATED

#include "backend/cuda/emulator.h"

#include <ucontext.h>
#include <csetjmp>

#include <memory>
#include <vector>

#include "base/check.h"
#include "base/half.h"

namespace tenon::cuda::emulator {

dim3 thread_index, block_index, block_extent, grid_extent;

namespace {

constexpr size_t kStackBytes = 128 << 10;
constexpr size_t kSharedBytes = 228 << 10;
constexpr size_t kSlot = 64;
constexpr int kLanes = 32;

enum class Wait : uint8_t { none, block, warp, done };

// A context starts on its own stack once, and from then on runs one thread after the other: jumping to and
// fro asks nothing of the kernel, which swapping contexts does each time.
struct Fiber {
  ucontext_t context;
  jmp_buf place;
  bool begun = false;
  std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  dim3 index;
  Wait wait = Wait::none;
  unsigned exchanges = 0;
};

struct Warp {
  alignas(16) std::byte slots[2][kLanes * kSlot];  // by turns: a lane may be one exchange ahead of the others
};

struct Machine {
  jmp_buf scheduler;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<std::unique_ptr<Warp>> warps;
  alignas(64) std::byte shared[kSharedBytes];
  const FunctionRef<void()>* body = nullptr;
  size_t current = 0;
  size_t threads = 0;
};

Machine& machine() {
  static auto instance = std::make_unique<Machine>();
  return *instance;
}

void leave(Machine& m, Fiber& fiber) {
  if (_setjmp(fiber.place) == 0) _longjmp(m.scheduler, 1);
}

void enter() {
  Machine& m = machine();
  for (;;) {
    (*m.body)();
    Fiber& fiber = *m.fibers[m.current];
    fiber.wait = Wait::done;
    leave(m, fiber);
  }
}

void yield(Wait wait) {
  Machine& m = machine();
  Fiber& fiber = *m.fibers[m.current];
  fiber.wait = wait;
  leave(m, fiber);
}

void begin(Fiber& fiber) {
  fiber.begun = true;
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, enter, 0);
  setcontext(&fiber.context);
}

void resume(Machine& m, size_t index) {
  m.current = index;
  Fiber& fiber = *m.fibers[index];
  thread_index = fiber.index;
  if (_setjmp(m.scheduler) != 0) return;
  if (fiber.begun) _longjmp(fiber.place, 1);
  begin(fiber);
}

// Whether all of [begin, end) that still run wait for `wait`; then they go on.
bool release(Machine& m, size_t begin, size_t end, Wait wait) {
  bool any = false;
  for (size_t i = begin; i < end; ++i) {
    const Wait at = m.fibers[i]->wait;
    if (at == Wait::done) continue;
    if (at != wait) return false;
    any = true;
  }
  for (size_t i = begin; any && i < end; ++i) {
    if (m.fibers[i]->wait == wait) m.fibers[i]->wait = Wait::none;
  }
  return any;
}

void start(Machine& m) {
  for (size_t i = 0; i < m.threads; ++i) {
    Fiber& fiber = *m.fibers[i];
    const auto thread = static_cast<unsigned>(i);
    fiber.index = {thread % block_extent.x, thread / block_extent.x % block_extent.y,
                   thread / (block_extent.x * block_extent.y)};
    fiber.wait = Wait::none;
    fiber.exchanges = 0;
  }
}

void run_block(Machine& m) {
  start(m);
  for (;;) {
    bool running = false, moved = false;
    for (size_t i = 0; i < m.threads; ++i) {
      if (m.fibers[i]->wait == Wait::none) {
        resume(m, i);
        moved = true;
      }
      running = running || m.fibers[i]->wait != Wait::done;
    }
    if (!running) return;
    for (size_t i = 0; i < m.threads; i += kLanes) {
      moved = release(m, i, std::min(i + kLanes, m.threads), Wait::warp) || moved;
    }
    moved = release(m, 0, m.threads, Wait::block) || moved;
    CHECK(moved, "threads of a block wait for different things");
  }
}

}  // namespace

void launch(dim3 grid, dim3 block, size_t shared_bytes, FunctionRef<void()> body) {
  Machine& m = machine();
  CHECK(shared_bytes <= kSharedBytes, "more shared memory than a block has");
  m.threads = size_t{block.x} * block.y * block.z;
  CHECK(m.threads > 0 && m.threads <= 1024 && grid.x > 0 && grid.y > 0 && grid.z > 0);
  CHECK(grid.y <= 65535 && grid.z <= 65535);
  while (m.fibers.size() < m.threads) m.fibers.push_back(std::make_unique<Fiber>());
  while (m.warps.size() * kLanes < m.threads) m.warps.push_back(std::make_unique<Warp>());
  m.body = &body;
  block_extent = block;
  grid_extent = grid;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        block_index = {x, y, z};
        std::memset(m.shared, 0xff, std::max<size_t>(shared_bytes, 1));
        run_block(m);
      }
    }
  }
}

void* shared_memory() {
  return machine().shared;
}

void synchronise_block() {
  yield(Wait::block);
}

int lane() {
  return static_cast<int>(machine().current % kLanes);
}

const std::byte* exchange(const void* value, size_t bytes) {
  Machine& m = machine();
  CHECK(bytes <= kSlot);
  Fiber& fiber = *m.fibers[m.current];
  std::byte* table = m.warps[m.current / kLanes]->slots[fiber.exchanges++ % 2];
  if (bytes > 0) std::memcpy(table + kSlot * static_cast<size_t>(lane()), value, bytes);
  yield(Wait::warp);
  return table;
}

}  // namespace tenon::cuda::emulator

namespace tenon::cuda {
namespace {

float half_of(const std::byte* lane_words, int word, int half) {
  uint16_t bits;
  std::memcpy(&bits, lane_words + 4 * word + 2 * half, 2);
  return bf16_to_f32(bits);
}

}  // namespace

// The layouts of the PTX manual: lane = 4 * group + t. a: rows group and group + 8, columns 2t and 2t + 8; b:
// rows 2t and 2t + 8 of column group; d: rows group and group + 8, columns 2t.
void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  uint32_t words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const std::byte* table = emulator::exchange(words, sizeof(words));
  const int group = emulator::lane() / 4, t = emulator::lane() % 4;
  for (int i = 0; i < 4; ++i) {
    const int row_half = i / 2, column = 2 * t + i % 2;
    for (int k = 0; k < 16; ++k) {
      const int owner = k % 8 / 2, word = k / 8;
      const float x = half_of(table + 64 * (4 * group + owner), 2 * word + row_half, k % 2);
      const float y = half_of(table + 64 * (4 * column + owner), 4 + word, k % 2);
      d[i] += x * y;
    }
  }
}

void load_matrices(uint32_t (&out)[4], const uint16_t* row) {
  const std::byte* table = emulator::exchange(&row, sizeof(row));
  const int at = emulator::lane() / 4, t = emulator::lane() % 4;
  for (int matrix = 0; matrix < 4; ++matrix) {
    const uint16_t* from;
    std::memcpy(&from, table + 64 * (8 * matrix + at), sizeof(from));
    std::memcpy(&out[matrix], from + 2 * t, 4);
  }
}

void load_matrices_transposed(uint32_t (&out)[4], const uint16_t* row) {
  const std::byte* table = emulator::exchange(&row, sizeof(row));
  const int column = emulator::lane() / 4, t = emulator::lane() % 4;
  for (int matrix = 0; matrix < 4; ++matrix) {
    out[matrix] = 0;
    for (int i = 0; i < 2; ++i) {
      const uint16_t* from;
      std::memcpy(&from, table + 64 * (8 * matrix + 2 * t + i), sizeof(from));
      out[matrix] |= static_cast<uint32_t>(from[column]) << (16 * i);
    }
  }
}

}  // namespace tenon::cuda

#endif
