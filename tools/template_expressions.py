"""Small templates that pin down the language one piece at a time."""
import itertools
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
PRINTED = r"""
1
1.0
1e3
1e16
1e15
123456789012345678.0
1.5e-7
0.0001
0.00001
1_000
0x1F
0b101
0o17
1_0.5_0
true
True
false
none
None
'a' 'b' "c"
'it''s'
"tab\tq\"uote\\ \x41 \u4e2d \U0001F600 \101 \q \
end"
'\é\世'
()
(1,)
1, 2
(1, 'a', none, true, 1.5)
[]
[1, [2, 'x'], (3,)]
{}
{'a': 1, 2: 'b', none: [true], 1.5: ()}
{1: 'a', true: 'b', 1.0: 'c'}
{'a': 1, 'a': 2}
"it's"
["it's", 'say "x"', 'both \' and "', 'back\\slash', 'new\nline', '\x00\x1f\x7f', 'é世👋', '\u200b\xa0\ufeff']
undefined_name
[undefined_name]
undefined_name.attribute
undefined_name['key']
undefined_name + 1
1 + undefined_name
undefined_name ~ 'x'
undefined_name == undefined_other
undefined_name == none
undefined_name is defined
undefined_name is undefined
undefined_name in [1]
'a' in undefined_name
undefined_name < 1
undefined_name()
-undefined_name
undefined_name|length
undefined_name|list
undefined_name or 'x'
undefined_name and 'x'
not undefined_name
undefined_name if false
(undefined_name if false) is defined
undefined_name|default('d')
e|default('d')
e|default('d', true)
x|default('d')
x|d('d', boolean=true)
d.missing|default('d')
d.missing.deeper|default('d')
d.missing
d['missing']
d.missing.deeper
d['missing']['deeper']
d.name
d['name']
d.a.c[1]
d.a['c'][-1]
d.a.c[5]
d.a.c['x']
d.a.c.5
d.a.c.1
d.items
d['items']
d.items()
d.keys()
d.values()
d.items()|list
d.keys()|list
d.get('b')
d.get('zz')
d.get('zz', 5)
d.get('zz') is none
d.a.get('c', [])[0]
d.__class__
d['__class__']
s.__class__
s.__class__.__mro__
''.__class__.__base__.__subclasses__()
l.append(4)
l.pop()
l.append is defined
d.update({'q': 1})
d.pop('b')
d._private
n._private
x.attribute
n.attribute
n.real
n.denominator
f.imag
f.is_integer()
true.real
n.bit_length()
s.nothing
s['upper']()
s.upper.name
range(5)
range(1, 10, 3)|list
range(5, 0, -2)|list
range(3)[1]
range(10)[2:5]
range(0)
range(100001)
range(100000)|length
range(1, 2, 0)
range('a')
1 + 2
1 + 2.0
'a' + 'b'
'a' + 1
1 + 'a'
[1] + [2]
(1,) + (2,)
[1] + (2,)
{} + {}
none + 1
true + true
7 - 10
7 * 3
'ab' * 3
3 * 'ab'
'ab' * -1
[1, 2] * 2
'ab' * 1.5
7 / 2
6 / 2
1 / 0
1.0 / 0
7 // 2
-7 // 2
7 // -2
7.5 // 2
-7.5 // 2
1 // 0
7 % 3
-7 % 3
7 % -3
-7.5 % 2
7.5 % -2
1 % 0
2 ** 10
2 ** -1
2 ** 0.5
2.0 ** 3
-2 ** 2
2 ** 3 ** 2
(-8) ** 2
0 ** 0
0 ** -1
-n
+n
- -n
+true
-true
-s
1 ~ 2 ~ none ~ true ~ 1.5 ~ [1]
'a' ~ 'b' + 'c'
1 + 2 ~ 3
2 * 3 ~ 4
1 == 1.0
1 == true
'1' == 1
[1, 2] == [1, 2]
[1] == (1,)
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
none == false
1 != 2
1 < 2
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2
1 < 'a'
'a' < 'b'
'Z' < 'a'
'é' > 'z'
[1, 2] < [1, 3]
[1] < [1, 0]
(1, 2) < (1, 'a')
none < 1
true < 2
1 == 1 == 1
1 in [1, 2]
4 in l
4 not in l
'lo' in s
'' in s
1 in s
'b' in d
'items' in d
1 in 1
'a' in none
1 in range(5)
5 in range(5)
2.0 in range(5)
'x' in ('x', 'y')
not 'x' in ('x', 'y')
not true
not not 1
true and false or true
1 and 2
0 and 2
0 or 2
'' or none
1 or 1/0
n if b else s
n if not b else s
'a' if false else 'b' if false else 'c'
('x' if n > 5 else 'y') ~ 'z'
n is number
n is integer
n is float
f is float
b is integer
b is number
b is boolean
b is true
b is false
n is odd
n is even
n is divisibleby 7
n is divisibleby(2)
f is odd
s is string
s is sequence
s is iterable
s is mapping
l is sequence
l is iterable
l is mapping
l is string
d is mapping
d is sequence
d is iterable
x is none
x is not none
x is defined
none is none
n is iterable
d.items() is sequence
d.items() is iterable
l|map('string') is sequence
l|map('string') is iterable
range is callable
s is callable
s.upper is callable
undefined_name is callable
undefined_name is iterable
undefined_name is sequence
undefined_name is string
undefined_name is none
'abc' is lower
'ABC' is upper
'Abc' is lower
'123' is upper
n is eq 7
n is equalto 7
n is ne 7
n is gt 5
n is greaterthan(5)
n is lt 5
n is lessthan 5
n is ge 7
n is le 6
n is in [7]
n is not in [7]
n is in(l)
1 is sameas 1
true is sameas true
1 is sameas true
none is sameas none
'upper' is filter
'nope' is filter
'odd' is test
'x'|e is escaped
'x' is escaped
n is divisibleby
n is nothing
n|nothing
n if false else (n|nothing if false else 1)
(n|nothing) if false else 1
n is defined and s is defined
n is defined is defined
not n is defined
n is defined == true
s is string and l is not string
s[0]
s[-1]
s[100]
s[1:4]
s[:3]
s[3:]
s[-3:]
s[:-3]
s[::2]
s[::-1]
s[8:2:-2]
s[10:2]
s[::0]
s['a':]
s[none:none]
u[0]
u[2:5]
u[-1]
u[::-1]
u|length
u[6:8]
l[0:2]
l[::-1]
l[-10:10]
l[5]
l[:1] + l[1:]
l[1.0]
l[true]
(1, 2, 3)[1:]
d[1:2]
n[0]
n[0:1]
x[0]
'a,b,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
'a,b,c'.split(sep=',', maxsplit=1)
words.split()
words.split(none, 2)
words.rsplit(none, 1)
'  a  b '.split()
'  a  b '.split(' ')
''.split()
''.split(',')
'abc'.split('')
'abc'.split('b')[0]
'aXXbXXc'.split('XX')[-1]
'a</think>b'.split('</think>')[-1].lstrip('\n')
'  x y '.strip()
'  x y '.lstrip()
'  x y '.rstrip()
'xxhixx'.strip('x')
'abcba'.strip('ab')
'xyz'.strip('')
'\u3000 a\xa0\u2028'.strip()|length
'a'.strip(1)
'a\nb\r\nc\rd\x0be\u2028f'.splitlines()
'a\nb\n'.splitlines(true)
''.splitlines()
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('-')
'abc'.rpartition('-')
s.upper()
s.lower()
s.title()
s.capitalize()
s.swapcase()
'straße'.upper()
'ŉ ǰ ﬁ'.upper()
'ΑΣ ΑΣΑ Σ'.lower()
'İ'.lower()|length
'ǆ'.title()
"they're bill's".title()
'HELLO wORLD'.capitalize()
'ß'.casefold()
'hello world foo-bar'.title()
s.startswith('Hello')
s.startswith(('x', 'He'))
s.startswith('World', 6)
s.endswith('World')
s.endswith(('x', 'ld'))
s.endswith('Hello', 0, 5)
s.startswith(1)
s.startswith('')
s.find('o')
s.find('o', 5)
s.find('zz')
s.rfind('o')
s.index('W')
s.index('zz')
s.count('o')
s.count('')
u.find('世')
u.count('ß')
s.replace('l', 'L')
s.replace('l', 'L', 1)
s.replace('', '-')
'aaa'.replace('aa', 'b')
s.replace('zz', 'y')
', '.join(['a', 'b'])
', '.join(l)
''.join([])
'-'.join('abc')
'-'.join({'x': 1, 'y': 2})
'a'.center(5)
'ab'.center(5, '*')
'abc'.center(6, '*')
'a'.ljust(3) ~ '|'
'a'.rjust(3, '.')
'42'.zfill(5)
'-42'.zfill(5)
'世'.ljust(3, '.')
'abc'.isalpha()
'abc1'.isalpha()
'abc1'.isalnum()
'123'.isdigit()
'²'.isdigit()
'²'.isdecimal()
'½'.isnumeric()
'一'.isnumeric()
' \t'.isspace()
''.isspace()
'Abc Def'.istitle()
'abc'.islower()
'ABC1'.isupper()
'abc'.isidentifier()
'1abc'.isidentifier()
'abc'.isascii()
'é'.isascii()
'a\tb'.isprintable()
'a\tbc\td'.expandtabs(4)
'prefix-x'.removeprefix('prefix-')
'x.py'.removesuffix('.py')
'{} and {}'.format('a', 1)
'{0}{1}{0}'.format('a', 'b')
'{a} {b!r}'.format(a='x', b='y')
'{:>5}|{:<5}|{:^5}'.format('a', 'b', 'c')
'{:05d} {:+d} {:x} {:#b} {:,}'.format(42, 42, 255, 5, 1234567)
'{:.2f} {:8.3f} {:e} {:g} {:%}'.format(3.14159, 2.5, 12345.678, 0.00001234, 0.256)
'{:*^9}'.format('mid')
'{:.3}'.format('abcdef')
'{0[0]} {1[k]}'.format([1, 2], {'k': 'v'})
'{x.y}'.format(x={'y': 3})
'{0.__class__}'.format('a')
'{{}}'.format()
'{}'.format()
'{'.format(1)
'}'.format(1)
'{:d}'.format('a')
'{:s}'.format(1)
'{} {}'.format(none, [1, 'a'])
'{:>{w}}'.format('a', w=4)
'{:_}'.format(1234567)
'{:,.2f}'.format(1234567.891)
'{!s:>4}'.format(1)
'{:5}|'.format(true)
'{:}'.format(1.0)
'{:.3}'.format(2.0)
'{:.2}'.format(1234.5)
'{a}'.format_map({'a': 1})
'%s' % 'a'
'%s and %s' % ('a', 1)
'%d' % 3.7
'%5d|%-5d|%05d' % (1, 2, 3)
'%.2f %e %g' % (3.14159, 12345.678, 0.0001)
'%x %X %o %#x' % (255, 255, 8, 255)
'%r %s' % ('a', none)
'%(a)s' % {'a': 1}
'%%' % ()
'%s' % (1, 2)
'%s %s' % 1
'%d' % 'a'
'%c%c' % ('a', 98)
'%+d % d' % (1, 2)
'%10.3s|' % 'abcdef'
'%s' % [1, 2]
'%s' % undefined_name
n|abs
(-5)|abs
(-5.5)|abs
'a'|abs
[1, 2, 3, 4, 5]|batch(2)|list
[1, 2, 3, 4, 5]|batch(2, 'x')|list
'foo BAR'|capitalize
'foo'|center(9)
l|count
'<a href="x">&\'</a>'|e
'<a>'|escape|escape
'<a>'|e ~ '<b>'
('<a>'|e) + '<b>'
'<b>' + ('<a>'|e)
('<a>'|safe) + '<b>'
('%s'|safe) % '<b>'
['<a>'|safe, '<b>']|join
('x<'|safe).upper() + '<'
'<a>'|forceescape
d|dictsort
{'B': 1, 'a': 2}|dictsort
{'B': 1, 'a': 2}|dictsort(true)
{'B': 1, 'a': 2}|dictsort(by='value')
{'B': 1, 'a': 2}|dictsort(reverse=true)
{1: 1, 'a': 2}|dictsort
[]|first
l|first
s|first
d|first
l|last
s|last
d|last
l|map('string')|first
l|map('string')|last
'3.7'|float
'abc'|float
'abc'|float(1.5)
'1e3'|float
' 12 '|float
'inf'|float
none|float
'%s-%s'|format('a', 'b')
'%(x)s'|format(x=1)
ds|groupby('k')
ds[:3]|groupby('k')|map(attribute='grouper')|list
ds|groupby('k', default='z')|list
(ds|groupby('v'))[0].list
'a\nb\n\nc'|indent
'a\nb\n\nc'|indent(2, true)
'a\nb\n\nc'|indent(2, blank=true)
'a\nb'|indent('>> ')
'a\nb\n'|indent(2)
''|indent
none|indent
'42'|int
'42.9'|int
'abc'|int
'abc'|int(-1)
'0x1f'|int(base=16)
'0x1f'|int(0, 16)
'ff'|int(base=16)
' 7 '|int
'1_000'|int
'٣'|int
f|int
-2.9|int
true|int
none|int
[]|int
''|int
'-5'|int
d|items|list
undefined_name|items|list
n|items
n|items|list
[1, none, true]|join(',')
ds|join(', ', attribute='v')
[]|join
s|join('-')
n|join
l|length
s|length
d|length
n|length
none|length
(1, 2)|list
s[:3]|list
d|list
n|list
'ÀB'|lower
1|lower
none|upper
ds|map(attribute='v')|list
ds|map(attribute='k')|list
ds|map(attribute='k', default='-')|list
ds|map(attribute='k')|join('|')
['a', 'b']|map('upper')|list
['a', 'b']|map('replace', 'a', 'z')|list
[[1, 2], [3]]|map('first')|list
[[1, 2], [3]]|map(attribute=0)|list
[[1, 2], [3]]|map(attribute='0')|list
[{'a': {'b': 1}}]|map(attribute='a.b')|list
l|map
l|map|list
l|map('nope')|list
l|map('string')
[1, 'a']|map('abs')|list
[1, 'a']|map('abs')|first
none|map('upper')|list
n|map('upper')|list
l|max
l|min
[]|max
['b', 'A']|min
['b', 'A']|min(true)
ds|max(attribute='v')
[1, 'a']|max
l|reject('odd')|list
l|reject|list
[0, 1, '', 'a', none]|reject|list
[0, 1, '', 'a', none]|select|list
l|select('odd')|list
l|select('gt', 1)|list
l|select('equalto', 3)|list
l|select('in', [1, 2])|list
ds|selectattr('k')|list
ds|selectattr('k', 'defined')|list
ds|selectattr('v', 'gt', 2)|map(attribute='v')|list
ds|selectattr('k', 'equalto', 'a')|list|length
ds|rejectattr('k', 'defined')|list
ds|rejectattr('k')|map(attribute='v')|list
ds|selectattr('v', 'nope')|list
l|selectattr
l|selectattr|list
'a-b-c'|replace('-', '+')
'a-b-c'|replace('-', '+', 1)
123|replace('2', 'x')
'aaa'|replace('a', 1)
l|reverse|list
l|reverse
s|reverse
d|reverse|list
(1, 2)|reverse|list
n|reverse
2.5|round
3.5|round
2.675|round(2)
42.55|round(1, 'floor')
42.55|round(1, 'ceil')
42.55|round(1)
7|round
7|round(2)
1234|round(-2)
1250|round(-2)
-2.5|round
n|round(method='ceil')
2.1|round(0, 'ceil')|int
1.5|round(0, 'nope')
'a'|round
l|sort
l|sort(reverse=true)
['b', 'A', 'c']|sort
['b', 'A', 'c']|sort(case_sensitive=true)
ds|sort(attribute='v')|map(attribute='v')|list
ds[:3]|sort(attribute='k')|map(attribute='k')|list
ds[:3]|sort(attribute='v,k', reverse=true)|map(attribute='v')|list
[1, 'a']|sort
d|sort
[3, 1.5, true]|sort
'cab'|sort
n|string
l|string
x|string
[1, 2, 3, 4, 5]|slice(3)|list
[1, 2, 3, 4, 5]|slice(3, 'x')|list
[1, 2]|slice(0)|list
l|sum
[]|sum
[0.1, 0.2]|sum
ds|sum(attribute='v')
[[1], [2]]|sum(start=[])
l|sum(start=10)
['a']|sum
'hello wORLD (foo-bar) <baz> [q] {z}'|title
"it's a dog's"|title
'123abc'|title
{'a': [1, 2.0, true, none, 'é"\\\n\x01\x7f/<>&\'']}|tojson
{'a': [1, 2], 'b': {}}|tojson(indent=2)
{'a': [1, 2], 'b': {}, 'c': []}|tojson(indent=4)
{'b': 1, 'a': 2}|tojson(sort_keys=true)
[1, 2]|tojson(separators=(',', ':'))
{'a': 1}|tojson(separators=(',', ': '), indent=1)
'é世👋'|tojson
'é世👋'|tojson(ensure_ascii=true)
'é'|tojson(true)
[1]|tojson(indent='--')
[1]|tojson(indent=0)
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
{(1, 2): 3}|tojson
undefined_name|tojson
[undefined_name]|tojson
l|map('string')|tojson
(1, 2)|tojson
1e100|tojson
d.items()|tojson
range(3)|tojson
s|tojson|safe
'  x '|trim
'xx-x'|trim('x')
1|trim
u|trim
'foo bar baz qux'|truncate(9)
'foo bar baz qux'|truncate(9, true)
'foo bar baz qux'|truncate(11)
'foo bar baz qux'|truncate(11, false, '...', 0)
'foo bar baz qux'|truncate(5, true, '', 0)
'foo'|truncate(2)
[1, 2, 1, 3]|unique|list
['a', 'A', 'b']|unique|list
['a', 'A', 'b']|unique(true)|list
ds|unique(attribute='k')|list|length
[1, 1.0, true]|unique|list
[[1]]|unique|list
'a b&c/é=?'|urlencode
{'a b': 1, 'c': 'd&e'}|urlencode
[('a', 1)]|urlencode
1|urlencode
'the quick-brown fox_1'|wordcount
{'class': 'a"b', 'id': none, 'x': 1}|xmlattr
{'a b': 1}|xmlattr
1000|filesizeformat
1|filesizeformat
1500000|filesizeformat
1500000|filesizeformat(true)
'<p>a  <b>b</b></p>'|striptags
d|attr('name')
d|attr('keys')
s|attr('nothing') is defined
dict(a=1, b=2)
dict([('a', 1)], c=3)
dict({'a': 1})
dict(1)
namespace(a=1)
namespace(a=1).a
namespace(a=1).b
namespace({'x': 2}).x
namespace()._x
cycler('a', 'b').next()
cycler()
joiner()() ~ 'x'
range
dict
raise_exception('stop here')
raise_exception()
raise_exception(1)
strftime_now('%Y-%m-%d')
strftime_now('%d %b %Y %H:%M:%S %A %B %j %p %I %y %%')
strftime_now('%a %e %-d %U %W %V %G %u %w %c %x %X %D %F %T %R %s %z|%Z')
s.upper().lower().title()
s|upper|lower|title
s|upper()
(s|upper)[0]
s|replace('o', '0')|replace('l', '1')|upper
[s, n]|join(' ')|upper ~ '!'
l|sort|reverse|list|join('-')
l|select('odd')|map('string')|join(',')
{'a': l|length, 'b': s|length > 5}
(1, 2) + (3,)
[x for x in l]
a b
1 +
(1
1)
[1
{1}
{'a'}
{'a': }
'unclosed
s.
s.1
s|
s is
s[
$
a = 1
1 if
l[1:2:3:4]
l[1, 2]
f(*l)
d.get(*['zz', 'star'])
dict(**{'k': 'v'})
dict(a=1, **{'a': 2})
d.get('a', 'b', 'c')
d.get()
s.upper(1)
s.split(foo=1)
s|upper(1)
s|default(1, 2, 3)
s|indent(nope=1)
9223372036854775807
9223372036854775807 + 0
n()
x()
'x'()
d.name()
loop
caller
varargs
1.e5
1.
.5
1..real
007
00
1__0
0x
u.upper()
u|upper
u|reverse
u|tojson
u.split()
u|list
u|first
u ~ n
"{{ not a tag }}"
'%}' ~ '}}'
{'}}': '%}'}['}}']
"a" "b" ~ "c"
-1|abs
-(1)|abs
- 1 + 2
2 - -1
1 - 1 - 1
2 / 2 / 2
not 1 == 2
1 == not 2
[1, 2, 3,]
{'a': 1,}
(1, 2,)
l.index(1)
l.index(9)
l.count(3)
(1, 1, 2).count(1)
l.copy()
l.nothing
l[0].nothing
d.copy()
d.fromkeys(['a', 'b'], 0)
'a' * 0
[] * 3
1e400
-1e400
1e400 - 1e400
1 == 1e400
0.1 + 0.2
1/3
1 // 3.0
1e22
1e21 + 1
123456.789e3
5e-324
1.7976931348623157e308
100.0
3.0e0
0.1e-6
"""

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
