// tenon models: which models can be brought, and what each takes.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/bytes.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/inspect_template.h"
#include "cli/inspect_tokenizer.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "io/json_file.h"
#include "models/family.h"
#include "models/left_out.h"
#include "run/model_table.h"

namespace tenon {
namespace {

struct ModelsArguments {
  StringList paths;
  bool markdown = false;
};

constexpr const char* kHeading =
    "# Models\n\n"
    "This page is what `tenon models --markdown` prints; a test compares them.\n\n";

constexpr const char* kPublished =
    "\n## Published models\n\n"
    "By `tenon models --markdown` over their configurations: parameters, what decoding keeps in bf16 (for "
    "each token, and for a sequence whatever its length, windows included), memory of LoRA training of "
    "rank 64 on all linear layers with 2 x 2048 tokens a step in bf16, every block recomputed, and the "
    "kernel that attention would run on a plain CPU.\n\n";

// Lines of cells as a table for a terminal or as Markdown.
class Lines {
 public:
  Lines(std::vector<std::string> heads, bool markdown) : markdown_(markdown), heads_(std::move(heads)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string text() const {
    if (markdown_) {
      std::string out = line(heads_) + "|";
      for (size_t i = 0; i < heads_.size(); ++i) out += " --- |";
      out += "\n";
      for (const auto& row : rows_) out += line(row);
      return out;
    }
    std::vector<Table::Column> columns;
    for (const std::string& head : heads_) columns.push_back({head});
    Table table(std::move(columns));
    for (const auto& row : rows_) table.add_row(row);
    return table.text();
  }

 private:
  static std::string line(const std::vector<std::string>& cells) {
    std::string out = "|";
    for (const std::string& cell : cells) out += " " + cell + " |";
    return out + "\n";
  }

  bool markdown_;
  std::vector<std::string> heads_;
  std::vector<std::vector<std::string>> rows_;
};

std::string joined(std::vector<std::string> names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "-" : out;
}

std::string families_text(bool markdown) {
  std::vector<const Family*> families(all_families().begin(), all_families().end());
  std::sort(families.begin(), families.end(),
            [](const Family* a, const Family* b) { return a->name < b->name; });
  Lines served({"family", "model_type", "GGUF architecture"}, markdown);
  for (const Family* family : families) {
    std::vector<std::string> types, layouts;
    for (std::string_view type : family->model_types) {
      if (!type.empty()) types.emplace_back(type);
    }
    for (const GgufLayout& layout : family->gguf) layouts.emplace_back(layout.architecture);
    served.add({std::string(family->name), joined(types), joined(layouts)});
  }
  Lines out({"model_type", "why it is left out"}, markdown);
  for (const LeftOut& each : left_out()) out.add({std::string(each.model_type), std::string(each.reason)});
  return served.text() + "\n" + out.text();
}

std::string parameters_text(int64_t count) {
  const double value = static_cast<double>(count);
  return count >= 1'000'000'000 ? fmt::format("{:.2f}B", value * 1e-9) : fmt::format("{:.1f}M", value * 1e-6);
}

// A machine that every build plans for alike: one thread, no vector extensions.
DeviceFacts plain_machine() {
  DeviceFacts facts;
  facts.name = "plain CPU";
  facts.threads = 1;
  return facts;
}

Result<ModelSpec> read_spec(const std::string& path) {
  const bool folder = std::filesystem::is_directory(path);
  const std::string file = folder ? path + "/config.json" : path;
  ASSIGN_OR_RETURN(const Json config, read_json_file(file));
  return read_model_spec(config, file);
}

// What to mind of the tokenizer and the template in a folder, counted; `tenon inspect` says it in sentences.
std::string traps_text(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return "-";
  size_t notes = 0;
  const auto tokenizer = tokenizer_answer({path, "", std::nullopt});
  if (!tokenizer.ok()) return "no tokenizer";
  if (tokenizer->contains("notes")) notes += (*tokenizer)["notes"].size();
  TemplateQuestion question;
  question.model = path;
  const auto chat = template_answer(question);
  if (!chat.ok()) return fmt::format("{}, no template", notes);
  if (!(*chat)["prompt_is_what_stands_before_the_answer"].get<bool>()) ++notes;
  return fmt::format("{}", notes);
}

Status run_models(const ModelsArguments& a) {
  if (a.paths.empty()) {
    write_output((a.markdown ? kHeading : "") + families_text(a.markdown));
    return {};
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, open_device({}));
  const DeviceFacts facts = a.markdown ? plain_machine() : device->facts();
  std::vector<std::string> heads = {
      "model",        "family",        "parameters",       "layers",
      "feed-forward", "cache a token", "state a sequence", "LoRA r=64, 2 x 2048 tokens",
      "attention"};
  if (!a.markdown) heads.push_back("traps");
  Lines lines(heads, a.markdown);
  for (const std::string& path : a.paths) {
    const std::string name = std::filesystem::path(path).lexically_normal().filename().string();
    const Result<ModelSpec> spec = read_spec(path);
    if (!spec.ok()) {
      std::vector<std::string> cells = {name, "-", "-", spec.error().message};
      cells.resize(heads.size(), "-");
      lines.add(cells);
      continue;
    }
    ASSIGN_OR_RETURN(const ModelRow row, model_row(*spec, facts, *device));
    std::vector<std::string> cells = {name,
                                      row.family,
                                      parameters_text(row.parameters),
                                      row.mixers,
                                      row.feed_forwards,
                                      format_bytes(row.token_bytes),
                                      format_bytes(row.state_bytes),
                                      format_bytes(row.train_bytes),
                                      row.attention_kernel};
    if (!a.markdown) cells.push_back(traps_text(path));
    lines.add(std::move(cells));
  }
  write_output((a.markdown ? kPublished : "") + lines.text());
  return {};
}

}  // namespace

Command models_command() {
  const auto a = std::make_shared<ModelsArguments>();
  Command command;
  command.name = "models";
  command.summary = "List the architectures, or say what models take";
  command.details =
      "Without paths: the families, the model_type and GGUF names they go by, and architectures that are "
      "left out, with the reason. With folders or config.json files: parameters, layers, bytes that "
      "decoding keeps (bf16), memory of LoRA training (rank 64, all linear layers, all blocks recomputed) "
      "and the attention kernel, from the configuration alone; and for folders with a tokenizer, how many "
      "things there are to mind in it and in the chat template (`tenon inspect` names them).";
  command.example = "tenon models\ntenon models MODEL CONFIG.json";
  command.positionals = {{"PATH", &a->paths, "Model folders or config.json files", false}};
  command.options = {{"markdown", &a->markdown, "Print Markdown"}};
  command.run = [a] { return run_models(*a); };
  return command;
}

}  // namespace tenon
