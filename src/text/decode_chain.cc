#include "text/decode_chain.h"

#include <algorithm>
#include <utility>

#include "text/byte_level.h"
#include "text/unicode.h"

namespace tenon {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Undoes the spaces of tokenised English (tokenizers/src/decoders/wordpiece.rs).
void clean_up(std::string& text) {
  constexpr std::string_view kRules[][2] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& rule : kRules) replace_all(text, rule[0], rule[1]);
}

// The byte of "<0x41>"; -1 for other tokens.
int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

// Puts the space before a word, or takes the mark off what continues one.
void join_word(const DecodeWordPiece& step, bool first, std::string& text) {
  if (!step.word_prefix.empty()) {
    if (text.starts_with(step.word_prefix)) text.replace(0, step.word_prefix.size(), first ? "" : " ");
  } else if (!first) {
    if (text.starts_with(step.prefix)) {
      text.erase(0, step.prefix.size());
    } else {
      text.insert(0, " ");
    }
  }
}

std::string replaced(const DecodeReplace& step, std::string_view text) {
  std::string out;
  step.pattern.split(text, [&](TextRange range, bool is_match) {
    out.append(is_match ? std::string_view(step.content) : text.substr(range.begin, range.end - range.begin));
  });
  return out;
}

// Length of the longest end of `text` that begins `pattern` without being all of it.
size_t partial_match(std::string_view text, std::string_view pattern) {
  for (size_t n = std::min(text.size(), pattern.size() - 1); n > 0; --n) {
    if (text.ends_with(pattern.substr(0, n))) return n;
  }
  return 0;
}

// The end of the leading run of `content` in `text`, at most `limit` of them.
size_t leading_run(std::string_view text, std::string_view content, int64_t limit) {
  size_t at = 0;
  for (int64_t i = 0; i < limit && text.substr(at).starts_with(content); ++i) at += content.size();
  return at;
}

size_t trailing_run(std::string_view text, std::string_view content, int64_t limit) {
  size_t size = 0;
  for (int64_t i = 0; i < limit && text.substr(0, text.size() - size).ends_with(content); ++i) {
    size += content.size();
  }
  return size;
}

// One token in the middle of a text.
struct InMiddle {
  std::string& text;

  void operator()(const DecodeByteLevel&) {
    if (auto bytes = from_byte_level(text)) text = std::move(*bytes);
  }
  void operator()(const DecodeByteFallback&) {
    if (const int byte = fallback_byte(text); byte >= 0) text.assign(1, static_cast<char>(byte));
  }
  void operator()(const DecodeMetaspace& step) { replace_all(text, step.mark, " "); }
  void operator()(const DecodeWordPiece& step) { join_word(step, false, text); }
  void operator()(const DecodeBpe& step) { replace_all(text, step.suffix, " "); }
  void operator()(const DecodeCtc& step) {
    replace_all(text, step.pad, "");
    replace_all(text, step.word_delimiter, " ");
  }
  void operator()(const DecodeReplace& step) { text = replaced(step, text); }
  void operator()(const auto&) {}
};

}  // namespace

std::string bytes_of_token(const Decoder& steps, std::string_view token) {
  std::string text(token);
  for (const DecodeStep& step : steps) std::visit(InMiddle{text}, step);
  return text;
}

DecodeChain::DecodeChain(const Decoder& steps) : steps_(steps) {
  reset();
}

void DecodeChain::reset() {
  states_.assign(steps_.size(), State{});
  bool fused = false;
  for (size_t i = 0; i < steps_.size(); ++i) {
    states_[i].fused = fused;
    fused = fused || std::holds_alternative<DecodeFuse>(steps_[i]) ||
            std::holds_alternative<DecodeByteLevel>(steps_[i]);
  }
  tail_.clear();
}

struct DecodeChain::Push {
  DecodeChain& chain;
  size_t index;
  State& state;
  std::string_view token;

  void out(std::string_view text) { chain.emit(index + 1, text); }

  void operator()(const DecodeByteLevel&) {
    if (state.fused) {
      state.held.append(token);
      return;
    }
    const auto bytes = from_byte_level(token);
    state.held.append(bytes ? std::string_view(*bytes) : token);
    const size_t tail = incomplete_tail(state.held);
    std::string text;
    append_lossy(text, std::string_view(state.held).substr(0, state.held.size() - tail));
    state.held.erase(0, state.held.size() - tail);
    if (!text.empty()) out(text);
  }

  void operator()(const DecodeByteFallback&) {
    const int byte = state.fused ? -1 : fallback_byte(token);
    if (byte >= 0) {
      state.held.push_back(static_cast<char>(byte));
      return;
    }
    chain.flush_bytes(index);
    out(token);
  }

  void operator()(const DecodeFuse&) { out(token); }

  void operator()(const DecodeJoin&) {
    if (!state.first) out(" ");
    state.first = false;
    out(token);
  }

