$ tenon detokenize "$TESTS/text/tiny_bytes" 46 75 82 82 85 5 90 78 75 88 75; echo '|'
Hello there|

$ tenon detokenize "$TESTS/text/tiny_bytes" 1 46 79 2; echo
<s>Hi</s>

$ tenon detokenize "$TESTS/text/tiny_bytes" 1 46 79 2 --skip-special --json
"Hi"

# What tokenize prints can be read back, in either form.
$ printf 'One text,\ntwo lines: é中.\n' > text
$ tenon tokenize "$TESTS/text/tiny_sentencepiece" --file text | tenon detokenize "$TESTS/text/tiny_sentencepiece" | cmp - text
$ tenon tokenize "$TESTS/text/tiny_sentencepiece" --file text --json | tenon detokenize "$TESTS/text/tiny_sentencepiece" | cmp - text

$ printf '[46, 79]\n[]\n[231]\n' | tenon detokenize "$TESTS/text/tiny_bytes" --jsonl -
"Hi"
""
tenon: standard input:3: id 231 is outside the vocabulary of 104 tokens
[exit 2]

# Bytes that form no character come out as U+FFFD.
$ tenon detokenize "$TESTS/text/tiny_sentencepiece" 231 --json
"�"

$ tenon detokenize "$TESTS/text/tiny_bytes" -1
tenon: detokenize: id -1 is outside the vocabulary of 104 tokens
[exit 2]

$ tenon detokenize "$TESTS/text/tiny_bytes" 1 two
tenon: detokenize: 'two' is not a token id
[exit 2]

$ tenon detokenize "$TESTS/text/tiny_bytes" 99999999999999999999
tenon: detokenize: '99999999999999999999' is not a token id
[exit 2]
