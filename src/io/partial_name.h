// How temporary files of writers are called: "TARGET.PID-N.partial". A writer makes such names, and
// remove_partial_files() (io/folder.h) knows them again after a crash.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

// A name beside `path` that no other writer of this or another process uses.
std::string partial_name(std::string_view path);

bool is_partial_name(std::string_view name);

}  // namespace tenon
