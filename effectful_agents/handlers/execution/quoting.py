"""Functions of the library that quote and encode texts, held to the size that a value may have."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import html
import re
import shlex
import string
import urllib.parse
from typing import Any

from effectful_agents.handlers.execution.exact import exact_count
from effectful_agents.handlers.execution.growing import check_growth
from effectful_agents.handlers.execution.kinds import REPLACED, replace
from effectful_agents.handlers.execution.limits import current
from effectful_agents.handlers.execution.showing import check_texts, length_shown
from effectful_agents.handlers.execution.sizes import WORTH_COUNTING, length

__all__: list[str] = []


def _growing(function: Any, most: int) -> None:
    """A function that makes one text of another, letter by letter."""

    def checked(text: Any, *args: Any, **kwargs: Any) -> Any:
        text = exact_count(text)
        args = tuple(map(exact_count, args))
        kwargs = {name: exact_count(value) for name, value in kwargs.items()}
        if length(text) * most > WORTH_COUNTING:
            check_growth(text, lambda piece: function(piece, *args, **kwargs), most)
        return function(text, *args, **kwargs)

    checked.__name__ = checked.__qualname__ = function.__name__
    checked.__doc__ = f"`{function.__module__}.{function.__name__}`."
    replace(function)(checked)


for _function, _most in (
    *((urllib.parse.quote, 12), (urllib.parse.quote_plus, 12), (urllib.parse.quote_from_bytes, 3)),
    *((html.escape, 6), (html.unescape, 2), (shlex.quote, 5), (re.escape, 2), (string.capwords, 3)),
    *((fnmatch.translate, 12),),
):
    _growing(_function, _most)


@replace(urllib.parse.urlencode)
def urlencode(query: Any, doseq: Any = False, *args: Any, **options: Any) -> str:
    """`urllib.parse.urlencode`."""
    characters = length_shown(query)[0]
    if 12 * characters > current().size:
        check_texts(query, urllib.parse.quote_plus)
    return urllib.parse.urlencode(query, doseq, *args, **options)


@replace(shlex.join)
def join(split_command: Any) -> str:
    """`shlex.join`."""
    return " ".join([quote(one) for one in split_command])


quote = REPLACED[id(shlex.quote)][1]

_BYTES = ("b64encode", "standard_b64encode", "urlsafe_b64encode", "b32encode", "b32hexencode", "b16encode")
for _module, _names in (
    (base64, (*_BYTES, "a85encode", "b85encode", "encodebytes")),
    (binascii, ("hexlify", "b2a_hex", "b2a_qp", "b2a_base64")),
):
    for _name in _names:
        _growing(getattr(_module, _name), 3)
