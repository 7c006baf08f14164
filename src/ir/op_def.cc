#include "ir/op_def.h"

namespace tenon {

Cost streaming_cost(const OpSite& site, int64_t flops_per_output_element) {
  Cost cost;
  for (const Type& type : site.inputs) cost.bytes_read += type.bytes();
  for (const Type& type : site.outputs) {
    cost.bytes_written += type.bytes();
    cost.flops += type.elements() * flops_per_output_element;
  }
  return cost;
}

std::vector<Alias> op_aliases(const OpSite& site) {
  return site.op.aliases ? site.op.aliases(site) : std::vector<Alias>{};
}

}  // namespace tenon
