// Two walks over each block, as jinja2 has them: one finds the names that the block loads and stores
// (Symbols), the next gives slots to its expressions and goes on into the blocks inside.
#include "text/jinja_resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/jinja_filters.h"
#include "text/jinja_symbols.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

class Resolver {
 public:
  explicit Resolver(Tree& tree) : tree_(tree) {}

  void run() {
    FunctionScope root;
    Symbols symbols;
    symbols.function = &root;
    collect(symbols, tree_.body);
    walk(symbols, tree_.body, false);
    tree_.loads = loads(symbols);
    tree_.slot_count = static_cast<int32_t>(root.slots.size());
    tree_.variables.assign(variables_.begin(), variables_.end());
  }

 private:
  static Symbols inner(Symbols& parent, FunctionScope* function) {
    Symbols out;
    out.parent = &parent;
    out.function = function;
    out.level = parent.level + 1;
    return out;
  }

  static Slot slot(const Reference& ref, const FunctionScope* function) {
    int32_t hops = 0;
    for (const FunctionScope* f = function; f != ref.function; f = f->parent) ++hops;
    return Slot{hops, ref.slot};
  }

  std::vector<Load> loads(const Symbols& symbols) {
    std::vector<Load> out;
    for (const auto& load : symbols.loads) {
      Load next{load.what, load.target.slot, {}, {}};
      if (load.what == Load::What::resolve) {
        next.name = load.name;
        variables_.insert(load.name);
      }
      if (load.what == Load::What::alias) next.from = slot(load.from, symbols.function);
      out.push_back(std::move(next));
    }
    return out;
  }

  static bool is_parameter(const Symbols& symbols, const Reference& ref) {
    for (const Symbols* s = &symbols; s != nullptr; s = s->parent) {
      for (const auto& load : s->loads) {
        if (load.target == ref) return load.what == Load::What::parameter;
      }
    }
    return false;
  }

  // Second walk. `soft`: inside an if, where a missing filter fails only when it is reached.
  void walk(Symbols& symbols, Expr& expr, bool soft) {
    if (expr.kind == ExprKind::name || expr.kind == ExprKind::ns_ref) {
      if (symbols.find(expr.name) == nullptr) symbols.load(expr.name);
      const Reference ref = *symbols.find(expr.name);
      if (expr.name == "self" && !is_parameter(symbols, ref)) {
        throw Failure{ErrorCode::unsupported, "Unsupported", "the variable 'self' is not supported", expr.at};
      }
      expr.slot = slot(ref, symbols.function);
    }
    if (!soft && expr.kind == ExprKind::filter && !filter_exists(expr.name)) {
      fail_syntax(fmt::format("No filter named {}.", quote(expr.name)), expr.at);
    }
    if (!soft && expr.kind == ExprKind::test && !test_exists(expr.name)) {
      fail_syntax(fmt::format("No test named {}.", quote(expr.name)), expr.at);
    }
    const bool inner_soft = soft || expr.kind == ExprKind::conditional;
    for (auto& child : expr.children) {
      if (child != nullptr) walk(symbols, *child, inner_soft);
    }
    if (expr.arguments == nullptr) return;
    for (auto& value : expr.arguments->positional) walk(symbols, *value, soft);
    for (auto& [key, value] : expr.arguments->keywords) walk(symbols, *value, soft);
    if (expr.arguments->star != nullptr) walk(symbols, *expr.arguments->star, soft);
    if (expr.arguments->double_star != nullptr) walk(symbols, *expr.arguments->double_star, soft);
  }

  void walk(Symbols& symbols, Block& block, bool soft) {
    for (auto& stmt : block) walk(symbols, *stmt, soft);
  }

  void walk(Symbols& symbols, Stmt& stmt, bool soft) {
    switch (stmt.kind) {
      case StmtKind::output:
        for (auto& expr : stmt.expressions) walk(symbols, *expr, soft);
        break;
      case StmtKind::assign:
        walk(symbols, *stmt.target, soft);
        walk(symbols, *stmt.value, soft);
        break;
      case StmtKind::if_block:
        for (auto& expr : stmt.expressions) walk(symbols, *expr, true);
        for (auto& body : stmt.bodies) walk(symbols, body, true);
        break;
      case StmtKind::for_block:
        walk_for(symbols, stmt, soft);
        break;
      case StmtKind::assign_block:
      case StmtKind::filter_block:
      case StmtKind::scope:
        walk_captured(symbols, stmt, soft);
        break;
      case StmtKind::with_block:
        walk_with(symbols, stmt, soft);
        break;
      case StmtKind::macro:
        walk_function(symbols, *stmt.function, stmt.at);
        walk(symbols, *stmt.target, soft);
        break;
      case StmtKind::call_block:
        walk_function(symbols, *stmt.function, stmt.at);
        walk(symbols, *stmt.value, soft);
        break;
      case StmtKind::generation:
        walk_function(symbols, *stmt.function, stmt.at);
        break;
      default:
        break;
    }
  }

