"""Python's jinja2, set up for chat templates the way the transformers library documents it.

An immutable sandbox with trim_blocks and lstrip_blocks, break and continue, {% generation %} blocks, a tojson that
keeps non-ASCII text and does not escape HTML, raise_exception, and strftime_now (here with a fixed clock).
"""
import datetime
import functools
import json

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

CLOCK = 1722000000  # 2024-07-26 13:20:00 UTC


class Generation(Extension):
    """{% generation %}...{% endgeneration %}: prints its body and notes where the body lands in the text."""

    tags = {"generation"}

    def __init__(self, environment):
        super().__init__(environment)
        self.pieces = None
        self.spans = None

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_note"), [], [], body).set_lineno(line)

    def _note(self, caller):
        text = caller()
        if self.pieces is not None:
            begin = len("".join(self.pieces))
            self.spans.append((begin, begin + len(text)))
        return text


def make_environment():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def strftime_now(format):
        return datetime.datetime.fromtimestamp(CLOCK, datetime.timezone.utc).replace(tzinfo=None).strftime(format)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    environment.filters["tojson"] = tojson
    return environment


ENVIRONMENT = make_environment()


@functools.lru_cache(maxsize=4)
def compiled(source):
    return ENVIRONMENT.from_string(source)


def render(source, variables):
    """The text, or the exception as (class name, message), and the generation spans in bytes."""
    generation = ENVIRONMENT.extensions[Generation.identifier]
    try:
        template = compiled(source)
        generation.pieces, generation.spans = [], []
        for piece in template.generate(**variables):
            generation.pieces.append(piece)
        text = "".join(generation.pieces)
        text.encode("utf-8")
        spans = [[len(text[:a].encode()), len(text[:b].encode())] for a, b in generation.spans]
        return text, None, spans
    except Exception as error:  # whatever a template can raise
        message = error.message if isinstance(error, jinja2.TemplateSyntaxError) else str(error)
        return None, (type(error).__name__, message), []
    finally:
        generation.pieces = generation.spans = None
