// Scalars over steps in the form that TensorBoard reads. Sources: the framing is TFRecord
// (tensorflow/core/lib/io/record_writer.h: length, masked CRC-32C of the length, data, masked CRC-32C of the
// data); the data is the protocol buffer Event (tensorflow/core/util/event.proto) with a Summary of simple
// values. Only those fields are written. Every write passes io/write_points.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "io/write_file.h"

namespace tenon {

inline constexpr std::string_view kEventFilePrefix = "events.out.tfevents.";

using Scalar = std::pair<std::string_view, double>;  // tag ("loss") and value

// Events as the bytes of their protocol buffers.
std::string version_event(double wall_seconds);
// Says that a process begins at this step: readers drop what earlier files say of it and later ones.
std::string start_event(double wall_seconds, int64_t step);
std::string scalar_event(double wall_seconds, int64_t step, std::span<const Scalar> scalars);

// One event as it stands in a file.
std::string framed_event(std::string_view event);

class EventFile {
 public:
  // Begins the file "events.out.tfevents.TIME.PROCESS" in a folder that exists. A process begins one of its
  // own; `next_step` is the first step it will write.
  static Result<EventFile> create(const std::string& folder, int64_t next_step);

  Status write(int64_t step, std::span<const Scalar> scalars);

 private:
  explicit EventFile(AppendFile file) : file_(std::move(file)) {}

  AppendFile file_;
};

}  // namespace tenon
