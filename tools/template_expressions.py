"""Small templates that pin down the language one piece at a time."""
import itertools
import pathlib
import random

VARIABLES = {
    "n": 7,
    "zero": 0,
    "f": 2.5,
    "s": "Hello World",
    "e": "",
    "u": "Grüße 世界 👋",
    "b": True,
    "x": None,
    "l": [3, 1, 2],
    "d": {"b": 1, "a": {"c": [1, 2, 3]}, "items": "shadow", "name": "N"},
    "ds": [{"k": "a", "v": 3}, {"k": "B", "v": 1}, {"k": "c", "v": 2}, {"v": 5}],
    "words": "the quick  brown\tfox\njumps",
}

# Printed as {{ ... }} with VARIABLES.
PRINTED = (pathlib.Path(__file__).parent / "template_expressions.txt").read_text()

# Whole templates.
TEMPLATES = [
    "",
    "plain",
    "line\n",
    "line\n\n",
    "a\r\nb\rc\n",
    "{% if true %}\nx\n{% endif %}\ny",
    "  {% if true %}\n  x\n  {% endif %}\n  y",
    "a  {% if true %}x{% endif %}",
    "  {%- if true -%}  \n x \n {%- endif -%}  \n y",
    "  {%+ if true %} x {%+ endif %}",
    "{% if true +%}\nx{% endif %}",
    "  {{ 1 }}\n  {{- 2 -}}  \n3",
    "  {{ 1 }}\n\n{{ 2 }}\n",
    "{# comment #}\nx",
    "  {# comment #}  \nx",
    "a {#- comment -#} \n b",
    "a\n  {#+ comment +#}\n b",
    "a {# {{ x }} {% if %} #} b",
    "{#a#}{#b#}\n\n{#c#}",
    "{# unclosed",
    "{% raw %}{{ x }}{% if %}{% endraw %}",
    "a\n  {% raw %}\n  {{ x }}\n  {% endraw %}\nb",
    "a {%- raw -%} {{ x }} {%- endraw -%} b",
    "{% raw %} x",
    "{%raw%}{#{%endraw%}",
    "{% raw %}a{% endraw +%}\nb",
    "{{ '{{' }}",
    "{{ '}}' }}",
    "{",
    "{ {",
    "a{b",
    "}}",
    "%}",
    "{{",
    "{{ 1",
    "{% if",
    "{% %}",
    "{% nope %}",
    "{% if true %}",
    "{% endif %}",
    "{% if true %}{% endfor %}",
    "{% for x in l %}{% endif %}",
    "{% if true %}{% else %}{% elif false %}{% endif %}",
    "{{ }}",
    "{{ 1, }}",
    "{%\n if\n true\n%}x{%\nendif\n%}",
    "{% if true: %}x{% endif %}",
    "{% set x = 1 %}{{ x }}",
    "{% set x, y = 1, 2 %}{{ x }}{{ y }}",
    "{% set (x, y) = [1, 2] %}{{ x }}{{ y }}",
    "{% set x, (y, z) = 1, (2, 3) %}{{ x }}{{ y }}{{ z }}",
    "{% set x, y = [1] %}",
    "{% set x, y = [1, 2, 3] %}",
    "{% set x, y = 1 %}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set 1 = 2 %}",
    "{% set true = 2 %}",
    "{% set x.y = 2 %}",
    "{% set x = {} %}{% set x.y = 2 %}",
    "{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{% set ns.b = 3 %}{{ ns.a }}{{ ns.b }}{{ ns }}",
    "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a + ns.b }}",
    "{% set x %}a{{ n }}b{% endset %}{{ x }}",
    "{% set x | upper %}abc{% endset %}{{ x }}",
    "{% set x | replace('a', 'z') | upper %}abc{% endset %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
    "{% for i in l %}{{ x }}{% set x = i %}{{ x }}{% endfor %}",
    "{% for i in l %}{{ n }}{% set n = i %}{{ n }}{% endfor %}{{ n }}",
    "{% for i in l %}{% if i == 1 %}{% set y = i %}{% endif %}{{ y }}{% endfor %}{{ y }}",
    "{% if false %}{% set n = 1 %}{% endif %}{{ n }}",
    "{% if false %}{% set q = 1 %}{% endif %}{{ q }}",
    "{% if false %}{% set n = 1 %}{% elif true %}{{ n }}{% set n = 2 %}{% endif %}{{ n }}",
    "{% set n = n + 1 %}{{ n }}",
    "{{ n }}{% set n = 8 %}{{ n }}",
    "{% macro m() %}{{ n }}{% endmacro %}{{ m() }}{% set n = 8 %}{{ m() }}",
    "{% macro m() %}{{ q }}{% endmacro %}{{ m() }}{% set q = 8 %}{{ m() }}",
    "{% for a in l %}{% for b in l %}{{ n }}{% endfor %}{% set n = 1 %}{% endfor %}",
    "{% for i in l %}{{ i }}{% endfor %}",
    "{% for i in [] %}{{ i }}{% else %}none{% endfor %}",
    "{% for i in l %}{{ i }}{% else %}none{% endfor %}",
    "{% for i in undefined_name %}{{ i }}{% else %}none{% endfor %}",
    "{% for i in none %}{% endfor %}",
    "{% for i in n %}{% endfor %}",
    "{% for k in d %}{{ k }},{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}",
    "{% for k, v in d|items %}{{ k }}={{ v }},{% endfor %}",
    "{% for k, v in d %}{% endfor %}",
    "{% for c in s %}{{ c }}.{% endfor %}",
    "{% for c in u %}{{ c }}.{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}",
    "{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for i in l %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for i in [1, 1, 2, 2, 1] %}{{ loop.changed(i) }}{% endfor %}",
    "{% for i in l %}{{ loop }}{% endfor %}",
    "{% for i in l %}{{ loop.nothing }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{{ loop.index }}{% for i in l %}{% endfor %}",
    "{% for i in l %}{% for j in l %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for i in l %}{% set outer = loop %}{% for j in l %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for i in l if i > 1 %}{{ i }}{{ loop.index }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for i in l if i > 9 %}{{ i }}{% else %}none{% endfor %}",
    "{% for i in l if loop.index > 1 %}{{ i }}{% endfor %}",
    "{% for i in l if i is odd %}{% for i in l if i is even %}{{ i }}{% endfor %}{{ i }}{% endfor %}",
    "{% for i in l|map('string') %}{{ i }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }} {% endfor %}",
    "{% set g = l|map('string') %}{% for i in g %}{{ i }}{% endfor %}|{% for i in g %}{{ i }}{% endfor %}",
    "{% set g = l|map('string') %}{% for i in g %}{{ i }}{% break %}{% endfor %}|{% for i in g %}{{ i }}{% endfor %}",
    "{% set ns = namespace(stop=2) %}{% for i in l if i != ns.stop %}{{ i }}{% set ns.stop = 9 %}{% endfor %}",
    "{% set ns = namespace(c=0) %}{% for i in l %}{% set ns.c = ns.c + i %}{% endfor %}{{ ns.c }}",
    "{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in l %}{% break %}{% else %}E{% endfor %}",
    "{% for i in l %}{% continue %}{% else %}E{% endfor %}",
    "{% for i in l %}{% for j in l %}{% break %}{% endfor %}{{ i }}{% endfor %}",
    "{% break %}",
    "{% continue %}",
    "{% for i in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% for i in l %}{% set x %}a{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endset %}{{ x }}{% endfor %}",
    "{% for i in l %}{% filter upper %}a{% if i == 1 %}{% continue %}{% endif %}b{% endfilter %}{% endfor %}",
    "{% for i in l %}{% for j in [] %}{% else %}{% break %}{% endfor %}{{ i }}{% endfor %}",
    "{% for loop in l %}{% endfor %}",
    "{% for i in l %}{% set loop = 1 %}{% endfor %}",
    "{% for i in [[1, [2]], [3]] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}:{{ loop.depth }}{% endif %}{% endfor %}",
    "{% for t in tree recursive %}{{ t.n }}{% if t.c %}[{{ loop(t.c) }}]{% endif %}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for i in l %}{{ loop(l) }}{% endfor %}",
    "{% for i in 1, 2, 3 %}{{ i }}{% endfor %}",
    "{% for i in (1, 2) if true else (3,) %}{{ i }}{% endfor %}",
    "{% for x in x %}{% endfor %}",
    "{% for l in l %}{{ l }}{% endfor %}{{ l }}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(b=5, a=4) }}|{{ m() }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m(a=b, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m() }}",
    "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}",
    "{% macro m(a) %}{{ a + 1 }}{% endmacro %}{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(c=2) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
    "{% macro m(a) %}{{ caller() }}{% endmacro %}{% call m(1) %}body{% endcall %}",
    "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% macro m() %}x{% endmacro %}{% call m() %}body{% endcall %}",
    "{% macro m(caller) %}{{ caller() }}{% endmacro %}",
    "{% macro m(caller=none) %}{{ caller() if caller else 'no' }}{% endmacro %}{{ m() }}{% call m() %}yes{% endcall %}",
    "{% macro m(a, a) %}{% endmacro %}",
    "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro fact(k) %}{% if k < 2 %}1{% else %}{{ k * fact(k - 1)|int }}{% endif %}{% endmacro %}{{ fact(5) }}",
    "{% macro m() %}{{ undefined_name }}{% set z = 1 %}{{ z }}{% endmacro %}{{ m() }}{{ z }}",
    "{% macro m() %}a{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}{{ m.caller }}{{ m.nope }}",
    "{% macro m() %}  x  {% endmacro %}[{{ m()|trim }}]",
    "{% macro outer() %}{% macro inner(x) %}<{{ x }}>{% endmacro %}{{ inner(1) }}{{ inner(2) }}{% endmacro %}{{ outer() }}",
    "{% macro m(x) %}{% for i in range(x) %}{{ loop.index }}{% endfor %}{% endmacro %}{{ m(3) }}",
    "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% set x = 1 %}{% macro m() %}{% set x = 2 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}",
    "{{ m() }}{% macro m() %}late{% endmacro %}",
    "{% call nope() %}{% endcall %}",
    "{% call 1 %}{% endcall %}",
    "{% filter upper %}abc{{ s }}{% endfilter %}",
    "{% filter replace('a', 'b')|upper %}aaa{% endfilter %}",
    "{% filter nope %}{% endfilter %}",
    "{% filter indent(2) %}a\nb\n{% endfilter %}",
    "{% set y = 1 %}{% filter upper %}{% set y = 2 %}{{ y }}{% endfilter %}{{ y }}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% with a = 1, b = a %}{{ b }}{% endwith %}",
    "{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% with %}{% set n = 1 %}{{ n }}{% endwith %}{{ n }}",
    "{% with (a, b) = (1, 2) %}{{ a }}{{ b }}{% endwith %}",
    "{% autoescape false %}{{ '<' }}{% endautoescape %}",
    "{% print 1, 'a' %}",
    "{% print %}",
    "{% generation %}a{{ n }}{% endgeneration %}",
    "x{% generation %}é{% endgeneration %}y{% generation %}{% endgeneration %}z",
    "{% for i in l %}<{% generation %}{{ i }}{{ loop.index }}{% endgeneration %}>{% endfor %}",
    "  {% generation %}\n  a\n  {% endgeneration %}\nb",
    "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}",
    "{% generation %}{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}{% endgeneration %}",
    "{% for i in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
    "{% generation %}",
    "{% if l %}yes{% endif %}{% if e %}no{% endif %}{% if undefined_name %}no{% endif %}",
    "{% if n == 1 %}a{% elif n == 7 %}b{% else %}c{% endif %}",
    "{% if n == 1 %}a{% elif n == 2 %}b{% else %}c{% endif %}",
    "{% if n, %}a{% endif %}",
    "{% if n == 7 and s %}a{% endif -%}   b",
    "{% if false %}{{ 1|nope }}{% endif %}ok",
    "{% if true %}{{ 1|nope }}{% endif %}ok",
    "{% if false %}{% for i in l %}{{ i|nope }}{% endfor %}{% endif %}",
    "{% if false %}{{ 1 is nope }}{% endif %}ok",
    "{% set x = cycler('a', 'b') %}{{ x.next() }}{{ x.next() }}{{ x.current }}{{ x.next() }}{{ x.reset() }}{{ x.current }}",
    "{% set j = joiner('|') %}{{ j() }}a{{ j() }}b{{ j() }}c",
    "{% set ns = namespace(l=[]) %}{% for i in l %}{% set ns.l = ns.l + [i * 2] %}{% endfor %}{{ ns.l }}",
    "{% set x = [] %}{% set _ = x.append(1) %}{{ x }}",
    "{% set a = 1 %}\n{% set b = 2 %}\n\n{{ a + b }}\n",
    "{%- set a = 1 -%}\n\n{{ a }}",
    "{%- for i in l %}\n{{- i }}\n{%- endfor %}\nend",
    "{% for i in l -%}\n  {{ i }}\n{%- endfor %}",
    "\n\n{% if true %}\n\nx\n\n{% endif %}\n\n",
    "\t{% if true %}\t\n\tx\n\t{% endif %}\t\n",
    "\u3000{% if true %}x{% endif %}",
    "a\n\u00a0 {% if true %}x{% endif %}",
    "x{% if true -%}\u3000\n y{% endif %}",
    "{{ 1 -}}\n\n{{- 2 }}",
    "{{+ 1 }}",
    "{{ 1 +}}",
    "{%+if true%}a{%endif+%}\n b",
    "{{'a'}}{{\"b\"}}",
    "{{1}}{{-1}}{{- -1}}",
    "{{ {'a': {'b': 1}} }}",
    "{{ {'a': {'b': 1}}['a']['b'] }}",
    "{% set x = {'a': '%}'} %}{{ x.a }}",
    "{# a #} b {# c #}",
    "{#-#}x",
    "a {##} b",
    "{% if 'a' in 'abc' and not 'z' in 'abc' %}ok{% endif %}",
    "{{ s ~ ' ' ~ (n if n else 'none') ~ '!' }}",
    "{{ messages[0]['role'] }}",
    "{% include 'x' %}",
    "{% import 'x' as y %}",
    "{% extends 'x' %}",
    "{{ 'a'.__class__.__mro__[1].__subclasses__() }}",
    "{{ range.__globals__ }}",
    "{{ dict.mro() }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ (l|map('string')).gi_frame }}",
    "{{ ''['__class__'] }}",
    "{{ ''|attr('__class__') }}",
    "{{ [''|attr('__class__')] }}",
    "{{ '{0.__class__.__mro__}'.format('') }}",
    "{{ l.__len__() }}",
    "{{ [l]|map(attribute='__class__')|list }}",
    "{{ 'x'.format.__self__ }}",
    "{{ [1,2]|map(attribute='real')|list }}",
    "{{ s.format.__name__ }}",
    "a{% set x = 1 %}\n  {{ x }}\n{% set y = 2 %}  \nb",
    "{% for r in [1,2] %}{% for m in 'ab' %}{{ r }}{{ m }}{{ loop.last }}{% endfor %}{% if not loop.last %}, {% endif %}{% endfor %}",
]

