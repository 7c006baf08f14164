#include "run/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/checked_math.h"
#include "models/cache_layout.h"
#include "models/rope.h"
#include "plan/fit.h"

namespace tenon {
namespace {

constexpr int64_t kPageTokens = 16;

std::string bucket_name(int64_t tokens) {
  return tokens == 1 ? std::string(kDecode) : fmt::format("{}_{}", kPrefill, tokens);
}

// The largest bucket that `left` fills, or the smallest that holds it.
int64_t choose_bucket(const std::vector<int64_t>& buckets, int64_t left) {
  const auto at = std::lower_bound(buckets.begin(), buckets.end(), left);
  return at == buckets.end() ? buckets.back() : *at;
}

constexpr int64_t kShortestContext = 64;

// Where a device of its own memory has too little for the plan: the longest contexts that fit, by halving.
Status check_generation_fits(const Plan& plan, const Model& model, const std::vector<AdapterModule>& modules,
                             const Device& device, const GeneratorSettings& settings) {
  const Status fits = check_device_memory(plan, device);
  if (fits.ok()) return fits;
  std::vector<FitCandidate> candidates;
  for (int64_t tokens = settings.context_tokens / 2; tokens >= kShortestContext; tokens /= 2) {
    candidates.push_back({fmt::format("--context {}", tokens), [&, tokens]() -> Result<int64_t> {
                            GeneratorSettings shorter = settings;
                            shorter.context_tokens = tokens;
                            ASSIGN_OR_RETURN(const Plan smaller,
                                             plan_programs(generator_programs(model.spec, modules, shorter),
                                                           model, device, settings.without));
                            return needed_bytes(smaller);
                          }});
  }
  Error error = fits.error();
  const std::vector<FitSuggestion> found = suggest(candidates, device.facts().memory_bytes);
  error.hint = found.empty() ? "No context of this model fits in that."
                             : fmt::format("This fits: {} ({}).", found[0].description,
                                           format_bytes(found[0].needed_bytes));
  return error;
}

}  // namespace

std::vector<int64_t> prefill_buckets(int64_t context_tokens) {
  std::vector<int64_t> buckets = {1};
  for (int64_t size : {16, 64, 256}) {
    if (size < context_tokens) buckets.push_back(size);
  }
  return buckets;
}

CacheOptions cache_options(const GeneratorSettings& settings) {
  CacheOptions cache;
  cache.page_tokens = kPageTokens;
  cache.max_pages = cache.pages = ceil_div(settings.context_tokens, kPageTokens);
  cache.run_tokens = prefill_buckets(settings.context_tokens).back();
  cache.dtype = settings.compute;
  return cache;
}

std::vector<Program> generator_programs(const ModelSpec& spec, const std::vector<AdapterModule>& modules,
                                        const GeneratorSettings& settings) {
  std::vector<Program> programs;
  for (int64_t bucket : prefill_buckets(settings.context_tokens)) {
    DecodeSettings decode;
    static_cast<ProgramSettings&>(decode) = settings;
    decode.cache = cache_options(settings);
    decode.tokens = bucket;
    programs.push_back(decode_program(spec, modules, bucket_name(bucket), decode));
  }
  return programs;
}

Generator::Generator(const Model& model, const GeneratorSettings& settings, std::vector<int64_t> rings,
                     std::unique_ptr<Session> session)
    : settings_(settings),
      buckets_(prefill_buckets(settings.context_tokens)),
      rings_(std::move(rings)),
      session_(std::move(session)),
      spec_(model.spec) {}

Result<std::unique_ptr<Generator>> Generator::open(const Model& model, const AdapterSet* adapter,
                                                   Device& device, const GeneratorSettings& settings) {
  if (settings.context_tokens < 1)
    return bad_argument("the context must hold at least one token", "--context");
  const std::vector<AdapterModule> none;
  const std::vector<AdapterModule>& modules = adapter ? adapter->modules : none;
  ASSIGN_OR_RETURN(Plan plan, plan_programs(generator_programs(model.spec, modules, settings), model, device,
                                            settings.without));
  RETURN_IF_ERROR(check_generation_fits(plan, model, modules, device, settings));
  ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::open(std::move(plan), model, adapter, device));
  const CacheOptions cache = cache_options(settings);
  std::vector<int32_t> table(static_cast<size_t>(cache.max_pages));
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(i);
  session->write(kPageTableInput, table);
  const std::vector<int64_t> rings = ring_sizes(model.spec, cache);
  for (int64_t ring : rings) session->write(ring_input(kPageTableInput, ring), ring_page_table(cache, ring));
  return std::unique_ptr<Generator>(new Generator(model, settings, rings, std::move(session)));
}

