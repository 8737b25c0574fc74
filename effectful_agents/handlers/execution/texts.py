"""Functions of the library that make texts, in versions that are held to the size that a value may have."""

from __future__ import annotations

import ast
import difflib
import functools
import json
import re
import string
import textwrap
import unicodedata
from collections.abc import Callable
from typing import Any, override

from effectful_agents.handlers.execution import methods
from effectful_agents.handlers.execution.attributes import get_item
from effectful_agents.handlers.execution.calls import callee
from effectful_agents.handlers.execution.exact import exact, exact_count
from effectful_agents.handlers.execution.growing import check_growth
from effectful_agents.handlers.execution.keys import check_key
from effectful_agents.handlers.execution.kinds import is_own, replace
from effectful_agents.handlers.execution.limits import TooLarge, current, tick
from effectful_agents.handlers.execution.showing import ascii_, check_shown, check_texts, length_shown, repr_, text
from effectful_agents.handlers.execution.sizes import (
    WORTH_COUNTING,
    check_count,
    check_field,
    check_size,
    format_value,
    length,
)
from effectful_agents.handlers.execution.streams import taken

__all__ = ["Formatter", "HtmlDiff", "JSONEncoder", "Template", "TextWrapper"]


# --- regular expressions ------------------------------------------------------------------------------------------


def _counted_replacement(repl: Any, text: Any) -> Any:
    """What a match is replaced by, counted where there may be much of it."""
    if not callable(repl) and length(repl) * (length(text) + 1) <= WORTH_COUNTING:
        return repl
    total = 0

    def replaced(match: re.Match[Any]) -> Any:
        nonlocal total
        tick()
        if callable(repl):
            made = repl(match)
        else:
            # Each reference is a group, which is no longer than the match.
            check_size(length(repl) * (1 + len(match.group())))
            made = match.expand(repl)
        total += length(made)
        check_size(total)
        return made

    return replaced


def _sub(name: str) -> Callable[..., Any]:
    def sub(pattern: Any, repl: Any, string: Any, count: int = 0) -> Any:
        return getattr(pattern, name)(_counted_replacement(repl, string), string, count)

    return sub


def _sub_of_module(name: str) -> Callable[..., Any]:
    function = getattr(re, name)

    def sub(pattern: Any, repl: Any, string: Any, count: int = 0, flags: int = 0) -> Any:
        pattern, string, count, flags = map(exact_count, (pattern, string, count, flags))
        check_key((pattern, flags), "a pattern")
        return function(pattern, _counted_replacement(repl, string), string, count=count, flags=flags)

    sub.__name__ = sub.__qualname__ = name
    sub.__doc__ = f"`re.{name}`."
    return replace(function)(sub)


for _name in ("sub", "subn"):
    _sub_of_module(_name)


def _expand(match: re.Match[Any], template: Any) -> Any:
    check_size(length(template) * (1 + len(match.group())))
    return match.expand(template)


for _name in ("sub", "subn"):
    methods.INSTEAD[re.Pattern, _name] = _sub(_name)
methods.INSTEAD[re.Match, "expand"] = _expand


# --- normal forms -------------------------------------------------------------------------------------------------


def check_marks(text: Any) -> None:
    """Raise if to put the marks of each letter in order would take too long: it takes the square of their number."""
    text = exact(text)
    if not isinstance(text, str) or len(text) < 1000 or text.isascii():
        return
    marks = text.translate({ord(one): "m" if _is_mark(one) else " " for one in set(text)})
    if sum([len(run) ** 2 for run in marks.split()]) > _ORDERED:
        raise TooLarge("size", current().size, "A letter in it has too many marks.")


_ORDERED = 10**8


def _is_mark(letter: str) -> bool:
    return unicodedata.combining(unicodedata.normalize("NFKD", letter)[0]) != 0


