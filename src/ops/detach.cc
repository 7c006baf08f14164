#include "ops/detach.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {

const OpDef& detach_op() {
  static constexpr OpDef def{.name = "detach",
                             .infer = infer_elementwise,
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 0); },
                             .reference =
                                 [](const ReferenceCall& call) {
                                   std::copy_n(call.inputs[0].data, call.outputs[0].type.elements(),
                                               call.outputs[0].data);
                                 }};
  return def;
}

ValueId detach(Builder& builder, ValueId x) {
  return builder.emit_one(detach_op(), {x});
}

}  // namespace tenon
