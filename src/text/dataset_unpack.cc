#include "text/dataset_unpack.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace tenon {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

// A temporary file that loses its name when this goes out of scope.
class ScratchFile {
 public:
  static Result<std::unique_ptr<ScratchFile>> create() {
    const char* folder = std::getenv("TMPDIR");
    std::string path = std::string(folder && *folder ? folder : "/tmp") + "/tenon-rows-XXXXXX";
    const int fd = ::mkstemp(path.data());
    if (fd < 0) return io_error(std::strerror(errno), path, "Set TMPDIR to a folder that can be written.");
    return std::unique_ptr<ScratchFile>(new ScratchFile(std::move(path), fd));
  }
  ~ScratchFile() {
    ::close(fd_);
    ::unlink(path_.c_str());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  Status write(const char* data, size_t size) {
    while (size > 0) {
      const ssize_t written = ::write(fd_, data, size);
      if (written < 0) {
        if (errno == EINTR) continue;
        return io_error(std::string("cannot unpack here: ") + std::strerror(errno), path_,
                        "Set TMPDIR to a folder with room for the unpacked rows.");
      }
      data += written;
      size -= static_cast<size_t>(written);
    }
    return {};
  }
  const std::string& path() const { return path_; }

 private:
  ScratchFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

Error damaged(const std::string& name, std::string_view reason) {
  return bad_file("the packed data is damaged: " + std::string(reason), name);
}

Status unpack_gzip(std::span<const std::byte> packed, ScratchFile& out, const std::string& name) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return io_error("zlib does not start", name);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&stream, &inflateEnd);
  std::vector<char> buffer(kChunkBytes);
  size_t taken = 0;
  int state = Z_OK;
  while (taken < packed.size()) {
    if (state == Z_STREAM_END) inflateReset(&stream);  // members may follow each other (RFC 1952, 2.2)
    const size_t give = std::min(kChunkBytes, packed.size() - taken);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + taken));
    stream.avail_in = static_cast<uInt>(give);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      state = inflate(&stream, Z_NO_FLUSH);
      if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) {
        return damaged(name, stream.msg ? stream.msg : "not gzip");
      }
      RETURN_IF_ERROR(out.write(buffer.data(), buffer.size() - stream.avail_out));
    } while (state == Z_OK && stream.avail_out == 0);
    taken += give - stream.avail_in;
  }
  if (state != Z_STREAM_END) return damaged(name, "it ends early");
  return {};
}

Status unpack_zstd(std::span<const std::byte> packed, ScratchFile& out, const std::string& name) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  std::vector<char> buffer(kChunkBytes);
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  size_t left = 1;
  bool full = false;
  while (in.pos < in.size || (full && left != 0)) {
    ZSTD_outBuffer to{buffer.data(), buffer.size(), 0};
    left = ZSTD_decompressStream(context.get(), &to, &in);
    if (ZSTD_isError(left)) return damaged(name, ZSTD_getErrorName(left));
    RETURN_IF_ERROR(out.write(buffer.data(), to.pos));
    full = to.pos == to.size;
  }
  if (left != 0) return damaged(name, "it ends early");
  return {};
}

}  // namespace

std::optional<Compression> compression_of(std::span<const std::byte> bytes) {
  const auto begins_with = [&](std::string_view magic) {
    return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
  };
  if (begins_with("\x1f\x8b")) return Compression::gzip;
  if (begins_with("\x28\xb5\x2f\xfd")) return Compression::zstd;
  return std::nullopt;
}

Result<MappedFile> unpack_to_disk(std::span<const std::byte> packed, Compression compression,
                                  const std::string& name) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ScratchFile> out, ScratchFile::create());
  RETURN_IF_ERROR(compression == Compression::gzip ? unpack_gzip(packed, *out, name)
                                                   : unpack_zstd(packed, *out, name));
  return MappedFile::open(out->path(), MapAdvice::sequential);
}

}  // namespace tenon
