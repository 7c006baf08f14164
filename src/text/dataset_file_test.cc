#include "text/dataset_file.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tenon {
namespace {

std::vector<std::string> rows_of(const Result<DatasetFile>& file) {
  std::vector<std::string> rows;
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().text());
  if (!file.ok()) return rows;
  for (int64_t i = 0; i < file->rows(); ++i) rows.emplace_back(file->row(i));
  return rows;
}

using Rows = std::vector<std::string>;

TEST(DatasetFile, LinesWithBlanksAndCarriageReturns) {
  const auto file =
      DatasetFile::from_bytes("\xef\xbb\xbf\n {\"a\":1}\r\n\r\n  \n{\"b\":2}  \n{\"c\":3}", "rows.jsonl");
  EXPECT_EQ(rows_of(file), (Rows{"{\"a\":1}", "{\"b\":2}", "{\"c\":3}"}));
  EXPECT_EQ(file->where(0), "rows.jsonl:2");
  EXPECT_EQ(file->where(1), "rows.jsonl:5");
  EXPECT_EQ(file->where(2), "rows.jsonl:6");
}

TEST(DatasetFile, ListOfObjects) {
  const auto file = DatasetFile::from_bytes(
      "\n[ {\"a\": [1, {\"x\": \"],}\"}]} ,\n  {\"b\": \"\\\\\\\"[\"},{\"c\":\"\\\\\"}\n]\n", "rows.json");
  EXPECT_EQ(rows_of(file),
            (Rows{"{\"a\": [1, {\"x\": \"],}\"}]}", "{\"b\": \"\\\\\\\"[\"}", "{\"c\":\"\\\\\"}"}));
  EXPECT_EQ(file->where(0), "rows.json:2");
  EXPECT_EQ(file->where(1), "rows.json:3");
  EXPECT_EQ(file->kind(), FileKind::json_array);
}

TEST(DatasetFile, BrokenListsAreRefused) {
  const auto message = [](std::string bytes) {
    const auto file = DatasetFile::from_bytes(std::move(bytes), "rows.json");
    return file.ok() ? std::string() : file.error().message;
  };
  EXPECT_EQ(message("[{\"a\":1},{\"b\":"), "the list of rows is not closed");
  EXPECT_EQ(message("[{\"a\":\"1},{\"b\":1}]"), "the list of rows is not closed");
  EXPECT_EQ(message("["), "the list of rows is not closed");
  EXPECT_EQ(message("[{\"a\":1},"), "the list of rows is not closed");
  EXPECT_EQ(message("[{\"a\":1},]"), "the last row of the list is empty");
  EXPECT_EQ(message("[{\"a\":1}] {"), "there is more after the end of the list of rows");
  EXPECT_EQ(message("[]"), "the file holds no row");
  EXPECT_EQ(message(" \n"), "the file holds no row");
  EXPECT_EQ(message(""), "the file holds no row");
  EXPECT_EQ(message("PAR1"), "this is not a kind of data file that Tenon reads");
}

TEST(DatasetFile, CsvRecords) {
  const auto file = DatasetFile::from_bytes(
      "prompt,completion\r\n\"a, b\",\"say \"\"x\"\"\nand y\"\r\n\nc,\n,d", "rows.csv");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->columns(), (Rows{"prompt", "completion"}));
  ASSERT_EQ(file->rows(), 3);
  const auto fields = [&](int64_t row) {
    Rows out;
    size_t at = 0;
    for (bool last = false; !last;) {
      DelimitedField field = next_field(file->row(row), at, ',');
      out.push_back(field.value);
      last = field.last;
    }
    return out;
  };
  EXPECT_EQ(fields(0), (Rows{"a, b", "say \"x\"\nand y"}));
  EXPECT_EQ(fields(1), (Rows{"c", ""}));
  EXPECT_EQ(fields(2), (Rows{"", "d"}));
  EXPECT_EQ(file->where(1), "rows.csv:5");
}

class OnDisk : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void SetUp() override { std::filesystem::create_directories(folder_); }

  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "tenon_dataset_file";
};

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& bytes) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);  // as the zstd command does
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size()));
  ZSTD_freeCCtx(context);
  return out;
}

TEST_F(OnDisk, PackedFilesReadLikeThePlainOne) {
  std::string plain;
  for (int i = 0; i < 50000; ++i) plain += "{\"text\":\"row " + std::to_string(i) + "\"}\n";
  const size_t half = plain.find('\n', plain.size() / 2) + 1;
  const Rows expected = rows_of(DatasetFile::open(write("rows.jsonl", plain)));
  ASSERT_EQ(expected.size(), 50000u);
  EXPECT_EQ(rows_of(DatasetFile::open(write("rows.jsonl.gz", gzip(plain)))), expected);
  EXPECT_EQ(rows_of(DatasetFile::open(write("rows.jsonl.zst", zstd(plain)))), expected);
  EXPECT_EQ(
      rows_of(DatasetFile::open(write("two.gz", gzip(plain.substr(0, half)) + gzip(plain.substr(half))))),
      expected);
  EXPECT_EQ(
      rows_of(DatasetFile::open(write("two.zst", zstd(plain.substr(0, half)) + zstd(plain.substr(half))))),
      expected);
  for (const std::string& packed : {gzip(plain), zstd(plain)}) {
    const auto cut = DatasetFile::open(write("cut", packed.substr(0, packed.size() - 5)));
    ASSERT_FALSE(cut.ok());
    EXPECT_EQ(cut.error().code, ErrorCode::bad_file);
    std::string damaged = packed;
    for (size_t i = packed.size() / 2; i < packed.size() / 2 + 64; ++i)
      damaged[i] = static_cast<char>(~damaged[i]);
    EXPECT_FALSE(DatasetFile::open(write("damaged", damaged)).ok());
  }
}

TEST_F(OnDisk, FingerprintSeesAChange) {
  const std::string plain(100000, ' ');
  std::string a = "{\"text\":\"" + plain + "\"}\n", b = a;
  b.back() = ' ';
  const auto first = DatasetFile::open(write("a.jsonl", a));
  const auto same = DatasetFile::open(write("b.jsonl", a));
  const auto other = DatasetFile::open(write("c.jsonl", b));
  EXPECT_EQ(first->fingerprint(), same->fingerprint());
  EXPECT_NE(first->fingerprint(), other->fingerprint());
}

TEST_F(OnDisk, MissingFileIsNotFound) {
  const auto file = DatasetFile::open((folder_ / "none.jsonl").string());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::not_found);
}

// T21: the index is one scan at memory speed. Processor time, so that a busy machine changes nothing; parsing
// the rows as JSON would take several times the limit.
TEST_F(OnDisk, ManyRowsOpenAtOnce) {
  std::string plain;
  const std::string row = "{\"text\":\"" + std::string(100, 'x') + "\"}\n";
  for (int i = 0; i < 200000; ++i) plain += row;
  const std::string path = write("many.jsonl", plain);
  const std::clock_t start = std::clock();
  const auto file = DatasetFile::open(path);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->rows(), 200000);
  EXPECT_LT(seconds, 0.25);
}

}  // namespace
}  // namespace tenon
