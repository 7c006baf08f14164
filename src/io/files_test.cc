#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "io/digest.h"
#include "io/folder.h"
#include "io/mapped_file.h"
#include "io/partial_name.h"
#include "io/test_folder.h"
#include "io/write_file.h"
#include "io/write_points.h"

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using write_points::Fault;
using write_points::FaultKind;
using write_points::ScopedFault;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// More than the writer's buffer, so that a write happens before the commit.
std::string large_text(char c) {
  return std::string(700'000, c);
}

TEST(MappedFile, GivesTheBytesAndSurvivesMoves) {
  const TestFolder folder;
  folder.put("a", "some bytes");
  auto file = MappedFile::open(folder / "a", MapAdvice::will_need);
  ASSERT_TRUE(file.ok());
  const std::byte* const address = file->bytes().data();
  MappedFile moved = std::move(file).value();
  EXPECT_EQ(moved.bytes().data(), address);
  EXPECT_EQ(text_of(moved.bytes()), "some bytes");
  moved.advise(MapAdvice::sequential, 3, INT64_MAX);
  moved.advise(MapAdvice::random, -5, 100);
  EXPECT_EQ(text_of(moved.bytes()), "some bytes");
}

TEST(MappedFile, AcceptsEmptyAndNamesWhatItRefuses) {
  const TestFolder folder;
  folder.put("empty", "");
  EXPECT_TRUE(MappedFile::open(folder / "empty")->bytes().empty());

  const auto missing = MappedFile::open(folder / "missing");
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_EQ(missing.error().subject, folder / "missing");
  EXPECT_EQ(MappedFile::open(folder.path()).error().code, ErrorCode::bad_argument);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(folder / "pipe").error().code, ErrorCode::bad_argument);
}

TEST(FileWriter, ReplacesOnCommitAlone) {
  const TestFolder folder;
  folder.put("a", "old");
  {
    auto writer = FileWriter::create(folder / "a");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->append("new ").ok());
    ASSERT_TRUE(writer->append(large_text('x')).ok());
    ASSERT_TRUE(writer->append("!").ok());
    EXPECT_EQ(writer->size_bytes(), 700'005);
    EXPECT_EQ(*read_file(folder / "a"), "old");
    FileWriter moved = std::move(writer).value();
    ASSERT_TRUE(moved.commit().ok());
  }
  EXPECT_EQ(*read_file(folder / "a"), "new " + large_text('x') + "!");
  EXPECT_THAT(*list_folder(folder.path()), ElementsAre("a"));
}

TEST(FileWriter, LeavesNothingWithoutCommit) {
  const TestFolder folder;
  {
    auto writer = FileWriter::create(folder / "a");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->append("lost").ok());
    EXPECT_EQ(list_folder(folder.path())->size(), 1u);
  }
  EXPECT_TRUE(list_folder(folder.path())->empty());
}

TEST(FileWriter, NamesThePathItCannotWrite) {
  const TestFolder folder;
  const Status missing = write_file_atomic(folder / "no/such", "x");
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().text(), HasSubstr(folder / "no/such"));
  EXPECT_EQ(write_file_atomic(folder.path(), "x").error().code, ErrorCode::bad_argument);
}

TEST(ReadFile, RefusesMoreThanAllowed) {
  const TestFolder folder;
  folder.put("a", "12345");
  EXPECT_EQ(*read_file(folder / "a", 5), "12345");
  const auto refused = read_file(folder / "a", 4);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_file);
  EXPECT_THAT(refused.error().message, HasSubstr("4 bytes"));
  EXPECT_EQ(read_file("/dev/zero", 1000).error().code, ErrorCode::bad_file);
  EXPECT_EQ(read_file(folder.path()).error().code, ErrorCode::bad_argument);
}

TEST(AppendFile, KeepsWhatWasThere) {
  const TestFolder folder;
  folder.put("log", "one\n");
  auto log = AppendFile::open(folder / "log");
  ASSERT_TRUE(log.ok());
  EXPECT_TRUE(log->append("two\n").ok());
  EXPECT_TRUE(log->sync().ok());
  EXPECT_EQ(*read_file(folder / "log"), "one\ntwo\n");
}

// How many write points one replacement passes: create, two writes, sync, rename, sync of the folder.
constexpr int64_t kPoints = 6;

Status replace(const std::string& path) {
  ASSIGN_OR_RETURN(FileWriter writer, FileWriter::create(path));
  RETURN_IF_ERROR(writer.append(large_text('n')));
  RETURN_IF_ERROR(writer.append("tail"));
  return writer.commit();
}

TEST(Faults, CountEveryWritePoint) {
  const TestFolder folder;
  const ScopedFault counter;
  ASSERT_TRUE(replace(folder / "a").ok());
  EXPECT_EQ(counter.points(), kPoints);
}

TEST(Faults, ErrorAtAnyPointKeepsOldOrNewAndNamesTheFile) {
  for (const FaultKind kind : {FaultKind::no_space, FaultKind::io_error, FaultKind::read_only}) {
    for (int64_t at = 0; at < kPoints; ++at) {
      const TestFolder folder;
      folder.put("a", "old");
      Status status;
      {
        const ScopedFault fault(Fault{kind, at});
        status = replace(folder / "a");
      }
      ASSERT_FALSE(status.ok()) << at;
      EXPECT_EQ(status.error().code, ErrorCode::io);
      EXPECT_THAT(status.error().text(), HasSubstr(folder.path()));
      EXPECT_FALSE(status.error().hint.empty());
      const bool renamed = at == kPoints - 1;
      EXPECT_EQ(*read_file(folder / "a"), renamed ? large_text('n') + "tail" : "old") << at;
      if (kind != FaultKind::read_only) {
        EXPECT_THAT(*list_folder(folder.path()), ElementsAre("a")) << at;
      }
    }
  }
}

