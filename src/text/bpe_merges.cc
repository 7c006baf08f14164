#include "text/bpe_merges.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

Status MergeWriter::add(std::string_view left, std::string_view right) {
  Pending& merge = batch_[used_++];
  merge.merged.assign(left).append(right.substr(std::min(prefix_bytes_, right.size())));
  merge.probes = {vocabulary_.probe(left), vocabulary_.probe(right), vocabulary_.probe(merge.merged)};
  return used_ == batch_.size() ? flush() : Status();
}

Status MergeWriter::flush() {
  for (size_t i = 0; i < used_; ++i) {
    Pending& merge = batch_[i];
    for (size_t part = 0; part < 3; ++part) {
      merge.ids[part] = vocabulary_.find(merge.probes[part]);
      if (merge.ids[part] >= 0) continue;
      return bad_file(fmt::format("merge {} needs the token \"{}\", which is not in the vocabulary",
                                  rank_ + i, merge.probes[part].text));
    }
    merges_.prefetch(merge.ids[0], merge.ids[1]);
  }
  for (size_t i = 0; i < used_; ++i) {
    const std::array<int32_t, 3>& ids = batch_[i].ids;
    merges_.add(ids[0], ids[1], rank_++, ids[2]);
  }
  used_ = 0;
  return {};
}

}  // namespace tenon
