#include "record/compare_records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

namespace tenon {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

template <typename T>
void compare_field(std::vector<RecordDifference>& out, std::string field, const T& left, const T& right) {
  if (left == right) return;
  out.push_back({std::move(field), fmt::format("{}", left), fmt::format("{}", right)});
}

// Lines of a recipe as (name, value), in their order, but for where the run was written.
std::vector<std::pair<std::string, std::string>> recipe_lines(const std::string& recipe) {
  constexpr std::string_view kBetween = ": ";
  std::vector<std::pair<std::string, std::string>> lines;
  std::istringstream text(recipe);
  for (std::string line; std::getline(text, line);) {
    const size_t at = line.find(kBetween);
    if (line.starts_with("out: ") || line.starts_with("overwrite: ")) continue;
    if (at == line.npos)
      lines.emplace_back(line, "");
    else
      lines.emplace_back(line.substr(0, at), line.substr(at + kBetween.size()));
  }
  return lines;
}

void compare_recipes(std::vector<RecordDifference>& out, const std::string& left, const std::string& right) {
  const auto left_lines = recipe_lines(left), right_lines = recipe_lines(right);
  const auto value_in = [](const auto& lines, const std::string& name) {
    const auto found = std::ranges::find(lines, name, &std::pair<std::string, std::string>::first);
    return found == lines.end() ? std::string("none") : found->second;
  };
  for (const auto& [name, value] : left_lines) compare_field(out, name, value, value_in(right_lines, name));
  for (const auto& [name, value] : right_lines) {
    if (std::ranges::find(left_lines, name, &std::pair<std::string, std::string>::first) == left_lines.end())
      out.push_back({name, "none", value});
  }
}

void compare_digests(std::vector<RecordDifference>& out, const RecordHeader& left,
                     const RecordHeader& right) {
  std::set<std::string> names;
  for (const auto& [name, digest] : left.digests) names.insert(name);
  for (const auto& [name, digest] : right.digests) names.insert(name);
  const auto digest_of = [](const RecordHeader& header, const std::string& name) {
    const auto found = header.digests.find(name);
    return found == header.digests.end() ? std::string("none") : found->second;
  };
  for (const std::string& name : names) {
    compare_field(out, "digests." + name, digest_of(left, name), digest_of(right, name));
  }
}

std::vector<RecordDifference> compare_headers(const RecordHeader& left, const RecordHeader& right) {
  std::vector<RecordDifference> out;
  compare_field(out, "kind", left.kind, right.kind);
  compare_field(out, "build", left.build, right.build);
  compare_field(out, "device", left.device, right.device);
  compare_field(out, "features", fmt::format("{}", fmt::join(left.features, " ")),
                fmt::format("{}", fmt::join(right.features, " ")));
  compare_field(out, "threads", left.threads, right.threads);
  compare_digests(out, left, right);
  compare_field(out, "plan_hash", left.plan_hash, right.plan_hash);
  compare_field(out, "attention", left.attention, right.attention);
  compare_field(out, "planned_bytes", left.planned_bytes, right.planned_bytes);
  compare_field(out, "mapped_bytes", left.mapped_bytes, right.mapped_bytes);
  return out;
}

bool same_but_loss(const RecordStep& a, const RecordStep& b) {
  return a.trained_tokens == b.trained_tokens && same_bits(a.learning_rate, b.learning_rate) &&
         same_bits(a.gradient_norm, b.gradient_norm) &&
         same_bits(a.clipped_gradient_norm, b.clipped_gradient_norm);
}

void compare_steps(RecordComparison& out, const RunRecord& left, const RunRecord& right) {
  const auto by_step = [](const RecordStep& a, const RecordStep& b) { return a.step < b.step; };
  for (const RecordStep& a : left.steps) {
    const auto b = std::lower_bound(right.steps.begin(), right.steps.end(), a, by_step);
    if (b == right.steps.end() || b->step != a.step) continue;
    if (!out.first_loss_step && !same_bits(a.loss, b->loss)) out.first_loss_step = a.step;
    if (!out.first_other_step && !same_but_loss(a, *b)) out.first_other_step = a.step;
  }
  compare_field(out.results, "steps taken", left.steps.size(), right.steps.size());
}

void compare_evals(RecordComparison& out, const RunRecord& left, const RunRecord& right) {
  compare_field(out.results, "evaluations", left.evals.size(), right.evals.size());
  for (size_t i = 0; i < std::min(left.evals.size(), right.evals.size()); ++i) {
    const RecordEval& a = left.evals[i];
    const RecordEval& b = right.evals[i];
    if (a.step == b.step && a.tokens == b.tokens && same_bits(a.loss, b.loss)) continue;
    const auto text = [](const RecordEval& eval) {
      return fmt::format("{} over {} tokens after step {}", eval.loss, eval.tokens, eval.step);
    };
    out.results.push_back({fmt::format("evaluation {}", i + 1), text(a), text(b)});
    return;
  }
}

std::string status_of(const RunRecord& record) {
  return record.end ? record.end->status : "killed";
}

}  // namespace

RecordComparison compare_records(const RunRecord& left, const RunRecord& right) {
  RecordComparison out;
  out.settings = compare_headers(left.header, right.header);
  compare_recipes(out.settings, left.recipe(), right.recipe());
  compare_steps(out, left, right);
  compare_evals(out, left, right);
  compare_field(out.results, "end", status_of(left), status_of(right));
  return out;
}

std::string comparison_text(const RecordComparison& comparison) {
  std::string out;
  auto to = std::back_inserter(out);
  for (const auto* differences : {&comparison.settings, &comparison.results}) {
    for (const RecordDifference& difference : *differences) {
      fmt::format_to(to, "{}\n  left   {}\n  right  {}\n", difference.field, difference.left,
                     difference.right);
    }
  }
  if (comparison.first_loss_step) {
    fmt::format_to(to, "losses differ from step {} on\n", *comparison.first_loss_step);
  }
  if (comparison.first_other_step) {
    fmt::format_to(to, "learning rate, tokens or gradient norms differ from step {} on\n",
                   *comparison.first_other_step);
  }
  if (comparison.same_results()) out += "the results are the same, bit for bit\n";
  return out;
}

}  // namespace tenon
