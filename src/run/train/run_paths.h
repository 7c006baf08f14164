// Where things are in a run folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace tenon {

std::string run_recipe_path(const std::string& run);   // recipe.yaml, the settings in force
std::string run_record_path(const std::string& run);   // record.jsonl
std::string run_report_path(const std::string& run);   // report.html
std::string run_facts_path(const std::string& run);    // facts.json, what the report shows beside the record
std::string run_event_folder(const std::string& run);  // tensorboard/
std::string run_adapter_folder(const std::string& run);     // adapter/, of the last step
std::string run_best_folder(const std::string& run);        // best/, of the lowest evaluation loss
std::string run_checkpoint_folder(const std::string& run);  // checkpoints/

// checkpoints/step-00000120.safetensors
std::string checkpoint_path(const std::string& run, int64_t step);

// The steps that have a checkpoint, ascending; none where the folder is missing. Error: io.
Result<std::vector<int64_t>> checkpoint_steps(const std::string& run);

}  // namespace tenon
