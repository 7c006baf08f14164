// Expressions: operators, lookups, calls, filters and tests.
#include <fmt/format.h>

#include "text/jinja_eval.h"
#include "text/jinja_filters.h"
#include "text/jinja_members.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {

Value Evaluator::eval(const Expr& expr) {
  DepthGuard depth(runtime_);
  runtime_.charge(1);
  at_ = expr.at;
  switch (expr.kind) {
    case ExprKind::constant:
      return expr.constant;
    case ExprKind::name:
      return eval_name(expr);
    case ExprKind::tuple:
      return make_tuple(runtime_, eval_all(expr.children));
    case ExprKind::list:
      return make_list(runtime_, eval_all(expr.children));
    case ExprKind::dict:
      return eval_dict(expr);
    case ExprKind::negate:
      return negate(eval(*expr.children[0]));
    case ExprKind::plus:
      return plus(eval(*expr.children[0]));
    case ExprKind::logical_not:
      return Value::boolean(!truth(eval(*expr.children[0])));
    case ExprKind::logical_and: {
      Value left = eval(*expr.children[0]);
      return truth(left) ? eval(*expr.children[1]) : left;
    }
    case ExprKind::logical_or: {
      Value left = eval(*expr.children[0]);
      return truth(left) ? left : eval(*expr.children[1]);
    }
    case ExprKind::binary: {
      const Value left = eval(*expr.children[0]);
      const Value right = eval(*expr.children[1]);
      at_ = expr.at;
      return binary_operation(runtime_, expr.name, left, right);
    }
    case ExprKind::concat:
      return eval_concat(expr);
    case ExprKind::compare:
      return eval_compare(expr);
    case ExprKind::member: {
      const Value owner = eval(*expr.children[0]);
      at_ = expr.at;
      return get_attribute(runtime_, owner, expr.constant);
    }
    case ExprKind::subscript:
      return eval_subscript(expr);
    case ExprKind::call:
      return eval_call(expr);
    case ExprKind::filter:
      return eval_filter(expr, eval(*expr.children[0]));
    case ExprKind::test:
      return eval_test(expr);
    case ExprKind::conditional:
      return eval_conditional(expr);
    case ExprKind::ns_ref:
    case ExprKind::slice:
      break;
  }
  return Value();
}

Value Evaluator::eval_name(const Expr& expr) {
  const Value& value = slot(expr.slot);
  return value.is_missing() ? undefined_variable(expr.name) : value;
}

std::vector<Value> Evaluator::eval_all(const std::vector<ExprPtr>& exprs) {
  std::vector<Value> out;
  out.reserve(exprs.size());
  for (const auto& expr : exprs) out.push_back(eval(*expr));
  return out;
}

Value Evaluator::eval_dict(const Expr& expr) {
  DictBuilder dict(runtime_);
  for (size_t i = 0; i + 1 < expr.children.size(); i += 2) {
    const Value key = eval(*expr.children[i]);
    dict.set(key, eval(*expr.children[i + 1]));
  }
  return dict.finish();
}

Value Evaluator::eval_concat(const Expr& expr) {
  std::string out;
  for (const auto& child : expr.children) {
    const Value value = eval(*child);
    if (value.is_string()) {
      out += value.text();
    } else {
      out += to_text(runtime_, value);
    }
    runtime_.check_string(static_cast<int64_t>(out.size()));
  }
  return make_string(runtime_, std::move(out));
}

Value Evaluator::eval_compare(const Expr& expr) {
  Value left = eval(*expr.children[0]);
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    Value right = eval(*expr.children[i + 1]);
    at_ = expr.at;
    if (!compare_operation(runtime_, expr.operators[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Evaluator::eval_subscript(const Expr& expr) {
  const Value owner = eval(*expr.children[0]);
  const Expr& index = *expr.children[1];
  if (index.kind != ExprKind::slice) {
    const Value key = eval(index);
    at_ = expr.at;
    return get_item(runtime_, owner, key);
  }
  Value bounds[3] = {Value::none(), Value::none(), Value::none()};
  for (size_t i = 0; i < 3; ++i) {
    if (index.children[i] != nullptr) bounds[i] = eval(*index.children[i]);
  }
  at_ = expr.at;
  return get_slice(runtime_, owner, bounds[0], bounds[1], bounds[2]);
}

CallArguments Evaluator::eval_arguments(const Arguments& arguments, const Value* caller) {
  CallArguments out;
  out.positional = eval_all(arguments.positional);
  for (const auto& [key, expr] : arguments.keywords) out.keywords.emplace_back(key, eval(*expr));
  if (caller != nullptr) out.keywords.emplace_back("caller", *caller);
  if (arguments.star != nullptr) {
    const Value star = eval(*arguments.star);
    if (!is_iterable(star))
      fail_type(fmt::format("argument after * must be an iterable, not {}", type_name(star)));
    for (Value& value : elements(runtime_, star)) out.positional.push_back(std::move(value));
  }
  if (arguments.double_star != nullptr) {
    const Value stars = eval(*arguments.double_star);
    if (!stars.is(Kind::dict))
      fail_type(fmt::format("argument after ** must be a mapping, not {}", type_name(stars)));
    for (const auto& [key, value] : stars.as<Dict>().entries) {
      if (!key.is_string()) fail_type("keywords must be strings");
      for (const auto& [other, old] : out.keywords) {
        if (other == key.text())
          fail_type(fmt::format("got multiple values for keyword argument {}", quote(other)));
      }
      out.keywords.emplace_back(std::string(key.text()), value);
    }
  }
  return out;
}

Value Evaluator::eval_call(const Expr& expr, const Value* caller) {
  const Value callee = eval(*expr.children[0]);
  CallArguments arguments = eval_arguments(*expr.arguments, caller);
  at_ = expr.at;
  return call_value(runtime_, callee, std::move(arguments));
}

Value Evaluator::eval_filter(const Expr& expr, Value input) {
  CallArguments arguments = eval_arguments(*expr.arguments);
  at_ = expr.at;
  return call_filter(runtime_, expr.name, input, std::move(arguments));
}

// The filters of a filter block or a block set; the innermost one has no operand and takes the text.
Value Evaluator::eval_filter_chain(const Expr& expr, const Value& input) {
  DepthGuard depth(runtime_);
  const ExprPtr& inner = expr.children[0];
  return eval_filter(expr, inner == nullptr ? input : eval_filter_chain(*inner, input));
}

Value Evaluator::eval_test(const Expr& expr) {
  const Value value = eval(*expr.children[0]);
  CallArguments arguments = eval_arguments(*expr.arguments);
  at_ = expr.at;
  return Value::boolean(call_test(runtime_, expr.name, value, std::move(arguments)));
}

Value Evaluator::eval_conditional(const Expr& expr) {
  if (truth(eval(*expr.children[0]))) return eval(*expr.children[1]);
  if (expr.children[2] != nullptr) return eval(*expr.children[2]);
  return make_undefined(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was defined.",
                  expr.at.line));
}

}  // namespace tenon::jinja
