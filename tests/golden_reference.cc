#include "tests/golden_reference.h"
#include "tests/scratch_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"
#include "io/write_file.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
constexpr size_t kProjections = 16;

uint64_t splitmix64(uint64_t index) {
  uint64_t z = (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Sums of the elements with signs from the low bits of their index's hash.
std::vector<double> project(const std::vector<float>& values) {
  std::vector<double> sums(kProjections, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = splitmix64(i);
    for (size_t p = 0; p < kProjections; ++p) sums[p] += bits >> p & 1 ? values[i] : -double{values[i]};
  }
  return sums;
}

struct PackedFile {
  MappedFile file;
  SafetensorsHeader header;

  std::string text(std::string_view key) const {
    for (const auto& [name, value] : header.metadata) {
      if (name == key) return value;
    }
    ADD_FAILURE() << "no " << key;
    return "null";
  }
  std::span<const std::byte> bytes(const TensorEntry& tensor) const {
    return file.bytes().subspan(static_cast<size_t>(tensor.offset_bytes),
                                static_cast<size_t>(tensor.size_bytes));
  }
};

// Writes the tensors under `prefix` as a checkpoint's: integers times their power of two as f32.
void write_part(const PackedFile& packed, const std::string& prefix, const std::string& path) {
  const Json exponents = Json::parse(packed.text("exponents"));
  std::vector<TensorSpec> specs;
  for (const TensorEntry& tensor : packed.header.tensors) {
    if (!tensor.name.starts_with(prefix)) continue;
    const DType dtype = exponents.contains(tensor.name) ? DType::f32 : tensor.dtype;
    specs.push_back({tensor.name.substr(prefix.size()), dtype, tensor.shape});
  }
  auto writer = create_safetensors(path, specs, {});
  ASSERT_TRUE(writer.ok()) << writer.error().text();
  for (const TensorEntry& tensor : packed.header.tensors) {
    if (!tensor.name.starts_with(prefix)) continue;
    const std::string name = tensor.name.substr(prefix.size());
    std::span<const std::byte> bytes = packed.bytes(tensor);
    std::vector<float> values;
    if (exponents.contains(tensor.name)) {
      for (std::byte b : bytes)
        values.push_back(
            std::ldexp(static_cast<float>(static_cast<int8_t>(b)), exponents[tensor.name].get<int>()));
      bytes = std::as_bytes(std::span(values));
    }
    ASSERT_TRUE(writer->append(name, bytes).ok());
  }
  ASSERT_TRUE(writer->commit().ok());
}

GoldenReference unpack(const std::string& path) {
  GoldenReference out;
  out.projected = true;
  auto file = MappedFile::open(path);
  EXPECT_TRUE(file.ok()) << path;
  if (!file.ok()) return out;
  auto header = parse_safetensors(file->bytes());
  EXPECT_TRUE(header.ok()) << path;
  if (!header.ok()) return out;
  const PackedFile packed{std::move(*file), std::move(*header)};
  out.folder = scratch_folder() + "/" + golden_name(path);
  out.tokens = path;
  fs::create_directories(out.folder + "/adapter");
  EXPECT_TRUE(write_file_atomic(out.folder + "/config.json", packed.text("config")).ok());
  EXPECT_TRUE(
      write_file_atomic(out.folder + "/adapter/adapter_config.json", packed.text("adapter_config")).ok());
  write_part(packed, "model/", out.folder + "/model.safetensors");
  write_part(packed, "adapter/", out.folder + "/adapter/adapter_model.safetensors");
  out.facts = Json::parse(packed.text("golden"));
  out.values = read_tensors(path);
  const std::vector<float> rows = std::move(out.values.floats.at("projected"));
  out.values.floats.clear();
  auto at = rows.begin();
  for (const auto& name : Json::parse(packed.text("projected")).get<std::vector<std::string>>()) {
    out.values.floats[name] = {at, at + 1 + kProjections};
    at += 1 + kProjections;
  }
  return out;
}

void add_folders(const std::string& root, std::map<std::string, std::string>& out) {
  if (!fs::is_directory(root)) return;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "golden.json"))
      out.emplace(entry.path().filename().string(), entry.path().string());
  }
}

}  // namespace

std::string source_tree() {
  const char* tree = std::getenv("TENON_TEST_TREE");
  return tree != nullptr ? tree : TENON_SOURCE_DIR;
}

std::map<std::string, Demands> supported_families() {
  std::ifstream file(source_tree() + "/tests/golden_supported.txt");
  std::map<std::string, Demands> families;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    Demands& demands = families[name];
    while (words >> word) {
      if (word == "train_loss") words >> demands.train_loss;
      if (word == "bf16_loss") words >> demands.bf16_loss;
      if (word == "bf16_grad") words >> demands.bf16_grad;
      if (word == "grad") words >> demands.grad;
    }
  }
  return families;
}

std::map<std::string, std::string> full_goldens() {
  std::map<std::string, std::string> out;
  add_folders(source_tree() + "/tests/golden", out);
  add_folders(source_tree() + "/../shared/golden", out);
  return out;
}

std::map<std::string, std::string> packed_goldens() {
  std::map<std::string, std::string> out;
  const std::string root = source_tree() + "/tests/golden_packed";
  if (!fs::is_directory(root)) return out;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.path().extension() == ".safetensors")
      out.emplace(entry.path().stem().string(), entry.path().string());
  }
  return out;
}

std::string golden_name(const std::string& path) {
  const fs::path file(path);
  return (file.extension() == ".safetensors" ? file.stem() : file.filename()).string();
}

double GoldenReference::norm_of(const std::string& name) const {
  const std::vector<float>& want = values.floats.at(name);
  return projected ? want[0] : norm(want);
}

double GoldenReference::difference(const std::string& name, const std::vector<float>& got) const {
  const std::vector<float>& want = values.floats.at(name);
  double total = 0;
  if (!projected) {
    EXPECT_EQ(got.size(), want.size()) << name;
    for (size_t i = 0; i < std::min(got.size(), want.size()); ++i)
      total += std::pow(double{got[i]} - want[i], 2);
    return std::sqrt(total);
  }
  // A random projection of the difference has its norm as standard deviation.
  const std::vector<double> sums = project(got);
  for (size_t p = 0; p < kProjections; ++p) total += std::pow(sums[p] - want[1 + p], 2);
  return std::sqrt(total / kProjections);
}

GoldenReference open_golden(const std::string& path) {
  if (!fs::is_directory(path)) return unpack(path);
  GoldenReference out;
  out.folder = path;
  out.tokens = path + "/golden.safetensors";
  const auto text = read_file(path + "/golden.json");
  EXPECT_TRUE(text.ok()) << path;
  if (text.ok()) out.facts = Json::parse(*text);
  out.values = read_tensors(out.tokens);
  return out;
}

}  // namespace tenon
