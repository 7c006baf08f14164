#include "ops/rules.h"

#include <fmt/format.h>

#include "base/check.h"
#include "ops/cast.h"

namespace tenon {
namespace {

bool elements_fit(const Type& type, Elements wanted) {
  switch (wanted) {
    case Elements::floating:
      return dtype_info(type.dtype).is_float;
    case Elements::number:
      return dtype_info(type.dtype).is_float || is_block_quantised(type.dtype);
    case Elements::f32:
      return type.dtype == DType::f32;
    case Elements::i32:
      return type.dtype == DType::i32;
  }
  CHECK(false, "unknown elements");
}

std::string_view elements_text(Elements elements) {
  switch (elements) {
    case Elements::floating:
      return "floating-point";
    case Elements::number:
      return "floating-point or block-quantised";
    case Elements::f32:
      return "f32";
    case Elements::i32:
      return "i32";
  }
  CHECK(false, "unknown elements");
}

Status check_input(const OpSite& site, const Type& type, const InputRule& rule) {
  const bool rank_fits = rule.rank < 0 || type.shape.rank() == rule.rank;
  if (!rank_fits || !elements_fit(type, rule.elements)) {
    const std::string rank = rule.rank < 0 ? "" : fmt::format(" of rank {}", rule.rank);
    return misfit(site, fmt::format("{} is {}, expected a {} tensor{}", rule.name, type.text(),
                                    elements_text(rule.elements), rank));
  }
  const int64_t block = dtype_info(type.dtype).block_elements;
  if (block > 1 && (type.shape.rank() == 0 || type.shape[-1] % block != 0)) {
    return misfit(
        site, fmt::format("{} is {}, whose rows are not whole blocks of {}", rule.name, type.text(), block));
  }
  if (!type.shape.checked_elements()) return misfit(site, fmt::format("{} is too large", rule.name));
  return {};
}

}  // namespace

Error misfit(const OpSite& site, std::string message) {
  std::string types;
  for (const Type& type : site.inputs) types += (types.empty() ? "" : ", ") + type.text();
  const std::string attrs = site.attrs.to_text();
  return bad_argument(std::move(message), std::string(site.op.name),
                      fmt::format("Inputs: {}{}{}.", types, attrs.empty() ? "" : "; attributes: ", attrs));
}

Status check_inputs(const OpSite& site, std::span<const InputRule> rules) {
  if (site.inputs.size() != rules.size()) {
    return misfit(site, fmt::format("takes {} inputs, given {}", rules.size(), site.inputs.size()));
  }
  for (size_t i = 0; i < rules.size(); ++i) RETURN_IF_ERROR(check_input(site, site.inputs[i], rules[i]));
  return {};
}

Status expect_extent(const OpSite& site, std::string_view what, int64_t actual, int64_t wanted) {
  if (actual == wanted) return {};
  return misfit(site, fmt::format("{} is {}, expected {}", what, actual, wanted));
}

Status expect_equal_types(const OpSite& site) {
  for (size_t i = 1; i < site.inputs.size(); ++i) {
    if (site.inputs[i] == site.inputs[0]) continue;
    return misfit(site, fmt::format("input {} is {}, expected {} as input 0", i, site.inputs[i].text(),
                                    site.inputs[0].text()));
  }
  return {};
}

Status expect(const OpSite& site, bool condition, std::string_view message) {
  if (condition) return {};
  return misfit(site, std::string(message));
}

InferredTypes infer_elementwise(const OpSite& site) {
  CHECK(!site.inputs.empty(), site.op.name);
  RETURN_IF_ERROR(check_input(site, site.inputs[0], InputRule{"input 0"}));
  RETURN_IF_ERROR(expect_equal_types(site));
  return std::vector<Type>{site.inputs[0]};
}

std::vector<Alias> alias_elementwise(const OpSite& site) {
  std::vector<Alias> aliases;
  for (size_t o = 0; o < site.outputs.size(); ++o) {
    for (size_t i = 0; i < site.inputs.size(); ++i) {
      const DTypeInfo& out = dtype_info(site.outputs[o].dtype);
      const DTypeInfo& in = dtype_info(site.inputs[i].dtype);
      const bool as_wide = in.block_elements == 1 && in.block_bytes == out.block_bytes;
      if (as_wide && site.inputs[i].shape == site.outputs[o].shape) {
        aliases.push_back(Alias{static_cast<int>(o), static_cast<int>(i), AliasKind::may});
      }
    }
  }
  return aliases;
}

DType gradient_dtype(DType dtype) {
  return dtype_info(dtype).is_float ? dtype : DType::f32;
}

ValueId cast_to(Builder& builder, ValueId x, DType dtype) {
  return builder.dtype(x) == dtype ? x : cast(builder, x, dtype);
}

int64_t bytes_of(DType dtype, int64_t elements) {
  const auto bytes = dtype_bytes(dtype, elements);
  CHECK(bytes.has_value(), dtype_name(dtype));
  return *bytes;
}

}  // namespace tenon
