// Appends values and ops to a Program. Types come from each op's shape rule; inputs that do not fit are a bug
// of the caller (CHECK), since sizes from files are validated before a program is built.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/op_def.h"
#include "ir/program.h"

namespace tenon {

class Builder {
 public:
  explicit Builder(Program& program);

  Program& program() { return program_; }
  const Type& type(ValueId id) const { return program_.value(id).type; }
  const Shape& shape(ValueId id) const { return type(id).shape; }
  DType dtype(ValueId id) const { return type(id).dtype; }

  // A static value. Asking twice for the same name gives the same value (tied weights); the types must agree.
  ValueId add_static(Role role, std::string name, Type type);
  ValueId add_constant(std::string name, Shape shape, std::vector<float> data);  // f32

  // Appends an op and returns its outputs, whose role is the builder's current role; an output that updates
  // an input in place (AliasKind::must) keeps that input's role and name.
  std::vector<ValueId> emit(const OpDef& def, std::vector<ValueId> inputs, Attrs attrs = {});
  // The same for an op with one output.
  ValueId emit_one(const OpDef& def, std::vector<ValueId> inputs, Attrs attrs = {});

  // Makes a computed value an output of the program under that name.
  void mark_output(ValueId id, std::string name);

  // State that the next ops are labelled with; set by the caller around a block or module.
  void set_block(int32_t block) { block_ = block; }
  void set_name(std::string_view name) { name_ = name; }
  void set_role(Role role) { role_ = role; }

 private:
  Program& program_;
  std::unordered_map<std::string, ValueId> statics_;  // by name
  int32_t block_ = -1;
  std::string name_;
  Role role_ = Role::activation;
};

// The types of an op's inputs and outputs as they stand in the program.
struct SiteTypes {
  std::vector<Type> inputs;
  std::vector<Type> outputs;
};
SiteTypes site_types(const Program& program, const Op& op);

}  // namespace tenon
