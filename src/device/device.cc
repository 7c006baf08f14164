#include "device/device.h"

namespace tenon {

Status Device::load(std::byte*, DType, std::span<const StoredPart>) {
  return unsupported("it loads no stored tensors by itself", facts().name);
}

Result<Loaded> Device::finish_loading() {
  return Loaded{};
}

}  // namespace tenon
