#include "record/run_record.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "base/json.h"

namespace tenon {
namespace {

// JSON has no word for these; the library writes other doubles with the fewest digits that read back the
// same.
Json number_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double number_from(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  throw std::invalid_argument("not a number: " + text);
}

Json numbers_json(const NamedNumbers& numbers) {
  Json out = Json::object();
  for (const auto& [name, value] : numbers) out[name] = number_json(value);
  return out;
}

NamedNumbers numbers_from(const Json& json) {
  NamedNumbers numbers;
  for (const auto& [name, value] : json.items()) numbers.emplace_back(name, number_from(value));
  return numbers;
}

std::string line_of(const Json& json) {
  return json.dump();
}

RecordHeader header_from(const Json& json) {
  RecordHeader event;
  json.at("kind").get_to(event.kind);
  json.at("build").get_to(event.build);
  json.at("device").get_to(event.device);
  json.at("features").get_to(event.features);
  json.at("threads").get_to(event.threads);
  json.at("digests").get_to(event.digests);
  json.at("seed").get_to(event.seed);
  json.at("recipe").get_to(event.recipe);
  json.at("plan_hash").get_to(event.plan_hash);
  json.at("planned_bytes").get_to(event.planned_bytes);
  json.at("mapped_bytes").get_to(event.mapped_bytes);
  json.at("started_unix_seconds").get_to(event.started_unix_seconds);
  return event;
}

RecordStep step_from(const Json& json) {
  RecordStep event;
  json.at("step").get_to(event.step);
  event.loss = number_from(json.at("loss"));
  json.at("trained_tokens").get_to(event.trained_tokens);
  event.learning_rate = number_from(json.at("learning_rate"));
  event.gradient_norm = number_from(json.at("gradient_norm"));
  event.clipped_gradient_norm = number_from(json.at("clipped_gradient_norm"));
  event.tokens_per_second = number_from(json.at("tokens_per_second"));
  event.seconds = numbers_from(json.at("seconds"));
  event.resident_bytes = json.value("resident_bytes", int64_t{0});
  event.skipped = json.value("skipped", false);
  return event;
}

RecordEval eval_from(const Json& json) {
  RecordEval event;
  json.at("step").get_to(event.step);
  event.loss = number_from(json.at("loss"));
  json.at("tokens").get_to(event.tokens);
  event.metrics = numbers_from(json.at("metrics"));
  return event;
}

RecordNote note_from(const Json& json) {
  RecordNote event;
  json.at("step").get_to(event.step);
  json.at("kind").get_to(event.kind);
  json.at("message").get_to(event.message);
  json.at("action").get_to(event.action);
  return event;
}

RecordEnd end_from(const Json& json) {
  RecordEnd event;
  json.at("status").get_to(event.status);
  json.at("allocated_bytes").get_to(event.allocated_bytes);
  json.at("observed_peak_bytes").get_to(event.observed_peak_bytes);
  json.at("allocations_in_steps").get_to(event.allocations_in_steps);
  json.at("error").get_to(event.error);
  return event;
}

// Steps after the one that a run goes on from were made again, or will be.
void resume(RunRecord& record, const Json& json) {
  RecordResume event;
  json.at("step").get_to(event.step);
  json.at("checkpoint").get_to(event.checkpoint);
  event.reason = json.value("reason", std::string());
  event.build = json.value("build", std::string());
  event.device = json.value("device", std::string());
  event.recipe = json.value("recipe", std::string());
  event.started_unix_seconds = json.value("started_unix_seconds", int64_t{0});
  std::erase_if(record.steps, [&](const RecordStep& step) { return step.step > event.step; });
  std::erase_if(record.evals, [&](const RecordEval& eval) { return eval.step > event.step; });
  std::erase_if(record.notes, [&](const RecordNote& note) { return note.step > event.step; });
  record.end.reset();
  record.resumes.push_back(std::move(event));
}

// Throws what the JSON library throws where the line is not an event.
void add_line(RunRecord& record, std::string_view line, bool first) {
  const Json json = Json::parse(line);
  const auto event = json.at("event").get<std::string>();
  if (first != (event == "header")) throw std::invalid_argument("the header is not the first line");
  if (event == "header") record.header = header_from(json);
  if (event == "step") record.steps.push_back(step_from(json));
  if (event == "eval") record.evals.push_back(eval_from(json));
  if (event == "note") record.notes.push_back(note_from(json));
  if (event == "resume") resume(record, json);
  if (event == "end") record.end = end_from(json);
}

}  // namespace

std::string record_line(const RecordHeader& event) {
  return line_of(Json{{"event", "header"},
                      {"kind", event.kind},
                      {"build", event.build},
                      {"device", event.device},
                      {"features", event.features},
                      {"threads", event.threads},
                      {"digests", event.digests},
                      {"seed", event.seed},
                      {"recipe", event.recipe},
                      {"plan_hash", event.plan_hash},
                      {"planned_bytes", event.planned_bytes},
                      {"mapped_bytes", event.mapped_bytes},
                      {"started_unix_seconds", event.started_unix_seconds}});
}

std::string record_line(const RecordStep& event) {
  Json json{{"event", "step"},
            {"step", event.step},
            {"loss", number_json(event.loss)},
            {"trained_tokens", event.trained_tokens},
            {"learning_rate", number_json(event.learning_rate)},
            {"gradient_norm", number_json(event.gradient_norm)},
            {"clipped_gradient_norm", number_json(event.clipped_gradient_norm)},
            {"tokens_per_second", number_json(event.tokens_per_second)},
            {"seconds", numbers_json(event.seconds)},
            {"resident_bytes", event.resident_bytes}};
  if (event.skipped) json["skipped"] = true;
  return line_of(json);
}

std::string record_line(const RecordEval& event) {
  return line_of(Json{{"event", "eval"},
                      {"step", event.step},
                      {"loss", number_json(event.loss)},
                      {"tokens", event.tokens},
                      {"metrics", numbers_json(event.metrics)}});
}

std::string record_line(const RecordNote& event) {
  return line_of(Json{{"event", "note"},
                      {"step", event.step},
                      {"kind", event.kind},
                      {"message", event.message},
                      {"action", event.action}});
}

std::string record_line(const RecordResume& event) {
  return line_of(Json{{"event", "resume"},
                      {"step", event.step},
                      {"checkpoint", event.checkpoint},
                      {"reason", event.reason},
                      {"build", event.build},
                      {"device", event.device},
                      {"recipe", event.recipe},
                      {"started_unix_seconds", event.started_unix_seconds}});
}

std::string record_line(const RecordEnd& event) {
  return line_of(Json{{"event", "end"},
                      {"status", event.status},
                      {"allocated_bytes", event.allocated_bytes},
                      {"observed_peak_bytes", event.observed_peak_bytes},
                      {"allocations_in_steps", event.allocations_in_steps},
                      {"error", event.error}});
}

const std::string& RunRecord::recipe() const {
  for (auto event = resumes.rbegin(); event != resumes.rend(); ++event) {
    if (!event->recipe.empty()) return event->recipe;
  }
  return header.recipe;
}

Result<RunRecord> parse_record(std::string_view text, std::string_view name) {
  RunRecord record;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t newline = text.find('\n', begin);
    ++number;
    if (newline == std::string_view::npos) {
      record.cut_last_line = true;
      break;
    }
    try {
      add_line(record, text.substr(begin, newline - begin), number == 1);
    } catch (const std::exception& error) {
      return bad_file(fmt::format("not an event of a run record: {}", error.what()),
                      fmt::format("{}:{}", name, number));
    }
    begin = newline + 1;
  }
  if (number == 0 || (number == 1 && record.cut_last_line)) {
    return bad_file("a run record without a header", std::string(name));
  }
  return record;
}

Result<RunRecord> read_record(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found(fmt::format("cannot read the run record: {}", std::strerror(errno)), path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_record(text, path);
}

}  // namespace tenon
