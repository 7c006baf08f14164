// What operators work on: literals, names, and what follows them: subscripts, calls, filters and tests.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_expression_parser.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

Value text_constant(std::string text) {
  const bool ascii = is_ascii(text);
  return Value::object(Kind::string, std::make_shared<Text>(Text{std::move(text), ascii, false}));
}

}  // namespace

ExprPtr ExpressionParser::parse_name(bool with_namespace) {
  const Token token = next();
  ExprPtr out = make(ExprKind::constant, token.at);
  if (token.text == "true" || token.text == "True") {
    out->constant = Value::boolean(true);
  } else if (token.text == "false" || token.text == "False") {
    out->constant = Value::boolean(false);
  } else if (token.text == "none" || token.text == "None") {
    out->constant = Value::none();
  } else {
    out->kind = ExprKind::name;
    out->name = token.text;
    if (with_namespace && skip_op(".")) {
      out->kind = ExprKind::ns_ref;
      out->attribute = expect_any_name().text;
    }
  }
  return out;
}

ExprPtr ExpressionParser::parse_primary(bool with_namespace) {
  const Token& token = current();
  switch (token.kind) {
    case TokenKind::name:
      return parse_name(with_namespace);
    case TokenKind::string: {
      ExprPtr out = make(ExprKind::constant, token.at);
      std::string text;
      while (current().kind == TokenKind::string) text += next().text;
      out->constant = text_constant(std::move(text));
      return out;
    }
    case TokenKind::integer: {
      ExprPtr out = make(ExprKind::constant, token.at);
      out->constant = Value::integer(next().integer);
      return out;
    }
    case TokenKind::real: {
      ExprPtr out = make(ExprKind::constant, token.at);
      out->constant = Value::real(next().real);
      return out;
    }
    default:
      break;
  }
  if (at_op("(")) {
    next();
    ExprPtr out = parse_tuple(true, {}, true);
    expect_op(")");
    return out;
  }
  if (at_op("[")) return parse_list();
  if (at_op("{")) return parse_dict();
  error(fmt::format("unexpected {}", quote(describe(token))));
}

ExprPtr ExpressionParser::parse_list() {
  ExprPtr out = make(ExprKind::list, expect_op("[").at);
  while (!at_op("]")) {
    if (!out->children.empty()) expect_op(",");
    if (at_op("]")) break;
    out = adopt(std::move(out), parse_expression());
  }
  expect_op("]");
  return out;
}

ExprPtr ExpressionParser::parse_dict() {
  ExprPtr out = make(ExprKind::dict, expect_op("{").at);
  while (!at_op("}")) {
    if (!out->children.empty()) expect_op(",");
    if (at_op("}")) break;
    out = adopt(std::move(out), parse_expression());
    expect_op(":");
    out = adopt(std::move(out), parse_expression());
  }
  expect_op("}");
  return out;
}

