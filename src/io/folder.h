// Folders: making, listing, renaming durably, and a lock that keeps a second process out of a run folder.
// Paths are UTF-8 strings as the system gives them. Errors carry the path as subject.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tenon {

bool is_file(const std::string& path);    // a regular file, following links
bool is_folder(const std::string& path);  // following links

// "a/b" -> "a"; "b" -> "."; "/b" -> "/".
std::string parent_folder(std::string_view path);
std::string join_path(std::string_view folder, std::string_view name);

// Makes the folder and its parents where missing, and syncs the folder it was put in.
Status make_folders(const std::string& path);

// Names in the folder but "." and "..", sorted by bytes.
Result<std::vector<std::string>> list_folder(const std::string& path);

// Renames a file or folder and syncs both parents. A file at `to` is replaced; a folder at `to` must be
// empty.
Status rename_durable(const std::string& from, const std::string& to);

// Removes the file if it is there.
Status remove_file(const std::string& path);

// Removes a folder that holds nothing.
Status remove_empty_folder(const std::string& path);

// Removes the folder, if it is there, with all that is in it.
Status remove_folder(const std::string& path);

// Removes temporary files that killed writers (io/write_file.h) left in the folder. Call with the lock held.
Status remove_partial_files(const std::string& folder);

Status sync_folder(const std::string& path);

// An exclusive lock on a folder (flock on ".tenon.lock" inside it), held until destroyed or the process dies.
class FolderLock {
 public:
  // Error: bad_argument when another process holds it, naming that process.
  static Result<FolderLock> acquire(const std::string& folder);

  // Gives the lock up and removes its file, of a folder that is about to go.
  static Status remove(FolderLock lock, const std::string& folder);
  // Whether some process holds the lock of the folder; false where that cannot be seen.
  static bool is_held(const std::string& folder);

  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

 private:
  FolderLock() = default;

  int fd_ = -1;
};

}  // namespace tenon
