#include "models/describe.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace tenon {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::string reach_name(const AttendSpec& attend, const char* plain) {
  if (attend.window > 0) return fmt::format("sliding {}", plain);
  if (attend.chunk > 0) return fmt::format("chunked {}", plain);
  return plain;
}

bool chooses_keys(const AttentionSpec& a) {
  return a.indexer.has_value() || a.value_mask.has_value();
}

bool chooses_keys(const LatentAttentionSpec& a) {
  return a.indexer.has_value() || a.indices_from >= 0;
}

template <typename Spec>
std::string attend_name(const Spec& a, const char* plain) {
  return chooses_keys(a) ? fmt::format("sparse {}", plain) : reach_name(a.attend, plain);
}

std::string compressed_name(const CompressedAttentionSpec& a) {
  if (!a.compressor) return "sliding attention";
  return a.indexer ? "sparse compressed attention" : "compressed attention";
}

std::string mixer_name(const MixerSpec& mixer) {
  return std::visit(
      Overloaded{[](const std::monostate&) { return std::string(); },
                 [](const AttentionSpec& a) { return attend_name(a, "attention"); },
                 [](const LatentAttentionSpec& a) { return attend_name(a, "latent attention"); },
                 [](const CompressedAttentionSpec& a) { return compressed_name(a); },
                 [](const ConvolvedAttentionSpec& a) { return reach_name(a.attend, "convolved attention"); },
                 [](const RelativeAttentionSpec& a) { return reach_name(a.attend, "relative attention"); },
                 [](const ShortConvSpec&) { return std::string("short convolution"); },
                 [](const DeltaSpec&) { return std::string("gated delta"); },
                 [](const Mamba2Spec&) { return std::string("Mamba-2"); },
                 [](const MambaSpec&) { return std::string("Mamba"); },
                 [](const FixedDecaySpec&) { return std::string("lightning attention"); },
                 [](const RecurrentUnitSpec&) { return std::string("RG-LRU"); },
                 [](const TimeMixSpec&) { return std::string("time mixing"); },
                 [](const MatrixMemorySpec&) { return std::string("mLSTM"); },
                 [](const AttentionExpertsSpec& a) { return reach_name(a.attend, "experts of attention"); }},
      mixer);
}

// "12 attention, 36 gated delta", in the order in which they first come.
class Counts {
 public:
  void add(std::string name) {
    if (name.empty()) return;
    for (auto& [known, count] : counts_) {
      if (known == name) {
        ++count;
        return;
      }
    }
    counts_.emplace_back(std::move(name), 1);
  }
  std::string text() const {
    std::string out;
    for (const auto& [name, count] : counts_)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, name);
    return out.empty() ? "-" : out;
  }

 private:
  std::vector<std::pair<std::string, int>> counts_;
};

}  // namespace

std::string mixers_text(const ModelSpec& spec) {
  Counts counts;
  for (const BlockSpec& block : spec.blocks) {
    counts.add(mixer_name(block.mixer));
    counts.add(mixer_name(block.beside));
  }
  return counts.text();
}

std::string feed_forwards_text(const ModelSpec& spec) {
  Counts counts;
  for (const BlockSpec& block : spec.blocks) {
    if (std::holds_alternative<MlpSpec>(block.feed_forward)) counts.add("dense");
    if (std::holds_alternative<ChannelMixSpec>(block.feed_forward)) counts.add("channel mixing");
    if (std::holds_alternative<MoeSpec>(block.feed_forward) || block.aside || block.shortcut)
      counts.add("experts");
  }
  return counts.text();
}

}  // namespace tenon