  void operator()(const DecodeMetaspace& step) {
    const bool drop = state.first && step.drop_first;
    if (!state.fused) state.first = false;
    std::string text(token);
    replace_all(text, step.mark, drop ? "" : " ");
    out(text);
  }

  void operator()(const DecodeWordPiece& step) {
    std::string text(token);
    join_word(step, state.first, text);
    state.first = false;
    if (step.cleanup) clean_up(text);
    out(text);
  }

  void operator()(const DecodeBpe& step) {
    if (state.last) {
      std::string text = std::move(*state.last);
      replace_all(text, step.suffix, " ");
      out(text);
    }
    state.last = std::string(token);
  }

  void operator()(const DecodeCtc& step) {
    if (state.last == token) return;
    state.last = std::string(token);
    std::string text(token);
    replace_all(text, step.pad, "");
    if (step.cleanup) {
      clean_up(text);
      replace_all(text, step.word_delimiter, " ");
    }
    if (!text.empty()) out(text);
  }

  void operator()(const DecodeReplace& step) {
    if (!state.fused) return out(replaced(step, token));
    state.held.append(token);
    if (!step.pattern.is_literal() || step.pattern.source().empty()) return;
    // Everything up to the last whole match is certain, and after it what cannot begin another.
    const std::string& pattern = step.pattern.source();
    size_t sure = 0;
    for (size_t at = state.held.find(pattern); at != std::string::npos; at = state.held.find(pattern, sure)) {
      sure = at + pattern.size();
    }
    sure =
        std::max(sure, state.held.size() - partial_match(std::string_view(state.held).substr(sure), pattern));
    out(replaced(step, std::string_view(state.held).substr(0, sure)));
    state.held.erase(0, sure);
  }

  void operator()(const DecodeStrip& step) {
    if (!state.fused) {
      const size_t begin = leading_run(token, step.content, step.start);
      const size_t end = token.size() - trailing_run(token.substr(begin), step.content, step.stop);
      return out(token.substr(begin, end - begin));
    }
    state.held.append(token);
    if (state.first) {
      const size_t begin = leading_run(state.held, step.content, step.start - state.count);
      state.count += static_cast<int64_t>(begin / step.content.size());
      state.held.erase(0, begin);
      const bool may_go_on = state.count < step.start && step.content.starts_with(state.held);
      if (may_go_on) return;
      state.first = false;
    }
    const size_t kept = trailing_run(state.held, step.content, step.stop);
    out(std::string_view(state.held).substr(0, state.held.size() - kept));
    state.held.erase(0, state.held.size() - kept);
  }
};

// What a step still holds when the tokens are over.
struct DecodeChain::Finish {
  DecodeChain& chain;
  size_t index;
  State& state;

  void out(std::string_view text) {
    if (!text.empty()) chain.emit(index + 1, text);
  }

  void operator()(const DecodeByteLevel&) {
    const auto bytes = state.fused ? from_byte_level(state.held) : std::nullopt;
    std::string text;
    append_lossy(text, bytes ? std::string_view(*bytes) : state.held);
    out(text);
  }
  void operator()(const DecodeByteFallback&) { chain.flush_bytes(index); }
  void operator()(const DecodeBpe& step) {
    if (!state.last) return;
    std::string text = std::move(*state.last);
    replace_all(text, step.suffix, "");
    out(text);
  }
  void operator()(const DecodeReplace& step) {
    if (!state.held.empty()) out(replaced(step, state.held));
  }
  void operator()(const DecodeStrip& step) {
    const size_t end = state.held.size() - trailing_run(state.held, step.content, step.stop);
    out(std::string_view(state.held).substr(0, end));
  }
  void operator()(const auto&) {}
};

void DecodeChain::flush_bytes(size_t step) {
  const std::string bytes = std::exchange(states_[step].held, {});
  if (bytes.empty()) return;
  if (is_valid_utf8(bytes)) return emit(step + 1, bytes);
  for (size_t i = 0; i < bytes.size(); ++i) emit(step + 1, kReplacement);
}

void DecodeChain::emit(size_t step, std::string_view token) {
  if (step == steps_.size()) return write(token);
  std::visit(Push{*this, step, states_[step], token}, steps_[step]);
}

void DecodeChain::write(std::string_view text) {
  if (tail_.empty() && is_valid_utf8(text)) {
    out_->append(text);
    return;
  }
  tail_.append(text);
  const size_t tail = incomplete_tail(tail_);
  append_lossy(*out_, std::string_view(tail_).substr(0, tail_.size() - tail));
  tail_.erase(0, tail_.size() - tail);
}

void DecodeChain::push(std::string_view token, std::string& out) {
  out_ = &out;
  emit(0, token);
}

void DecodeChain::finish(std::string& out) {
  out_ = &out;
  for (size_t i = 0; i < steps_.size(); ++i) std::visit(Finish{*this, i, states_[i]}, steps_[i]);
  append_lossy(out, tail_);
  reset();
}

}  // namespace tenon
