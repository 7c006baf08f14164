// What the evaluator changes for a while and puts back: its output and the variables it works on. Only for
// the jinja_*.cc files that implement Evaluator.
#pragma once

#include <string>
#include <utility>

#include "text/jinja_eval.h"

namespace tenon::jinja {

// Sends what is written to a text of its own while it lives.
class Evaluator::Capture {
 public:
  explicit Capture(Evaluator& evaluator) : evaluator_(evaluator), before_(evaluator.sink_) {
    evaluator_.sink_ = &text_;
    ++evaluator_.captures_;
  }
  ~Capture() { stop(); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::string take() {
    stop();
    return std::move(text_);
  }

 private:
  void stop() {
    if (stopped_) return;
    stopped_ = true;
    evaluator_.sink_ = before_;
    --evaluator_.captures_;
  }

  Evaluator& evaluator_;
  std::string* before_;
  std::string text_;
  bool stopped_ = false;
};

// Makes an activation the current one while it lives, and remembers it if something else still holds it.
class Evaluator::FrameGuard {
 public:
  FrameGuard(Evaluator& evaluator, std::shared_ptr<Activation> activation)
      : evaluator_(evaluator), before_(std::exchange(evaluator.current_, std::move(activation))) {}
  ~FrameGuard() {
    auto mine = std::exchange(evaluator_.current_, std::move(before_));
    if (mine.use_count() > 1) evaluator_.kept_.push_back(std::move(mine));
  }
  FrameGuard(const FrameGuard&) = delete;
  FrameGuard& operator=(const FrameGuard&) = delete;

 private:
  Evaluator& evaluator_;
  std::shared_ptr<Activation> before_;
};

// Runs a loop's own code with the variables of its function, whoever asks for it.
class Evaluator::SwapGuard {
 public:
  SwapGuard(Evaluator& evaluator, std::shared_ptr<Activation> activation)
      : evaluator_(evaluator), before_(std::exchange(evaluator.current_, std::move(activation))) {}
  ~SwapGuard() { evaluator_.current_ = std::move(before_); }
  SwapGuard(const SwapGuard&) = delete;
  SwapGuard& operator=(const SwapGuard&) = delete;

 private:
  Evaluator& evaluator_;
  std::shared_ptr<Activation> before_;
};

}  // namespace tenon::jinja
