#include "ir/verify.h"

#include <fmt/format.h>

#include <set>

#include "ir/builder.h"

namespace tenon {
namespace {

Error broken(const Program& program, size_t op, std::string message) {
  return bad_argument(std::move(message), fmt::format("program {} op {} {} {}", program.name, op,
                                                      program.ops[op].def->name, program.ops[op].name));
}

Status verify_names(const Program& program) {
  std::set<std::string_view> names;
  for (const Value& value : program.values) {
    if (value.producer.valid() && value.role != Role::output) continue;
    if (value.name.empty()) return bad_argument("a static or output value has no name", program.name);
    if (!names.insert(value.name).second) {
      return bad_argument(fmt::format("two values are named '{}'", value.name), program.name);
    }
  }
  return {};
}

// state[v]: 0 not yet produced, 1 live, 2 updated in place and gone.
Status verify_op(const Program& program, size_t index, std::vector<uint8_t>& state) {
  const Op& op = program.ops[index];
  for (ValueId id : op.inputs) {
    const uint8_t s = state[static_cast<size_t>(id.index)];
    if (s == 0) return broken(program, index, fmt::format("reads %{} before it is produced", id.index));
    if (s == 2)
      return broken(program, index, fmt::format("reads %{} after it was updated in place", id.index));
  }
  const SiteTypes types = site_types(program, op);
  const OpSite site{*op.def, op.attrs, types.inputs, types.outputs};
  auto inferred = op.def->infer(OpSite{*op.def, op.attrs, types.inputs, {}});
  if (!inferred.ok()) return broken(program, index, inferred.error().text());
  if (*inferred != types.outputs) return broken(program, index, "output types differ from the shape rule's");
  for (const Alias& alias : op_aliases(site)) {
    if (alias.kind == AliasKind::must) state[static_cast<size_t>(op.inputs[alias.input].index)] = 2;
  }
  for (ValueId id : op.outputs) {
    if (state[static_cast<size_t>(id.index)] != 0) {
      return broken(program, index, fmt::format("produces %{} a second time", id.index));
    }
    if (program.value(id).producer.index != static_cast<int32_t>(index)) {
      return broken(program, index, fmt::format("%{} names another producer", id.index));
    }
    state[static_cast<size_t>(id.index)] = 1;
  }
  return {};
}

}  // namespace

Status verify(const Program& program) {
  RETURN_IF_ERROR(verify_names(program));
  std::vector<uint8_t> state(program.values.size(), 0);
  for (size_t i = 0; i < program.values.size(); ++i) {
    if (!program.values[i].producer.valid()) {
      if (!is_static(program.values[i].role)) {
        return bad_argument(fmt::format("%{} has no producer and is not static", i), program.name);
      }
      state[i] = 1;
    }
  }
  for (size_t i = 0; i < program.ops.size(); ++i) RETURN_IF_ERROR(verify_op(program, i, state));
  return {};
}

}  // namespace tenon
