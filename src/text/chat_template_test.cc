// Chat templates against Python's jinja2: the goldens of tools/make_template_goldens.py, and the limits.
#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/hash.h"
#include "base/json.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

const fs::path kGoldens = fs::path(TENON_SOURCE_DIR) / "tests/text/templates";
const fs::path kShared = fs::path(TENON_SOURCE_DIR) / "../shared/data";

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

Json read_json(const fs::path& path) {
  return Json::parse(read_file(path));
}

RenderOptions with_clock(int64_t clock) {
  RenderOptions options;
  options.clock_unix_seconds = clock;
  return options;
}

Result<Rendered> render(const std::string& source, const Json& variables, const RenderOptions& options) {
  auto parsed = ChatTemplate::parse(source, "t");
  if (!parsed.ok()) return std::move(parsed).error();
  return parsed->render(variables, options);
}

Result<Rendered> render(const std::string& source, const Json& variables = Json::object()) {
  return render(source, variables, with_clock(1722000000));
}

// The message of a refusal is part of the contract where the template or an undefined value speaks.
bool message_counts(const std::string& kind) {
  return kind == "TemplateError" || kind == "UndefinedError" || kind == "SecurityError";
}

Json spans_of(const Rendered& rendered) {
  Json out = Json::array();
  for (const TextSpan& span : rendered.generation) out.push_back({span.begin, span.end});
  return out;
}

TEST(ChatTemplate, FamiliesRenderAsPython) {
  const Json cases = read_json(kGoldens / "cases.json");
  const Json families = read_json(kGoldens / "families.json");
  ASSERT_GE(families.size(), 4u);
  for (const auto& [family, rows] : families.items()) {
    auto parsed = ChatTemplate::parse(read_file(kGoldens / "families" / (family + ".jinja")), family);
    ASSERT_TRUE(parsed.ok()) << parsed.error().text();
    for (const auto& [name, golden] : rows.items()) {
      SCOPED_TRACE(family + " " + name);
      const auto result = parsed->render(cases["cases"][name], with_clock(cases["clock"].get<int64_t>()));
      if (golden.contains("error")) {
        ASSERT_FALSE(result.ok()) << result->text;
        if (message_counts(golden["error"][0].text())) {
          EXPECT_EQ(result.error().message, golden["error"][1]);
        }
        continue;
      }
      ASSERT_TRUE(result.ok()) << result.error().text();
      EXPECT_EQ(result->text, golden["text"]);
      EXPECT_EQ(spans_of(*result), golden["spans"]);
    }
  }
}

std::vector<std::string> split_tabs(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, '\t');) out.push_back(cell);
  return out;
}

std::string shared_template(const fs::path& path) {
  std::string text = read_file(path);
  return path.extension() == ".json" ? Json::parse(text)["chat_template"].get<std::string>() : text;
}

TEST(ChatTemplate, AllSharedTemplatesRenderAsPython) {
  if (!fs::exists(kShared / "chat_templates")) GTEST_SKIP() << "no shared templates";
  const Json cases = read_json(kGoldens / "cases.json");
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::pair<std::string, std::string>> errors;
  std::istringstream in(read_file(kGoldens / "all.tsv"));
  for (std::string line; std::getline(in, line);) {
    auto cells = split_tabs(line);
    if (cells[0] == "cases") {
      names.assign(cells.begin() + 1, cells.end());
    } else if (cells[0] == "error") {
      errors.emplace_back(cells[2], Json::parse(cells[3]).get<std::string>());
    } else {
      rows.push_back(std::move(cells));
    }
  }
  ASSERT_GE(rows.size(), 117u);
  int checked = 0;
  for (const auto& row : rows) {
    const std::string source = shared_template(kShared / row[0]);
    ASSERT_EQ(hash_text(hash_bytes(source)), row[1])
        << row[0] << " is not the template the goldens were made from";
    auto parsed = ChatTemplate::parse(source, row[0]);
    ASSERT_TRUE(parsed.ok()) << parsed.error().text();
    for (size_t i = 0; i < names.size(); ++i) {
      SCOPED_TRACE(row[0] + " " + names[i]);
      const auto result = parsed->render(cases["cases"][names[i]], with_clock(cases["clock"].get<int64_t>()));
      const std::string& golden = row[i + 2];
      if (golden == "-") continue;
      ++checked;
      if (golden[0] == '!') {
        const auto& [kind, message] = errors[std::stoul(golden.substr(1))];
        EXPECT_FALSE(result.ok()) << kind << ": " << message << "\n" << result->text;
        if (!result.ok() && message_counts(kind)) {
          EXPECT_EQ(result.error().message, message);
        }
        continue;
      }
      EXPECT_TRUE(result.ok()) << result.error().text();
      if (!result.ok()) continue;
      EXPECT_EQ(hash_text(hash_bytes(result->text)) + ":" + std::to_string(result->text.size()), golden)
          << result->text;
    }
  }
  RecordProperty("checked", checked);
}

TEST(ChatTemplate, ExpressionsGiveWhatPythonGives) {
  const Json rows = read_json(kGoldens / "expressions.json");
  int refused = 0;
  for (const auto& row : rows) {
    const std::string source = row["t"].text();
    SCOPED_TRACE(source);
    const auto result = render(source, row.contains("v") ? row["v"] : Json::object());
    if (row.contains("e")) {
      EXPECT_FALSE(result.ok()) << row["e"] << "\n" << result->text;
      if (!result.ok() && message_counts(row["e"][0].text())) {
        EXPECT_EQ(result.error().message, row["e"][1]);
      }
      continue;
    }
    if (!result.ok()) {
      // What Python has and this evaluator refuses by name: bytes, `self`, integers past 64 bits.
      EXPECT_EQ(result.error().code, ErrorCode::unsupported) << result.error().text();
      ++refused;
      continue;
    }
    EXPECT_EQ(result->text, row["o"]);
    if (row.contains("s")) {
      EXPECT_EQ(spans_of(*result), row["s"]);
    }
  }
  EXPECT_LE(refused, 4);
}

}  // namespace
}  // namespace tenon
