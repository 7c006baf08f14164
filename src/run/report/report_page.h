// The report of runs as one self-contained HTML page: style, script and data inside, nothing fetched. The
// page draws itself (page.js); this room only gathers what it shows.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "record/run_record.h"
#include "record/run_summary.h"

namespace tenon {

struct ReportRun {
  std::string name;
  RunRecord record;
  RunSummary summary;
  std::string facts;  // JSON object, as run/report/run_facts.h makes it
};

// Reads the record and facts of a run folder; facts that are missing are left out of the report. Errors:
// not_found, bad_file, io.
Result<ReportRun> read_report_run(const std::string& run);

// One run in full, or several on top of each other.
std::string report_html(std::span<const ReportRun> runs);

// read_report_run(), report_html() and the file of the run folder.
Status write_run_report(const std::string& run);

}  // namespace tenon
