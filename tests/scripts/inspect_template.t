# The training text of a conversation beside the prompt a server would give, token by token.
$ cat > chatml.jinja <<'END'
> {%- for message in messages %}
> {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
> {%- endfor %}
> {%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
> END

$ tenon inspect template "$TESTS/text/tiny_bytes" --template chatml.jinja
template ...chatml.jinja
reads ...add_generation_prompt
...
prompt is what stands before the answer  yes
first difference token                   none

token     training ... prompt of a server
    0 ...<|im_start|>...=
...
* trained on; = the same token

# A template whose prompt opens a block that the training text does not have.
$ sed 's/assistant.n/&<think>/' chatml.jinja > think.jinja
$ echo '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}' > one.json
$ tenon inspect template "$TESTS/text/tiny_bytes" one.json --template think.jinja
...
prompt is what stands before the answer  no
...
note: from token ...
$ tenon inspect template "$TESTS/text/tiny_bytes" one.json --template think.jinja --json | python3 -c 'import json, sys; f = json.load(sys.stdin); print(f["prompt_text"].encode(), f["answers"], f["prompt_is_what_stands_before_the_answer"])'
b'<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n<think>' 1 False

# A template that shortens earlier answers: only the last one is trained on, and that is said.
$ cat > last.jinja <<'END'
> {%- for message in messages %}
> {{- '<|im_start|>' + message.role + '\n' + (message.content if loop.last or message.role == 'user' else message.content[:1]) + '<|im_end|>' + '\n' }}
> {%- endfor %}
> {%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
> END
$ tenon inspect template "$TESTS/text/tiny_bytes" --template last.jinja
...
answers ...2
answers not trained ...1
...
note: the template rewrites earlier turns, so only the last answer is trained on

# Bad input.
$ tenon inspect template "$TESTS/text/tiny_bytes"
tenon: ...: the model has no chat template
  Name one with --template FILE.
[exit 2]

$ tenon inspect template "$TESTS/text/tiny_bytes" one.json --row 1 --template chatml.jinja
tenon: --row: there are 1 rows, counted from 0
[exit 2]
