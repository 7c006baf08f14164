#include "run/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tenon {

LrSchedule lr_schedule_from_name(std::string_view name) {
  if (name == "constant") return LrSchedule::constant;
  if (name == "linear") return LrSchedule::linear;
  CHECK(name == "cosine", name);
  return LrSchedule::cosine;
}

double learning_rate(LrSchedule schedule, double peak, int64_t step, int64_t total, int64_t warmup) {
  const double done = static_cast<double>(step - 1);
  if (step - 1 < warmup) return peak * done / static_cast<double>(warmup);
  const double share =
      (done - static_cast<double>(warmup)) / static_cast<double>(std::max<int64_t>(1, total - warmup));
  switch (schedule) {
    case LrSchedule::constant:
      return peak;
    case LrSchedule::linear:
      return peak * std::max(0.0, 1 - share);
    case LrSchedule::cosine:
      return peak * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, share)));
  }
  CHECK(false);
}

}  // namespace tenon
