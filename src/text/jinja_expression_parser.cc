// Expressions: operators by precedence, then literals, calls, subscripts, filters and tests.
#include "text/jinja_expression_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_parser.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {

// Counts the nesting of brackets and prefix operators, whose parse recurses.
class Nesting {
 public:
  explicit Nesting(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxNesting) {
      throw Failure{ErrorCode::over_budget, "Budget",
                    fmt::format("expressions nest more than {} deep", kMaxNesting), parser_.current().at};
    }
  }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  ExpressionParser& parser_;
};

namespace {

std::string expected_message(std::string_view expected, const Token& got) {
  if (got.kind == TokenKind::end) return fmt::format("unexpected end of template, expected '{}'.", expected);
  return fmt::format("expected token '{}', got {}", expected, quote(describe(got)));
}

std::string_view kind_word(TokenKind kind) {
  switch (kind) {
    case TokenKind::block_end:
      return "end of statement block";
    case TokenKind::variable_end:
      return "end of print statement";
    case TokenKind::name:
      return "name";
    default:
      return "token";
  }
}

std::string_view node_name(ExprKind kind) {
  switch (kind) {
    case ExprKind::constant:
      return "const";
    case ExprKind::tuple:
      return "tuple";
    case ExprKind::list:
      return "list";
    case ExprKind::dict:
      return "dict";
    case ExprKind::name:
      return "name";
    default:
      return "expression";
  }
}

bool is_reserved(std::string_view name) {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" ||
         name == "None";
}

const Expr* unassignable(const Expr& target) {
  if (target.kind == ExprKind::name) return is_reserved(target.name) ? &target : nullptr;
  if (target.kind == ExprKind::ns_ref) return nullptr;
  if (target.kind != ExprKind::tuple) return &target;
  for (const auto& child : target.children) {
    if (unassignable(*child) != nullptr) return &target;
  }
  return nullptr;
}

}  // namespace

Token ExpressionParser::next() {
  Token token = tokens_[pos_];
  if (pos_ + 1 < tokens_.size()) ++pos_;
  return token;
}

bool ExpressionParser::at_op(std::string_view op) const {
  return current().kind == TokenKind::op && current().text == op;
}

bool ExpressionParser::at_name(std::string_view name) const {
  return current().kind == TokenKind::name && current().text == name;
}

