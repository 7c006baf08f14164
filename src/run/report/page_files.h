// The files page.html, page.css, charts.js and page.js of this folder, as the build found them.
#pragma once

#include <string_view>

namespace tenon {

extern const std::string_view kReportPage;
extern const std::string_view kReportStyle;
extern const std::string_view kReportCharts;
extern const std::string_view kReportScript;

}  // namespace tenon
