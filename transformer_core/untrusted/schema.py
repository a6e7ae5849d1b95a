"""Schemas: a record from outside, or the fields of a configuration, checked against the types that a class states.

A type is annotated with its bounds (msgspec.Meta), and with a description where those do not say what is needed.
msgspec checks strictly: no text passes for a number, no number for a switch, and no number is NaN where it has bounds.
"""

import re
import sys
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypedDict, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta

MOST_SHOWN = 80  # characters of a value in a message
Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max, description="a finite number")]
Share = Annotated[float, Meta(ge=0, le=1)]
Probability = Annotated[float, Meta(ge=0, lt=1, description="a number, at least 0 and less than 1")]
Text = Annotated[str, Meta(min_length=1, max_length=2_000, description="printable, of at most 2,000 characters")]
T = TypeVar("T")
PLACE = re.compile(r" - at (?:`key` in )?`\$([\w.\[\]]*)`$")
STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
MISSING, UNKNOWN = (re.compile(rf"Object {of} field `(.+?)`") for of in ("missing required", "contains unknown"))


def one_of(*choices: str) -> Meta:
    """Return the bounds of a text that is one of these."""
    words = "|".join(map(re.escape, choices))
    return Meta(pattern=rf"\A(?:{words})\Z", description=f"one of {', '.join(choices)}")


def checked(value: Any, form: type[T], *, shown: int = MOST_SHOWN) -> T:
    """Return a value, as JSON gives it, as the type that it must have; a dataclass is made, and makes its own checks.

    Args:
        value: of mappings, lists, texts, numbers, booleans and None.
        form: a dataclass, a TypedDict, or whatever else msgspec converts to.
        shown: characters of a value in the message.

    Raises:
        ValueError: "field=value must be ...", of the first field that does not fit, or what a dataclass says itself.
    """
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        found = error
    except UnicodeError:  # half a character where none may be: msgspec does not say where
        try:
            msgspec.convert(_whole(value), form)
            raise ValueError("a name has half a character (a lone surrogate); it must have whole ones") from None
        except msgspec.ValidationError as error:
            found = error
    if found.__cause__ is not None:
        raise ValueError(str(found.__cause__))
    try:
        words = _in_words(str(found), value, form, shown)
    except (LookupError, TypeError, AttributeError):  # a name or text from outside that reads like a place
        words = f"an entry has another form than it must have: {str(found)!r:.{shown}}"
    raise ValueError(words)


def _whole(value: Any) -> Any:
    """Return a value with ? for each half of a character."""
    if isinstance(value, dict):
        return {_whole(name): _whole(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_whole(part) for part in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def check_fields(record: Any, *but: str) -> None:
    """Check the fields of a dataclass against their types, in its __post_init__.

    Args:
        but: fields that the dataclass checks itself.

    Raises:
        ValueError: as checked.
    """
    form = _form_of(type(record), but)
    values = {name: getattr(record, name) for name in form.__annotations__}
    # numpy's floats are floats to all but msgspec
    plain = {name: float(value) if isinstance(value, float) else value for name, value in values.items()}
    checked(plain, form, shown=1_000)


def check_printable(record: Any, *names: str) -> None:
    """Raise ValueError where a text, or one of several, has characters that hide or turn others, or end a line."""
    for name in names:
        if not "".join(getattr(record, name)).isprintable():
            raise ValueError(f"{name}={getattr(record, name)!r:.{MOST_SHOWN}} must be printable")


@cache
def _form_of(kind: type, but: tuple[str, ...]) -> Any:
    hints, names = get_type_hints(kind, include_extras=True), [one.name for one in fields(kind) if one.name not in but]
    return TypedDict(kind.__name__, {name: hints[name] for name in names})  # type: ignore[misc]


def _in_words(error: str, value: Any, form: Any, shown: int) -> str:
    """Return the words for an error of msgspec, which has the place and the type but not the value."""
    place, missing, name = PLACE.search(error), MISSING.match(error), ""
    steps = STEP.findall(place[1].partition("[...]")[0] if place else "")
    for field, index in [*steps, *([(missing[1], "")] if missing else [])]:
        form, _ = _parts(form)
        if field:
            name, value, form = field, value.get(field), get_type_hints(form, include_extras=True)[field]
        else:
            items = get_args(form)
            value, form = value[int(index)], items[0 if len(items) == 1 or items[1] is ... else int(index)]
    if unknown := UNKNOWN.match(error):
        return f"{unknown[1]:.{shown}} is unknown; it must be one of {', '.join(get_type_hints(_parts(form)[0]))}"
    return f"{name}={value!r:.{shown}} {_need(*_parts(form))}" if name else f"it {_need(*_parts(form))}"


def _parts(form: Any) -> tuple[Any, dict[str, Any]]:
    """Return a type without its annotations and without None beside it, and what the annotations say."""
    said: dict[str, Any] = {}
    while get_origin(form) in (Annotated, Union, UnionType):
        several = get_args(form)
        for meta in getattr(form, "__metadata__", ()):
            said |= {name: getattr(meta, name) for name in META if getattr(meta, name) not in (None, UNSET)}
        form = next(one for one in several if one is not NoneType)
    return form, said


META = ("description", "ge", "le", "max_length")


def _need(form: Any, said: dict[str, Any]) -> str:
    """Return what a value of a type must be."""
    if "description" in said:
        return f"must be {said['description']}"
    if get_origin(form) is Literal:
        return f"is unknown; it must be one of {', '.join(map(repr, get_args(form)))}"
    if form in (int, float):
        ends = [str(said[end]) if form is int else f"{said[end]:g}" for end in ("ge", "le") if end in said]
        within = f" from {ends[0]} to {ends[1]}" if len(ends) == 2 else ""
        return f"must be a {'whole ' if form is int else ''}number{within}"
    if form is str:
        return "must be a text" + (f" of at most {said['max_length']:,} characters" if "max_length" in said else "")
    if form is bool:
        return "must be True or False"
    return "must be a list" if get_origin(form) in (list, tuple) else "must be an object"