  void walk_for(Symbols& symbols, Stmt& stmt, bool soft) {
    stmt.uses_loop = stmt.recursive || !names_read(stmt.body, {"loop"}).empty();
    refuse_loop_target(stmt);
    walk(symbols, *stmt.value, soft);

    Symbols body = inner(symbols, symbols.function);
    if (stmt.uses_loop) stmt.loop_slot = body.declare("loop").slot;
    collect_target(body, *stmt.target, true);
    collect(body, stmt.body);
    walk(body, *stmt.target, false);

    if (stmt.test != nullptr) {
      Symbols test = inner(symbols, symbols.function);
      collect_target(test, *stmt.target, true);
      collect(test, *stmt.test);
      walk(test, *stmt.test, false);
      stmt.test_loads = loads(test);
    }
    walk(body, stmt.body, false);
    stmt.loads = loads(body);

    Symbols otherwise = inner(symbols, symbols.function);
    collect(otherwise, stmt.otherwise);
    walk(otherwise, stmt.otherwise, false);
    stmt.otherwise_loads = loads(otherwise);
  }

  static void refuse_loop_name(const Expr& target) {
    if (target.kind == ExprKind::name && target.name == "loop") {
      fail_syntax("Can't assign to special loop variable in for-loop target", target.at);
    }
    for (const auto& child : target.children) refuse_loop_name(*child);
  }

  static void refuse_loop_stores(const Block& block) {
    for (const auto& stmt : block) {
      if (stmt->target != nullptr) refuse_loop_name(*stmt->target);
      refuse_loop_stores(stmt->body);
      refuse_loop_stores(stmt->otherwise);
      for (const auto& body : stmt->bodies) refuse_loop_stores(body);
      if (stmt->function != nullptr) refuse_loop_stores(stmt->function->body);
    }
  }

  static void refuse_loop_target(const Stmt& stmt) {
    refuse_loop_name(*stmt.target);
    refuse_loop_stores(stmt.body);
    refuse_loop_stores(stmt.otherwise);
  }

  void walk_captured(Symbols& symbols, Stmt& stmt, bool soft) {
    Symbols body = inner(symbols, symbols.function);
    collect(body, stmt.body);
    if (stmt.value != nullptr) {
      collect(body, *stmt.value);
      walk(body, *stmt.value, false);
    }
    walk(body, stmt.body, false);
    stmt.loads = loads(body);
    if (stmt.target != nullptr) walk(symbols, *stmt.target, soft);
  }

  void walk_with(Symbols& symbols, Stmt& stmt, bool soft) {
    Symbols body = inner(symbols, symbols.function);
    for (const auto& target : stmt.targets) collect_target(body, *target, true);
    collect(body, stmt.body);
    for (auto& target : stmt.targets) walk(body, *target, false);
    for (auto& expr : stmt.expressions) walk(symbols, *expr, soft);
    walk(body, stmt.body, false);
    stmt.loads = loads(body);
  }

  void walk_function(Symbols& symbols, FunctionBody& function, Position at) {
    FunctionScope scope;
    scope.parent = symbols.function;
    Symbols body = inner(symbols, &scope);
    for (const auto& name : function.parameters) function.parameter_slots.push_back(body.declare(name).slot);
    declare_specials(body, function, at);
    for (const auto& value : function.defaults) collect(body, *value);
    collect(body, function.body);
    for (auto& value : function.defaults) walk(body, *value, false);
    walk(body, function.body, false);
    function.loads = loads(body);
    function.slot_count = static_cast<int32_t>(scope.slots.size());
  }

  static void declare_specials(Symbols& body, FunctionBody& function, Position at) {
    const auto read = names_read(function.body, {"caller", "kwargs", "varargs"});
    const auto is_named = [&](std::string_view name) {
      return std::find(function.parameters.begin(), function.parameters.end(), name) !=
             function.parameters.end();
    };
    if (read.count("caller") != 0) {
      function.takes_caller = true;
      if (!is_named("caller")) {
        function.caller_slot = body.declare("caller").slot;
      } else {
        const auto index =
            static_cast<size_t>(std::find(function.parameters.begin(), function.parameters.end(), "caller") -
                                function.parameters.begin());
        if (index + function.defaults.size() < function.parameters.size()) {
          fail_syntax(
              "When defining macros or call blocks the special \"caller\" argument must be omitted or be "
              "given a default.",
              at);
        }
      }
    }
    if (read.count("kwargs") != 0 && !is_named("kwargs")) {
      function.kwargs_slot = body.declare("kwargs").slot;
    }
    if (read.count("varargs") != 0 && !is_named("varargs")) {
      function.varargs_slot = body.declare("varargs").slot;
    }
  }

  Tree& tree_;
  std::set<std::string> variables_;
};

}  // namespace

void resolve(Tree& tree) {
  Resolver(tree).run();
}

}  // namespace tenon::jinja
