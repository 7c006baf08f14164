// Adds merges in the order of their ranks, a batch at a time, so that the look-ups of a batch wait for memory
// together.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/bpe.h"

namespace tenon {

class MergeWriter {
 public:
  // `prefix` is what the right token of a merge loses (continuing_subword_prefix). All must outlive the
  // writer.
  MergeWriter(const Vocabulary& vocabulary, std::string_view prefix, MergeTable& merges)
      : vocabulary_(vocabulary), prefix_bytes_(prefix.size()), merges_(merges) {}

  // The texts must live until flush(). Error: bad_file where a token is not in the vocabulary, which may come
  // up to a batch late.
  Status add(std::string_view left, std::string_view right);
  Status flush();

 private:
  struct Pending {
    std::string merged;
    std::array<Vocabulary::Probe, 3> probes;
    std::array<int32_t, 3> ids{};
  };

  const Vocabulary& vocabulary_;
  size_t prefix_bytes_;
  MergeTable& merges_;
  std::array<Pending, 32> batch_;
  size_t used_ = 0;
  uint32_t rank_ = 0;
};

}  // namespace tenon
