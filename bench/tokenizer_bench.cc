// Speed of a tokenizer on one thread: loading its file, and encoding a text paragraph by paragraph, with ids
// alone and with byte ranges. Times are of the thread's processor clock, the best of several passes, so that
// a busy machine disturbs them little. tools/bench_tokenizers.py sets them beside PyPI's tokenizers.
//   tokenizer_bench TOKENIZER TEXT... [--passes N]
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "io/write_file.h"
#include "text/tokenizer.h"

namespace tenon {
namespace {

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename F>
double best_seconds(int passes, F&& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < passes; ++pass) {
    const double begin = cpu_seconds();
    work();
    best = std::min(best, cpu_seconds() - begin);
  }
  return best;
}

std::vector<std::string_view> paragraphs_of(std::string_view text) {
  std::vector<std::string_view> paragraphs;
  while (!text.empty()) {
    const size_t end = std::min(text.find("\n\n"), text.size());
    if (end > 0) paragraphs.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return paragraphs;
}

int run(const std::string& tokenizer_path, const std::vector<std::string>& files, int passes) {
  std::string text;
  for (const std::string& file : files) {
    auto part = read_file(file);
    if (!part.ok()) {
      fmt::print(stderr, "{}\n", part.error().text());
      return 2;
    }
    text += *part + "\n\n";
  }
  const std::vector<std::string_view> paragraphs = paragraphs_of(text);
  size_t bytes = 0, tokens = 0;
  for (const std::string_view paragraph : paragraphs) bytes += paragraph.size();

  auto tokenizer = Tokenizer::from_file(tokenizer_path);
  if (!tokenizer.ok()) {
    fmt::print(stderr, "{}\n", tokenizer.error().text());
    return 2;
  }
  const double load = best_seconds(std::min(passes, 5), [&] { (void)Tokenizer::from_file(tokenizer_path); });
  const double ids = best_seconds(passes, [&] {
    tokens = 0;
    for (const std::string_view paragraph : paragraphs) tokens += tokenizer->encode(paragraph).size();
  });
  const double spans = best_seconds(passes, [&] {
    for (const std::string_view paragraph : paragraphs) (void)tokenizer->encode_spans(paragraph);
  });
  fmt::print(
      "{{\"paragraphs\":{},\"bytes\":{},\"tokens\":{},\"load_ms\":{:.1f},\"ids_mb_s\":{:.1f},\"spans_mb_s\":{"
      ":.1f}}}\n",
      paragraphs.size(), bytes, tokens, 1e3 * load, 1e-6 * static_cast<double>(bytes) / ids,
      1e-6 * static_cast<double>(bytes) / spans);
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  int passes = 7;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--passes" && i + 1 < argc) {
      passes = std::max(1, std::atoi(argv[++i]));
    } else {
      words.emplace_back(argv[i]);
    }
  }
  if (words.size() < 2) {
    fmt::print(stderr, "usage: tokenizer_bench TOKENIZER TEXT... [--passes N]\n");
    return 2;
  }
  return tenon::run(words[0], {words.begin() + 1, words.end()}, passes);
}
