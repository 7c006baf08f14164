#include "io/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/check.h"
#include "io/describe.h"

namespace tenon {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

std::string text_of(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string digest(std::span<const std::byte> bytes) {
  return text_of(XXH3_128bits(bytes.data(), bytes.size()));
}

Result<std::string> file_digest(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("read", errno, path);
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  CHECK(state && XXH3_128bits_reset(state.get()) == XXH_OK);
  std::vector<std::byte> piece(kPieceBytes);
  for (;;) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const int error = got < 0 ? errno : 0;
      ::close(fd);
      if (error != 0) return system_error("read", error, path);
      return text_of(XXH3_128bits_digest(state.get()));
    }
    XXH3_128bits_update(state.get(), piece.data(), static_cast<size_t>(got));
  }
}

}  // namespace tenon
