// Runs a template: statements write to a text, expressions give values. One Evaluator is one render.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_loop.h"
#include "text/jinja_runtime.h"
#include "text/jinja_value.h"

namespace tenon::jinja {

// The variables of one call of a function (the template itself, a macro, a call block).
struct Activation {
  std::vector<Value> slots;
  std::shared_ptr<Activation> parent;  // of the function around it in the template
};

struct ByteSpan {
  size_t begin = 0;
  size_t end = 0;
};

class Evaluator {
 public:
  // `variables` is a dict with string keys; it and the tree outlive the evaluator.
  Evaluator(const Tree& tree, Runtime& runtime, const Value& variables, int64_t max_output_bytes);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  void run();  // throws Failure

  std::string take_text() { return std::move(text_); }
  std::vector<ByteSpan> take_spans() { return std::move(spans_); }
  bool spans_exact() const { return spans_exact_; }
  Position position() const { return at_; }  // of what ran last

 private:
  enum class Flow { normal, broke, continued };
  class Capture;
  class FrameGuard;
  class SwapGuard;
  struct LoopTest;

  // jinja_eval.cc: statements
  Flow exec(const Block& block);
  Flow exec(const Stmt& stmt);
  Flow exec_if(const Stmt& stmt);
  Flow exec_for(const Stmt& stmt);
  Flow exec_loop(const Stmt& stmt, const Value& iterable, int64_t depth0);
  Flow exec_else(const Stmt& stmt);
  Flow exec_with(const Stmt& stmt);
  Flow exec_assign_block(const Stmt& stmt);
  Flow exec_filter_block(const Stmt& stmt);
  Flow exec_scope(const Stmt& stmt);
  void exec_assign(const Stmt& stmt);
  bool passes_test(const Stmt& stmt, LoopTest& test, const Value& item);
  void swap_slots(const std::vector<Load>& loads, std::vector<Value>& values);
  void enter(const std::vector<Load>& loads);
  void leave(const std::vector<Load>& loads);
  void check_namespaces(const Expr& target);
  void assign(const Expr& target, const Value& value);
  void write(std::string_view text);
  Value resolve_variable(std::string_view name);
  Value& slot(const Slot& slot);

  // jinja_macro.cc: bodies with variables of their own
  void exec_macro(const Stmt& stmt);
  void exec_call_block(const Stmt& stmt);
  void exec_generation(const Stmt& stmt);
  Value make_macro(const FunctionBody& function);
  Value call_macro(const FunctionBody& function, const std::shared_ptr<Activation>& closure,
                   CallArguments arguments);
  void bind_parameters(const FunctionBody& function, Activation& activation, CallArguments arguments);
  void fill_defaults(const FunctionBody& function);

  // jinja_expression.cc: expressions
  Value eval(const Expr& expr);
  Value eval_name(const Expr& expr);
  std::vector<Value> eval_all(const std::vector<ExprPtr>& exprs);
  Value eval_dict(const Expr& expr);
  Value eval_concat(const Expr& expr);
  Value eval_compare(const Expr& expr);
  Value eval_subscript(const Expr& expr);
  Value eval_call(const Expr& expr, const Value* caller = nullptr);
  Value eval_filter(const Expr& expr, Value input);
  Value eval_filter_chain(const Expr& expr, const Value& input);
  Value eval_test(const Expr& expr);
  Value eval_conditional(const Expr& expr);
  CallArguments eval_arguments(const Arguments& arguments, const Value* caller = nullptr);

  const Tree& tree_;
  Runtime& runtime_;
  const Value& variables_;
  int64_t max_output_bytes_;
  std::string text_;
  std::string* sink_ = &text_;
  int captures_ = 0;
  std::vector<ByteSpan> spans_;
  bool spans_exact_ = true;
  Position at_;
  std::shared_ptr<Activation> current_;
  std::vector<std::pair<std::string, Value>> globals_;
  // What may refer to itself in a ring, to be taken apart at the end.
  std::vector<std::shared_ptr<Activation>> kept_;
  std::vector<Value> kept_values_;
};

}  // namespace tenon::jinja
