// Golden families as GGUF files: written with the names and keys that the Python package gguf has for them
// (tests/gguf_names.txt) and with what llama.cpp's converter does to the weights, they give the numbers of
// the Hugging Face folder.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/json.h"
#include "io/checkpoint.h"
#include "io/gguf_writer.h"
#include "io/write_file.h"
#include "models/weight_parts.h"
#include "run/model.h"
#include "run/probe.h"
#include "tests/golden_reference.h"
#include "tests/scratch_folder.h"
#include "tests/test_device.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
struct Metadata {
  std::string kind, gguf;          // as tools/make_gguf_names.py says
  std::vector<std::string> words;  // keys of config.json, or a value
};
struct Converted {
  std::string golden, architecture, actions;
  std::map<std::string, std::string> names;  // modules of the folder to those of GGUF
  std::vector<Metadata> keys;

  bool does(const char* action) const { return actions.find(action) != std::string::npos; }
  std::string test_name() const { return golden + (does("absorb") ? "_absorbed" : ""); }
};

std::vector<Converted> read_families(const char* action = "") {
  std::ifstream file(source_tree() + "/tests/gguf_names.txt");
  std::vector<Converted> out;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, a, b;
    words >> kind >> a >> b;
    if (kind == "family") {
      out.push_back({a, b, {}, {}, {}});
      std::getline(words, out.back().actions);
    } else if (kind == "name") {
      out.back().names[a] = b;
    } else if (!kind.starts_with("#")) {
      out.back().keys.push_back({kind, a, {b}});
      while (words >> b) out.back().keys.back().words.push_back(b);
    }
  }
  std::erase_if(out, [&](const Converted& each) { return !each.does(action); });
  return out;
}

struct Matrix {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

class GgufFamily : public testing::TestWithParam<Converted> {
 protected:
  void SetUp() override {
    std::map<std::string, std::string> paths = full_goldens();
    paths.merge(packed_goldens());
    if (!paths.contains(GetParam().golden)) GTEST_SKIP() << "there is no golden of it";
    golden = open_golden(paths.at(GetParam().golden));
    config = Json::parse(*read_file(golden.folder + "/config.json"));
    out = scratch_folder() + "/gguf_" + GetParam().test_name();
    fs::create_directories(out + "/hf");
  }
  void TearDown() override { fs::remove_all(out); }

  bool does(const char* action) const { return GetParam().does(action); }

  // What llama.cpp has fixed where config.json may say otherwise, and rope without scaling.
  void use_llama_cpp_settings() {
    if (GetParam().architecture == "dots1") config.erase("layer_types"), config.erase("sliding_window");
    if (config.contains("dim_model_base")) config["dim_model_base"] = 256;
    if (config.contains("attention_chunk_size")) config["attention_chunk_size"] = 8192;
    if (config.value("new_decoder_architecture", true) == false) config["num_kv_heads"] = 1;
    if (GetParam().architecture == "lfm2moe") config["routed_scaling_factor"] = 1.0;
    if (config.contains("query_pre_attn_scalar")) config["query_pre_attn_scalar"] = config["head_dim"];
    if (!config.contains("rope_parameters") || GetParam().architecture == "deepseek2") return;
    const Json rope = config["rope_parameters"];
    if (rope.value("rope_type", "default") != "default")
      config["rope_parameters"] = Json{{"rope_theta", rope["rope_theta"]}, {"rope_type", "default"}};
  }

  int64_t size(const char* key) const { return config[key].get<int64_t>(); }

  int64_t head_dim() const {
    if (config.contains("qk_rope_head_dim")) return size("qk_rope_head_dim");
    const int64_t hidden = size("hidden_size"), heads = size("num_attention_heads");
    const bool given = config.contains("head_dim") && !config["head_dim"].is_null();
    return given ? size("head_dim") : hidden / heads;
  }

  // Layers that predict further tokens are blocks of GGUF.
  int64_t further_layers() const { return config.value("num_nextn_predict_layers", int64_t{0}); }

  // Of layers with attention, a state or neither; Jamba's come at regular distances.
  std::vector<std::string> layer_kinds() const {
    std::vector<std::string> kinds;
    for (const char* key : {"layer_types", "layers_block_type"}) {
      if (!config.contains(key)) continue;
      kinds = config[key].get<std::vector<std::string>>();
    }
    if (!config.contains("attn_layer_period")) return kinds;
    for (int64_t i = 0; i < size("num_hidden_layers"); ++i) {
      const bool attends = i % size("attn_layer_period") == size("attn_layer_offset");
      kinds.push_back(attends ? "full_attention" : "mamba");
    }
    return kinds;
  }

