#include "text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "text/unicode.h"

namespace tenon {
namespace {

constexpr double kUnkPenalty = 10.0;  // below the lowest score: SentencePiece's kUnkPenalty

// One unknown token for a run of characters, or the tokens of their bytes.
void push_unknown(const UnigramModel& model, std::string_view text, std::vector<ModelToken>& out) {
  if (model.byte_fallback && std::all_of(text.begin(), text.end(), [&](char c) {
        return model.byte_ids[static_cast<unsigned char>(c)] >= 0;
      })) {
    for (char c : text) out.push_back({model.byte_ids[static_cast<unsigned char>(c)], 1});
    return;
  }
  if (model.unk >= 0) out.push_back({model.unk, static_cast<uint32_t>(text.size())});
}

void fill_nodes(const UnigramModel& model, std::string_view text, std::vector<UnigramScratch::Node>& nodes) {
  nodes.assign(text.size() + 1, {});
  const char* end = text.data() + text.size();
  const auto sum = [&](double a, double b) {
    return model.single_precision ? static_cast<double>(static_cast<float>(a) + static_cast<float>(b))
                                  : a + b;
  };
  for (size_t at = 0; at < text.size();) {
    const double here = nodes[at].score;
    const auto char_bytes = static_cast<size_t>(decode_char(text.data() + at, end).bytes);
    bool has_single = false;
    int32_t node = ByteTrie::kRoot;
    for (size_t stop = at; stop < text.size();) {
      node = model.trie.step(node, static_cast<unsigned char>(text[stop]));
      if (node < 0) break;
      ++stop;
      const int32_t id = model.trie.value(node);
      if (id < 0) continue;
      const auto index = static_cast<size_t>(id);
      const double score = model.user_defined.empty() || !model.user_defined[index]
                               ? model.scores[index]
                               : static_cast<double>(stop - at) * model.max_score - 0.1;
      const double candidate = sum(here, score);
      if (nodes[stop].begin < 0 || candidate > nodes[stop].score) {
        nodes[stop] = {candidate, static_cast<int64_t>(at), id};
      }
      has_single = has_single || stop - at == char_bytes;
    }
    if (!has_single) {
      const double candidate = sum(here, model.unk_score);
      auto& next = nodes[at + char_bytes];
      if (next.begin < 0 || candidate > next.score) next = {candidate, static_cast<int64_t>(at), -1};
    }
    at += char_bytes;
  }
}

}  // namespace

void finish_unigram(UnigramModel& model, const Vocabulary& vocabulary, const std::vector<bool>& matchable) {
  double lowest = std::numeric_limits<double>::max();
  double highest = std::numeric_limits<double>::lowest();
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const auto index = static_cast<size_t>(id);
    const std::string_view text = vocabulary.text(id);
    if (!matchable.empty() && !matchable[index]) continue;
    lowest = std::min(lowest, model.scores[index]);
    highest = std::max(highest, model.scores[index]);
    if (!text.empty() && vocabulary.find(text) == id) model.trie.add(text, id);
  }
  model.unk_score = vocabulary.count() ? lowest - kUnkPenalty : 0;
  model.max_score = highest;
  model.byte_ids.fill(-1);
  for (unsigned b = 0; b < 256 && model.byte_fallback; ++b) {
    model.byte_ids[b] = vocabulary.find(fmt::format("<0x{:02X}>", b));
  }
}

void encode_unigram(const UnigramModel& model, std::string_view text, UnigramScratch& scratch,
                    std::vector<ModelToken>& out) {
  fill_nodes(model, text, scratch.nodes);
  scratch.reversed.clear();
  for (auto at = static_cast<int64_t>(text.size()); at > 0;) {
    const UnigramScratch::Node& node = scratch.nodes[static_cast<size_t>(at)];
    scratch.reversed.push_back({node.id, static_cast<uint32_t>(at - node.begin)});
    at = node.begin;
  }
  size_t at = 0;
  for (auto token = scratch.reversed.rbegin(); token != scratch.reversed.rend();) {
    if (token->id >= 0 && token->id != model.unk) {
      out.push_back(*token);
      at += token->bytes;
      ++token;
      continue;
    }
    const size_t begin = at;
    for (; token != scratch.reversed.rend() && (token->id < 0 || token->id == model.unk); ++token) {
      at += token->bytes;
    }
    push_unknown(model, text.substr(begin, at - begin), out);
  }
}

}  // namespace tenon
