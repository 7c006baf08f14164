#include "text/row_json.h"

#include <simdjson.h>

#include <algorithm>
#include <string>
#include <utility>

namespace tenon {
namespace {

namespace dom = simdjson::dom;

// simdjson refuses a nesting deeper than 1024, so this ends.
Json copied(dom::element element) {
  switch (element.type()) {
    case dom::element_type::ARRAY: {
      Json list = Json::array();
      for (const dom::element each : dom::array(element)) list.push_back(copied(each));
      return list;
    }
    case dom::element_type::OBJECT: {
      Json object = Json::object();
      for (const auto& [key, value] : dom::object(element)) object[key] = copied(value);
      return object;
    }
    case dom::element_type::STRING:
      return Json(std::string_view(element));
    case dom::element_type::INT64:
      return Json(int64_t(element));
    case dom::element_type::UINT64:
      return Json(uint64_t(element));
    case dom::element_type::DOUBLE:
      return Json(double(element));
    case dom::element_type::BOOL:
      return Json(bool(element));
    default:
      return Json(nullptr);
  }
}

// The parser's text is "[json...] parse error at line L, column C: REASON"; the place is given apart.
std::string reason_of(const JsonError& error) {
  const std::string_view text = error.what();
  const size_t column = text.find("column ");
  const size_t colon = column == std::string_view::npos ? column : text.find(": ", column);
  return std::string(colon == std::string_view::npos ? text : text.substr(colon + 2));
}

}  // namespace

Result<Json> parse_row_json(std::string_view text, int64_t& offset) {
  // Its buffers are as large as the longest row so far; making them anew for each row takes longer than
  // parsing.
  thread_local dom::parser parser;
  dom::element root;
  if (!parser.parse(text.data(), text.size()).get(root)) return copied(root);
  // The other parser says why, or knows better: very large integers, very deep nesting.
  try {
    return Json::parse(text);
  } catch (const JsonError& error) {
    offset = error.byte() > 0 ? static_cast<int64_t>(std::min(error.byte() - 1, text.size())) : 0;
    const std::string reason = reason_of(error);
    const bool encoding = reason.find("UTF-8") != std::string::npos;
    return bad_file("not valid JSON at byte " + std::to_string(offset) + " of the row: " + reason, {},
                    encoding ? "Convert the file to UTF-8, as with: iconv -f latin1 -t utf-8."
                             : "Mend the row, or leave it out.");
  }
}

}  // namespace tenon
