#include "run/cache_report.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <map>
#include <string_view>

#include "base/bytes.h"
#include "base/checked_math.h"
#include "models/cache_layout.h"
#include "ops/rope_table_by_length.h"
#include "run/programs.h"

namespace tenon {
namespace {

constexpr std::string_view kPrefix = "cache.";

// Layer and part of a cache's name, "cache.<layer>.<part>" or "cache.<layer>.ring.<part>".
struct CacheName {
  int64_t layer = 0;
  bool ring = false;
  std::string_view part;
};

CacheName parse_name(std::string_view name) {
  CHECK(name.starts_with(kPrefix), name);
  CacheName out;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kPrefix.size(), end, out.layer);
  CHECK(error == std::errc() && at < end && *at == '.', name);
  out.part = std::string_view(at + 1, static_cast<size_t>(end - at - 1));
  out.ring = out.part.starts_with(kRingPart);
  if (out.ring) out.part.remove_prefix(kRingPart.size());
  return out;
}

bool is_by_token(std::string_view part) {
  return part == "k" || part == "v" || part == "latent" || part.starts_with("index");
}

std::string layers_text(int64_t first, int64_t last) {
  return first == last ? fmt::format("layer {}", first) : fmt::format("layers {}-{}", first, last);
}

}  // namespace

int64_t CacheReport::token_bytes() const {
  int64_t sum = 0;
  for (const LayerCache& layer : layers) sum += layer.window_tokens == 0 ? layer.token_bytes : 0;
  return sum;
}

int64_t CacheReport::state_bytes() const {
  int64_t sum = 0;
  for (const LayerCache& layer : layers) sum += layer.state_bytes;
  return sum;
}

CacheReport cache_report(const Program& decode) {
  std::map<int64_t, LayerCache> by_layer;
  const int64_t streams = decode.value(decode.find(kPageTableInput)).type.shape[0];
  for (const Value& value : decode.values) {
    if (value.role != Role::cache || value.producer.valid()) continue;
    const CacheName name = parse_name(value.name);
    LayerCache& layer = by_layer[name.layer];
    layer.layer = name.layer;
    const Shape& shape = value.type.shape;
    if (is_by_token(name.part)) layer.token_bytes += value.type.bytes() / (shape[0] * shape[1]);
    if (name.ring) layer.window_tokens = shape[0] / streams * shape[1];
    if (name.ring || !is_by_token(name.part)) layer.state_bytes += value.type.bytes() / streams;
  }
  CacheReport report;
  for (const auto& [index, layer] : by_layer) report.layers.push_back(layer);
  for (const Op& op : decode.ops) {
    if (op.def != &rope_table_by_length_op()) continue;
    report.again_beyond_tokens = op.attrs.integer("long_from");
    report.again_with_each_token = op.attrs.real("dynamic_factor") > 0;
  }
  return report;
}

CacheReport cache_report(const ModelSpec& spec, DType dtype, int64_t context_tokens) {
  constexpr int64_t kPageTokens = 16;
  const int64_t pages = ceil_div(context_tokens, kPageTokens);
  DecodeSettings settings;
  settings.compute = dtype;
  settings.cache = {.pages = pages, .page_tokens = kPageTokens, .max_pages = pages, .dtype = dtype};
  return cache_report(decode_program(spec, {}, kDecode, settings));
}

std::string cache_report_text(const CacheReport& report) {
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{:18}{} a token, {} of fixed state a sequence\n", "cache of decoding",
                 format_bytes(report.token_bytes()), format_bytes(report.state_bytes()));
  for (size_t i = 0; i < report.layers.size();) {
    const LayerCache& first = report.layers[i];
    LayerCache same = first;
    size_t end = i;
    while (end < report.layers.size() && report.layers[end] == same) ++end, ++same.layer;
    fmt::format_to(to, "  {:16}", layers_text(first.layer, report.layers[end - 1].layer));
    if (first.token_bytes > 0) fmt::format_to(to, "{} a token", format_bytes(first.token_bytes));
    if (first.window_tokens > 0) fmt::format_to(to, " of the last {}", first.window_tokens);
    if (first.state_bytes > 0) {
      fmt::format_to(to, "{}{} of state", first.token_bytes > 0 ? ", " : "", format_bytes(first.state_bytes));
    }
    out += '\n';
    i = end;
  }
  if (report.again_beyond_tokens > 0) {
    fmt::format_to(
        to, "  Beyond {} tokens its rotary frequencies change, and a sequence is computed once more{}.\n",
        report.again_beyond_tokens, report.again_with_each_token ? " with each token" : "");
  }
  return out;
}

}  // namespace tenon
