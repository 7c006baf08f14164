#include "record/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "record/compare_records.h"
#include "record/record_writer.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

RecordHeader header() {
  return {.kind = "train",
          .build = "0.1.0 abc",
          .device = "a \"quoted\" processor",
          .features = {"avx2", "fma"},
          .threads = 2,
          .digests = {{"base", "sha256:1"}, {"data", "sha256:2"}},
          .seed = std::numeric_limits<uint64_t>::max(),
          .recipe = "model: m\nsteps: 3\n",
          .plan_hash = "00ff00ff00ff00ff",
          .attention = "attention_flash, attention_grad_flash",
          .planned_bytes = int64_t{1} << 40,
          .mapped_bytes = 11,
          .started_unix_seconds = 1'790'000'000};
}

RecordStep step(int64_t number, double loss) {
  return {.step = number,
          .loss = loss,
          .trained_tokens = 100 + number,
          .learning_rate = 1e-4,
          .gradient_norm = 1.5,
          .clipped_gradient_norm = 1.0,
          .tokens_per_second = 321.5,
          .seconds = {{"forward_backward", 0.25}, {"optimiser", 1e-3}}};
}

std::string lines(std::initializer_list<std::string> list) {
  std::string text;
  for (const std::string& line : list) text += line + "\n";
  return text;
}

class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "record-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

TEST(RunRecord, EventsReadBackAsWritten) {
  const RecordEval eval{.step = 2, .loss = 0.1, .tokens = 7, .metrics = {{"accuracy", 1.0 / 3}}};
  const RecordEnd end{.status = "failed",
                      .allocated_bytes = 4,
                      .observed_peak_bytes = 5,
                      .allocations_in_steps = 0,
                      .error = "a\nb"};
  const auto record = parse_record(lines({record_line(header()), record_line(step(1, 2.5)), record_line(eval),
                                          "{\"event\":\"of a later build\"}", record_line(end)}),
                                   "r");
  ASSERT_TRUE(record.ok()) << record.error().text();
  EXPECT_EQ(record->header, header());
  EXPECT_EQ(record->steps, std::vector<RecordStep>{step(1, 2.5)});
  EXPECT_EQ(record->evals, std::vector<RecordEval>{eval});
  EXPECT_EQ(record->end, end);
  EXPECT_FALSE(record->cut_last_line);
}

TEST(RunRecord, AResumptionTakesBackWhatCameAfterAndMayChangeTheRecipe) {
  RecordStep skipped = step(2, 3);
  skipped.skipped = true;
  skipped.resident_bytes = 4096;
  const RecordNote early{.step = 1, .kind = "scale", .message = "m", .action = "warn"};
  const RecordNote late{.step = 3, .kind = "loss_spike", .message = "m", .action = "rollback"};
  const RecordResume back{.step = 2, .checkpoint = "c", .reason = "rollback"};
  const RecordResume on{.step = 2,
                        .checkpoint = "c",
                        .reason = "resumed",
                        .build = "b",
                        .device = "d",
                        .recipe = "steps: 9\n",
                        .started_unix_seconds = 5};
  const auto record = parse_record(
      lines({record_line(header()), record_line(step(1, 2.5)), record_line(early), record_line(skipped),
             record_line(step(3, 1)), record_line(late), record_line(back), record_line(on)}),
      "r");
  ASSERT_TRUE(record.ok()) << record.error().text();
  EXPECT_EQ(record->steps, (std::vector<RecordStep>{step(1, 2.5), skipped}));
  EXPECT_EQ(record->notes, (std::vector<RecordNote>{early}));
  EXPECT_EQ(record->resumes, (std::vector<RecordResume>{back, on}));
  EXPECT_EQ(record->recipe(), "steps: 9\n");
}

TEST(RunRecord, LossesKeepTheirBits) {
  std::mt19937_64 random(1);
  std::vector<double> losses{
      0.0, -0.0, 1e300, 5e-324, 0.1, 1.0 / 3, INFINITY, -INFINITY, double{3.14159274f}};
  while (losses.size() < 20'000) {
    const double value = std::bit_cast<double>(random());
    if (!std::isnan(value)) losses.push_back(value);
  }
  std::string text = lines({record_line(header())});
  for (double loss : losses) text += record_line(step(1, loss)) + "\n";
  text += record_line(step(1, NAN)) + "\n";
  const auto record = parse_record(text, "r");
  ASSERT_TRUE(record.ok());
  for (size_t i = 0; i < losses.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint64_t>(record->steps[i].loss), std::bit_cast<uint64_t>(losses[i]))
        << losses[i];
  }
  EXPECT_TRUE(std::isnan(record->steps.back().loss));
}

TEST(RunRecord, ACutAnywhereLosesOneLine) {
  const std::string head = lines({record_line(header())});
  const std::string text = head + lines({record_line(step(1, 2.5)), record_line(step(2, 2.25))});
  const size_t second = text.rfind('\n', text.size() - 2) + 1;
  for (size_t length = 0; length <= text.size(); ++length) {
    const auto record = parse_record(std::string_view(text).substr(0, length), "r");
    ASSERT_EQ(record.ok(), length >= head.size()) << length;
    if (!record.ok()) continue;
    const size_t whole = length == text.size() ? 2 : length >= second ? 1 : 0;
    ASSERT_EQ(record->steps.size(), whole) << length;
    EXPECT_EQ(record->cut_last_line, text[length - 1] != '\n');
    EXPECT_FALSE(record->end.has_value());
  }
}

