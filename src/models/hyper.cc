#include "models/hyper.h"

namespace tenon {
namespace {

HyperConnectionSpec with_weights(const ModelSpec& spec, const std::string& path,
                                 const HyperConnectionSizes& sizes, int64_t weights) {
  const int64_t width = spec.streams * spec.hidden;
  HyperConnectionSpec out;
  out.norm = {NormKind::rms, path + "norm", width, sizes.norm_eps};
  out.norm.weight = false;
  out.mix = {path + "fn", width, weights};
  out.mix.weight_name = "";
  out.base = path + "base";
  out.scale = path + "scale";
  out.before_eps = sizes.before_eps;
  out.after_eps = sizes.after_eps;
  out.after_scale = sizes.after_scale;
  return out;
}

}  // namespace

HyperConnectionSpec hyper_connection(const ModelSpec& spec, const std::string& path,
                                     const HyperConnectionSizes& sizes) {
  const int64_t n = spec.streams;
  HyperConnectionSpec out = with_weights(spec, path, sizes, 2 * n + (sizes.among ? n * n : 0));
  out.among = sizes.among;
  return out;
}

HyperConnectionSpec hyper_head(const ModelSpec& spec, const std::string& path,
                               const HyperConnectionSizes& sizes) {
  return with_weights(spec, path, sizes, spec.streams);
}

}  // namespace tenon
