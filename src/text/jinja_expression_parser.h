// The expressions of a template: tokens to Expr trees, by recursive descent over jinja2's grammar.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace tenon::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // The current token and the moves over it. End is never moved past.
  const Token& current() const { return tokens_[pos_]; }
  const Token& look() const { return tokens_[std::min(pos_ + 1, tokens_.size() - 1)]; }
  Token next();
  bool at_op(std::string_view op) const;
  bool at_name(std::string_view name) const;
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  Token expect_op(std::string_view op);
  Token expect_name(std::string_view name);
  Token expect_any_name();
  void expect(TokenKind kind);
  [[noreturn]] void error(std::string message) const;  // at the current token
  [[noreturn]] void error_at(std::string message, Position at) const;

  ExprPtr parse_expression(bool with_conditional = true);
  // One expression, or several with commas between as a tuple. `end_name` ends it besides a closing token.
  ExprPtr parse_tuple(bool with_conditional = true, std::string_view end_name = {},
                      bool parenthesized = false);
  // Names to assign to. ns.attribute too, if `with_namespace`.
  ExprPtr parse_target(std::string_view end_name = {}, bool with_namespace = false);
  ExprPtr parse_target_name();
  // |name(arguments)|...; `node` is null in filter blocks, whose first filter has no bar.
  ExprPtr parse_filters(ExprPtr node, bool inline_start = false);

 private:
  friend class Nesting;

  ExprPtr make(ExprKind kind, Position at) const;
  ExprPtr adopt(ExprPtr parent, ExprPtr child) const;
  ExprPtr pair(ExprKind kind, Position at, ExprPtr left, ExprPtr right) const;
  ExprPtr binary(const std::string& op, Position at, ExprPtr left, ExprPtr right) const;

  bool at_tuple_end(std::string_view end_name) const;
  ExprPtr parse_simple_tuple(std::string_view end_name, bool with_namespace);
  ExprPtr parse_conditional();
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filter = true);
  ExprPtr parse_primary(bool with_namespace = false);
  ExprPtr parse_name(bool with_namespace);
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr node);
  ExprPtr parse_filter_expression(ExprPtr node);
  ExprPtr parse_member(ExprPtr node);
  ExprPtr parse_subscript(ExprPtr node);
  ExprPtr parse_subscript_part();
  ExprPtr parse_call(ExprPtr node);
  ExprPtr parse_test(ExprPtr node);
  std::unique_ptr<Arguments> parse_arguments(int32_t& height);

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int nesting_ = 0;
};

}  // namespace tenon::jinja
