// The learning rate over the steps of a run.
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon {

enum class LrSchedule : uint8_t { constant, linear, cosine };

LrSchedule lr_schedule_from_name(std::string_view name);  // one of the recipe's choices (CHECK)

// The rate of `step` (from 1) of `total`: rises linearly over `warmup` steps to `peak`, then stays, falls
// linearly to zero, or falls as half a cosine; as transformers' get_*_schedule_with_warmup at step - 1.
double learning_rate(LrSchedule schedule, double peak, int64_t step, int64_t total, int64_t warmup);

}  // namespace tenon
