// Statements: the blocks of a template, each read up to its end tag.
#include "text/jinja_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/jinja_expression_parser.h"
#include "text/jinja_resolve.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

using Names = std::vector<std::string>;

class StatementParser {
 public:
  explicit StatementParser(std::vector<Token> tokens) : p_(std::move(tokens)) {}

  Block parse_all() { return parse_until({}); }
  bool has_generation() const { return has_generation_; }

 private:
  StmtPtr make(StmtKind kind, Position at) const {
    auto out = std::make_unique<Stmt>();
    out->kind = kind;
    out->at = at;
    return out;
  }

  bool at_any(const Names& names) const {
    return p_.current().kind == TokenKind::name &&
           std::find(names.begin(), names.end(), p_.current().text) != names.end();
  }

  static std::string joined(const Names& names) {
    std::string out;
    for (const auto& name : names) out += (out.empty() ? "" : " or ") + quote(name);
    return out;
  }

  [[noreturn]] void fail_at_end(const std::string* tag, Position at) const {
    std::string message = tag == nullptr ? "Unexpected end of template."
                                         : fmt::format("Encountered unknown tag {}.", quote(*tag));
    if (!ends_.empty()) {
      bool expected = false;
      for (const Names& names : ends_) {
        expected = expected || (tag != nullptr && std::find(names.begin(), names.end(), *tag) != names.end());
      }
      message += expected
                     ? fmt::format(
                           " You probably made a nesting mistake. Jinja is expecting this tag, but "
                           "currently looking for {}.",
                           joined(ends_.back()))
                     : fmt::format(" Jinja was looking for the following tags: {}.", joined(ends_.back()));
    }
    if (!tags_.empty()) {
      message += fmt::format(" The innermost block that needs to be closed is {}.", quote(tags_.back()));
    }
    fail_syntax(std::move(message), at);
  }

  // Statements up to a block that starts with one of `ends`, whose name is then the current token; without
  // ends, to the end of the template.
  Block parse_until(const Names& ends) {
    Block body;
    while (true) {
      switch (p_.current().kind) {
        case TokenKind::end:
          return body;
        case TokenKind::data: {
          StmtPtr data = make(StmtKind::data, p_.current().at);
          data->text = p_.next().text;
          body.push_back(std::move(data));
          break;
        }
        case TokenKind::variable_begin: {
          StmtPtr output = make(StmtKind::output, p_.next().at);
          output->expressions.push_back(p_.parse_tuple());
          p_.expect(TokenKind::variable_end);
          body.push_back(std::move(output));
          break;
        }
        default:
          p_.expect(TokenKind::block_begin);
          if (at_any(ends)) return body;
          body.push_back(parse_statement());
          p_.expect(TokenKind::block_end);
      }
    }
  }

  // The body of a block: from the end of its tag to a block that starts with one of `ends`.
  Block parse_body(const Names& ends) {
    p_.skip_op(":");
    p_.expect(TokenKind::block_end);
    ends_.push_back(ends);
    Block body = parse_until(ends);
    if (p_.current().kind == TokenKind::end) fail_at_end(nullptr, p_.current().at);
    ends_.pop_back();
    return body;
  }

  Block parse_body_and_end(const std::string& end) {
    Block body = parse_body({end});
    p_.next();
    return body;
  }

  StmtPtr parse_statement() {
    if (p_.current().kind != TokenKind::name) p_.error("tag name expected");
    if (static_cast<int>(tags_.size()) >= kMaxNesting) {
      throw Failure{ErrorCode::over_budget, "Budget",
                    fmt::format("blocks nest more than {} deep", kMaxNesting), p_.current().at};
    }
    const std::string tag = p_.current().text;
    tags_.push_back(tag);
    StmtPtr out = parse_tag(tag);
    tags_.pop_back();
    return out;
  }

  StmtPtr parse_tag(const std::string& tag) {
    if (tag == "if") return parse_if();
    if (tag == "for") return parse_for();
    if (tag == "set") return parse_set();
    if (tag == "print") return parse_print();
    if (tag == "macro") return parse_macro();
    if (tag == "call") return parse_call_block();
    if (tag == "filter") return parse_filter_block();
    if (tag == "with") return parse_with();
    if (tag == "generation") return parse_generation();
    if (tag == "break" || tag == "continue") return parse_jump(tag);
    if (tag == "autoescape") return parse_autoescape();
    for (const char* other : {"include", "import", "from", "extends", "block"}) {
      if (tag == other) {
        throw Failure{ErrorCode::unsupported, "Unsupported",
                      fmt::format("a chat template is one file, so '{}' is not supported", tag),
                      p_.current().at};
      }
    }
    tags_.pop_back();
    fail_at_end(&tag, p_.current().at);
  }

  StmtPtr parse_set() {
    StmtPtr out = make(StmtKind::assign, p_.next().at);
    out->target = p_.parse_target({}, true);
    if (p_.skip_op("=")) {
      out->value = p_.parse_tuple();
      return out;
    }
    out->kind = StmtKind::assign_block;
    out->value = p_.parse_filters(nullptr);
    out->body = parse_body_and_end("endset");
    return out;
  }

