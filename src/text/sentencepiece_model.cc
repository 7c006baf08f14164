// Reads the fields of sentencepiece_model.proto that decide on tokens. Protobuf wire format: a key (field
// number and wire type) as a varint, then the value.
#include <fmt/format.h>

#include <cstring>

#include "text/sentencepiece.h"

namespace tenon {
namespace {

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  struct Field {
    uint64_t number = 0;
    uint64_t varint = 0;     // wire types 0, 1 and 5
    std::string_view bytes;  // wire type 2
    bool is_bytes = false;

    float as_float() const {
      const auto bits = static_cast<uint32_t>(varint);
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    int64_t as_int() const { return static_cast<int64_t>(varint); }
  };

  bool done() const { return rest_.empty(); }

  Result<Field> next() {
    Field field;
    uint64_t key = 0;
    if (!varint(key)) return cut_short();
    field.number = key >> 3;
    switch (key & 7) {
      case 0:
        if (!varint(field.varint)) return cut_short();
        return field;
      case 1:
        if (!fixed(8, field.varint)) return cut_short();
        return field;
      case 5:
        if (!fixed(4, field.varint)) return cut_short();
        return field;
      case 2: {
        uint64_t size = 0;
        if (!varint(size) || size > rest_.size()) return cut_short();
        field.is_bytes = true;
        field.bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return field;
      }
      default:
        return bad_file(fmt::format("protobuf wire type {} is not known", key & 7));
    }
  }

 private:
  static Error cut_short() { return bad_file("protobuf message is cut short"); }

  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool fixed(size_t size, uint64_t& value) {
    if (rest_.size() < size) return false;
    value = 0;
    std::memcpy(&value, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
};

template <typename F>
Status for_each_field(std::string_view message, F&& visit) {
  for (WireReader reader(message); !reader.done();) {
    ASSIGN_OR_RETURN(const WireReader::Field field, reader.next());
    RETURN_IF_ERROR(visit(field));
  }
  return {};
}

Status read_piece(std::string_view message, SentencePieceModel& model) {
  SentencePiece piece;
  RETURN_IF_ERROR(for_each_field(message, [&](const WireReader::Field& field) -> Status {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) piece.score = field.as_float();
    if (field.number == 3) {
      if (field.varint < 1 || field.varint > 6) {
        return bad_file(fmt::format("piece {} has the type {}", model.pieces.size(), field.varint));
      }
      piece.kind = static_cast<PieceKind>(field.varint);
    }
    return {};
  }));
  model.pieces.push_back(piece);
  return {};
}

Status read_trainer(std::string_view message, SentencePieceModel& model) {
  return for_each_field(message, [&](const WireReader::Field& field) -> Status {
    switch (field.number) {
      case 3:
        if (field.varint < 1 || field.varint > 4) {
          return bad_file(fmt::format("model type {} is not known", field.varint));
        }
        model.kind = static_cast<SentencePieceModel::Kind>(field.varint);
        break;
      case 24:
        model.prefix_as_suffix = field.varint != 0;
        break;
      case 35:
        model.byte_fallback = field.varint != 0;
        break;
      case 40:
        model.unk = field.as_int();
        break;
      case 41:
        model.bos = field.as_int();
        break;
      case 42:
        model.eos = field.as_int();
        break;
      case 43:
        model.pad = field.as_int();
        break;
      default:
        break;
    }
    return {};
  });
}

Status read_normaliser(std::string_view message, SentencePieceModel& model) {
  return for_each_field(message, [&](const WireReader::Field& field) -> Status {
    if (field.number == 2) model.charsmap = field.bytes;
    if (field.number == 3) model.add_prefix = field.varint != 0;
    if (field.number == 4) model.remove_extra_spaces = field.varint != 0;
    if (field.number == 5) model.escape_spaces = field.varint != 0;
    return {};
  });
}

}  // namespace

Result<SentencePieceModel> parse_sentencepiece(std::string_view file) {
  SentencePieceModel model;
  RETURN_IF_ERROR(for_each_field(file, [&](const WireReader::Field& field) -> Status {
    if (field.number >= 1 && field.number <= 3 && !field.is_bytes) {
      return bad_file("is not a SentencePiece model");
    }
    if (field.number == 1) return read_piece(field.bytes, model);
    if (field.number == 2) return read_trainer(field.bytes, model);
    if (field.number == 3) return read_normaliser(field.bytes, model);
    return {};
  }));
  if (model.pieces.empty()) return bad_file("has no pieces; is it a SentencePiece model?");
  return model;
}

}  // namespace tenon