TEST(Faults, ShortWriteIsContinued) {
  const TestFolder folder;
  const ScopedFault fault(Fault{FaultKind::short_write, 0});
  ASSERT_TRUE(replace(folder / "a").ok());
  EXPECT_EQ(fault.points(), kPoints + 1);
  EXPECT_EQ(*read_file(folder / "a"), large_text('n') + "tail");
}

TEST(Faults, KillAtAnyPointKeepsOldOrNew) {
  for (int64_t at = 0; at <= kPoints; ++at) {
    const TestFolder folder;
    folder.put("a", "old");
    const pid_t child = ::fork();
    if (child == 0) {
      const ScopedFault fault(Fault{FaultKind::kill, at});
      ::_exit(replace(folder / "a").ok() ? 0 : 1);
    }
    int state = 0;
    ASSERT_EQ(::waitpid(child, &state, 0), child);
    const bool finished = at == kPoints;
    EXPECT_EQ(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL, !finished);
    const bool renamed = at >= kPoints - 1;
    EXPECT_EQ(*read_file(folder / "a"), renamed ? large_text('n') + "tail" : "old") << at;
    ASSERT_TRUE(remove_partial_files(folder.path()).ok());
    EXPECT_THAT(*list_folder(folder.path()), ElementsAre("a"));
  }
}

TEST(Faults, AreReadFromText) {
  const auto fault = write_points::parse_fault("no_space@12");
  ASSERT_TRUE(fault.ok());
  EXPECT_EQ(fault->kind, FaultKind::no_space);
  EXPECT_EQ(fault->at, 12);
  for (const char* text : {"", "kill", "kill@", "kill@x", "kill@-1", "kill@1 ", "explode@1"})
    EXPECT_EQ(write_points::parse_fault(text).error().code, ErrorCode::bad_argument) << text;
}

TEST(Folder, NamesParts) {
  EXPECT_EQ(parent_folder("a/b"), "a");
  EXPECT_EQ(parent_folder("a/b/"), "a");
  EXPECT_EQ(parent_folder("a//b"), "a");
  EXPECT_EQ(parent_folder("b"), ".");
  EXPECT_EQ(parent_folder("/b"), "/");
  EXPECT_EQ(parent_folder("/"), "/");
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
}

TEST(Folder, MakesListsRenamesRemoves) {
  const TestFolder folder;
  ASSERT_TRUE(make_folders(folder / "x/y/z").ok());
  ASSERT_TRUE(make_folders(folder / "x/y/z").ok());
  EXPECT_TRUE(is_folder(folder / "x/y/z"));
  folder.put("x/b", "1");
  folder.put("x/a", "2");
  EXPECT_EQ(make_folders(folder / "x/a").error().code, ErrorCode::bad_argument);
  EXPECT_THAT(*list_folder(folder / "x"), ElementsAre("a", "b", "y"));
  ASSERT_TRUE(rename_durable(folder / "x", folder / "x2").ok());
  EXPECT_EQ(*read_file(folder / "x2/a"), "2");
  EXPECT_TRUE(remove_file(folder / "x2/a").ok());
  EXPECT_TRUE(remove_file(folder / "x2/a").ok());
  EXPECT_EQ(list_folder(folder / "x").error().code, ErrorCode::not_found);
  EXPECT_EQ(rename_durable(folder / "x", folder / "q").error().code, ErrorCode::not_found);
}

TEST(Folder, RemovesOnlyWhatWritersLeft) {
  EXPECT_TRUE(is_partial_name("model.safetensors.123-0.partial"));
  for (const char* name :
       {"a.partial", "a.12.partial", "a.1-x.partial", ".1-2.partial", "a.1-2", "1-2.partial"})
    EXPECT_FALSE(is_partial_name(name)) << name;
  EXPECT_NE(partial_name("a"), partial_name("a"));

  const TestFolder folder;
  folder.put("mine.partial", "x");
  ASSERT_TRUE(write_file_atomic(partial_name(folder / "a"), "x").ok());
  ASSERT_TRUE(remove_partial_files(folder.path()).ok());
  EXPECT_THAT(*list_folder(folder.path()), ElementsAre("mine.partial"));
}

TEST(FolderLock, RefusesASecondProcessByName) {
  const TestFolder folder;
  auto lock = FolderLock::acquire(folder.path());
  ASSERT_TRUE(lock.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto second = FolderLock::acquire(folder.path());
    const std::string holder = "process " + std::to_string(::getppid());
    ::_exit(!second.ok() && second.error().message.ends_with(holder) ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);

  { const FolderLock moved = std::move(lock).value(); }
  EXPECT_TRUE(FolderLock::acquire(folder.path()).ok());
  EXPECT_EQ(FolderLock::acquire(folder / "missing").error().code, ErrorCode::not_found);
}

// Values from the Python package xxhash 3 (xxh3_128_hexdigest).
TEST(Digest, EqualsXxhsum) {
  EXPECT_EQ(digest({}), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(digest(std::as_bytes(std::span(std::string_view("tenon")))), "9886abf3370a77038baeca8257c6445d");
  std::string text(3'000'000, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i % 251);
  const TestFolder folder;
  folder.put("a", text);
  EXPECT_EQ(*file_digest(folder / "a"), "766f642e64b63d92cc1a5bed6141edab");
  EXPECT_EQ(file_digest(folder / "b").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace tenon
