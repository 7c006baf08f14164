// JSON in and out.
#include "text/jinja_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "text/jinja_arguments.h"
#include "text/jinja_filters.h"
#include "text/jinja_literal.h"
#include "text/jinja_loop.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

Value convert(Runtime& runtime, const Json& json, int depth) {
  if (depth > kMaxValueDepth)
    fail_budget(fmt::format("the variables nest more than {} deep", kMaxValueDepth));
  const auto text = [&](const std::string& bytes) {
    if (!is_utf8(bytes)) fail_value("a string among the variables is not UTF-8");
    return make_string(runtime, bytes);
  };
  switch (json.kind()) {
    case Json::Kind::null:
      return Value::none();
    case Json::Kind::boolean:
      return Value::boolean(json.get<bool>());
    case Json::Kind::integer:
      return Value::integer(json.get<int64_t>());
    case Json::Kind::natural: {
      const auto value = json.get<uint64_t>();
      if (value > INT64_MAX) fail_overflow();
      return Value::integer(static_cast<int64_t>(value));
    }
    case Json::Kind::real:
      return Value::real(json.get<double>());
    case Json::Kind::string:
      return text(json.text());
    case Json::Kind::array: {
      std::vector<Value> out;
      out.reserve(json.size());
      for (const auto& item : json) out.push_back(convert(runtime, item, depth + 1));
      return make_list(runtime, std::move(out));
    }
    case Json::Kind::object: {
      DictBuilder out(runtime);
      for (const auto& [key, item] : json.items()) out.set(text(key), convert(runtime, item, depth + 1));
      return out.finish();
    }
  }
  return Value::none();
}

struct Options {
  bool ascii = false;
  bool indented = false;
  bool sort_keys = false;
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

class Writer {
 public:
  Writer(Runtime& runtime, const Options& options) : runtime_(runtime), options_(options) {}

  std::string take() { return std::move(out_); }

  void write(const Value& value) {
    runtime_.charge(1);
    runtime_.check_string(static_cast<int64_t>(out_.size()));
    switch (value.kind()) {
      case Kind::none:
        out_ += "null";
        break;
      case Kind::boolean:
        out_ += value.as_integer() != 0 ? "true" : "false";
        break;
      case Kind::integer:
        out_ += fmt::format_int(value.as_integer()).c_str();
        break;
      case Kind::real:
        out_ += real(value.as_real());
        break;
      case Kind::string:
        string(value.text());
        break;
      case Kind::list:
      case Kind::tuple:
        list(value.as<Items>().values);
        break;
      case Kind::dict:
        dict(value);
        break;
      default:
        fail_type(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
    }
  }

 private:
  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return real_text(value);
  }

  void escape_unicode(uint32_t c) {
    if (c >= 0x10000) {
      out_ +=
          fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
    } else {
      out_ += fmt::format("\\u{:04x}", c);
    }
  }

  void string(std::string_view text) {
    runtime_.charge_scan(text);
    out_ += '"';
    for (size_t offset = 0; offset < text.size();) {
      const size_t begin = offset;
      const uint32_t c = next_code_point(text, offset);
      switch (c) {
        case '"':
          out_ += "\\\"";
          break;
        case '\\':
          out_ += "\\\\";
          break;
        case '\n':
          out_ += "\\n";
          break;
        case '\r':
          out_ += "\\r";
          break;
        case '\t':
          out_ += "\\t";
          break;
        case '\f':
          out_ += "\\f";
          break;
        case '\b':
          out_ += "\\b";
          break;
        default:
          if (c < 0x20 || (options_.ascii && c > 0x7e)) {
            escape_unicode(c);
          } else {
            out_ += text.substr(begin, offset - begin);
          }
      }
    }
    out_ += '"';
  }

  void line() {
    if (!options_.indented) return;
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += options_.indent;
    runtime_.check_string(static_cast<int64_t>(out_.size()));
  }

  void list(const std::vector<Value>& values) {
    if (values.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i != 0) out_ += options_.item_separator;
      line();
      write(values[i]);
    }
    --level_;
    line();
    out_ += ']';
  }

  void key(const Value& key) {
    switch (key.kind()) {
      case Kind::string:
        string(key.text());
        break;
      case Kind::real:
        string(real(key.as_real()));
        break;
      case Kind::none:
        string("null");
        break;
      case Kind::boolean:
        string(key.as_integer() != 0 ? "true" : "false");
        break;
      case Kind::integer:
        string(fmt::format("{}", key.as_integer()));
        break;
      default:
        fail_type(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
  }

  void dict(const Value& value) {
    auto entries = value.as<Dict>().entries;
    if (entries.empty()) {
      out_ += "{}";
      return;
    }
    if (options_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
        return compare(runtime_, a.first, b.first, "<") < 0;
      });
    }
    out_ += '{';
    ++level_;
    bool first = true;
    for (const auto& [name, item] : entries) {
      if (!first) out_ += options_.item_separator;
      first = false;
      line();
      key(name);
      out_ += options_.key_separator;
      write(item);
    }
    --level_;
    line();
    out_ += '}';
  }

  Runtime& runtime_;
  const Options& options_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

Value from_json(Runtime& runtime, const Json& json) {
  return convert(runtime, json, 0);
}

// Its parameters are those of the tojson that transformers installs, in that order.
Value tojson(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args =
      bind("tojson", std::move(arguments), {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  Options options;
  options.ascii = flag_argument(args[0], false);
  options.sort_keys = flag_argument(args[3], false);
  if (given(args[1])) {
    options.indented = true;
    options.item_separator = ",";
    if (args[1].is_string()) {
      options.indent = args[1].text();
    } else {
      const int64_t width = index_argument(args[1]);
      runtime.check_string(width);
      options.indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
  }
  if (given(args[2])) {
    const auto separators = elements(runtime, args[2]);
    if (separators.size() != 2) fail_value("separators must be a pair");
    options.item_separator = string_argument(separators[0], "item separator");
    options.key_separator = string_argument(separators[1], "key separator");
  }
  Writer writer(runtime, options);
  writer.write(input);
  return make_string(runtime, writer.take());
}

}  // namespace tenon::jinja
