// Generates text from one prompt at a time: prefill in fixed buckets, then decode a token a run, over a paged
// cache that is planned before anything is loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "run/programs.h"
#include "run/session.h"

namespace tenon {

struct SamplingSettings {
  double temperature = 0;  // 0: the most likely token, lowest id first
  int64_t top_k = 0;       // 0: no limit
  double top_p = 1;
  uint64_t seed = 0;
};

// The next token. A pure function of logits, settings and `draw`, the number of the token in its reply.
int32_t sample(std::span<const float> logits, const SamplingSettings& settings, uint64_t draw);

struct GeneratorSettings : ProgramSettings {
  int64_t context_tokens = 0;  // of prompt and reply together
};

// Prefill sizes, smallest first; the first is decoding.
std::vector<int64_t> prefill_buckets(int64_t context_tokens);
// Of the caches that all programs of a generator share: one stream, its pages in order.
CacheOptions cache_options(const GeneratorSettings& settings);
// The programs of a generator, one for each bucket: what `tenon plan --decode` shows.
std::vector<Program> generator_programs(const ModelSpec& spec, const std::vector<AdapterModule>& modules,
                                        const GeneratorSettings& settings);

class Generator {
 public:
  // `model`, `adapter` (null: none) and `device` must outlive it.
  static Result<std::unique_ptr<Generator>> open(const Model& model, const AdapterSet* adapter,
                                                 Device& device, const GeneratorSettings& settings);

  // Forgets what was fed before.
  void reset() { fed_.clear(); }
  // Feeds tokens and returns the logits after the last. Where the sequence grows beyond a length at which the
  // model's rotary frequencies change, all of it is computed once more. Error: bad_argument where the context
  // is full, or `ids` is empty or holds an id beyond the vocabulary.
  Result<std::vector<float>> feed(std::span<const int32_t> ids);

  int64_t length() const { return static_cast<int64_t>(fed_.size()); }
  const Plan& plan() const { return session_->plan(); }

 private:
  Generator(const Model& model, const GeneratorSettings& settings, std::vector<int64_t> rings,
            std::unique_ptr<Session> session);
  // Runs `count` tokens of `fed_` from `first` on, whose sequence counts as all of it.
  Result<std::vector<float>> run_bucket(int64_t bucket, int64_t first, int64_t count);

  GeneratorSettings settings_;
  std::vector<int64_t> buckets_;
  std::vector<int64_t> rings_;  // models/cache_layout.h
  std::unique_ptr<Session> session_;
  const ModelSpec& spec_;
  std::vector<int32_t> fed_;
};

struct Reply {
  std::vector<int32_t> ids;  // without the end token
  bool ended = false;        // by an end token, not by the limit
};

// Feeds the prompt and generates up to `max_new` tokens or one of `stop_ids`. `on_token` may be empty.
Result<Reply> generate(Generator& generator, std::span<const int32_t> prompt, int64_t max_new,
                       std::span<const int32_t> stop_ids, const SamplingSettings& sampling,
                       const std::function<void(int32_t)>& on_token);

}  // namespace tenon
