#include "text/tokenizer.h"

#include <mutex>
#include <utility>

#include "text/byte_level.h"
#include "text/encode.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

namespace tenon {

// Scratches not in use, so that each call finds a warm word cache.
struct Tokenizer::ScratchPool {
  std::mutex mutex;
  std::vector<std::unique_ptr<EncodeScratch>> idle;

  class Lease {
   public:
    explicit Lease(ScratchPool& pool) : pool_(pool) {
      const std::lock_guard lock(pool_.mutex);
      if (!pool_.idle.empty()) {
        scratch_ = std::move(pool_.idle.back());
        pool_.idle.pop_back();
      }
    }
    ~Lease() {
      const std::lock_guard lock(pool_.mutex);
      if (scratch_) pool_.idle.push_back(std::move(scratch_));
    }
    EncodeScratch& operator*() {
      if (!scratch_) scratch_ = std::make_unique<EncodeScratch>();
      return *scratch_;
    }

   private:
    ScratchPool& pool_;
    std::unique_ptr<EncodeScratch> scratch_;
  };
};

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts)
    : parts_(std::move(parts)), scratch_pool_(std::make_unique<ScratchPool>()) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  ScratchPool::Lease scratch(*scratch_pool_);
  TokenSink sink;
  encode_text(*parts_, text, options, *scratch, sink);
  return std::move(sink.ids);
}

std::vector<TokenSpan> Tokenizer::encode_spans(std::string_view text, EncodeOptions options) const {
  ScratchPool::Lease scratch(*scratch_pool_);
  TokenSink sink;
  sink.tracked = true;
  encode_text(*parts_, text, options, *scratch, sink);
  return std::move(sink.spans);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  DecodeChain chain(parts_->decoder);
  std::string out;
  for (int32_t id : ids) {
    const std::string_view text = token(id);
    if (text.empty() || (skip_special && is_special(id))) continue;
    chain.push(text, out);
  }
  chain.finish(out);
  return out;
}

int32_t Tokenizer::vocab_size() const {
  return static_cast<int32_t>(parts_->texts.size());
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  const int32_t id = parts_->find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::string_view Tokenizer::token(int32_t id) const {
  return parts_->text(id);
}

bool Tokenizer::is_special(int32_t id) const {
  return parts_->is_special(id);
}

std::string Tokenizer::token_bytes(int32_t id) const {
  return bytes_of_token(parts_->decoder, token(id));
}

const SpecialTokens& Tokenizer::special() const {
  return parts_->special;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : parts_(tokenizer.parts_.get()),
      skip_special_(skip_special),
      chain_(std::make_unique<DecodeChain>(parts_->decoder)) {}
StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

std::string StreamDecoder::push(int32_t id) {
  std::string out;
  const std::string_view text = parts_->text(id);
  if (!text.empty() && !(skip_special_ && parts_->is_special(id))) chain_->push(text, out);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  chain_->finish(out);
  return out;
}

}  // namespace tenon
