// The first walk over a block: its names.
#include "text/jinja_symbols.h"

namespace tenon::jinja {
namespace {

template <typename Visit>
void each_child(const Expr& expr, Visit visit) {
  for (const auto& child : expr.children) {
    if (child != nullptr) visit(*child);
  }
  if (expr.arguments == nullptr) return;
  for (const auto& value : expr.arguments->positional) visit(*value);
  for (const auto& [key, value] : expr.arguments->keywords) visit(*value);
  if (expr.arguments->star != nullptr) visit(*expr.arguments->star);
  if (expr.arguments->double_star != nullptr) visit(*expr.arguments->double_star);
}

void collect(Symbols& symbols, const Stmt& stmt);

void collect_if(Symbols& symbols, const Stmt& stmt, size_t branch) {
  collect(symbols, *stmt.expressions[branch]);
  Symbols body = symbols;
  collect(body, stmt.bodies[branch]);
  // An elif is an if inside the branch of all elifs, all of which start from the same names.
  std::vector<Symbols> branches;
  branches.push_back(std::move(body));
  if (branch == 0) {
    Symbols elifs = symbols;
    for (size_t i = 1; i < stmt.expressions.size(); ++i) collect_if(elifs, stmt, i);
    branches.push_back(std::move(elifs));
    Symbols otherwise = symbols;
    if (stmt.bodies.size() > stmt.expressions.size()) collect(otherwise, stmt.bodies.back());
    branches.push_back(std::move(otherwise));
  }
  symbols.join(branches);
}

void collect(Symbols& symbols, const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::output:
    case StmtKind::with_block:
      for (const auto& expr : stmt.expressions) collect(symbols, *expr);
      break;
    case StmtKind::assign:
      collect(symbols, *stmt.value);
      collect_target(symbols, *stmt.target, false);
      break;
    case StmtKind::assign_block:
      collect_target(symbols, *stmt.target, false);
      break;
    case StmtKind::if_block:
      collect_if(symbols, stmt, 0);
      break;
    case StmtKind::for_block:
    case StmtKind::call_block:
    case StmtKind::filter_block:
      collect(symbols, *stmt.value);
      break;
    case StmtKind::macro:
      symbols.store(stmt.target->name);
      break;
    default:
      break;
  }
}

class Mentions {
 public:
  explicit Mentions(std::set<std::string> names) : names_(std::move(names)) {}
  std::set<std::string> found;

  void look(const Expr& expr) {
    if (expr.kind == ExprKind::name && names_.count(expr.name) != 0) found.insert(expr.name);
    each_child(expr, [&](const Expr& child) { look(child); });
  }
  void look(const Block& block) {
    for (const auto& stmt : block) look(*stmt);
  }

 private:
  void set(const Expr& target) {
    if (target.kind == ExprKind::name) names_.erase(target.name);
    for (const auto& child : target.children) set(*child);
  }

  void look(const Stmt& stmt) {
    if (stmt.target != nullptr && stmt.kind != StmtKind::macro) set(*stmt.target);
    for (const auto& target : stmt.targets) set(*target);
    for (const auto& expr : stmt.expressions) look(*expr);
    if (stmt.value != nullptr) look(*stmt.value);
    if (stmt.test != nullptr) look(*stmt.test);
    look(stmt.body);
    look(stmt.otherwise);
    for (const auto& body : stmt.bodies) look(body);
    if (stmt.function == nullptr) return;
    for (const auto& parameter : stmt.function->parameters) names_.erase(parameter);
    for (const auto& value : stmt.function->defaults) look(*value);
    look(stmt.function->body);
  }

  std::set<std::string> names_;
};

}  // namespace

void collect(Symbols& symbols, const Expr& expr) {
  if (expr.kind == ExprKind::name || expr.kind == ExprKind::ns_ref) symbols.load(expr.name);
  each_child(expr, [&](const Expr& child) { collect(symbols, child); });
}

void collect_target(Symbols& symbols, const Expr& target, bool parameter) {
  if (target.kind == ExprKind::name) {
    if (parameter) {
      symbols.declare(target.name);
    } else {
      symbols.store(target.name);
    }
  } else if (target.kind == ExprKind::ns_ref) {
    symbols.load(target.name);
  }
  for (const auto& child : target.children) collect_target(symbols, *child, parameter);
}

void collect(Symbols& symbols, const Block& block) {
  for (const auto& stmt : block) collect(symbols, *stmt);
}

std::set<std::string> names_read(const Block& block, std::set<std::string> names) {
  Mentions mentions(std::move(names));
  mentions.look(block);
  return std::move(mentions.found);
}

}  // namespace tenon::jinja
