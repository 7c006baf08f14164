// What the program looks like in a terminal: colours, wrapped text, aligned tables, a progress bar. Colour
// and redrawing only where the stream is a terminal; a file or pipe gets plain lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct Terminal {
  bool interactive = false;  // a terminal that understands cursor movement
  bool colour = false;       // interactive, and NO_COLOR is empty (https://no-color.org)
  int width = 80;            // columns
};

Terminal terminal_of(std::FILE* stream);

enum class Style { plain, bold, dim, red, green, yellow, blue, cyan };

// The text in that style, or as it is where the terminal shows no colour.
std::string styled(const Terminal& terminal, Style style, std::string_view text);

// Columns that UTF-8 text takes; colour sequences take none, wide characters two.
int display_width(std::string_view text);

// The text broken at spaces into lines of at most `width` columns where words allow; keeps its own line ends.
std::vector<std::string> wrapped(std::string_view text, int width);

// Columns of text under a heading; numbers stand right, words left.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string heading;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns);
  void add_row(std::vector<std::string> cells);  // as many as columns
  // Lines that end with a newline, two spaces between columns, none at the end. No headings, no heading line.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "1,234,567"
std::string grouped_digits(int64_t value);
// "135 M": for counts of parameters and tokens.
std::string human_count(int64_t count);
// "7 s", "3:05", "1:02:03"
std::string human_duration(double seconds);

struct Progress {
  std::string_view label;  // "step"
  int64_t done = 0;
  int64_t total = 0;
  double seconds = 0;       // since the first unit began
  std::string_view detail;  // "loss 1.234  456 tokens/s"
};

// "step  12/60 [####....]  loss 1.234  456 tokens/s  0:32 left", at most `width` columns: the bar gives way
// first.
std::string progress_line(const Progress& progress, int width);

// One line that is drawn over itself on a terminal, at most ten times a second. Elsewhere a line for the
// first and last unit and about every tenth of them.
class ProgressBar {
 public:
  ProgressBar(std::FILE* stream, std::string label, int64_t total);
  ~ProgressBar();  // finish()
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(int64_t done, std::string_view detail);
  // Takes the line away for a moment, so that other text can be printed on a line of its own.
  void clear();
  // Leaves the last state on its line.
  void finish();

 private:
  std::FILE* stream_;
  Terminal terminal_;
  std::string label_;
  int64_t total_;
  int64_t last_done_ = 0;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_drawn_;
  std::string line_;  // the last state, drawn or not
  bool drawn_ = false;
};

}  // namespace tenon
