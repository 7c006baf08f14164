# Without a terminal, chat reads lines and answers each.

$ "$TESTS/make_tiny_model" m
$ printf 'Say a\nmore\n' | tenon chat --model m --max-new 3 --compute f32 --threads 1
you> model> ...
you> model> ...
you>...

$ printf '' | tenon chat --model m --threads 1
you>...

$ rm m/chat_template.jinja; printf 'x\n' | tenon chat --model m --threads 1
tenon: --template: the model has no chat template
...
[exit 2]

$ tenon chat --model m --tempreature 1
tenon: chat: unknown option '--tempreature'
  did you mean '--temperature'?
[exit 2]
