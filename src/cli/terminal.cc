#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/check.h"

namespace tenon {
namespace {

constexpr int kNarrowest = 40;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

int columns_of(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

// The code point at the beginning of `text` and its length in bytes; a broken byte counts as one column.
int next_width(std::string_view text, size_t& length) {
  utf8proc_int32_t point = 0;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      static_cast<utf8proc_ssize_t>(text.size()), &point);
  length = bytes > 0 ? static_cast<size_t>(bytes) : 1;
  return bytes > 0 ? utf8proc_charwidth(point) : 1;
}

std::string spaces(int count) {
  return std::string(static_cast<size_t>(std::max(0, count)), ' ');
}

void add_wrapped(std::vector<std::string>& lines, std::string_view paragraph, int width) {
  const size_t indent = std::min(paragraph.find_first_not_of(' '), paragraph.size());
  std::string line(paragraph.substr(0, indent));
  bool has_word = false;
  size_t position = indent;
  while (position < paragraph.size()) {
    const size_t end = std::min(paragraph.find(' ', position), paragraph.size());
    const std::string_view word = paragraph.substr(position, end - position);
    position = std::min(paragraph.find_first_not_of(' ', end), paragraph.size());
    if (has_word && display_width(line) + 1 + display_width(word) > width) {
      lines.push_back(std::move(line));
      line.assign(indent, ' ');
      has_word = false;
    }
    if (has_word) line += ' ';
    line += word;
    has_word = true;
  }
  lines.push_back(std::move(line));
}

}  // namespace

Terminal terminal_of(std::FILE* stream) {
  Terminal terminal;
  const int descriptor = fileno(stream);
  if (!isatty(descriptor)) return terminal;
  terminal.interactive = variable("TERM") != "dumb";
  terminal.colour = terminal.interactive && variable("NO_COLOR").empty();
  terminal.width = std::max(kNarrowest, columns_of(descriptor));
  return terminal;
}

std::string styled(const Terminal& terminal, Style style, std::string_view text) {
  constexpr std::array<int, 8> kCodes = {0, 1, 2, 31, 32, 33, 34, 36};
  if (!terminal.colour || style == Style::plain || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(style)], text);
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    if (text.starts_with("\x1b[")) {
      const size_t end = text.find('m');
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      continue;
    }
    size_t length = 0;
    width += next_width(text, length);
    text.remove_prefix(length);
  }
  return width;
}

std::vector<std::string> wrapped(std::string_view text, int width) {
  std::vector<std::string> lines;
  while (true) {
    const size_t end = text.find('\n');
    add_wrapped(lines, text.substr(0, end), width);
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add_row(std::vector<std::string> cells) {
  CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> headings;
  for (const Column& column : columns_) headings.push_back(column.heading);
  const bool headed = std::any_of(headings.begin(), headings.end(), [](const auto& h) { return !h.empty(); });
  if (headed) lines.push_back(std::move(headings));
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  std::vector<int> widths(columns_.size());
  for (const auto& line : lines)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], display_width(line[i]));
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string pad = spaces(widths[i] - display_width(line[i]));
      row += i > 0 ? "  " : "";
      row += columns_[i].align == Align::right ? pad + line[i] : line[i] + pad;
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::string grouped_digits(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string human_count(int64_t count) {
  if (count < 1000) return std::to_string(count);
  constexpr std::string_view kUnits = "KMBT";
  double value = static_cast<double>(count) / 1000;
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kUnits[unit]);
}

std::string human_duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string progress_line(const Progress& progress, int width) {
  constexpr int kWidestBar = 30;
  constexpr int kNarrowestBar = 5;
  const std::string total = std::to_string(progress.total);
  std::string before = fmt::format("{} {:>{}}/{}", progress.label, progress.done, total.size(), total);
  std::string after;
  if (!progress.detail.empty()) after += fmt::format("  {}", progress.detail);
  if (progress.done > 0 && progress.done < progress.total) {
    const double left = progress.seconds / static_cast<double>(progress.done) *
                        static_cast<double>(progress.total - progress.done);
    after += fmt::format("  {} left", human_duration(left));
  } else if (progress.done > 0) {
    after += fmt::format("  {}", human_duration(progress.seconds));
  }
  const int room = width - display_width(before) - display_width(after) - 3;
  const int bar = std::min(kWidestBar, room);
  if (bar < kNarrowestBar || progress.total <= 0) return before + after;
  const int full = static_cast<int>(bar * std::min(progress.done, progress.total) / progress.total);
  return fmt::format("{} [{}{}]{}", before, std::string(static_cast<size_t>(full), '#'),
                     std::string(static_cast<size_t>(bar - full), '.'), after);
}

ProgressBar::ProgressBar(std::FILE* stream, std::string label, int64_t total)
    : stream_(stream),
      terminal_(terminal_of(stream)),
      label_(std::move(label)),
      total_(total),
      begin_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  finish();
}

void ProgressBar::update(int64_t done, std::string_view detail) {
  const auto now = std::chrono::steady_clock::now();
  const Progress progress{label_, done, total_, std::chrono::duration<double>(now - begin_).count(), detail};
  if (!terminal_.interactive) {
    const int64_t stride = std::max<int64_t>(1, total_ / 10);
    const bool due = done / stride > last_done_ / stride || done == total_ || last_done_ == 0;
    if (due && done != last_done_) {
      fmt::print(stream_, "{}\n", progress_line(progress, 0));
      std::fflush(stream_);
    }
    last_done_ = done;
    return;
  }
  last_done_ = done;
  line_ = progress_line(progress, terminal_.width - 1);
  constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
  if (drawn_ && done != total_ && now - last_drawn_ < kBetweenDrawings) return;
  fmt::print(stream_, "\r{}\x1b[K", line_);
  std::fflush(stream_);
  last_drawn_ = now;
  drawn_ = true;
}

void ProgressBar::clear() {
  if (!terminal_.interactive || !drawn_) return;
  fmt::print(stream_, "\r\x1b[K");
  std::fflush(stream_);
  drawn_ = false;
}

void ProgressBar::finish() {
  if (!terminal_.interactive || line_.empty()) return;
  fmt::print(stream_, "\r{}\x1b[K\n", line_);
  std::fflush(stream_);
  line_.clear();
  drawn_ = false;
}

}  // namespace tenon
