// Where models put tokens: ids, and spans of the input where they are asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "text/text_view.h"
#include "text/tokenizer.h"

namespace tenon {

struct TokenSink {
  std::vector<int32_t> ids;
  std::vector<TokenSpan> spans;  // as long as ids where tracked, else empty
  bool tracked = false;

  void add(int32_t id, const TextView& view, size_t begin, size_t end) {
    ids.push_back(id);
    if (!tracked) return;
    const Origin origin = origin_of(view, begin, end);
    spans.push_back({id, origin.begin, origin.end});
  }
};

}  // namespace tenon