bool ExpressionParser::skip_op(std::string_view op) {
  if (!at_op(op)) return false;
  next();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

Token ExpressionParser::expect_op(std::string_view op) {
  if (!at_op(op)) error(expected_message(op, current()));
  return next();
}

Token ExpressionParser::expect_name(std::string_view name) {
  if (!at_name(name)) error(expected_message(name, current()));
  return next();
}

Token ExpressionParser::expect_any_name() {
  if (current().kind != TokenKind::name) error(expected_message("name", current()));
  return next();
}

void ExpressionParser::expect(TokenKind kind) {
  if (current().kind != kind) error(expected_message(kind_word(kind), current()));
  next();
}

void ExpressionParser::error(std::string message) const {
  fail_syntax(std::move(message), current().at);
}
void ExpressionParser::error_at(std::string message, Position at) const {
  fail_syntax(std::move(message), at);
}

ExprPtr ExpressionParser::make(ExprKind kind, Position at) const {
  auto out = std::make_unique<Expr>();
  out->kind = kind;
  out->at = at;
  return out;
}

ExprPtr ExpressionParser::adopt(ExprPtr parent, ExprPtr child) const {
  if (child != nullptr) parent->height = std::max(parent->height, child->height + 1);
  if (parent->height > kMaxExprHeight) {
    throw Failure{ErrorCode::over_budget, "Budget",
                  fmt::format("an expression is more than {} operations deep", kMaxExprHeight), parent->at};
  }
  parent->children.push_back(std::move(child));
  return parent;
}

ExprPtr ExpressionParser::pair(ExprKind kind, Position at, ExprPtr left, ExprPtr right) const {
  return adopt(adopt(make(kind, at), std::move(left)), std::move(right));
}

ExprPtr ExpressionParser::binary(const std::string& op, Position at, ExprPtr left, ExprPtr right) const {
  ExprPtr out = pair(ExprKind::binary, at, std::move(left), std::move(right));
  out->name = op;
  return out;
}

ExprPtr ExpressionParser::parse_expression(bool with_conditional) {
  Nesting nesting(*this);
  return with_conditional ? parse_conditional() : parse_or();
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  return current().kind == TokenKind::variable_end || current().kind == TokenKind::block_end || at_op(")") ||
         (!end_name.empty() && at_name(end_name));
}

ExprPtr ExpressionParser::parse_tuple(bool with_conditional, std::string_view end_name, bool parenthesized) {
  ExprPtr tuple = make(ExprKind::tuple, current().at);
  bool is_tuple = false;
  while (true) {
    if (!tuple->children.empty()) expect_op(",");
    if (at_tuple_end(end_name)) break;
    tuple = adopt(std::move(tuple), parse_expression(with_conditional));
    if (!at_op(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return tuple;
  if (!tuple->children.empty()) return std::move(tuple->children[0]);
  if (!parenthesized) error(fmt::format("Expected an expression, got {}", quote(describe(current()))));
  return tuple;
}

ExprPtr ExpressionParser::parse_simple_tuple(std::string_view end_name, bool with_namespace) {
  Nesting nesting(*this);
  ExprPtr tuple = make(ExprKind::tuple, current().at);
  bool is_tuple = false;
  while (true) {
    if (!tuple->children.empty()) expect_op(",");
    if (at_tuple_end(end_name)) break;
    tuple = adopt(std::move(tuple), parse_primary(with_namespace));
    if (!at_op(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return tuple;
  if (tuple->children.empty())
    error(fmt::format("Expected an expression, got {}", quote(describe(current()))));
  return std::move(tuple->children[0]);
}

ExprPtr ExpressionParser::parse_target(std::string_view end_name, bool with_namespace) {
  ExprPtr target = parse_simple_tuple(end_name, with_namespace);
  if (const Expr* bad = unassignable(*target)) {
    error_at(fmt::format("can't assign to '{}'", node_name(bad->kind)), bad->at);
  }
  return target;
}

ExprPtr ExpressionParser::parse_target_name() {
  const Token token = expect_any_name();
  ExprPtr out = make(ExprKind::name, token.at);
  out->name = token.text;
  if (is_reserved(token.text)) error_at("can't assign to 'name'", token.at);
  return out;
}

ExprPtr ExpressionParser::parse_conditional() {
  Position at = current().at;
  ExprPtr value = parse_or();
  while (skip_name("if")) {
    ExprPtr test = parse_or();
    ExprPtr otherwise;
    if (skip_name("else")) {
      Nesting nesting(*this);
      otherwise = parse_conditional();
    }
    value = adopt(pair(ExprKind::conditional, at, std::move(test), std::move(value)), std::move(otherwise));
    at = current().at;
  }
  return value;
}

ExprPtr ExpressionParser::parse_or() {
  ExprPtr left = parse_and();
  while (at_name("or")) {
    const Position at = next().at;
    left = pair(ExprKind::logical_or, at, std::move(left), parse_and());
  }
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  ExprPtr left = parse_not();
  while (at_name("and")) {
    const Position at = next().at;
    left = pair(ExprKind::logical_and, at, std::move(left), parse_not());
  }
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  if (!at_name("not")) return parse_compare();
  Nesting nesting(*this);
  const Position at = next().at;
  return adopt(make(ExprKind::logical_not, at), parse_not());
}

ExprPtr ExpressionParser::parse_compare() {
  ExprPtr first = parse_sum();
  ExprPtr out;
  while (true) {
    std::string op;
    const Position at = current().at;
    for (std::string_view candidate : {"==", "!=", "<", "<=", ">", ">="}) {
      if (at_op(candidate)) op = candidate;
    }
    if (at_name("in")) op = "in";
    if (at_name("not") && look().kind == TokenKind::name && look().text == "in") {
      op = "not in";
      next();
    }
    if (op.empty()) break;
    next();
    if (out == nullptr) out = adopt(make(ExprKind::compare, at), std::move(first));
    out->operators.push_back(op);
    out = adopt(std::move(out), parse_sum());
  }
  return out != nullptr ? std::move(out) : std::move(first);
}

ExprPtr ExpressionParser::parse_sum() {
  ExprPtr left = parse_concat();
  while (at_op("+") || at_op("-")) {
    const Token op = next();
    left = binary(op.text, op.at, std::move(left), parse_concat());
  }
  return left;
}

ExprPtr ExpressionParser::parse_concat() {
  const Position at = current().at;
  ExprPtr first = parse_product();
  if (!at_op("~")) return first;
  ExprPtr out = adopt(make(ExprKind::concat, at), std::move(first));
  while (skip_op("~")) out = adopt(std::move(out), parse_product());
  return out;
}

ExprPtr ExpressionParser::parse_product() {
  ExprPtr left = parse_power();
  while (at_op("*") || at_op("/") || at_op("//") || at_op("%")) {
    const Token op = next();
    left = binary(op.text, op.at, std::move(left), parse_power());
  }
  return left;
}

ExprPtr ExpressionParser::parse_power() {
  ExprPtr left = parse_unary();
  while (at_op("**")) {
    const Token op = next();
    left = binary(op.text, op.at, std::move(left), parse_unary());
  }
  return left;
}

ExprPtr ExpressionParser::parse_unary(bool with_filter) {
  Nesting nesting(*this);
  ExprPtr node;
  if (at_op("-") || at_op("+")) {
    const Token op = next();
    node = adopt(make(op.text == "-" ? ExprKind::negate : ExprKind::plus, op.at), parse_unary(false));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filter ? parse_filter_expression(std::move(node)) : std::move(node);
}

}  // namespace tenon::jinja
