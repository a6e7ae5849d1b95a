"""Render chat templates in a process with limits; `chat.py` starts it, and says what came of it.

It imports `jinja2` and nothing of this package, so that it starts at once. It answers each line of its input, a request
in JSON, with a line; what takes too long is ended by the system in the middle of it.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

MOST_SECONDS = 1.0  # of a processor, for all that one request asks
MOST_MEMORY = 256 << 20  # bytes, beside those of the process itself
MOST_RENDERED = 1 << 15  # characters of one conversation
MOST_COMPILED = 8
Compiler = Callable[[str], Template]


class RefusalError(TemplateError):
    """A template's own raise_exception."""


class LengthError(Exception):
    """A text of more than MOST_RENDERED characters."""


KINDS: dict[type[Exception], str] = {
    RefusalError: "refuses",
    SecurityError: "reaches",
    OSError: "reaches",
    MemoryError: "memory",
    RecursionError: "depth",
    LengthError: "length",
}


class Generation(Extension):
    """The block {% generation %}, in which templates put what an assistant says; the text is the same without it."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Names(Namespace):
    """A template's namespace, in which no name begins with an underscore."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise SecurityError(f"{name!r} cannot be a name in a namespace")
        super().__setitem__(name, value)


def _namespace(*before: Any, **named: Any) -> Names:
    made = Names()
    for name, value in dict(*before, **named).items():
        made[name] = value
    return made


def _raise(message: str) -> None:
    raise RefusalError(message)


def _json(value: Any, ensure_ascii: bool = False, **form: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, **form)


def environment() -> Environment:
    """Return the sandbox of templates, as `apply_chat_template` of the `transformers` library has it."""
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = _json
    del made.globals["lipsum"]  # it reads a file
    made.globals |= {
        "raise_exception": _raise,
        "strftime_now": lambda form: datetime.now().strftime(form),
        "namespace": _namespace,
    }
    return made


def _why(error: Exception) -> dict[str, str]:
    """Return what happened, one of WHY in `chat.py`, and what more there is to say."""
    why = next((kind for class_, kind in KINDS.items() if isinstance(error, class_)), "fails")
    line = f"line {error.lineno}" if isinstance(error, TemplateSyntaxError) else type(error).__name__
    said = str(getattr(error, "message", None) or error)
    more = {"memory": f"{MOST_MEMORY >> 20}", "length": f"{MOST_RENDERED:,}", "fails": f"{line}: {said}"}
    return {"why": why, "detail": more.get(why, said)}


def answer(compiled: Compiler, request: dict[str, Any], chat: dict[str, Any]) -> dict[str, str]:
    """Render one conversation of a request: {"text": …}, or why there is none."""
    pieces, length = [], 0
    try:
        template = compiled(request["template"])
        for piece in template.generate(tools=None, documents=None, **request["tokens"], **chat):
            length += len(piece)
            if length > MOST_RENDERED:
                raise LengthError
            pieces.append(piece)
    except Exception as error:
        return _why(error)
    return {"text": "".join(pieces)}


def limit() -> None:
    """Take at most MOST_MEMORY more bytes and open no file, where the system can tell; know no variable."""
    os.environ.clear()
    with suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MOST_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))  # those of its input and output are open


def main() -> None:
    """Answer until the input ends."""
    compiled = lru_cache(maxsize=MOST_COMPILED)(environment().from_string)
    first = "{{ 'as\\n' | wordwrap }}{{ raise_exception('it') }}"  # imports what is imported late
    answer(compiled, {"template": first, "tokens": {}}, {})
    limit()
    print("[]", flush=True)  # it is ready
    for line in sys.stdin:
        request = json.loads(line)
        with suppress(AttributeError):  # Windows has no such clock; who asks waits so long and no longer
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)  # whose signal ends a process
        found = [answer(compiled, request, chat) for chat in request["chats"]]
        with suppress(AttributeError):
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