ExprPtr ExpressionParser::parse_postfix(ExprPtr node) {
  while (true) {
    if (at_op(".")) {
      node = parse_member(std::move(node));
    } else if (at_op("[")) {
      node = parse_subscript(std::move(node));
    } else if (at_op("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::parse_filter_expression(ExprPtr node) {
  while (true) {
    if (at_op("|")) {
      node = parse_filters(std::move(node));
    } else if (at_name("is")) {
      node = parse_test(std::move(node));
    } else if (at_op("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::parse_member(ExprPtr node) {
  const Position at = next().at;
  const Token attribute = next();
  if (attribute.kind == TokenKind::name) {
    ExprPtr out = adopt(make(ExprKind::member, at), std::move(node));
    out->attribute = attribute.text;
    out->constant = text_constant(attribute.text);
    return out;
  }
  if (attribute.kind != TokenKind::integer) error_at("expected name or number", attribute.at);
  ExprPtr index = make(ExprKind::constant, attribute.at);
  index->constant = Value::integer(attribute.integer);
  return pair(ExprKind::subscript, at, std::move(node), std::move(index));
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr node) {
  const Position at = expect_op("[").at;
  ExprPtr tuple = make(ExprKind::tuple, at);
  while (!at_op("]")) {
    if (!tuple->children.empty()) expect_op(",");
    tuple = adopt(std::move(tuple), parse_subscript_part());
  }
  expect_op("]");
  if (tuple->children.size() == 1) {
    ExprPtr only = std::move(tuple->children[0]);
    return pair(ExprKind::subscript, at, std::move(node), std::move(only));
  }
  for (const auto& child : tuple->children) {
    if (child->kind == ExprKind::slice) error_at("a slice cannot be one of several subscripts", child->at);
  }
  return pair(ExprKind::subscript, at, std::move(node), std::move(tuple));
}

ExprPtr ExpressionParser::parse_subscript_part() {
  const Position at = current().at;
  ExprPtr start;
  if (!at_op(":")) {
    start = parse_expression();
    if (!at_op(":")) return start;
  }
  next();
  ExprPtr stop;
  ExprPtr step;
  const auto at_end = [&] { return at_op("]") || at_op(","); };
  if (!at_op(":") && !at_end()) stop = parse_expression();
  if (skip_op(":") && !at_end()) step = parse_expression();
  ExprPtr out = pair(ExprKind::slice, at, std::move(start), std::move(stop));
  return adopt(std::move(out), std::move(step));
}

std::unique_ptr<Arguments> ExpressionParser::parse_arguments(int32_t& height) {
  const Position at = expect_op("(").at;
  auto out = std::make_unique<Arguments>();
  const auto ensure = [&](bool ok) {
    if (!ok) error_at("invalid syntax for function call expression", at);
  };
  const auto argument = [&] {
    ExprPtr value = parse_expression();
    height = std::max(height, value->height + 1);
    return value;
  };
  bool comma = false;
  while (!at_op(")")) {
    if (comma) {
      expect_op(",");
      if (at_op(")")) break;
    }
    if (at_op("*")) {
      ensure(out->star == nullptr && out->double_star == nullptr);
      next();
      out->star = argument();
    } else if (at_op("**")) {
      ensure(out->double_star == nullptr);
      next();
      out->double_star = argument();
    } else if (current().kind == TokenKind::name && look().kind == TokenKind::op && look().text == "=") {
      ensure(out->double_star == nullptr);
      const Token key = next();
      next();
      for (const auto& [other, value] : out->keywords) {
        if (other == key.text) error_at(fmt::format("keyword argument repeated: {}", key.text), key.at);
      }
      out->keywords.emplace_back(key.text, argument());
    } else {
      ensure(out->star == nullptr && out->double_star == nullptr && out->keywords.empty());
      out->positional.push_back(argument());
    }
    comma = true;
  }
  expect_op(")");
  return out;
}

ExprPtr ExpressionParser::parse_call(ExprPtr node) {
  ExprPtr out = make(ExprKind::call, current().at);
  out->arguments = parse_arguments(out->height);
  return adopt(std::move(out), std::move(node));
}

ExprPtr ExpressionParser::parse_filters(ExprPtr node, bool inline_start) {
  while (at_op("|") || inline_start) {
    if (!inline_start) next();
    inline_start = false;
    const Token token = expect_any_name();
    ExprPtr out = make(ExprKind::filter, token.at);
    out->name = token.text;
    while (skip_op(".")) out->name += "." + expect_any_name().text;
    if (at_op("(")) {
      out->arguments = parse_arguments(out->height);
    } else {
      out->arguments = std::make_unique<Arguments>();
    }
    node = adopt(std::move(out), std::move(node));
  }
  return node;
}

ExprPtr ExpressionParser::parse_test(ExprPtr node) {
  const Position at = next().at;
  const bool negated = skip_name("not");
  ExprPtr out = make(ExprKind::test, at);
  out->name = expect_any_name().text;
  while (skip_op(".")) out->name += "." + expect_any_name().text;
  out->arguments = std::make_unique<Arguments>();
  const TokenKind kind = current().kind;
  const bool argument = kind == TokenKind::name || kind == TokenKind::string || kind == TokenKind::integer ||
                        kind == TokenKind::real || at_op("[") || at_op("{");
  if (at_op("(")) {
    out->arguments = parse_arguments(out->height);
  } else if (argument && !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) error("You cannot chain multiple tests with is");
    ExprPtr value = parse_postfix(parse_primary());
    out->height = std::max(out->height, value->height + 1);
    out->arguments->positional.push_back(std::move(value));
  }
  out = adopt(std::move(out), std::move(node));
  return negated ? adopt(make(ExprKind::logical_not, at), std::move(out)) : std::move(out);
}

}  // namespace tenon::jinja