  void add_value(GgufHeader& header, const std::string& key, const Json& value) const {
    if (value.is_boolean()) {
      header.add_bool(key, value.get<bool>());
    } else if (value.is_number_integer()) {
      int64_t count = value.get<int64_t>();
      if (key.ends_with(".block_count")) count += further_layers();
      header.add_u32(key, static_cast<uint32_t>(count));
    } else {
      header.add_f32(key, value.get<float>());
    }
  }

  void add_metadata(GgufHeader& header, const Metadata& data) const {
    if (data.kind == "value") return add_value(header, data.gguf, Json::parse(data.words[0]));
    if (data.kind == "key") return add_value(header, data.gguf, config.at(data.words[0]));
    const int64_t first = size(data.words[0].c_str());
    if (data.kind == "list") {
      std::vector<int32_t> values;
      for (const std::string& kind : layer_kinds())
        values.push_back(kind == data.words[1] ? static_cast<int32_t>(first) : 0);
      return header.add_i32s(data.gguf, values);
    }
    const int64_t second = size(data.words[1].c_str());
    add_value(header, data.gguf, Json(data.kind == "sum" ? first + second : first * second));
  }

  GgufHeader header() const {
    const std::string& name = GetParam().architecture;
    GgufHeader header;
    header.add_string("general.architecture", name);
    std::set<std::string> added;
    for (const Metadata& data : GetParam().keys) {
      const bool there =
          data.kind == "value" || (config.contains(data.words[0]) && !config[data.words[0]].is_null());
      if (there && added.insert(data.gguf).second) add_metadata(header, data);
    }
    if (!config.contains("rope_parameters")) return header;
    const Json& rope = config["rope_parameters"];
    const Json& full = rope.contains("full_attention") ? rope["full_attention"] : rope;
    header.add_f32(name + ".rope.freq_base", full["rope_theta"].get<float>());
    const double part = full.value("partial_rotary_factor", 1.0);
    const double rotated = part * static_cast<double>(head_dim());
    header.add_u32(name + ".rope.dimension_count", static_cast<uint32_t>(rotated));
    if (full.value("rope_type", "default") == "yarn") add_yarn(header, full);
    return header;
  }

  void add_yarn(GgufHeader& header, const Json& rope) const {
    const std::string prefix = GetParam().architecture + ".rope.scaling.";
    header.add_string(prefix + "type", "yarn");
    header.add_f32(prefix + "factor", rope["factor"].get<float>());
    header.add_u32(prefix + "original_context_length",
                   rope["original_max_position_embeddings"].get<uint32_t>());
    header.add_f32(prefix + "yarn_log_multiplier", 0.1F * rope["mscale_all_dim"].get<float>());
  }

  // Rows i and i + half of a head to 2i and 2i + 1.
  void permute(Matrix& m, int64_t heads) const {
    const int64_t columns = m.shape.rank() > 1 ? m.shape[1] : 1, dim = m.shape[0] / heads, half = dim / 2;
    const std::vector<float> from = m.values;
    for (int64_t row = 0; row < m.shape[0]; ++row) {
      const int64_t within = row % dim, to = row - within + 2 * (within % half) + within / half;
      std::copy_n(from.begin() + row * columns, columns, m.values.begin() + to * columns);
    }
  }

