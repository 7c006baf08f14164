// "Did you mean": the known name that a mistyped one is nearest to. Pure; for names of options, keys,
// commands and values that a person wrote.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tenon {

// Edits that turn `a` into `b`: insertion, deletion, substitution, or a swap of neighbours, each counted once
// and no place edited twice (optimal string alignment, the restricted Damerau-Levenshtein distance). Bytes.
int edit_distance(std::string_view a, std::string_view b);

// The candidate that `name` is probably a slip of, or empty. Letter case and '_' for '-' do not count. A
// candidate is near when at most a third of the longer name (at least one character) must be edited, or when
// it is the only one that begins with `name`. Of equally near ones the first.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

// "did you mean 'NAME'?", or empty where nothing is near.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace tenon