Result<std::vector<float>> Generator::feed(std::span<const int32_t> ids) {
  if (ids.empty()) return bad_argument("there are no tokens to feed", "prompt");
  const int64_t total = length() + static_cast<int64_t>(ids.size());
  if (total > settings_.context_tokens) {
    return bad_argument(
        fmt::format("{} tokens do not fit the context of {}", total, settings_.context_tokens), "prompt",
        "Raise --context, or shorten the text.");
  }
  for (int32_t id : ids) {
    if (id < 0 || id >= spec_.vocab) {
      return bad_argument(fmt::format("the token id {} is not in the vocabulary of {}", id, spec_.vocab),
                          "prompt");
    }
  }
  // Keys in the cache are rotated; other frequencies would rotate them otherwise.
  const bool kept = frequency_regime(spec_, total) == frequency_regime(spec_, length());
  int64_t done = kept ? length() : 0;
  fed_.insert(fed_.end(), ids.begin(), ids.end());
  std::vector<float> logits;
  while (done < total) {
    const int64_t bucket = choose_bucket(buckets_, total - done);
    const int64_t take = std::min(total - done, bucket);
    ASSIGN_OR_RETURN(logits, run_bucket(bucket, done, take));
    done += take;
  }
  return logits;
}

Result<std::vector<float>> Generator::run_bucket(int64_t bucket, int64_t first, int64_t count) {
  const size_t tokens = static_cast<size_t>(bucket), used = static_cast<size_t>(count);
  std::vector<int32_t> padded(tokens, 0), positions(tokens, 0), slots(tokens, -1), stream(tokens, -1);
  for (size_t i = 0; i < used; ++i) {
    positions[i] = slots[i] = static_cast<int32_t>(first) + static_cast<int32_t>(i);  // pages stand in order
    padded[i] = fed_[static_cast<size_t>(positions[i])];
    stream[i] = 0;
  }
  const std::string name = bucket_name(bucket);
  const std::string prefix = name + ".";
  const int32_t last = static_cast<int32_t>(count) - 1;
  session_->write(prefix + kIdsInput, padded);
  session_->write(prefix + kPositionsInput, positions);
  session_->write(prefix + kSlotsInput, slots);
  session_->write(prefix + kStreamInput, stream);
  for (int64_t ring : rings_) {
    for (size_t i = 0; i < used; ++i) slots[i] = ring_slot(cache_options(settings_), ring, 0, positions[i]);
    session_->write(prefix + ring_input(kSlotsInput, ring), slots);
  }
  if (depends_on_length(spec_)) {
    const std::vector<int32_t> lengths(tokens, static_cast<int32_t>(length()));
    session_->write(prefix + kSequenceLengthInput, lengths);
  }
  session_->write(prefix + kRowsInput, std::span(&last, 1));
  RETURN_IF_ERROR(session_->run(name));
  std::vector<float> logits = session_->output_f32(name, kLogitsOutput);
  RETURN_IF_ERROR(session_->status());
  return logits;
}

Result<Reply> generate(Generator& generator, std::span<const int32_t> prompt, int64_t max_new,
                       std::span<const int32_t> stop_ids, const SamplingSettings& sampling,
                       const std::function<void(int32_t)>& on_token) {
  Reply reply;
  ASSIGN_OR_RETURN(std::vector<float> logits, generator.feed(prompt));
  for (int64_t i = 0; i < max_new; ++i) {
    const int32_t id = sample(logits, sampling, static_cast<uint64_t>(i));
    if (std::find(stop_ids.begin(), stop_ids.end(), id) != stop_ids.end()) {
      reply.ended = true;
      break;
    }
    reply.ids.push_back(id);
    if (on_token) on_token(id);
    if (i + 1 == max_new) break;
    ASSIGN_OR_RETURN(logits, generator.feed(std::span(&id, 1)));
  }
  return reply;
}

}  // namespace tenon