  StmtPtr parse_for() {
    StmtPtr out = make(StmtKind::for_block, p_.next().at);
    out->target = p_.parse_target("in");
    p_.expect_name("in");
    out->value = p_.parse_tuple(false, "recursive");
    if (p_.skip_name("if")) out->test = p_.parse_expression();
    out->recursive = p_.skip_name("recursive");
    ++loops_;
    out->body = parse_body({"endfor", "else"});
    --loops_;
    if (p_.next().text == "endfor") return out;
    out->otherwise = parse_body_and_end("endfor");
    return out;
  }

  StmtPtr parse_if() {
    StmtPtr out = make(StmtKind::if_block, p_.next().at);
    bool more = true;
    while (more) {
      out->expressions.push_back(p_.parse_tuple(false));
      out->bodies.push_back(parse_body({"elif", "else", "endif"}));
      more = p_.at_name("elif");
      const bool otherwise = p_.at_name("else");
      p_.next();
      if (otherwise) out->bodies.push_back(parse_body_and_end("endif"));
    }
    return out;
  }

  StmtPtr parse_with() {
    StmtPtr out = make(StmtKind::with_block, p_.next().at);
    while (p_.current().kind != TokenKind::block_end) {
      if (!out->targets.empty()) p_.expect_op(",");
      out->targets.push_back(p_.parse_target());
      p_.expect_op("=");
      out->expressions.push_back(p_.parse_expression());
    }
    out->body = parse_body_and_end("endwith");
    return out;
  }

  StmtPtr parse_print() {
    StmtPtr out = make(StmtKind::output, p_.next().at);
    while (p_.current().kind != TokenKind::block_end) {
      if (!out->expressions.empty()) p_.expect_op(",");
      out->expressions.push_back(p_.parse_expression());
    }
    return out;
  }

  void parse_signature(FunctionBody& function) {
    p_.expect_op("(");
    while (!p_.at_op(")")) {
      if (!function.parameters.empty()) p_.expect_op(",");
      const ExprPtr name = p_.parse_target_name();
      if (std::find(function.parameters.begin(), function.parameters.end(), name->name) !=
          function.parameters.end()) {
        p_.error_at(fmt::format("duplicate argument {} in function definition", quote(name->name)), name->at);
      }
      if (p_.skip_op("=")) {
        function.defaults.push_back(p_.parse_expression());
      } else if (!function.defaults.empty()) {
        p_.error("non-default argument follows default argument");
      }
      function.parameters.push_back(name->name);
    }
    p_.expect_op(")");
  }

  // A body that runs as a function: a loop around it is not its loop.
  Block parse_function_body(const std::string& end) {
    const int loops = std::exchange(loops_, 0);
    Block body = parse_body_and_end(end);
    loops_ = loops;
    return body;
  }

  StmtPtr parse_macro() {
    StmtPtr out = make(StmtKind::macro, p_.next().at);
    out->target = p_.parse_target_name();
    out->function = std::make_unique<FunctionBody>();
    out->function->name = out->target->name;
    parse_signature(*out->function);
    out->function->body = parse_function_body("endmacro");
    return out;
  }

  StmtPtr parse_call_block() {
    StmtPtr out = make(StmtKind::call_block, p_.next().at);
    out->function = std::make_unique<FunctionBody>();
    if (p_.at_op("(")) parse_signature(*out->function);
    out->value = p_.parse_expression();
    if (out->value->kind != ExprKind::call) p_.error_at("expected call", out->at);
    out->function->body = parse_function_body("endcall");
    return out;
  }

  StmtPtr parse_generation() {
    StmtPtr out = make(StmtKind::generation, p_.next().at);
    has_generation_ = true;
    out->function = std::make_unique<FunctionBody>();
    out->function->body = parse_function_body("endgeneration");
    return out;
  }

  StmtPtr parse_filter_block() {
    StmtPtr out = make(StmtKind::filter_block, p_.next().at);
    out->value = p_.parse_filters(nullptr, true);
    out->body = parse_body_and_end("endfilter");
    return out;
  }

  StmtPtr parse_jump(const std::string& tag) {
    StmtPtr out = make(tag == "break" ? StmtKind::break_loop : StmtKind::continue_loop, p_.next().at);
    if (loops_ == 0) {
      p_.error_at(tag == "break" ? "'break' outside loop" : "'continue' not properly in loop", out->at);
    }
    return out;
  }

  StmtPtr parse_autoescape() {
    StmtPtr out = make(StmtKind::scope, p_.next().at);
    const ExprPtr on = p_.parse_expression();
    if (on->kind != ExprKind::constant || truth(on->constant)) {
      throw Failure{ErrorCode::unsupported, "Unsupported", "automatic escaping is not supported", out->at};
    }
    out->body = parse_body_and_end("endautoescape");
    return out;
  }

  ExpressionParser p_;
  std::vector<std::string> tags_;  // blocks that are open
  std::vector<Names> ends_;        // what each of them may end with
  int loops_ = 0;                  // loops around, in this function
  bool has_generation_ = false;
};

}  // namespace

Tree parse_template(std::string_view source) {
  StatementParser parser(tokenize(source));
  Tree tree;
  tree.body = parser.parse_all();
  tree.has_generation = parser.has_generation();
  resolve(tree);
  return tree;
}

}  // namespace tenon::jinja