def _check_normal(form: Any, text: Any) -> None:
    """Each letter is taken apart before some are put together again."""
    check_marks(text)
    form = "NFKD" if isinstance(form, str) and "K" in exact(form) else "NFD"
    check_growth(text, functools.partial(unicodedata.normalize, form), 18)


@replace(unicodedata.normalize)
def normalize(form: Any, text: Any, /) -> str:
    """`unicodedata.normalize`."""
    _check_normal(form, text)
    return unicodedata.normalize(form, text)


@replace(unicodedata.is_normalized)
def is_normalized(form: Any, text: Any, /) -> bool:
    """`unicodedata.is_normalized`."""
    _check_normal(form, text)
    return unicodedata.is_normalized(form, text)


@replace(ast.literal_eval)
def literal_eval(text: Any) -> Any:
    """`ast.literal_eval`: the parser normalizes names, too."""
    _check_normal("NFKC", text)
    return ast.literal_eval(exact(text))


# --- templates ----------------------------------------------------------------------------------------------------


@replace(string.Template)
class Template(string.Template):
    """`string.Template`."""

    def __init_subclass__(cls) -> None:
        # Of these a regular expression is made, which is kept for the whole program.
        for name in ("delimiter", "idpattern", "braceidpattern", "flags", "pattern"):
            value = getattr(cls, name, None)
            if value is not None and is_own(type(value)):
                setattr(cls, name, exact(value))
                check_key(getattr(cls, name), f"`{name}` of a template")
        super().__init_subclass__()

    @override
    def substitute(self, mapping: Any = {}, /, **kws: Any) -> str:  # noqa: B006 - as in the library
        self._check(mapping, kws)
        return super().substitute(mapping, **kws)

    @override
    def safe_substitute(self, mapping: Any = {}, /, **kws: Any) -> str:  # noqa: B006 - as in the library
        self._check(mapping, kws)
        return super().safe_substitute(mapping, **kws)

    def _check(self, mapping: Any, kws: dict[str, Any]) -> None:
        values = [*(mapping.values() if isinstance(mapping, dict) else ()), *kws.values()]
        for value in values:
            check_shown(value)
        longest = max([length_shown(value)[0] for value in values], default=0)
        check_size(len(self.template) + self.template.count(self.delimiter) * longest)


Template.__module__ = "string"


_parse = string.Formatter().parse