  // [experts, rows, columns] from columns `first`, `first` + step, ... of [experts, columns, ...],
  // transposed.
  static Matrix cut(const Matrix& m, std::string name, int64_t first, int64_t step) {
    const int64_t experts = m.shape[0], in = m.shape[1], wide = m.shape[2], rows = wide / step;
    Matrix to{std::move(name), Shape{experts, rows, in}, {}};
    for (int64_t e = 0; e < experts; ++e) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < in; ++i)
          to.values.push_back(m.values[static_cast<size_t>((e * in + i) * wide + first + r * step)]);
      }
    }
    return to;
  }

  static Matrix as_rows(const Matrix& m) {  // a bias [experts, n] as [experts, 1, n]
    return {m.name, Shape{m.shape[0], 1, m.shape[1]}, m.values};
  }

  // Rows [from, from + rows) of each of `parts` equal parts of a matrix, one after the other.
  static Matrix rows_of_parts(const Matrix& m, std::string name, int64_t parts, int64_t from, int64_t rows) {
    const int64_t columns = m.shape.rank() > 1 ? m.shape[-1] : 1, all = m.shape.elements() / columns;
    Matrix to{std::move(name), m.shape.rank() > 1 ? Shape{parts * rows, columns} : Shape{parts * rows}, {}};
    for (int64_t part = 0; part < parts; ++part) {
      const auto begin = m.values.begin() + (part * all / parts + from) * columns;
      to.values.insert(to.values.end(), begin, begin + rows * columns);
    }
    return to;
  }

  // All queries, all keys, all values of groups that each have their own.
  void regroup(Matrix& m) const {
    const int64_t heads = size("num_attention_heads"), dim = size("hidden_size") / heads;
    const int64_t groups = config.contains("num_kv_heads") ? size("num_kv_heads") : heads;
    const int64_t queries = heads / groups * dim;
    std::vector<float> all;
    for (const auto& [from, rows] : {std::pair{int64_t{0}, queries}, {queries, dim}, {queries + dim, dim}}) {
      const Matrix part = rows_of_parts(m, "", groups, from, rows);
      all.insert(all.end(), part.values.begin(), part.values.end());
    }
    m.values = all;
  }

  // kv_b [heads * (nope + v), latent] as k_b [heads, latent, nope] and v_b [heads, v, latent].
  void add_absorbed(const Matrix& m, const std::string& block) {
    const int64_t heads = size("num_attention_heads"), nope = size("qk_nope_head_dim"),
                  v = size("v_head_dim");
    Matrix keys = rows_of_parts(m, "", heads, 0, nope), values = rows_of_parts(m, "", heads, nope, v);
    keys.shape = Shape{heads, nope, m.shape[1]};
    values.shape = Shape{heads, v, m.shape[1]};
    values.name = block + "attn_v_b.weight";
    matrices.push_back(cut(keys, block + "attn_k_b.weight", 0, 1));
    matrices.push_back(std::move(values));
  }

  // Gate and up that follow each other, by rows.
  void add_halves(const Matrix& m, const std::string& block, const std::string& suffix) {
    const int64_t parts = m.shape.rank() == 3 ? m.shape[0] : 1, half = m.shape[-2] / 2;
    for (const int64_t i : {0, 1}) {
      Matrix part =
          rows_of_parts(m, block + (i == 0 ? "ffn_gate" : "ffn_up") + suffix, parts, i * half, half);
      if (parts > 1) part.shape = Shape{parts, half, m.shape[-1]};
      matrices.push_back(std::move(part));
    }
  }

  // Llama 4's experts [experts, in, out], transposed first.
  void add_llama4(const Matrix& m, const std::string& block) {
    if (m.name.ends_with("down_proj")) {
      matrices.push_back(cut(m, block + "ffn_down_exps.weight", 0, 1));
    } else {
      add_halves(cut(m, "", 0, 1), block, "_exps.weight");
    }
  }

  // State-space layers.
  void change_scan(Matrix& m, const std::string& name) const {
    if (name.ends_with("ssm_a")) {
      for (float& value : m.values) value = -std::exp(value);
    }
    if (name.ends_with("conv") || name.ends_with("conv1d")) {
      if (m.shape.rank() == 3) m.shape = Shape{m.shape[0], m.shape[2]};
    }
    if (!does("heads")) return;
    if (name.ends_with("ssm_a") || name.ends_with("ssm_d")) m.shape = Shape{m.shape[0], 1};
    const int64_t groups = size(config.contains("n_groups") ? "n_groups" : "mamba_n_groups");
    if (name.ends_with("ssm_norm")) m.shape = Shape{groups, m.shape[0] / groups};
  }

  // Falcon-H1's multipliers by module.
  void multiply(Matrix& m, const std::string& module) const {
    const auto number = [&](const char* key) { return config[key].get<double>(); };
    const auto scale = [&](const char* end, double by) {
      if (!module.ends_with(end)) return;
      for (float& value : m.values) value = static_cast<float>(value * by);
    };
    const auto mlp = config["mlp_multipliers"].get<std::vector<double>>();
    scale("feed_forward.gate_proj", mlp[0]);
    scale("feed_forward.down_proj", mlp[1]);
    for (const char* end : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"})
      scale(end, number("attention_in_multiplier"));
    scale("self_attn.k_proj", number("key_multiplier"));
    scale("self_attn.o_proj", number("attention_out_multiplier"));
    scale("mamba.out_proj", number("ssm_out_multiplier"));
    scale("lm_head", number("lm_head_multiplier"));
    scale("embed_tokens", number("embedding_multiplier"));
    if (!module.ends_with("mamba.in_proj")) return;
    scale("mamba.in_proj", number("ssm_in_multiplier"));
    const int64_t width = size("mamba_d_ssm"), states = size("mamba_n_groups") * size("mamba_d_state");
    int64_t part = 0, row = 0;
    for (const double by : config["ssm_multipliers"].get<std::vector<double>>()) {
      const int64_t rows = part < 2 ? width : part < 4 ? states : size("mamba_n_heads");
      for (int64_t i = row * m.shape[1]; i < (row + rows) * m.shape[1]; ++i)
        m.values[static_cast<size_t>(i)] = static_cast<float>(m.values[static_cast<size_t>(i)] * by);
      row += rows, ++part;
    }
  }

  // Weights that GGUF has in several tensors.
  bool add_in_parts(const Matrix& m, const std::string& module, const std::string& block) {
    if (does("split") && module.find(".experts.") != std::string::npos) {
      add_split(m, block, module.substr(module.rfind('.') + 1));
    } else if (does("absorb") && module.ends_with("kv_b_proj")) {
      add_absorbed(m, block);
    } else if (does("halves") && module.find(".experts.") != std::string::npos) {
      add_llama4(m, block);
    } else if (does("rows") && module.ends_with("input_linear")) {
      add_halves(m, block, module.find("shared") == std::string::npos ? "_exps.weight" : "_shexp.weight");
    } else {
      return false;
    }
    return true;
  }

  void add_split(const Matrix& m, const std::string& block, const std::string& part) {
    const auto add = [&](Matrix matrix) { matrices.push_back(std::move(matrix)); };
    const auto flat = [](Matrix matrix) {
      matrix.shape = Shape{matrix.shape[0], matrix.shape[1]};
      return matrix;
    };
    if (part == "gate_up_proj") {
      add(cut(m, block + "ffn_gate_exps.weight", 0, 2));
      add(cut(m, block + "ffn_up_exps.weight", 1, 2));
    } else if (part == "gate_up_proj_bias") {
      add(flat(cut(as_rows(m), block + "ffn_gate_exps.bias", 0, 2)));
      add(flat(cut(as_rows(m), block + "ffn_up_exps.bias", 1, 2)));
    } else if (part == "down_proj") {
      add(cut(m, block + "ffn_down_exps.weight", 0, 1));
    } else {
      add({block + "ffn_down_exps.bias", m.shape, m.values});
    }
  }

  void add(Matrix m) {
    // "model.layers.3.mlp.experts.1.up_proj.weight": block 3, expert 1.
    std::string module = m.name, suffix, block, expert;
    for (const char* each : {".weight", ".bias"}) {
      if (!module.ends_with(each)) continue;
      suffix = each;
      module.resize(module.size() - suffix.size());
    }
    const auto generalise = [&](const std::string& after, const char* letter, std::string& number) {
      const size_t at = module.find(after);
      if (at == std::string::npos) return;
      const size_t begin = at + after.size(), end = std::min(module.find('.', begin), module.size());
      number = module.substr(begin, end - begin);
      if (number.find_first_not_of("0123456789") != std::string::npos) {
        number.clear();
      } else {
        module.replace(begin, end - begin, letter);
      }
    };
    generalise("layers.", "N", block);
    generalise(".h.", "N", block);
    generalise("experts.", "E", expert);
    ASSERT_TRUE(GetParam().names.contains(module)) << module;
    std::string name = GetParam().names.at(module);
    const bool bare = name.ends_with("!");
    if (bare) name.pop_back();
    if (add_in_parts(m, module, "blk." + block + ".")) return;
    ASSERT_NE(name, "-") << module;
    if (const size_t at = name.find("blk.N"); at != std::string::npos) name.replace(at, 5, "blk." + block);
    if (does("permute") && name.ends_with("attn_q")) permute(m, size("num_attention_heads"));
    if (does("permute") && name.ends_with("attn_k")) permute(m, size("num_key_value_heads"));
    if (does("shift") && m.name.ends_with("norm.weight")) {
      for (float& value : m.values) value += 1;
    }
    if (does("regroup") && name.ends_with("attn_qkv")) regroup(m);
    if (does("scan")) change_scan(m, name);
    if (does("multiply")) multiply(m, module);
    m.name = name;
    if (!bare && !name.ends_with(".bias")) m.name += suffix.empty() ? ".weight" : suffix;
    if (does("stack") && m.shape.rank() == 2 && m.shape[0] == 1 && name.ends_with(".bias"))
      m.shape = Shape{m.shape[1]};
    if (expert.empty()) {
      matrices.push_back(std::move(m));
      return;
    }
    Matrix& all = stacked[m.name];
    all.name = m.name;
    const int64_t count = std::stoll(expert) + 1;
    ASSERT_EQ(static_cast<int64_t>(all.values.size()), (count - 1) * m.shape.elements())
        << "order of experts";
    all.shape = Shape{count, m.shape[0], m.shape[1]};
    all.values.insert(all.values.end(), m.values.begin(), m.values.end());
  }

  void write_gguf(const std::string& path) {
    const auto checkpoint = Checkpoint::open(golden.folder);
    ASSERT_TRUE(checkpoint.ok());
    for (const CheckpointTensor& tensor : checkpoint->tensors()) {
      if (config.value("tie_word_embeddings", false) && tensor.name == "lm_head.weight") continue;
      if (tensor.name.ends_with("rotary_emb.inv_freq")) continue;
      Matrix m{tensor.name, tensor.shape, std::vector<float>(static_cast<size_t>(tensor.shape.elements()))};
      std::memcpy(m.values.data(), checkpoint->bytes(tensor).data(), m.values.size() * sizeof(float));
      add(std::move(m));
    }
    for (auto& [name, matrix] : stacked) matrices.push_back(std::move(matrix));
    for (int64_t i = 0; i < further_layers(); ++i)
      matrices.push_back(
          {"blk." + std::to_string(size("num_hidden_layers") + i) + ".nextn.enorm.weight", Shape{2}, {1, 1}});
    std::vector<TensorSpec> specs;
    for (const Matrix& m : matrices) specs.push_back({m.name, DType::f32, m.shape});
    auto writer = create_gguf(path, header(), specs);
    ASSERT_TRUE(writer.ok()) << writer.error().text();
    for (const Matrix& m : matrices)
      ASSERT_TRUE(writer->append(m.name, std::as_bytes(std::span(m.values))).ok());
    ASSERT_TRUE(writer->commit().ok());
  }

  std::vector<float> logits(const std::string& model) {
    ProbeRequest request;
    request.model = model;
    request.tokens = golden.tokens;
    request.out = out + "/out.safetensors";
    const auto summary = probe(request, *device);
    EXPECT_TRUE(summary.ok()) << summary.error().text();
    return summary.ok() ? read_tensors(request.out).floats.at("logits") : std::vector<float>{};
  }

  GoldenReference golden;
  Json config;
  std::string out;
  std::vector<Matrix> matrices;
  std::map<std::string, Matrix> stacked;
  std::unique_ptr<Device> device = test_device(1);
};

