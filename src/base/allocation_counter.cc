// The replaceable allocation functions of the standard library ([new.delete]). The array and nothrow forms
// are replaced too, though the library's call the plain ones: a sanitizer brings its own of each, uncounted.
#include "base/allocation_counter.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/checked_math.h"

namespace tenon {
namespace {

constinit std::atomic<int64_t> allocations{0};

void* count_and_allocate(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (bytes == 0) bytes = 1;
  while (true) {
    void* memory = alignment <= alignof(std::max_align_t)
                       ? std::malloc(bytes)
                       : std::aligned_alloc(
                             alignment, static_cast<std::size_t>(round_up(static_cast<int64_t>(bytes),
                                                                          static_cast<int64_t>(alignment))));
    if (memory != nullptr) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

int64_t heap_allocations() {
  return allocations.load(std::memory_order_relaxed);
}

}  // namespace tenon

void* operator new(std::size_t bytes) {
  return tenon::count_and_allocate(bytes, 0);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return tenon::count_and_allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return tenon::count_and_allocate(bytes, 0);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes) {
  return tenon::count_and_allocate(bytes, 0);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return tenon::count_and_allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return operator new(bytes, nothrow);
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
