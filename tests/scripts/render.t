# The exact bytes of a chat template.

$ cat > chat.jinja <<'END'
> {{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}
> {% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}
> END
$ echo '{"messages": [{"role": "user", "content": "Hi é"}], "bos_token": "<b>"}' > c.json
$ tenon render chat.jinja c.json | od -An -c
   <   b   >   [   u   s   e   r   ]       H   i     303 251  \n

$ tenon render chat.jinja c.json --generation-prompt; echo '|'
<b>[user] Hi é
[assistant]|

$ tenon render chat.jinja - --json --set bos_token='<s>' < c.json
"<s>[user] Hi é\n"

# Absent variables are what transformers passes: none for tools and documents, false for the prompt; --set takes JSON.
$ echo '{{ tools is none }} {{ documents is none }} {{ add_generation_prompt }} {{ x is defined }} {{ x }}' > v.jinja
$ tenon render v.jinja c.json; echo '|'
True True False False |

$ tenon render v.jinja c.json --set x=false --set tools='[1]'; echo
False True False True False

$ tenon render v.jinja c.json --set x=text=more; echo
True True False True text=more

# The file may hold any variable, and keys keep their order.
$ echo '{"messages": [], "add_generation_prompt": true, "documents": [{"z": 1, "a": [2.0, null]}]}' > d.json
$ echo '{{ add_generation_prompt }} {{ documents | tojson }}' > d.jinja; tenon render d.jinja d.json; echo
True [{"z": 1, "a": [2.0, null]}]

# A model folder brings its template and its special tokens.
$ mkdir model && cp "$TESTS/text/tiny_bytes/"* model && cp chat.jinja model/chat_template.jinja
$ echo '{"messages": [{"role": "user", "content": "Hi"}]}' > m.json
$ tenon render model m.json; echo '|'
<s>[user] Hi
|

$ tenon render model m.json --template d.jinja; echo
False null

$ tenon render "$TESTS/text/tiny_bytes" m.json
tenon: ...tiny_bytes: the model has no chat template
  Name one with --template FILE.
[exit 2]

# The time is given, never read.
$ echo '{{ strftime_now("%d %b %Y %H:%M") }}' > t.jinja
$ tenon render t.jinja m.json --clock 2024-07-26T12:34:56+02:00; echo
26 Jul 2024 12:34

$ tenon render t.jinja m.json
tenon: t.jinja:1:...
...
[exit 2]

$ tenon render t.jinja m.json --clock yesterday
tenon: --clock: 'yesterday' is not a time
  Write it as 2024-07-26T12:34:56Z.
[exit 2]

# A template that refuses, with its message.
$ echo '{{ raise_exception("Roles must alternate") }}' > r.jinja; tenon render r.jinja m.json
tenon: r.jinja:1:...: Roles must alternate
...
[exit 2]

# Bad input.
$ echo '{% for %}' > b.jinja; tenon render b.jinja m.json
tenon: b.jinja:1:...
...
[exit 2]

$ echo '{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}' > l.jinja; tenon render l.jinja m.json
tenon: l.jinja:1:...
...
[exit 2]

$ echo '[]' > list.json; tenon render chat.jinja list.json
tenon: list.json: is not an object with "messages"
  Write {"messages": [{"role": "user", "content": "Hello"}]}.
[exit 2]

$ echo '{"messages": [' > cut.json; tenon render chat.jinja cut.json
tenon: cut.json:2:1: not valid JSON: ...
...
[exit 2]

$ tenon render chat.jinja m.json --set bos_token
tenon: --set: 'bos_token' is not of the form key=value
[exit 2]

$ tenon render missing.jinja m.json
tenon: missing.jinja: ...
...
[exit 2]
