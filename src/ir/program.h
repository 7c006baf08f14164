// A Program: ordered ops in SSA form over typed values. It is plain data: passes copy and rewrite it, the
// planner places it, the executor runs it. It knows no address and no device.
//
// In-place updates stay in SSA form: an op whose definition says that output i updates input j
// (AliasKind::must) returns the new state as a new value that lives where the old one did; the old value may
// not be read afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/strong_id.h"
#include "ir/attrs.h"
#include "ir/type.h"

namespace tenon {

struct OpDef;  // ir/op_def.h

using ValueId = StrongId<struct ValueTag>;
using OpId = StrongId<struct OpTag>;

// What a value is for. Memory reports group by it; the planner treats the first seven as static: they exist
// before the first step and survive the last, and programs planned together share them by name.
enum class Role : uint8_t {
  weight,           // frozen or trained base parameter
  adapter,          // trained low-rank parameter
  optimiser_state,  // moments
  gradient_sum,     // gradient accumulated over micro-steps
  cache,            // keys and values, or a recurrent state, of decoding
  constant,         // data of the program itself (Program::constants)
  input,            // written by the caller before each run
  activation,       // computed going forward
  gradient,         // computed going backward
  output,           // read by the caller after each run
};

std::string_view role_name(Role role);
inline bool is_static(Role role) {
  return role <= Role::input;
}

struct Value {
  std::string name;  // unique among statics and outputs; for a weight its module path ("model.norm.weight")
  Type type;
  Role role = Role::activation;
  OpId producer;  // invalid for a static as it is before the first op
};

struct Op {
  const OpDef* def = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attrs attrs;
  std::string
      name;  // what it computes ("model.layers.0.self_attn.q_proj"); for people, adapters and profiles
  int32_t block = -1;  // transformer block that it belongs to, or -1; recomputation works by block
};

struct Constant {
  ValueId value;
  std::vector<float> data;
};

struct Program {
  std::string name;  // "train_step", "decode"
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<Constant> constants;

  Value& value(ValueId id) { return values[static_cast<size_t>(id.index)]; }
  const Value& value(ValueId id) const { return values[static_cast<size_t>(id.index)]; }
  const Op& op(OpId id) const { return ops[static_cast<size_t>(id.index)]; }

  // The static or output value of that name, or an invalid id.
  ValueId find(std::string_view name) const;
};

// One line a value and op; equal programs have equal text. Parsed by nobody: it is for eyes, diffs and
// hashes.
std::string program_text(const Program& program);
uint64_t program_hash(const Program& program);

}  // namespace tenon
