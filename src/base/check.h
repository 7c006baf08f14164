// Checks of our own assumptions. A failed check is a bug in Tenon, never the user's input: it prints where it
// stood and aborts. Wrong input is a Result (base/error.h).
#pragma once

#include <string_view>

namespace tenon {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view detail = {});

}  // namespace tenon

// CHECK(condition) or CHECK(condition, "detail").
#define CHECK(condition, ...)                                                                           \
  do {                                                                                                  \
    if (!(condition)) ::tenon::check_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
