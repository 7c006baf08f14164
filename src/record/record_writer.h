// Appends events to a run record file. Owns the file descriptor; one thread; one writer a file. Every write
// passes io/write_points.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "record/run_record.h"

namespace tenon {

// Whether an event is on the disk before write() returns: always costs a disk write a step, else a machine
// that loses power loses the last steps. The header, a resumption and the end are always synced. A killed
// process loses nothing either way.
enum class RecordSync { always, ends_only };

class RecordWriter {
 public:
  // Starts a record; refuses a path where something is.
  static Result<RecordWriter> create(const std::string& path, RecordSync sync);
  // Goes on with a record; a last line that was cut is removed first.
  static Result<RecordWriter> reopen(const std::string& path, RecordSync sync);

  RecordWriter(RecordWriter&& other) noexcept;
  RecordWriter& operator=(RecordWriter&& other) noexcept;
  ~RecordWriter();

  // After an error the file may end in part of a line, which readers leave out; the next event removes it.
  Status write(const RecordHeader& event);
  Status write(const RecordStep& event);
  Status write(const RecordEval& event);
  Status write(const RecordNote& event);
  Status write(const RecordResume& event);
  Status write(const RecordEnd& event);

  // Makes every event so far survive a power cut.
  Status sync();
  int64_t size_bytes() const { return size_bytes_; }  // of the file, whole lines only

  Status close();

 private:
  RecordWriter(int file, std::string path, RecordSync sync);
  Status append(std::string line, bool sync);

  int file_ = -1;
  std::string path_;
  RecordSync sync_ = RecordSync::always;
  int64_t size_bytes_ = 0;
  bool cut_ = false;  // the file ends in part of a line
};

}  // namespace tenon
