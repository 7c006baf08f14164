// The tree of a template: plain data, immutable once parsed and resolved, shared by all renders.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_runtime.h"
#include "text/jinja_value.h"

namespace tenon::jinja {

// A variable: a slot of the function `hops` levels out (0 is the function that reads it).
struct Slot {
  int32_t hops = 0;
  int32_t index = -1;
};

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using StmtPtr = std::unique_ptr<Stmt>;
using Block = std::vector<StmtPtr>;

enum class ExprKind : uint8_t {
  constant,     // constant
  name,         // name, slot
  ns_ref,       // name.attribute as a target of set: name, slot, attribute
  tuple,        // children
  list,         // children
  dict,         // children: key, value, key, value, ...
  negate,       // children[0]
  plus,         // children[0]
  logical_not,  // children[0]
  logical_and,  // children[0], children[1]
  logical_or,   // children[0], children[1]
  binary,       // children[0] op children[1]; name is the operator
  concat,       // children
  compare,      // children[0] then operators[i] children[i + 1]
  member,       // children[0].attribute
  subscript,    // children[0][children[1]]
  slice,        // start, stop, step; absent ones are null. Only as children[1] of subscript
  call,         // children[0](arguments)
  filter,       // children[0]|name(arguments); children[0] is null in a filter block
  test,         // children[0] is name(arguments)
  conditional,  // children[1] if children[0] else children[2] (null when left out)
};

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  ExprPtr star;         // *expression
  ExprPtr double_star;  // **expression
};

struct Expr {
  ExprKind kind = ExprKind::constant;
  Position at;
  int32_t height = 1;  // of the tree below; bounded by the parser
  std::string name;
  std::string attribute;
  Slot slot;
  Value constant;
  std::vector<ExprPtr> children;
  std::vector<std::string> operators;
  std::unique_ptr<Arguments> arguments;
};

// What a frame does to its variables when it is entered.
struct Load {
  enum class What : uint8_t { parameter, resolve, alias, unset } what = What::unset;
  int32_t slot = -1;
  std::string name;  // resolve: the variable of the context
  Slot from;         // alias
};

enum class StmtKind : uint8_t {
  output,        // expressions, each printed
  data,          // text
  assign,        // target, value
  assign_block,  // target, value (a filter or null), body
  if_block,      // branches: expressions[i] guards bodies[i]; one more body is the else
  for_block,     // target, value, test, body, otherwise
  with_block,    // expressions (values), targets, body
  macro,         // function
  call_block,    // function, value (the call)
  filter_block,  // value (the filter), body
  generation,    // function
  scope,         // body: an autoescape block, in which nothing else changes
  break_loop,
  continue_loop,
};

// The body of a macro or a call block: what runs with variables of its own.
struct FunctionBody {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  std::vector<int32_t> parameter_slots;
  int32_t caller_slot = -1;  // of an implicit caller, kwargs and varargs; -1 when the body names none
  int32_t kwargs_slot = -1;
  int32_t varargs_slot = -1;
  bool takes_caller = false;
  int32_t slot_count = 0;
  std::vector<Load> loads;
  Block body;
};

struct Stmt {
  StmtKind kind = StmtKind::data;
  Position at;
  std::string text;
  std::vector<ExprPtr> expressions;
  ExprPtr target;
  std::vector<ExprPtr> targets;
  ExprPtr value;
  ExprPtr test;
  bool recursive = false;
  bool uses_loop = false;
  int32_t loop_slot = -1;
  Block body;
  Block otherwise;
  std::vector<Block> bodies;
  std::vector<Load> loads;            // of the body
  std::vector<Load> test_loads;       // of the test of a for block
  std::vector<Load> otherwise_loads;  // of the else of a for block
  std::unique_ptr<FunctionBody> function;
};

struct Tree {
  Block body;
  int32_t slot_count = 0;
  std::vector<Load> loads;
  std::vector<std::string> variables;  // names read from the context, sorted
  bool has_generation = false;
};

}  // namespace tenon::jinja
