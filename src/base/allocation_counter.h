// Counts heap allocations, so that "a run allocates nothing" is measured and not believed. Linking a caller
// of heap_allocations() replaces the global operator new and delete with counting ones over malloc; memory
// taken by malloc itself (C libraries) is not seen.
#pragma once

#include <cstdint>

namespace tenon {

// Calls of operator new so far, by all threads of the process. Callers compare two readings; threads that
// have other work between the readings are counted too.
int64_t heap_allocations();

}  // namespace tenon
