// A merge that fails at any point of writing leaves neither the folder nor a part of it.
#include "run/merge.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "backend/cpu/cpu_device.h"
#include "io/safetensors.h"
#include "io/write_file.h"
#include "io/write_points.h"
#include "tests/scratch_folder.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGolden = TENON_SOURCE_DIR "/tests/golden/smollm2";

MergeRequest request_into(const std::string& out) {
  MergeRequest request;
  request.model = kGolden;
  request.adapter = std::string(kGolden) + "/adapter";
  request.out = out;
  request.check = false;
  return request;
}

TEST(Merge, LeavesNothingWhereTheDiskIsFull) {
  const std::string out = scratch_folder() + "/merge_test";
  fs::remove_all(out);
  const auto device = make_cpu_device(1);
  int64_t points = 0;
  {
    const write_points::ScopedFault count;
    const auto merged = merge_adapter(request_into(out), *device);
    ASSERT_TRUE(merged.ok()) << merged.error().text();
    points = count.points();
    fs::remove_all(out);
  }
  ASSERT_GT(points, 10);
  for (int64_t at = 0; at < points; at += 3) {
    const write_points::ScopedFault fault({write_points::FaultKind::no_space, at});
    const auto merged = merge_adapter(request_into(out), *device);
    if (merged.ok()) {  // what is left to do needs no space
      fs::remove_all(out);
      continue;
    }
    EXPECT_EQ(merged.error().code, ErrorCode::io);
    if (at < points - 1) {  // the last syncs what has its name already
      EXPECT_FALSE(fs::exists(out));
    }
    fs::remove_all(out);
    EXPECT_FALSE(fs::exists(out + ".partial"));
  }
}

// The process dies at a write: the model is there whole or not at all, and merging again makes it.
TEST(Merge, AKillLeavesNoPartOfAModel) {
  const std::string out = scratch_folder() + "/merge_kill_test";
  const auto device = make_cpu_device(1);
  fs::remove_all(out);
  ASSERT_TRUE(merge_adapter(request_into(out), *device).ok());
  const std::string weights = out + "/model.safetensors";
  const std::string expected = *read_file(weights);
  fs::remove_all(out);
  bool killed = true;
  for (int64_t point = 0; killed; point += 5) {
    const pid_t child = ::fork();
    if (child == 0) {
      const write_points::ScopedFault fault({write_points::FaultKind::kill, point});
      ::_exit(merge_adapter(request_into(out), *device).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed = WIFSIGNALED(status);
    ASSERT_TRUE(killed ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0) << point;
    if (!fs::exists(out)) {
      const auto again = merge_adapter(request_into(out), *device);
      ASSERT_TRUE(again.ok()) << point << ": " << again.error().text();
    }
    EXPECT_EQ(*read_file(weights), expected) << point;
    fs::remove_all(out);
  }
}

// The golden's adapter with a hundred-thousandth of its B.
void write_faint_adapter(const std::string& folder) {
  fs::remove_all(folder);
  fs::copy(std::string(kGolden) + "/adapter", folder);
  const std::string path = folder + "/adapter_model.safetensors";
  std::string bytes = *read_file(path);
  const auto header = parse_safetensors(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(header.ok());
  for (const TensorEntry& tensor : header->tensors) {
    ASSERT_EQ(tensor.dtype, DType::f32);
    if (tensor.name.find("lora_B") == std::string::npos) continue;
    for (int64_t at = tensor.offset_bytes; at < tensor.offset_bytes + tensor.size_bytes; at += 4) {
      float value;
      std::memcpy(&value, bytes.data() + at, 4);
      value *= 1e-5f;
      std::memcpy(bytes.data() + at, &value, 4);
    }
  }
  ASSERT_TRUE(write_file_atomic(path, bytes).ok());
}

// T39: what is smaller than the rounding of the merged weights is gone, and that is refused.
TEST(Merge, AnAdapterThatRoundingSwallowsIsRefused) {
  const std::string adapter = scratch_folder() + "/faint_adapter";
  write_faint_adapter(adapter);
  MergeRequest request = request_into(scratch_folder() + "/merge_faint");
  fs::remove_all(request.out);
  request.adapter = adapter;
  request.check = true;
  request.dtype = "bf16";
  const auto device = make_cpu_device(1);
  const auto swallowed = merge_adapter(request, *device);
  ASSERT_FALSE(swallowed.ok());
  EXPECT_EQ(swallowed.error().code, ErrorCode::bad_argument);
  EXPECT_NE(swallowed.error().hint.find("f32"), std::string::npos) << swallowed.error().text();
  EXPECT_FALSE(fs::exists(request.out));
  request.dtype = "f32";
  const auto kept = merge_adapter(request, *device);
  ASSERT_TRUE(kept.ok()) << kept.error().text();
  EXPECT_LT(kept->merged_distance, kept->base_distance / 2);
  fs::remove_all(request.out);
  fs::remove_all(adapter);
}

}  // namespace
}  // namespace tenon
