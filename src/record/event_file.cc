#include "record/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <chrono>

#include "io/crc32c.h"
#include "io/folder.h"

namespace tenon {
namespace {

// Kinds of fields on the wire (protobuf.dev/programming-guides/encoding).
constexpr uint64_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

// Event
constexpr uint64_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
// Summary, Summary.Value, SessionLog
constexpr uint64_t kValue = 1, kTag = 1, kSimpleValue = 2, kStatus = 1;
constexpr uint64_t kStart = 1;

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

template <typename T>
void put_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> (8 * i));
}

void put_number(std::string& out, uint64_t field, uint64_t value) {
  put_varint(out, field << 3 | kVarint);
  put_varint(out, value);
}

void put_bytes(std::string& out, uint64_t field, std::string_view bytes) {
  put_varint(out, field << 3 | kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_double(std::string& out, uint64_t field, double value) {
  put_varint(out, field << 3 | kFixed64);
  put_little_endian(out, std::bit_cast<uint64_t>(value));
}

void put_float(std::string& out, uint64_t field, float value) {
  put_varint(out, field << 3 | kFixed32);
  put_little_endian(out, std::bit_cast<uint32_t>(value));
}

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string version_event(double wall_seconds) {
  std::string event;
  put_double(event, kWallTime, wall_seconds);
  put_bytes(event, kFileVersion, "brain.Event:2");
  return event;
}

std::string start_event(double wall_seconds, int64_t step) {
  std::string log, event;
  put_number(log, kStatus, kStart);
  put_double(event, kWallTime, wall_seconds);
  put_number(event, kStep, static_cast<uint64_t>(step));
  put_bytes(event, kSessionLog, log);
  return event;
}

std::string scalar_event(double wall_seconds, int64_t step, std::span<const Scalar> scalars) {
  std::string summary, event;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, kTag, tag);
    put_float(value, kSimpleValue, static_cast<float>(number));
    put_bytes(summary, kValue, value);
  }
  put_double(event, kWallTime, wall_seconds);
  put_number(event, kStep, static_cast<uint64_t>(step));
  put_bytes(event, kSummary, summary);
  return event;
}

std::string framed_event(std::string_view event) {
  std::string out;
  put_little_endian(out, static_cast<uint64_t>(event.size()));
  put_little_endian(out, masked_crc(out));
  out += event;
  put_little_endian(out, masked_crc(event));
  return out;
}

Result<EventFile> EventFile::create(const std::string& folder, int64_t next_step) {
  const double now = now_seconds();
  const std::string name = fmt::format("{}{:.0f}.{}", kEventFilePrefix, now, ::getpid());
  ASSIGN_OR_RETURN(AppendFile file, AppendFile::open(join_path(folder, name)));
  RETURN_IF_ERROR(file.append(framed_event(version_event(now)) + framed_event(start_event(now, next_step))));
  return EventFile(std::move(file));
}

Status EventFile::write(int64_t step, std::span<const Scalar> scalars) {
  return file_.append(framed_event(scalar_event(now_seconds(), step, scalars)));
}

}  // namespace tenon
