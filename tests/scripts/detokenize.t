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

# Ids that come through a pipe become text before the next ones come; an id may be cut between two pieces.
$ (printf '46 7'; sleep 0.2; printf '5 82 '; sleep 0.2; printf '82 85') | tenon detokenize "$TESTS/text/tiny_bytes"; echo
Hello
$ coproc T { tenon detokenize "$TESTS/text/tiny_bytes"; }
> printf '46 75 82 ' >&${T[1]}; timeout 20 head -c 3 <&${T[0]}; echo
> exec {out}<&${T[0]}; printf '82 85' >&${T[1]}; exec {T[1]}>&-; cat <&$out; echo
Hel
lo
