#include "ir/program.h"

#include <fmt/format.h>

#include <iterator>

#include "base/hash.h"
#include "ir/op_def.h"

namespace tenon {
namespace {

std::string value_text(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  return value.producer.valid() ? fmt::format("%{}", id.index) : fmt::format("%{}:{}", id.index, value.name);
}

std::string value_list(const Program& program, const std::vector<ValueId>& ids) {
  std::string out;
  for (ValueId id : ids) {
    if (!out.empty()) out += ", ";
    out += value_text(program, id);
  }
  return out;
}

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::weight:
      return "weight";
    case Role::adapter:
      return "adapter";
    case Role::optimiser_state:
      return "optimiser_state";
    case Role::gradient_sum:
      return "gradient_sum";
    case Role::cache:
      return "cache";
    case Role::constant:
      return "constant";
    case Role::input:
      return "input";
    case Role::activation:
      return "activation";
    case Role::gradient:
      return "gradient";
    case Role::output:
      return "output";
  }
  CHECK(false, "unknown role");
}

ValueId Program::find(std::string_view wanted) const {
  for (size_t i = 0; i < values.size(); ++i) {
    const bool named = !values[i].producer.valid() || values[i].role == Role::output;
    if (named && values[i].name == wanted) return ValueId{static_cast<int32_t>(i)};
  }
  return {};
}

std::string program_text(const Program& program) {
  std::string out = fmt::format("program {}\n", program.name);
  auto to = std::back_inserter(out);
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    if (value.producer.valid()) continue;
    fmt::format_to(to, "  {:16} %{}:{} {}\n", role_name(value.role), i, value.name, value.type.text());
  }
  for (const Constant& constant : program.constants) {
    uint64_t hash =
        hash_bytes({reinterpret_cast<const char*>(constant.data.data()), constant.data.size() * 4});
    fmt::format_to(to, "  constant data %{} {} floats {}\n", constant.value.index, constant.data.size(),
                   hash_text(hash));
  }
  for (const Op& op : program.ops) {
    std::string outputs;
    for (ValueId id : op.outputs) {
      const Value& value = program.value(id);
      if (!outputs.empty()) outputs += ", ";
      outputs += fmt::format("%{} {}", id.index, value.type.text());
      if (value.role != Role::activation) outputs += fmt::format(" {}", role_name(value.role));
      if (value.role == Role::output) outputs += fmt::format(":{}", value.name);
    }
    fmt::format_to(to, "  {} = {}({}) {}", outputs, op.def->name, value_list(program, op.inputs),
                   op.attrs.to_text());
    if (op.block >= 0) fmt::format_to(to, " @{}", op.block);
    if (!op.name.empty()) fmt::format_to(to, "  # {}", op.name);
    out += '\n';
  }
  return out;
}

uint64_t program_hash(const Program& program) {
  return hash_bytes(program_text(program));
}

}  // namespace tenon
