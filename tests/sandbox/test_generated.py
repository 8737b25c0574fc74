"""Programs made at random: what runs at all runs in the sandbox as it does elsewhere."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sandbox.running import run

NAMES = st.sampled_from(["a", "b", "_c", "d1"])
NUMBERS = st.integers(-20, 20).map(str)
TEXTS = st.sampled_from(["'x'", "'hello'", "''", '"a b"'])


def _joined(*parts: Any) -> st.SearchStrategy[str]:
    return st.tuples(*[st.just(part) if isinstance(part, str) else part for part in parts]).map("".join)


def _bigger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from([" + ", " - ", " * ", " // ", " % ", " == ", " < ", " and ", " or ", " in ", " is "])
    return st.one_of(
        _joined("(", inner, operators, inner, ")"),
        _joined("[", inner, ", ", inner, "]"),
        _joined("{", inner, ": ", inner, "}"),
        _joined("(", inner, " if ", inner, " else ", inner, ")"),
        _joined("f'{", inner.filter(lambda text: "'" not in text and '"' not in text), "!r:>5}'"),
        _joined("[", NAMES, " for ", NAMES, " in ", inner, "]"),
        _joined("(lambda ", NAMES, ": ", inner, ")(", inner, ")"),
        _joined("len(", inner, ")"),
        _joined("str(", inner, ").upper().ljust(4)"),
        _joined("sorted(", inner, ", key=str)"),
        _joined("(", inner, ")[", inner, "]"),
        _joined("getattr(", inner, ", 'real', 7)"),
        _joined("Box(", inner, ").value"),
        _joined("Box(", inner, ").twice()"),
    )


EXPRESSIONS = st.recursive(st.one_of(NAMES, NUMBERS, TEXTS), _bigger, max_leaves=8)


def _indented(block: str) -> str:
    return "\n".join(f"    {line}" for line in block.splitlines())


def _statements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    block = st.lists(inner, min_size=1, max_size=3).map("\n".join).map(_indented)
    return st.one_of(
        _joined("if ", EXPRESSIONS, ":\n", block, "\nelse:\n", block),
        _joined("for ", NAMES, " in ", EXPRESSIONS, ":\n", block),
        _joined("for ", NAMES, " in range(3):\n", block, "\n    if ", EXPRESSIONS, ": break"),
        _joined("try:\n", block, "\nexcept (TypeError, NameError) as error:\n", block, "\nfinally:\n", block),
        _joined("try:\n", block, "\nexcept:\n", block),
        _joined("def f(", NAMES, "=1, *args):\n", block, "\n    return ", EXPRESSIONS, "\nprint(f(", EXPRESSIONS, "))"),
        _joined(
            "match ", EXPRESSIONS, ":\n    case [x, *_]: print(x)\n    case int(n): print(n)\n    case _: print('?')"
        ),
    )


SIMPLE = st.one_of(
    _joined(NAMES, " = ", EXPRESSIONS),
    _joined(NAMES, ": object = ", EXPRESSIONS),
    _joined(NAMES, st.sampled_from([" += ", " *= ", " -= "]), EXPRESSIONS),
    _joined("print(", EXPRESSIONS, ")"),
    _joined("box.value = ", EXPRESSIONS),
    _joined("box.value += ", EXPRESSIONS),
    _joined("table[", NUMBERS, "] = ", EXPRESSIONS),
    _joined("a, b = ", EXPRESSIONS, ", ", EXPRESSIONS),
)
PROGRAMS = st.lists(st.recursive(SIMPLE, _statements, max_leaves=6), min_size=1, max_size=6).map("\n".join)

HEAD = """
class Box:
    def __init__(self, value): self.value = value
    def twice(self): return self.value * 2
    def __repr__(self): return f"Box({self.value!r})"
box, table = Box(1), {}
a, b, _c, d1 = 1, "two", [3], None
"""


def _outcome(program: Any) -> tuple[str, str]:
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            program()
    except Exception as error:
        return out.getvalue(), type(error).__name__
    return out.getvalue(), ""


def _plainly(source: str) -> None:
    exec(compile(source, "<test>", "exec", dont_inherit=True), {"__name__": "__main__"})


@settings(max_examples=50, deadline=None)
@given(PROGRAMS)
def test_a_program_does_what_it_does_elsewhere(program):
    source = HEAD + program
    try:
        compile(source, "<test>", "exec")
    except SyntaxError:
        return
    assert _outcome(lambda: run(source)) == _outcome(lambda: _plainly(source))
