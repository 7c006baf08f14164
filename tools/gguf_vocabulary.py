"""The tokenizer in a GGUF file as a SentencePiece model, so that PyPI's sentencepiece can say what it does."""
import struct

from sentencepiece import sentencepiece_model_pb2

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def scalar(self, form):
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        size = self.scalar("Q")
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            element, count = self.scalar("I"), self.scalar("Q")
            return [self.value(element) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def metadata(path):
    """{key: value} of a GGUF file (format description: ggml's docs/gguf.md)."""
    with open(path, "rb") as file:
        reader = Reader(file.read())
    assert reader.data[:4] == b"GGUF"
    reader.at = 4
    reader.scalar("I"), reader.scalar("Q")
    return {reader.text().decode(): reader.value(reader.scalar("I")) for _ in range(reader.scalar("Q"))}


def sentencepiece_model(path):
    """The bytes of a tokenizer.model with the pieces, scores and kinds of the file, of the kind "llama"."""
    data = metadata(path)
    assert data["tokenizer.ggml.model"] == b"llama"
    model = sentencepiece_model_pb2.ModelProto()
    model.trainer_spec.model_type = sentencepiece_model_pb2.TrainerSpec.BPE
    kinds = data["tokenizer.ggml.token_type"]
    model.trainer_spec.byte_fallback = 6 in kinds
    model.trainer_spec.vocab_size = len(kinds)
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = data.get("tokenizer.ggml.add_space_prefix", True)
    model.normalizer_spec.remove_extra_whitespaces = False
    model.normalizer_spec.escape_whitespaces = True
    for text, score, kind in zip(data["tokenizer.ggml.tokens"], data["tokenizer.ggml.scores"], kinds):
        model.pieces.add(piece=text.decode(), score=score, type=kind)
    return model.SerializeToString()
