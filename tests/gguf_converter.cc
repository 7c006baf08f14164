#include "tests/gguf_converter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "io/checkpoint.h"
#include "io/gguf_writer.h"
#include "tests/gguf_header.h"
#include "tests/gguf_matrices.h"
#include "tests/golden_reference.h"

namespace tenon {
namespace {

// A golden's weights, and the tensors that are made of them.
struct Converter : GoldenConfig {
  const ConvertedFamily& family;
  std::vector<Matrix> matrices;
  std::map<std::string, Matrix> stacked;
  std::map<std::string, std::vector<float>> lists;  // of the metadata

  Converter(const ConvertedFamily& of, const Json& json) : GoldenConfig{json}, family(of) {}

  bool does(const char* action) const { return family.does(action); }

  static Matrix as_rows(const Matrix& m) {  // a bias [experts, n] as [experts, 1, n]
    return {m.name, Shape{m.shape[0], 1, m.shape[1]}, m.values};
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

  // Heads of values of a delta rule.
  void tile(Matrix& m, const std::string& part) const {
    const int64_t groups = size("linear_num_key_heads"), values = size("linear_num_value_heads"),
                  dim = size("linear_value_head_dim"), keys = 2 * groups * size("linear_key_head_dim");
    if (part == "out_proj") return tile_columns(m, groups, values, dim);
    if (part == "in_proj_qkv" || part == "conv1d") return tile_rows(m, keys, groups, values, dim);
    if (part == "in_proj_z") return tile_rows(m, 0, groups, values, dim);
    if (part != "norm") tile_rows(m, 0, groups, values, 1);
  }

  // Queries, keys, values and gates of each key head.
  void add_delta(const Matrix& m, const std::string& block) {
    const int64_t groups = size("linear_num_key_heads"), dim = size("linear_key_head_dim"),
                  values = m.rows() / groups / 2 - dim;
    Matrix qkv{block + "attn_qkv.weight", Shape{groups * (2 * dim + values), m.columns()}, {}};
    for (const auto& [from, rows] : {std::pair{int64_t{0}, dim}, {dim, dim}, {2 * dim, values}}) {
      const Matrix part = rows_of_parts(m, "", groups, from, rows);
      qkv.values.insert(qkv.values.end(), part.values.begin(), part.values.end());
    }
    matrices.push_back(std::move(qkv));
    matrices.push_back(rows_of_parts(m, block + "attn_gate.weight", groups, 2 * dim + values, values));
  }

  // DBRX's experts below each other.
  void add_cut(Matrix m, const std::string& block, const std::string& part) {
    const int64_t experts = find("ffn_config.moe_num_experts")->get<int64_t>();
    m.shape = Shape{experts, m.rows() / experts, m.columns()};
    if (part == "w2") m = cut(m, "", 0, 1);
    m.name = block +
             (part == "w1"   ? "ffn_gate_exps"
              : part == "v1" ? "ffn_up_exps"
                             : "ffn_down_exps") +
             ".weight";
    matrices.push_back(std::move(m));
  }

  // Gemma 3n's projections between streams, in the order of their numbers.
  void add_stream(const Matrix& m, const std::string& module) {
    const bool out = module.find("unembed") != std::string::npos;
    Matrix& all = stacked[out ? "altup_unembd_proj.weight" : "altup_proj.weight"];
    all.name = out ? "altup_unembd_proj.weight" : "altup_proj.weight";
    all.values.insert(all.values.end(), m.values.begin(), m.values.end());
    all.shape = Shape{static_cast<int64_t>(all.values.size()) / m.shape.elements(), m.rows(), m.columns()};
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
    } else if (does("qkvz") && module.ends_with("in_proj_qkvz")) {
      add_delta(m, block);
    } else if (does("cut") && module.find(".experts.") != std::string::npos) {
      add_cut(m, block, module.substr(module.rfind('.') + 1));
    } else if (does("streams") && module.starts_with("model.altup_")) {
      add_stream(m, module);
    } else if (does("listed") && module.find(".act_fn.") != std::string::npos) {
      lists["xielu." + module.substr(module.rfind('.') + 1)].push_back(m.values[0]);
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
    generalise(".blocks.", "N", block);
    generalise("experts.", "E", expert);
    ASSERT_TRUE(family.names.contains(module)) << module;
    std::string name = family.names.at(module);
    const bool bare = name.ends_with("!");
    if (bare) name.pop_back();
    if (add_in_parts(m, module, "blk." + block + ".")) return;
    ASSERT_NE(name, "-") << module;
    if (const size_t at = name.find("blk.N"); at != std::string::npos) name.replace(at, 5, "blk." + block);
    if (does("permute") && name.ends_with("attn_q")) permute_rope(m, heads());
    if (does("permute") && name.ends_with("attn_k")) permute_rope(m, size("num_key_value_heads"));
    const std::string part = module.substr(module.rfind('.') + 1);
    const bool delta = module.find(".linear_attn.") != std::string::npos;
    if (does("shift") && m.name.ends_with("norm.weight") && !delta) {
      for (float& value : m.values) value += 1;
    }
    if (does("regroup") && name.ends_with("attn_qkv"))
      regroup(m, find("num_kv_heads") ? size("num_kv_heads") : heads(), heads());
    if (does("scan")) change_scan(m, name);
    if (does("tiled") && delta) tile(m, part);
    if (does("turn") && m.shape.rank() == 2 && part.starts_with("c_")) transpose(m);
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

  void write(const std::string& folder, const std::string& path) {
    const auto checkpoint = Checkpoint::open(folder);
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
    auto writer = create_gguf(path, converted_header(family, *this, lists), specs);
    ASSERT_TRUE(writer.ok()) << writer.error().text();
    for (const Matrix& m : matrices)
      ASSERT_TRUE(writer->append(m.name, std::as_bytes(std::span(m.values))).ok());
    ASSERT_TRUE(writer->commit().ok());
  }
};

}  // namespace

bool ConvertedFamily::does(const char* action) const {
  return actions.find(action) != std::string::npos;
}

std::vector<ConvertedFamily> converted_families(const char* action) {
  std::ifstream file(source_tree() + "/tests/gguf_names.txt");
  std::vector<ConvertedFamily> out;
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
  std::erase_if(out, [&](const ConvertedFamily& each) { return !each.does(action); });
  return out;
}

void use_llama_cpp_settings(const ConvertedFamily& family, Json& config) {
  const std::string& name = family.architecture;
  if (name == "dots1") config.erase("layer_types"), config.erase("sliding_window");
  if (name == "afmoe") {
    for (Json& kind : config["layer_types"]) kind = "sliding_attention";  // every fourth is not
  }
  if (config.contains("dim_model_base")) config["dim_model_base"] = 256;
  if (config.contains("attention_chunk_size")) config["attention_chunk_size"] = 8192;
  if (config.value("new_decoder_architecture", true) == false) config["num_kv_heads"] = 1;
  if (name == "lfm2moe") config["routed_scaling_factor"] = 1.0;
  if (config.contains("query_pre_attn_scalar")) config["query_pre_attn_scalar"] = config["head_dim"];
  if (!config.contains("rope_parameters") || name == "deepseek2") return;
  const Json rope = config["rope_parameters"];
  if (rope.value("rope_type", "default") != "default")
    config["rope_parameters"] = Json{{"rope_theta", rope["rope_theta"]}, {"rope_type", "default"}};
}

void write_converted(const ConvertedFamily& family, const Json& config, const std::string& folder,
                     const std::string& path) {
  Converter(family, config).write(folder, path);
}

}  // namespace tenon