TEST_P(GgufFamily, GivesTheNumbersOfTheFolder) {
  use_llama_cpp_settings();
  ASSERT_TRUE(write_file_atomic(out + "/hf/config.json", config.dump()).ok());
  fs::copy_file(golden.folder + "/model.safetensors", out + "/hf/model.safetensors",
                fs::copy_options::overwrite_existing);
  write_gguf(out + "/model.gguf");
  if (HasFailure()) return;
  const std::vector<float> want = logits(out + "/hf"), got = logits(out + "/model.gguf");
  ASSERT_FALSE(want.empty());
  // Keys are f32 and shifted norms are rounded once more; all else is the same bits.
  EXPECT_LE(distance(got, want), 1e-6);
}

// A GPU converts what is stored, but not -exp(x) to x.
class GgufWithStates : public GgufFamily {};

TEST_P(GgufWithStates, DecaysAreMadeOnTheHost) {
  use_llama_cpp_settings();
  write_gguf(out + "/model.gguf");
  if (HasFailure()) return;
  const auto model = open_model(out + "/model.gguf");
  ASSERT_TRUE(model.ok()) << model.error().text();
  for (const WeightSource& source : model->weights.sources) {
    const bool decay = source.tensor().ends_with(".ssm_a");
    EXPECT_EQ(weight_parts(model->checkpoint, source, DType::f32).empty(), decay) << source.name;
  }
}

constexpr auto kTestName = [](const auto& info) { return info.param.test_name(); };
INSTANTIATE_TEST_SUITE_P(Families, GgufFamily, testing::ValuesIn(read_families()), kTestName);
INSTANTIATE_TEST_SUITE_P(Families, GgufWithStates, testing::ValuesIn(read_families("scan")), kTestName);

}  // namespace
}  // namespace tenon
