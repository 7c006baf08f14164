// Statements: what they write and what they set. Scopes follow jinja_resolve.cc.
#include "text/jinja_eval.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_eval_guards.h"
#include "text/jinja_globals.h"

namespace tenon::jinja {
namespace {

constexpr int64_t kLoopSteps = 8;  // what entering a for block costs besides its elements

}  // namespace

// The filter of a for block has variables of its own, which sit in the same slots as those of the body.
struct Evaluator::LoopTest {
  std::shared_ptr<Activation> activation;
  std::vector<Value> values;
};

Evaluator::Evaluator(const Tree& tree, Runtime& runtime, const Value& variables, int64_t max_output_bytes)
    : tree_(tree), runtime_(runtime), variables_(variables), max_output_bytes_(max_output_bytes) {
  globals_ = make_globals(runtime);
}

// Rings of activations, macros, loops and namespaces fall apart once nothing of theirs holds a value.
Evaluator::~Evaluator() {
  for (const auto& space : runtime_.spaces) {
    for (auto& [name, value] : space->attributes) kept_values_.push_back(std::move(value));
    space->attributes.clear();
  }
  for (const auto& loop : runtime_.loops) kept_values_.push_back(std::move(loop->last_changed));
  for (const auto& activation : kept_) {
    for (auto& value : activation->slots) kept_values_.push_back(std::move(value));
    activation->slots.clear();
  }
}

void Evaluator::run() {
  auto root = std::make_shared<Activation>();
  root->slots.resize(static_cast<size_t>(tree_.slot_count));
  kept_.push_back(root);
  FrameGuard frame(*this, std::move(root));
  enter(tree_.loads);
  exec(tree_.body);
}

Value& Evaluator::slot(const Slot& slot) {
  Activation* activation = current_.get();
  for (int32_t i = 0; i < slot.hops; ++i) activation = activation->parent.get();
  return activation->slots[static_cast<size_t>(slot.index)];
}

Value Evaluator::resolve_variable(std::string_view name) {
  if (const Value* value = find(variables_, name)) return *value;
  for (const auto& [global, value] : globals_) {
    if (global == name) return value;
  }
  return Value();
}

void Evaluator::enter(const std::vector<Load>& loads) {
  for (const Load& load : loads) {
    Value& target = current_->slots[static_cast<size_t>(load.slot)];
    switch (load.what) {
      case Load::What::parameter:
        break;
      case Load::What::resolve:
        target = resolve_variable(load.name);
        break;
      case Load::What::alias:
        target = slot(load.from);
        break;
      case Load::What::unset:
        target = Value();
        break;
    }
  }
}

void Evaluator::leave(const std::vector<Load>& loads) {
  for (const Load& load : loads) current_->slots[static_cast<size_t>(load.slot)] = Value();
}

void Evaluator::write(std::string_view text) {
  if (static_cast<int64_t>(sink_->size() + text.size()) > max_output_bytes_) {
    fail_budget(fmt::format("the template writes more than {} bytes", max_output_bytes_));
  }
  runtime_.charge_copy(text);
  sink_->append(text);
}

Evaluator::Flow Evaluator::exec(const Block& block) {
  for (const auto& stmt : block) {
    const Flow flow = exec(*stmt);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::exec(const Stmt& stmt) {
  DepthGuard depth(runtime_);
  runtime_.charge(1);
  at_ = stmt.at;
  switch (stmt.kind) {
    case StmtKind::data:
      write(stmt.text);
      return Flow::normal;
    case StmtKind::output:
      for (const auto& expr : stmt.expressions) {
        const Value value = eval(*expr);
        if (value.is_string()) {
          write(value.text());
        } else {
          write(to_text(runtime_, value));
        }
      }
      return Flow::normal;
    case StmtKind::assign:
      exec_assign(stmt);
      return Flow::normal;
    case StmtKind::assign_block:
      return exec_assign_block(stmt);
    case StmtKind::if_block:
      return exec_if(stmt);
    case StmtKind::for_block:
      return exec_for(stmt);
    case StmtKind::with_block:
      return exec_with(stmt);
    case StmtKind::macro:
      exec_macro(stmt);
      return Flow::normal;
    case StmtKind::call_block:
      exec_call_block(stmt);
      return Flow::normal;
    case StmtKind::filter_block:
      return exec_filter_block(stmt);
    case StmtKind::generation:
      exec_generation(stmt);
      return Flow::normal;
    case StmtKind::scope:
      return exec_scope(stmt);
    case StmtKind::break_loop:
      return Flow::broke;
    case StmtKind::continue_loop:
      return Flow::continued;
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::exec_if(const Stmt& stmt) {
  for (size_t i = 0; i < stmt.expressions.size(); ++i) {
    if (truth(eval(*stmt.expressions[i]))) return exec(stmt.bodies[i]);
  }
  return stmt.bodies.size() > stmt.expressions.size() ? exec(stmt.bodies.back()) : Flow::normal;
}

void Evaluator::swap_slots(const std::vector<Load>& loads, std::vector<Value>& values) {
  for (size_t i = 0; i < loads.size(); ++i) {
    std::swap(current_->slots[static_cast<size_t>(loads[i].slot)], values[i]);
  }
}

bool Evaluator::passes_test(const Stmt& stmt, LoopTest& test, const Value& item) {
  SwapGuard frame(*this, test.activation);
  swap_slots(stmt.test_loads, test.values);
  assign(*stmt.target, item);
  const bool passes = truth(eval(*stmt.test));
  swap_slots(stmt.test_loads, test.values);
  return passes;
}

Evaluator::Flow Evaluator::exec_for(const Stmt& stmt) {
  const Value iterable = eval(*stmt.value);
  at_ = stmt.at;
  return exec_loop(stmt, iterable, 0);
}

// A break or continue in the else block belongs to the loop around this one, so it is handed on.
Evaluator::Flow Evaluator::exec_loop(const Stmt& stmt, const Value& iterable, int64_t depth0) {
  runtime_.charge(kLoopSteps);
  auto state = std::make_shared<LoopObject>();
  auto source = std::make_shared<ElementSource>(runtime_, iterable);
  state->depth0 = depth0;
  if (stmt.test == nullptr) {
    state->iterable = iterable;
    state->pull = [source](Runtime& runtime, Value& out) { return source->next(runtime, out); };
  } else {
    auto test = std::make_shared<LoopTest>();
    test->activation = current_;
    test->values.resize(stmt.test_loads.size());
    swap_slots(stmt.test_loads, test->values);
    enter(stmt.test_loads);
    swap_slots(stmt.test_loads, test->values);
    state->pull = [this, source, test, &stmt](Runtime& runtime, Value& out) {
      while (source->next(runtime, out)) {
        if (passes_test(stmt, *test, out)) return true;
      }
      return false;
    };
  }
  if (stmt.recursive) {
    state->recurse = [this, &stmt, activation = current_](Runtime& runtime, const Value& inner,
                                                          int64_t depth) {
      DepthGuard guard(runtime);
      SwapGuard frame(*this, activation);
      Capture capture(*this);
      // The inner run has the same variables: put back afterwards what it leaves behind.
      const std::vector<Value> slots = current_->slots;
      exec_loop(stmt, inner, depth);
      current_->slots = slots;
      return make_string(runtime, capture.take());
    };
  }
  const Value loop = Value::object(Kind::loop, state, std::min(kMaxValueDepth, iterable.depth() + 1));
  bool completed = false;
  Value item;
  while (loop_advance(runtime_, *state, item)) {
    assign(*stmt.target, item);
    if (stmt.loop_slot >= 0) current_->slots[static_cast<size_t>(stmt.loop_slot)] = loop;
    enter(stmt.loads);
    const Flow flow = exec(stmt.body);
    if (flow == Flow::broke) break;
    // jinja2 notes that the body ran at its end, which continue skips.
    if (flow == Flow::normal) completed = true;
  }
  leave(stmt.loads);
  return completed || stmt.otherwise.empty() ? Flow::normal : exec_else(stmt);
}

Evaluator::Flow Evaluator::exec_else(const Stmt& stmt) {
  enter(stmt.otherwise_loads);
  const Flow flow = exec(stmt.otherwise);
  leave(stmt.otherwise_loads);
  return flow;
}

Evaluator::Flow Evaluator::exec_with(const Stmt& stmt) {
  enter(stmt.loads);
  for (size_t i = 0; i < stmt.targets.size(); ++i) assign(*stmt.targets[i], eval(*stmt.expressions[i]));
  const Flow flow = exec(stmt.body);
  leave(stmt.loads);
  return flow;
}

Evaluator::Flow Evaluator::exec_assign_block(const Stmt& stmt) {
  enter(stmt.loads);
  Capture capture(*this);
  const Flow flow = exec(stmt.body);
  if (flow == Flow::normal) {
    Value value = make_string(runtime_, capture.take());
    if (stmt.value != nullptr) value = eval_filter_chain(*stmt.value, value);
    check_namespaces(*stmt.target);
    assign(*stmt.target, value);
  }
  leave(stmt.loads);
  return flow;
}

Evaluator::Flow Evaluator::exec_filter_block(const Stmt& stmt) {
  enter(stmt.loads);
  Capture capture(*this);
  const Flow flow = exec(stmt.body);
  const std::string text = capture.take();
  if (flow == Flow::normal) {
    write(to_text(runtime_, eval_filter_chain(*stmt.value, make_string(runtime_, text))));
  }
  leave(stmt.loads);
  return flow;
}

Evaluator::Flow Evaluator::exec_scope(const Stmt& stmt) {
  enter(stmt.loads);
  const Flow flow = exec(stmt.body);
  leave(stmt.loads);
  return flow;
}

void Evaluator::check_namespaces(const Expr& target) {
  if (target.kind == ExprKind::ns_ref && !slot(target.slot).is(Kind::space)) {
    fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
  }
  for (const auto& child : target.children) check_namespaces(*child);
}

void Evaluator::exec_assign(const Stmt& stmt) {
  check_namespaces(*stmt.target);
  const Value value = eval(*stmt.value);
  at_ = stmt.at;
  assign(*stmt.target, value);
}

void Evaluator::assign(const Expr& target, const Value& value) {
  if (target.kind == ExprKind::name) {
    slot(target.slot) = value;
    return;
  }
  if (target.kind == ExprKind::ns_ref) {
    Space& space = slot(target.slot).as<Space>();
    for (auto& [name, old] : space.attributes) {
      if (name == target.attribute) {
        old = value;
        return;
      }
    }
    space.attributes.emplace_back(target.attribute, value);
    return;
  }
  if (!is_iterable(value)) fail_type(fmt::format("cannot unpack non-iterable {} object", type_name(value)));
  const std::vector<Value> values = elements(runtime_, value);
  if (values.size() > target.children.size()) {
    fail_value(fmt::format("too many values to unpack (expected {})", target.children.size()));
  }
  if (values.size() < target.children.size()) {
    fail_value(fmt::format("not enough values to unpack (expected {}, got {})", target.children.size(),
                           values.size()));
  }
  for (size_t i = 0; i < values.size(); ++i) assign(*target.children[i], values[i]);
}

}  // namespace tenon::jinja