TREE = [{"n": "a", "c": [{"n": "b", "c": []}, {"n": "c", "c": [{"n": "d"}]}]}, {"n": "e"}]


def random_layouts(count):
    """Tags with all kinds of white space and signs around them."""
    rng = random.Random(5)
    space = ["", " ", "  ", "\n", "\n\n", " \n", "\n ", "\t", " \n \n ", "x", "x\n", "\nx ", "\r\n"]
    opens, closes = ["", "-", "+"], ["", "-", "+"]
    for _ in range(count):
        out = []
        depth = []
        for _ in range(rng.randint(2, 6)):
            out.append(rng.choice(space))
            a, b = rng.choice(opens), rng.choice(closes)
            kind = rng.choice(["var", "if", "for", "set", "comment", "raw", "end"])
            if kind == "var":
                out.append("{{" + rng.choice(["", "-"]) + " 1 " + rng.choice(["", "-"]) + "}}")
            elif kind == "comment":
                out.append("{#" + a + " c " + b + "#}")
            elif kind == "set":
                out.append("{%" + a + " set q = 1 " + b + "%}")
            elif kind == "raw":
                out.append("{%" + a + " raw " + rng.choice(["", "-"]) + "%}" + rng.choice(space) + "r" + rng.choice(space) + "{%" + rng.choice(opens) + " endraw " + b + "%}")
            elif kind == "end" and depth:
                out.append("{%" + a + " end" + depth.pop() + " " + b + "%}")
            elif kind in ("if", "for"):
                depth.append(kind)
                out.append("{%" + a + (" if true " if kind == "if" else " for i in 'ab' ") + b + "%}")
        while depth:
            out.append(rng.choice(space) + "{%" + rng.choice(opens) + " end" + depth.pop() + " " + rng.choice(closes) + "%}")
        out.append(rng.choice(space))
        yield "".join(out), {}


def operator_grid():
    """Every operator between values of every type, several to a template so that the file stays small."""
    values = ["1", "0", "-3", "2.5", "true", "none", "'a'", "''", "[1]", "(1,)", "{'a': 1}", "undefined_name"]
    for op in ["+", "-", "*", "/", "//", "%", "**", "==", "<", ">=", "in", "and", "or", "~"]:
        for left, right in itertools.product(values, values):
            yield "{{ " + left + " " + op + " " + right + " }}", {}


def expressions():
    out = []
    for line in PRINTED.strip().replace("\\\nend", "\\\\NL").split("\n"):
        out.append(("{{ " + line.replace("\\\\NL", "\\\nend") + " }}", VARIABLES))
    out += [(template, {**VARIABLES, "tree": TREE}) for template in TEMPLATES]
    out = [(source, {k: v for k, v in variables.items() if k in source or k in ("n",)}) for source, variables in out]
    out += list(random_layouts(150))
    return out
