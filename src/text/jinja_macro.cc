// Macros, call blocks and generation blocks: bodies that run with variables of their own.
#include <fmt/format.h>

#include "text/jinja_eval.h"
#include "text/jinja_eval_guards.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {

void Evaluator::exec_macro(const Stmt& stmt) {
  slot(stmt.target->slot) = make_macro(*stmt.function);
}

void Evaluator::exec_call_block(const Stmt& stmt) {
  const Value caller = make_macro(*stmt.function);
  write(to_text(runtime_, eval_call(*stmt.value, &caller)));
}

void Evaluator::exec_generation(const Stmt& stmt) {
  const size_t begin = sink_->size();
  auto activation = std::make_shared<Activation>();
  activation->slots.resize(static_cast<size_t>(stmt.function->slot_count));
  activation->parent = current_;
  {
    FrameGuard frame(*this, std::move(activation));
    enter(stmt.function->loads);
    fill_defaults(*stmt.function);
    exec(stmt.function->body);
  }
  if (captures_ == 0) {
    spans_.push_back(ByteSpan{begin, sink_->size()});
  } else {
    spans_exact_ = false;
  }
}

Value Evaluator::make_macro(const FunctionBody& function) {
  Value out =
      make_function(function.name, "Macro", Value(),
                    [this, &function, closure = current_](Runtime&, const Value&, CallArguments arguments) {
                      return call_macro(function, closure, std::move(arguments));
                    });
  out.as<Function>().attribute = [&function](Runtime& runtime, std::string_view name) {
    if (name == "name") return function.name.empty() ? Value::none() : make_string(runtime, function.name);
    if (name == "catch_kwargs") return Value::boolean(function.kwargs_slot >= 0);
    if (name == "catch_varargs") return Value::boolean(function.varargs_slot >= 0);
    if (name == "caller") return Value::boolean(function.takes_caller);
    if (name != "arguments") return Value();
    std::vector<Value> names;
    for (const auto& parameter : function.parameters) names.push_back(make_string(runtime, parameter));
    return make_tuple(runtime, std::move(names));
  };
  return out;
}

Value Evaluator::call_macro(const FunctionBody& function, const std::shared_ptr<Activation>& closure,
                            CallArguments arguments) {
  DepthGuard depth(runtime_);
  const Position at = at_;
  auto activation = std::make_shared<Activation>();
  activation->slots.resize(static_cast<size_t>(function.slot_count));
  activation->parent = closure;
  bind_parameters(function, *activation, std::move(arguments));
  Capture capture(*this);
  FrameGuard frame(*this, std::move(activation));
  enter(function.loads);
  fill_defaults(function);
  exec(function.body);
  at_ = at;
  return make_string(runtime_, capture.take());
}

void Evaluator::bind_parameters(const FunctionBody& function, Activation& activation,
                                CallArguments arguments) {
  const size_t count = function.parameters.size();
  const size_t given = arguments.positional.size();
  auto& keywords = arguments.keywords;
  const auto pop = [&](std::string_view name) {
    for (auto it = keywords.begin(); it != keywords.end(); ++it) {
      if (it->first != name) continue;
      Value value = std::move(it->second);
      keywords.erase(it);
      return value;
    }
    return Value();
  };
  bool found_caller = false;
  for (size_t i = 0; i < count; ++i) {
    Value& target = activation.slots[static_cast<size_t>(function.parameter_slots[i])];
    const bool is_caller = function.parameters[i] == "caller";
    if (i < given) {
      target = arguments.positional[i];
      if (is_caller && given >= count) found_caller = true;
    } else {
      target = pop(function.parameters[i]);
      if (is_caller) found_caller = true;
    }
  }
  if (function.takes_caller && !found_caller && function.caller_slot >= 0) {
    Value caller = pop("caller");
    if (caller.is_missing() || caller.is(Kind::none)) caller = make_undefined("No caller defined");
    activation.slots[static_cast<size_t>(function.caller_slot)] = std::move(caller);
  }
  const std::string name = function.name.empty() ? "None" : quote(function.name);
  if (function.kwargs_slot >= 0) {
    DictBuilder dict(runtime_);
    for (auto& [key, value] : keywords) dict.set(make_string(runtime_, key), std::move(value));
    activation.slots[static_cast<size_t>(function.kwargs_slot)] = dict.finish();
  } else if (!keywords.empty()) {
    if (!pop("caller").is_missing()) {
      fail_type(
          fmt::format("macro {} was invoked with two values for the special caller argument. This is most "
                      "likely a bug.",
                      name));
    }
    fail_type(fmt::format("macro {} takes no keyword argument {}", name, quote(keywords[0].first)));
  }
  std::vector<Value> rest;
  for (size_t i = count; i < given; ++i) rest.push_back(arguments.positional[i]);
  if (function.varargs_slot >= 0) {
    activation.slots[static_cast<size_t>(function.varargs_slot)] = make_tuple(runtime_, std::move(rest));
  } else if (!rest.empty()) {
    fail_type(fmt::format("macro {} takes not more than {} argument(s)", name, count));
  }
}

void Evaluator::fill_defaults(const FunctionBody& function) {
  const size_t count = function.parameters.size();
  for (size_t i = 0; i < count; ++i) {
    const auto index = static_cast<size_t>(function.parameter_slots[i]);
    if (!current_->slots[index].is_missing()) continue;
    const size_t from_end = count - i;
    Value value =
        from_end <= function.defaults.size()
            ? eval(*function.defaults[function.defaults.size() - from_end])
            : make_undefined(fmt::format("parameter {} was not provided", quote(function.parameters[i])));
    current_->slots[index] = std::move(value);
  }
}

}  // namespace tenon::jinja
