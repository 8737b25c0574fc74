"""What is refused says what to write in its place."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.running import run

REFUSED = {
    "from time import sleep": "leave it out",
    "import time\ntime.sleep(1)": "leave it out",
    "from collections import UserString": "derive from `str`",
    "from typing import ForwardRef": "`typing` has: ",
    "import sys": "`math.inf`",
    "import os": "`io.StringIO`",
    "import asyncio": "one thing after the other",
    "import pydantic": "`dataclasses`",
    "import unittest": "`assert`",
    "import sqlite3": "lists and dictionaries",
    "import pickle": "`json`",
    "import numpy as np": "`statistics`",
    "from random import SystemRandom": "`secrets`",
    "import ast\nast.parse('1')": "small parser",
    "import hashlib\nhashlib.pbkdf2_hmac('sha256', b'', b'', 1)": "`hmac.new`",
    "class M(type): pass": "`__init_subclass__`",
    "from abc import ABCMeta\nclass M(ABCMeta): pass": "`__init_subclass__`",
    "type('A', (), {})": "a `class` statement",
    "try: pass\nexcept* ValueError: pass": "`ExceptionGroup`",
    "async def f(): pass": "ordinary functions",
    "from math import *": "name what you need",
    "open('x')": "`io.StringIO`",
    "eval('1')": "`ast.literal_eval`",
    "class A:\n    def __del__(self): pass": "`with`",
    "class A:\n    def __subclasshook__(cls, other): pass": "`register`",
    "int.__mro__": "`issubclass`",
    "def f(): pass\nf.__annotations__['x'] = int": "annotate where you define",
    "class A: pass\nA.__annotations__ = {}": "annotate where you define",
    "import secrets\nsecrets.token_bytes(10**9)": "`size`",
}


@pytest.mark.parametrize("source", REFUSED)
def test_a_refusal_says_what_to_write_instead(source: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each is of its own kind
        run(source)
    assert REFUSED[source] in str(caught.value)


def test_annotations_are_read_as_a_copy() -> None:
    names = run(
        "class A:\n    x: int\n    def f(self, y: str) -> 'A': ...\n"
        "a = A.__annotations__\na['x'] = 'changed'\na['z'] = 'added'\n"
        "kept, inside, of_method = dict(A.__annotations__), A().__annotations__, A().f.__annotations__\n"
        "default = getattr(3, '__annotations__', 'none')"
    )
    assert names["kept"] == names["inside"] == {"x": int}
    assert names["of_method"] == {"y": str, "return": "A"}
    assert names["default"] == "none"


def _of_program(x: int) -> None: ...


class _Model:
    x: int


@pytest.mark.parametrize("source", ["f.__annotations__", "M.__annotations__", "vars(M)", "M.__dict__"])
def test_those_of_the_program_are_not_read(source: str) -> None:
    given: dict[str, Any] = {"f": _of_program, "M": _Model}
    with pytest.raises((AttributeError, TypeError)):
        run(source, given)


@pytest.mark.parametrize(
    "source",
    [
        "class A: pass\nvars(A)['x'] = 1",
        "class A: x = 1\nA.__dict__['x'] = 2",
        "class A:\n    x: int\ngetattr(A, '__annotations__')['x'] = 1",
        "import operator\nclass A:\n    x: int\noperator.attrgetter('__annotations__')(A).clear()",
    ],
)
def test_what_stands_in_a_class_is_not_changed_through_a_view(source: str) -> None:
    with pytest.raises((AttributeError, TypeError)):
        run(source)


@pytest.mark.parametrize("name", ["__get__", "__set__", "__set_name__", "__getattr__", "__copy__", "__deepcopy__"])
def test_super_gives_hooks_of_classes_of_the_code_alone(name: str) -> None:
    for base in ("property", "object", "dict"):
        with pytest.raises(AttributeError):
            run(f"class A({base}):\n    def f(self): return super().{name}\nA().f()")
    with pytest.raises(SyntaxError):
        run(f"(lambda: 0).{name}")
    names = run(
        f"class A:\n    def {name}(self, one): return 5\n"
        f"class B(A):\n    def f(self): return super().{name}('one')\nx = B().f()"
    )
    assert names["x"] == 5


def test_a_default_counts_for_a_function_that_has_no_such_attribute() -> None:
    names = run(
        "class A:\n    def f(self): ...\n"
        "x = [getattr(one, 'is_command', 0) for one in (A().f, A.f, len, [].append, str.upper, given)]",
        {"given": _of_program},
    )
    assert names["x"] == [0] * 6