TEST(RunRecord, RefusesWhatIsNotARecord) {
  const std::string head = record_line(header());
  for (const std::string& text :
       {std::string(), std::string("\n"), lines({"[]"}), lines({"{}"}), lines({record_line(step(1, 1))}),
        lines({head, head}), lines({head, "{\"event\":\"step\"}"}), lines({head, "{\"event\":3}"}),
        lines({head, "{\"event\":\"step\",\"step\":\"x\"}"}), lines({head, "not json"})}) {
    const auto record = parse_record(text, "r");
    ASSERT_FALSE(record.ok()) << text;
    EXPECT_EQ(record.error().code, ErrorCode::bad_file);
  }
  EXPECT_THAT(parse_record(lines({head, "not json"}), "r").error().text(), HasSubstr("r:2: not an event"));
  EXPECT_EQ(read_record("/nowhere/run.jsonl").error().code, ErrorCode::not_found);
}

TEST(RunRecord, BadTextIsReplacedAndStillRead) {
  RecordHeader bad = header();
  bad.recipe = "\xff\xfe";
  const auto record = parse_record(lines({record_line(bad)}), "r");
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->header.recipe, "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(RecordWriter, WritesReopensAndRemovesACutLine) {
  const Folder folder;
  const std::string path = folder.file("run.jsonl");
  {
    auto writer = RecordWriter::create(path, RecordSync::always);
    ASSERT_TRUE(writer.ok()) << writer.error().text();
    ASSERT_TRUE(writer->write(header()).ok());
    for (int64_t i = 1; i <= 4; ++i) ASSERT_TRUE(writer->write(step(i, 1.0 / static_cast<double>(i))).ok());
    ASSERT_TRUE(writer->write(RecordEval{.step = 4, .loss = 1, .tokens = 1, .metrics = {}}).ok());
    ASSERT_TRUE(writer->close().ok());
  }
  EXPECT_EQ(RecordWriter::create(path, RecordSync::always).error().code, ErrorCode::io);
  std::ofstream(path, std::ios::app) << std::string(10'000, 'x');  // more than a block, without a newline
  EXPECT_TRUE(read_record(path)->cut_last_line);
  {
    auto writer = RecordWriter::reopen(path, RecordSync::ends_only);
    ASSERT_TRUE(writer.ok()) << writer.error().text();
    ASSERT_TRUE(writer->write(RecordResume{2, "step-2"}).ok());
    ASSERT_TRUE(writer->write(step(3, 9)).ok());
    ASSERT_TRUE(writer->write(RecordEnd{.status = "finished", .error = ""}).ok());
  }
  const auto record = read_record(path);
  ASSERT_TRUE(record.ok()) << record.error().text();
  EXPECT_FALSE(record->cut_last_line);
  EXPECT_EQ(record->steps, (std::vector<RecordStep>{step(1, 1), step(2, 0.5), step(3, 9)}));
  EXPECT_TRUE(record->evals.empty());
  EXPECT_EQ(record->resumes, (std::vector<RecordResume>{{2, "step-2"}}));
  EXPECT_EQ(record->end->status, "finished");
}

// A file size limit stands in for a full disk.
TEST(RecordWriter, SaysWhenTheDiskIsFull) {
  const Folder folder;
  const std::string path = folder.file("run.jsonl");
  auto writer = RecordWriter::create(path, RecordSync::ends_only);
  ASSERT_TRUE(writer->write(header()).ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{std::filesystem::file_size(path) + 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = writer->write(step(1, 1));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::io);
  EXPECT_TRUE(read_record(path)->cut_last_line);
}

RunRecord record_of(RecordHeader head, std::vector<RecordStep> steps) {
  RunRecord record;
  record.header = std::move(head);
  record.steps = std::move(steps);
  record.end = RecordEnd{.status = "finished", .error = ""};
  return record;
}

TEST(CompareRecords, TheSameRunTwice) {
  RecordHeader later = header();
  later.started_unix_seconds += 60;
  RecordStep slower = step(1, NAN);
  slower.tokens_per_second = 1;
  slower.seconds[0].second = 9;
  const auto comparison = compare_records(record_of(header(), {step(1, NAN)}), record_of(later, {slower}));
  EXPECT_TRUE(comparison.settings.empty());
  EXPECT_TRUE(comparison.same_results());
  EXPECT_THAT(comparison_text(comparison), HasSubstr("bit for bit"));
}

TEST(CompareRecords, NamesWhatDiffers) {
  RecordHeader other = header();
  other.digests.erase("data");
  other.recipe = "model: m\nsteps: 4\nextra: 1\n";
  const double loss = 0.3;
  RunRecord left = record_of(header(), {step(1, loss), step(2, loss), step(3, loss), step(4, loss)});
  RunRecord right = record_of(
      other, {step(1, loss), step(2, loss), step(3, std::nextafter(loss, 1)), step(4, 0.5), step(5, 1)});
  right.steps[1].gradient_norm = 2;
  left.evals.push_back({.step = 3, .loss = 1, .tokens = 5, .metrics = {}});
  right.evals.push_back({.step = 3, .loss = 2, .tokens = 5, .metrics = {}});
  right.end.reset();
  const auto comparison = compare_records(left, right);
  const std::vector<RecordDifference> settings{
      {"digests.data", "sha256:2", "none"}, {"steps", "3", "4"}, {"extra", "none", "1"}};
  EXPECT_EQ(comparison.settings, settings);
  const std::vector<RecordDifference> results{
      {"steps taken", "4", "5"},
      {"evaluation 1", "1 over 5 tokens after step 3", "2 over 5 tokens after step 3"},
      {"end", "finished", "killed"}};
  EXPECT_EQ(comparison.results, results);
  EXPECT_EQ(comparison.first_loss_step, 3);
  EXPECT_EQ(comparison.first_other_step, 2);
  EXPECT_FALSE(comparison.same_results());
}

}  // namespace
}  // namespace tenon