@replace(string.Formatter)
class Formatter:
    """`string.Formatter`, whose fields name their arguments and go no further.

    It does not derive from that class: by `super` code would come to a method there that walks attributes.
    """

    def format(self, format_string: str, /, *args: Any, **kwargs: Any) -> str:
        """Fill in a template."""
        return self.vformat(format_string, args, kwargs)

    def vformat(self, format_string: str, args: Any, kwargs: Any) -> str:
        """Fill in a template from a sequence and a mapping."""
        used: set[Any] = set()
        made, _ = Formatter._filled(self, format_string, args, kwargs, used, 0, 2, [0])
        self.check_unused_args(used, args, kwargs)
        return made

    def _filled(
        self, template: str, args: Any, kwargs: Any, used: set[Any], place: int | None, depth: int, total: list[int]
    ) -> tuple[str, int | None]:
        """A template filled in, and the number of the next field without a name; None where they have numbers."""
        if depth < 0:
            raise ValueError("Max string recursion exceeded")
        parts: list[str] = []
        for literal, field, spec, conversion in self.parse(template):
            parts.append(literal)
            if field is None:
                continue
            if field == "":
                if place is None:
                    raise ValueError("cannot switch from manual field specification to automatic field numbering")
                field, place = str(place), place + 1
            elif field.isdecimal():
                if place:
                    raise ValueError("cannot switch from automatic field numbering to manual field specification")
                place = None
            value, key = self.get_field(field, args, kwargs)
            used.add(key)
            value = self.convert_field(value, conversion)
            inner, place = Formatter._filled(self, spec, args, kwargs, used, place, depth - 1, total)
            parts.append(self.format_field(value, inner))
            tick()
            total[0] += len(parts[-1])
            check_size(total[0])
        return "".join(parts), place

    def parse(self, format_string: str) -> Any:
        """The parts of a template."""
        return iter(list(_parse(format_string)))

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The value of a field, and the key that it was found by."""
        check_field(field_name)
        key = int(field_name) if field_name.isdecimal() else field_name
        return self.get_value(key, args, kwargs), key

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        """The argument of a number or a name."""
        return get_item(args if isinstance(key, int) else kwargs, key)

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        """Look at what was not used; here nothing is done."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """A value in a format."""
        return format_value(value, format_spec)

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        """A value as `!s`, `!r` or `!a` has it."""
        if conversion is None:
            return value
        made = {"s": text, "r": repr_, "a": ascii_}.get(conversion)
        if made is None:
            raise ValueError(f"Unknown conversion specifier {conversion}")
        return made(value)


Formatter.__module__ = "string"


# --- JSON ---------------------------------------------------------------------------------------------------------


def _check_json(value: Any, indent: Any, separators: Any = None, ensure_ascii: Any = True) -> None:
    characters, count = length_shown(value)
    if separators is not None:
        characters += count * sum([length(one) for one in separators])
    indent = exact(indent)
    if indent is not None and indent != 0:
        check_count(indent)
        width = len(indent) if isinstance(indent, str) else max(int(indent), 0)
        characters += count * width * _depth(value)
    check_size(characters, "The text")
    if characters * _ESCAPED > current().size:
        check_texts(value, _json_text if ensure_ascii else _json_text_as_it_is)


_ESCAPED = 12
"""Characters that one letter may become: two times six."""


def _json_text(text: str | bytes) -> str:
    return "" if isinstance(text, bytes) else json.dumps(text)


def _json_text_as_it_is(text: str | bytes) -> str:
    return "" if isinstance(text, bytes) else json.dumps(text, ensure_ascii=False)


def _depth(value: Any) -> int:
    """How deep lists and dictionaries lie in each other, about: along the first of each."""
    depth = 1
    while isinstance(value, list | tuple | dict) and value and depth < 100:
        inner = list(value.values()) if isinstance(value, dict) else value
        value = next((one for one in inner if isinstance(one, list | tuple | dict)), None)
        depth += 1
    return depth if depth < 100 else current().size


def _with_counted(options: dict[str, Any]) -> dict[str, Any]:
    """Options whose `default` gives no more altogether than one value may have."""
    answer = options.get("default")
    return options if answer is None else {**options, "default": _counted(answer)}


def _counted(answer: Any) -> Any:
    total = 0

    def counted(value: Any) -> Any:
        nonlocal total
        made = answer(value)
        total += length_shown(made)[0]
        check_size(total, "The text")
        return made

    return counted


@replace(json.dumps)
def dumps(obj: Any, *, indent: Any = None, **options: Any) -> str:
    """`json.dumps`."""
    _check_json(obj, indent, options.get("separators"), options.get("ensure_ascii", True))
    options["cls"] = options.get("cls") or JSONEncoder
    return json.dumps(obj, indent=indent, **_with_counted(options))


@replace(json.dump)
def dump(obj: Any, fp: Any, *, indent: Any = None, **options: Any) -> None:
    """`json.dump`."""
    _check_json(obj, indent, options.get("separators"), options.get("ensure_ascii", True))
    json.dump(obj, fp, indent=indent, **_with_counted(options))


@replace(json.JSONEncoder)
class JSONEncoder(json.JSONEncoder):
    """`json.JSONEncoder`."""

    @override
    def encode(self, o: Any) -> str:
        _check_json(o, self.indent, (self.item_separator, self.key_separator), self.ensure_ascii)
        if isinstance(o, str):
            return super().encode(o)
        chunks = list(taken(self.iterencode(o, _one_shot=True), kept=True))  # it may be one of the code's own
        check_size(sum(map(length, chunks)), "The text")
        return "".join(chunks)

    @override
    def iterencode(self, o: Any, _one_shot: bool = False) -> Any:
        # Each attribute is read once: a property of the code may say something else the next time.
        indent, separators = exact(self.indent), (exact(self.item_separator), exact(self.key_separator))
        _check_json(o, indent, separators, self.ensure_ascii)
        plain = json.JSONEncoder(
            skipkeys=self.skipkeys,
            ensure_ascii=self.ensure_ascii,
            check_circular=self.check_circular,
            allow_nan=self.allow_nan,
            sort_keys=self.sort_keys,
            indent=indent,
            separators=separators,
            default=_counted(self.default),
        )
        return plain.iterencode(o, _one_shot)


JSONEncoder.__module__ = "json.encoder"


# --- paragraphs ---------------------------------------------------------------------------------------------------


def _check_paragraphs(text: Any, *more: Any, each_line: bool = False) -> None:
    """There are no more lines than letters, and each has one indentation; those that stay lines can be counted."""
    numbers = [exact(one) for one in more if isinstance(one, str | int)]
    sizes = [length(one) if isinstance(one, str) else abs(one) for one in numbers]
    widest = max(sizes, default=0)
    if widest * length(text) > WORTH_COUNTING:
        lines = 1 + sum([exact(text).count(one) for one in _BREAKS]) if each_line else length(text)
        check_size(length(text) + lines * widest)


_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def _of_textwrap(name: str) -> None:
    function = getattr(textwrap, name)

    def checked(text: Any, *args: Any, **kwargs: Any) -> Any:
        more = [value for key, value in kwargs.items() if key in _INDENTING]
        _check_paragraphs(
            text,
            *([one for one in args if isinstance(one, str)] if name == "indent" else ()),
            *more,
            each_line=name == "indent",
        )
        if name != "indent" and isinstance(text, str):
            check_size(length(text) + 8 * str.count(text, "\t"))
        check_count(kwargs.get("width"))
        return function(text, *args, **kwargs)

    checked.__name__ = checked.__qualname__ = name
    checked.__doc__ = f"`textwrap.{name}`."
    replace(function)(checked)


_INDENTING = frozenset({"initial_indent", "subsequent_indent", "placeholder", "tabsize", "prefix"})
for _name in ("indent", "wrap", "fill", "shorten"):
    _of_textwrap(_name)


@replace(textwrap.TextWrapper)
class TextWrapper(textwrap.TextWrapper):
    """`textwrap.TextWrapper`."""

    @override
    def wrap(self, text: str) -> list[str]:
        _check_paragraphs(text, *[getattr(self, name, None) for name in _INDENTING])
        return super().wrap(text)

    def _munge_whitespace(self, text: str) -> str:
        # Each attribute is read once: a property of the code may say something else the next time.
        text = exact(text)
        if self.expand_tabs:
            text = _with_tabs(text, self.tabsize)
        return callee(text.translate)(self.unicode_whitespace_trans) if self.replace_whitespace else text


def _with_tabs(text: Any, tabsize: Any) -> str:
    return callee(exact(text).expandtabs)(exact(tabsize))


@replace(difflib.HtmlDiff)
class HtmlDiff(difflib.HtmlDiff):
    """`difflib.HtmlDiff`."""

    def _tab_newline_replace(self, fromlines: Any, tolines: Any) -> Any:
        tabsize: Any = self._tabsize  # ty: ignore[missing-attribute]
        for line in (*fromlines, *tolines):
            _with_tabs(line, tabsize)
        plain: Any = difflib.HtmlDiff(tabsize=exact(tabsize))
        return plain._tab_newline_replace([exact(one) for one in fromlines], [exact(one) for one in tolines])


# Like the classes that they stand for, they pass on what they get, and that is looked at.
TextWrapper.__module__ = "textwrap"
HtmlDiff.__module__ = "difflib"
