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

// Which memory each value stands for. A view shares its input's; an update in place ends the memory's old
// contents for every value that stands for it, and its output stands for the new ones.
struct Storage {
  std::vector<int32_t> of;     // by value; -1: not yet produced
  std::vector<bool> replaced;  // by storage: updated in place

  void add(ValueId value) {
    of[static_cast<size_t>(value.index)] = static_cast<int32_t>(replaced.size());
    replaced.push_back(false);
  }
  int32_t at(ValueId value) const { return of[static_cast<size_t>(value.index)]; }
};

Status verify_reads(const Program& program, size_t index, const Storage& storage) {
  for (ValueId id : program.ops[index].inputs) {
    const int32_t at = storage.at(id);
    if (at < 0) return broken(program, index, fmt::format("reads %{} before it is produced", id.index));
    if (storage.replaced[static_cast<size_t>(at)])
      return broken(program, index, fmt::format("reads %{} after it was updated in place", id.index));
  }
  return {};
}

Status verify_op(const Program& program, size_t index, Storage& storage) {
  const Op& op = program.ops[index];
  RETURN_IF_ERROR(verify_reads(program, index, storage));
  const SiteTypes types = site_types(program, op);
  const OpSite site{*op.def, op.attrs, types.inputs, types.outputs};
  auto inferred = op.def->infer(OpSite{*op.def, op.attrs, types.inputs, {}});
  if (!inferred.ok()) return broken(program, index, inferred.error().text());
  if (*inferred != types.outputs) return broken(program, index, "output types differ from the shape rule's");
  for (ValueId id : op.outputs) {
    if (storage.at(id) >= 0)
      return broken(program, index, fmt::format("produces %{} a second time", id.index));
    if (program.value(id).producer.index != static_cast<int32_t>(index))
      return broken(program, index, fmt::format("%{} names another producer", id.index));
    storage.add(id);
  }
  for (const Alias& alias : op_aliases(site)) {
    const int32_t input = storage.at(op.inputs[static_cast<size_t>(alias.input)]);
    if (alias.kind == AliasKind::must) storage.replaced[static_cast<size_t>(input)] = true;
    if (alias.kind == AliasKind::view)
      storage.of[static_cast<size_t>(op.outputs[static_cast<size_t>(alias.output)].index)] = input;
  }
  return {};
}

}  // namespace

Status verify(const Program& program) {
  RETURN_IF_ERROR(verify_names(program));
  Storage storage{std::vector<int32_t>(program.values.size(), -1), {}};
  for (size_t i = 0; i < program.values.size(); ++i) {
    if (program.values[i].producer.valid()) continue;
    if (!is_static(program.values[i].role))
      return bad_argument(fmt::format("%{} has no producer and is not static", i), program.name);
    storage.add(ValueId{static_cast<int32_t>(i)});
  }
  for (size_t i = 0; i < program.ops.size(); ++i) RETURN_IF_ERROR(verify_op(program, i, storage));
  return {};
}

}  // namespace tenon
