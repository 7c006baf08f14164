#include "io/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <utility>

#include "io/describe.h"
#include "io/partial_name.h"
#include "io/write_points.h"

namespace tenon {
namespace {

constexpr std::string_view kLockName = ".tenon.lock";
constexpr size_t kLockBytes = 16;  // always this many, so that a new holder overwrites the old one's text

mode_t mode_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode : 0;
}

std::string lock_holder(int fd) {
  char text[kLockBytes + 1] = {};
  if (::pread(fd, text, kLockBytes, 0) <= 0) return "another process";
  const std::string_view digits = std::string_view(text).substr(0, std::string_view(text).find(' '));
  return digits.empty() ? "another process" : fmt::format("process {}", printable(digits));
}

}  // namespace

bool is_file(const std::string& path) {
  return S_ISREG(mode_of(path));
}

bool is_folder(const std::string& path) {
  return S_ISDIR(mode_of(path));
}

std::string parent_folder(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  while (path.size() > 1 && (path.size() > slash || path.ends_with('/'))) path.remove_suffix(1);
  return std::string(path);
}

std::string join_path(std::string_view folder, std::string_view name) {
  if (folder.empty()) return std::string(name);
  return fmt::format("{}{}{}", folder, folder.ends_with('/') ? "" : "/", name);
}

Status make_folders(const std::string& path) {
  if (is_folder(path)) return {};
  const std::string parent = parent_folder(path);
  if (parent != path) RETURN_IF_ERROR(make_folders(parent));
  if (write_points::make_folder(path.c_str()) != 0) {
    const int error = errno;
    if (error == EEXIST && is_folder(path)) return {};
    return system_error("make the folder", error == EEXIST ? ENOTDIR : error, path);
  }
  return sync_folder(parent);
}

Result<std::vector<std::string>> list_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder) return system_error("list the folder", errno, path);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (!entry) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return system_error("list the folder", errno, path);
  std::ranges::sort(names);
  return names;
}

Status rename_durable(const std::string& from, const std::string& to) {
  if (write_points::rename(from.c_str(), to.c_str()) != 0)
    return system_error(fmt::format("rename to {}", printable(to)), errno, from);
  const std::string source = parent_folder(from);
  const std::string target = parent_folder(to);
  if (source != target) RETURN_IF_ERROR(sync_folder(source));
  return sync_folder(target);
}

Status remove_file(const std::string& path) {
  if (write_points::remove(path.c_str()) != 0 && errno != ENOENT) return system_error("remove", errno, path);
  return {};
}

Status remove_empty_folder(const std::string& path) {
  if (write_points::remove(path.c_str()) != 0) return system_error("remove the folder", errno, path);
  return {};
}

Status remove_folder(const std::string& path) {
  if (!is_folder(path)) return {};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, list_folder(path));
  for (const std::string& name : names) {
    const std::string inside = join_path(path, name);
    RETURN_IF_ERROR(is_folder(inside) ? remove_folder(inside) : remove_file(inside));
  }
  return remove_empty_folder(path);
}

Status remove_partial_files(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, list_folder(folder));
  for (const std::string& name : names) {
    if (is_partial_name(name)) RETURN_IF_ERROR(remove_file(join_path(folder, name)));
  }
  return {};
}

Status sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error("open the folder", errno, path);
  const int result = write_points::sync(fd);
  const int error = errno;
  ::close(fd);
  // Some file systems cannot sync a folder and say EINVAL; their renames are as durable as they get.
  if (result != 0 && error != EINVAL) return system_error("sync the folder", error, path);
  return {};
}

Result<FolderLock> FolderLock::acquire(const std::string& folder) {
  const std::string path = join_path(folder, kLockName);
  FolderLock lock;
  lock.fd_ = write_points::create(path.c_str(), O_RDWR);
  if (lock.fd_ < 0) return system_error("lock the folder", errno, folder);
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_error("lock the folder", errno, folder);
    return bad_argument(fmt::format("the folder is in use by {}", lock_holder(lock.fd_)), folder,
                        "Wait until it ends or stop it, or choose another folder.");
  }
  const std::string text = fmt::format("{:<{}}\n", ::getpid(), kLockBytes - 1);
  for (std::string_view rest = text; !rest.empty();) {
    const int64_t written = write_points::write(lock.fd_, std::as_bytes(std::span(rest)));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error("write the lock file", written < 0 ? errno : EIO, path);
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return lock;
}

Status FolderLock::remove(FolderLock lock, const std::string& folder) {
  CHECK(lock.fd_ >= 0, folder);
  return remove_file(join_path(folder, kLockName));
}

bool FolderLock::is_held(const std::string& folder) {
  const int fd = ::open(join_path(folder, kLockName).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool held = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return held;
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace tenon
