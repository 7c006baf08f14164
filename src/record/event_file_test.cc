#include "record/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/crc32c.h"
#include "io/test_folder.h"

namespace tenon {
namespace {

uint32_t crc_of(std::string_view text) {
  return crc32c(std::as_bytes(std::span(text)));
}

// The check value of the CRC catalogue (reveng), and vectors of RFC 3720, B.4.
TEST(Crc32c, HasTheKnownValues) {
  EXPECT_EQ(crc_of("123456789"), 0xe3069283u);
  EXPECT_EQ(crc_of(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc_of(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc_of(""), 0u);
}

// Written out by hand from event.proto: field numbers and kinds of the wire format.
TEST(EventFile, EventsAreTheProtocolBuffers) {
  EXPECT_EQ(version_event(1.0), std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9) + "\x1a\x0d" + "brain.Event:2");
  const Scalar scalars[] = {{"loss", 2.5}};
  EXPECT_EQ(scalar_event(1.0, 300, scalars), std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9) +  // wall_time
                                                 "\x10\xac\x02" +                          // step 300
                                                 "\x2a\x0d" + "\x0a\x0b" +                 // summary, value
                                                 "\x0a\x04loss" + std::string("\x15\0\0\x20\x40", 5));
  EXPECT_EQ(start_event(1.0, 7),
            std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9) + "\x10\x07" + "\x3a\x02\x08\x01");
}

// The masked CRC of eight bytes of length 1 and of "a", computed with an independent bitwise CRC-32C.
TEST(EventFile, FramesCarryLengthAndMaskedSums) {
  const std::string frame = framed_event("a");
  ASSERT_EQ(frame.size(), 8u + 4 + 1 + 4);
  EXPECT_EQ(frame.substr(0, 8), std::string("\x01\0\0\0\0\0\0\0", 8));
  const auto bitwise = [](std::string_view text) {
    uint32_t crc = ~0u;
    for (const char c : text) {
      crc ^= static_cast<unsigned char>(c);
      for (int i = 0; i < 8; ++i) crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
    }
    crc = ~crc;
    crc = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
    return std::string{static_cast<char>(crc), static_cast<char>(crc >> 8), static_cast<char>(crc >> 16),
                       static_cast<char>(crc >> 24)};
  };
  EXPECT_EQ(frame.substr(8, 4), bitwise(frame.substr(0, 8)));
  EXPECT_EQ(frame.substr(13), bitwise("a"));
}

TEST(EventFile, AppendsToAFileOfItsOwn) {
  const TestFolder folder;
  {
    auto file = EventFile::create(folder.path(), 1);
    ASSERT_TRUE(file.ok()) << file.error().text();
    const Scalar scalars[] = {{"loss", 1.0}, {"learning_rate", 1e-4}};
    ASSERT_TRUE(file->write(1, scalars).ok());
  }
  const auto names = list_folder(folder.path());
  ASSERT_EQ(names->size(), 1u);
  EXPECT_TRUE(names->front().starts_with("events.out.tfevents."));
  std::string bytes = *read_file(folder / names->front());
  int events = 0;
  for (; !bytes.empty(); ++events) {
    ASSERT_GT(bytes.size(), 16u);
    const size_t length = static_cast<unsigned char>(bytes[0]);
    const std::string event = bytes.substr(12, length);
    EXPECT_EQ(framed_event(event), bytes.substr(0, length + 16));
    bytes.erase(0, length + 16);
  }
  EXPECT_EQ(events, 3);
}

}  // namespace
}  // namespace tenon
