// How much of a GPU's memory is taken, as the driver's management library sees it: the only way to know
// before there is a context, whose own size is then the difference.
#pragma once

#include <cstdint>

namespace tenon::cuda {

// Free bytes of the current device; 0 where it does not answer.
int64_t free_bytes();

class GpuMemory {
 public:
  // Of visible device `index`, now. Works before a context exists.
  static GpuMemory now(int index);
  // How much more is taken now than then. Where the management library cannot be asked: all that is taken of
  // the current device, by whomever.
  int64_t used_since(int index) const;

 private:
  int64_t used_bytes_ = -1;  // -1: not known
};

}  // namespace tenon::cuda
