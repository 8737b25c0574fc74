"""Code that a model wrote is checked as a part of the module that it is for, and only it is reported."""

from __future__ import annotations

import importlib
import linecache
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool
from effectful_agents.encoding.splicing import (
    splice_function,
    splice_skill_body,
    splice_snippet,
)
from effectful_agents.handlers.validation import TyTypeChecker
from effectful_agents.types import Scope
from tests.handlers.validation.checking import checkers, report, scope

LIMIT = 3
WRONG: int = "no concern of a model's"  # ty: ignore


class Seat:
    def __init__(self, row: int = 1) -> None:
        self.row = row


@Tool.define
def weather(city: str) -> str:
    """The weather."""
    return city


class Desk(Agent):
    limit: int = 3

    @Skill.define
    def pick(self, text: str, *rows: int, seat: Seat | None = None, **prices: float) -> Seat:
        """Pick a seat: {text}."""
        raise NotHandled

    @Skill.define
    @classmethod
    def count(cls, n: int) -> int:
        """Count {n}."""
        raise NotHandled

    @staticmethod
    @Skill.define
    def twice(n: int) -> int:
        """Double {n}."""
        raise NotHandled


class Shop(Agent):
    class Item:
        price = 1.5

    type Items = list[Item]

    @Skill.define
    def cheapest(self, items: Items, but: Item) -> Item:
        """The cheapest of {items}."""
        raise NotHandled


@Skill.define
async def wait(n: int) -> str:
    """Wait {n}."""
    raise NotHandled


@Skill.define
def first[T](items: list[T]) -> T:
    """The first of {items}."""
    raise NotHandled


@Skill.define
def formula(task: str) -> Callable[[int], str]:
    """Write a function: {task}."""
    raise NotHandled


def closure() -> tuple[Skill, type]:
    prices = [1, 2]

    class Local:
        x: int = 1

    @Skill.define
    def inner(a: Local, b: list[Local]) -> Local:
        """{a} {b}"""
        raise NotHandled

    later = {"a": 1.0}
    assert prices
    assert later
    return inner, Local


INNER, LOCAL = closure()
DESK = Desk()
PICK = Scope.of_call(DESK.pick, DESK.pick.__signature__.bind("x"))

# Pieces of a session


@checkers
@pytest.mark.parametrize(
    "snippet",
    [
        "text = 3\nprint(text + 1)",
        "LIMIT = LIMIT + 1",
        "self.limit += 1\nprint(self.pick(text).row)",
        "rows = sum(rows)\nprint(rows + 1, prices['a'].is_integer())",
        "weather = weather(city=text)\nprint(weather.upper())",
        "from math import *\nprint(sqrt(2), pi)",
        "from __future__ import annotations\nx: int = 1",
        "for i in range(3):\n    found = Seat(i)\nprint(found.row)",
        "note = '''a\n  b'''\nprint(f'''{\nnote}\nx''')",
        "def f(n: int) -> int:\n    return f(n - 1) if n else LIMIT",
        "1 + 1",
        "# nothing but a comment",
        "",
        "global LIMIT\nLIMIT = 4",
        "import json\nimport math as json",
        "del text",
    ],
)
def test_a_piece_of_a_session_may_use_and_bind_what_the_skill_sees(installed, snippet):
    assert report(installed, splice_snippet(snippet, DESK.pick, PICK), lenient=True) == ""


@checkers
@pytest.mark.parametrize(
    ("snippet", "line", "word"),
    [
        ("\n\nnowhere", 3, "nowhere"),
        ("weather(city=3)", 1, "str"),
        ("self.pick('a').row.upper()", 1, "upper"),
        ("if text:\n    x: int = 'a'", 2, "int"),
        ("import nowhere_at_all", 1, "nowhere_at_all"),
        ("note = '''\n  a'''\nnote.nothing", 3, "nothing"),
    ],
)
def test_a_fault_is_told_with_its_line_in_the_code(installed, snippet, line, word):
    told = report(installed, splice_snippet(snippet, DESK.pick, PICK), lenient=True)
    assert told.startswith("the code does not pass the type check: 1 error.\n")
    assert f"line {line}: " in told
    assert word in told
    assert f"\n    {snippet.split(chr(10))[line - 1]}\n" in told


@checkers
def test_earlier_pieces_are_known_and_may_be_redone(installed):
    earlier = ["import json\ndef f(n: int) -> str:\n    return str(n)", "total = 1\nclass A:\n    x = 1"]
    good = "total = f(total)\ntotal.upper()\ndef f() -> int:\n    return 1\nclass A:\n    y = 1\njson.dumps(A())"
    assert report(installed, splice_snippet(good, DESK.pick, PICK, earlier), lenient=True) == ""
    bad = splice_snippet("total.upper()", DESK.pick, PICK, earlier)
    assert "line 1: " in report(installed, bad, lenient=True)
    if isinstance(installed, TyTypeChecker):  # to mypy a function stays what it was first
        used = splice_snippet(f"{good}\nf() + A().y", DESK.pick, PICK, earlier)
        assert report(installed, used, lenient=True) == ""
    # Their own faults are past.
    assert report(installed, splice_snippet("1", DESK.pick, PICK, ["nowhere"]), lenient=True) == ""


@checkers
def test_names_of_a_session_have_the_types_of_their_values(installed):
    env = {**PICK, "table": {"a": [1.5]}, "seats": [Seat()], "pair": (1, "a"), "nothing": None}
    good = "table['a'].append(2.5)\nseats[0].row + pair[0]\npair[1].upper()\nprint(nothing)\ntable = 3\ntable + 1"
    assert report(installed, splice_snippet(good, DESK.pick, env), lenient=True) == ""
    for bad in ("table['a'].upper()", "seats[0].nothing", "pair[0].upper()"):
        assert "line 1" in report(installed, splice_snippet(bad, DESK.pick, env), lenient=True)


@checkers
def test_a_closure_sees_what_is_around_it(installed):
    env = scope(INNER, LOCAL(), [])
    good = "prices.append(b[0].x)\nlater['a'].is_integer()\nLocal().x + a.x"
    assert report(installed, splice_snippet(good, INNER, env), lenient=True) == ""
    assert "line 1" in report(installed, splice_snippet("b[0].y", INNER, env), lenient=True)


@checkers
def test_a_generic_skill_keeps_its_parameters(installed):
    env = scope(first, [1])
    assert report(installed, splice_skill_body("def f(items):\n    return items[0]", first, env)) == ""
    assert "line 2" in report(installed, splice_skill_body("def f(items):\n    return items", first, env))


# Bodies


@checkers
@pytest.mark.parametrize(
    "body",
    [
        "def pick(self, text, *rows, seat=None, **prices):\n    return seat or Seat(rows[0] + self.limit)",
        "import re\n\ndef build(n: int) -> Seat:\n    return Seat(n)\n\ndef f(me, t, *r, seat):\n    return build(1)",
        "def pick(self, text, *rows, seat=None, **prices):\n    return self.pick(text.upper(), 1)",
        # What the model declares is of no matter.
        "def pick(self: int, text: bytes, *rows: str, seat: int = None, **prices) -> int:\n    return Seat(len(text))",
        "def pick(\n    self,\n    text,\n    *rows,\n    **more,\n):\n    '''Pick.'''\n    return Seat()",
    ],
)
def test_a_body_takes_the_signature_of_the_skill(installed, body):
    assert report(installed, splice_skill_body(body, DESK.pick, PICK)) == ""


@checkers
@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("import re\ndef pick(self, text, *rows, seat=None, **prices):\n    return text", 3),
        ("def pick(self, text, *rows, seat=None, **prices):\n    if text:\n        return Seat()", 1),
        ("def pick(self, text, *rows, seat=None, **prices):\n    return Seat(text)", 2),
        ("def pick(self):\n    return Seat()", 3),
    ],
)
def test_a_body_is_held_to_it(installed, body, line):
    assert f"line {line}: " in report(installed, splice_skill_body(body, DESK.pick, PICK))


@checkers
def test_class_and_static_methods_have_their_receivers(installed):
    counting, doubling = scope(Desk.count, 1), scope(DESK.twice, 1)
    good = "def count(cls, n):\n    return cls.limit + n + cls.twice(n)"
    assert report(installed, splice_skill_body(good, Desk.count, counting)) == ""
    assert report(installed, splice_snippet("cls.limit + n", Desk.count, counting), lenient=True) == ""
    assert report(installed, splice_skill_body("def f(n):\n    return n * 2", DESK.twice, doubling)) == ""
    assert "line 2" in report(installed, splice_skill_body("def f(n):\n    return n + 'a'", DESK.twice, doubling))


@checkers
def test_a_class_of_the_same_name_is_another(installed):
    body = "class Seat:\n    row = 1\n\ndef pick(self, text, *rows, seat=None, **prices):\n    return Seat()"
    assert "line 6: " in report(installed, splice_skill_body(body, DESK.pick, PICK))
    function = "class Seat:\n    row = 1\n\ndef f(seat: Seat) -> int:\n    return seat.row"
    assert "line 6: " in report(installed, splice_function(function, Callable[[Seat], int], DESK.pick, PICK))


@checkers
def test_types_may_be_named_in_the_class_only(installed):
    shop = Shop()
    env = scope(shop.cheapest, [], Shop.Item())
    good = "def f(self, items, but):\n    return min(items, key=lambda one: one.price) if items else but"
    assert report(installed, splice_skill_body(good, shop.cheapest, env)) == ""
    bad = "def f(self, items, but):\n    return items"
    assert "line 2: " in report(installed, splice_skill_body(bad, shop.cheapest, env))
    assert report(installed, splice_snippet("but.price + items[0].price", shop.cheapest, env), lenient=True) == ""


@checkers
def test_an_asynchronous_skill_may_have_either_kind_of_body(installed):
    env = scope(wait, 1)
    for good in ("def f(n):\n    return str(n)", "async def f(n):\n    return await wait(n - 1)"):
        assert report(installed, splice_skill_body(good, wait, env)) == ""
    for bad in ("def f(n):\n    return n", "async def f(n):\n    return n"):
        assert "line 2: " in report(installed, splice_skill_body(bad, wait, env))


# Functions


@checkers
def test_a_function_is_held_to_the_type_that_was_asked_for(installed):
    env = scope(formula, "x")
    good = "import math\n\ndef f(n: float) -> str:\n    return str(math.sqrt(n))"
    assert report(installed, splice_function(good, Callable[[int], str], formula, env)) == ""
    for bad in ("def f(n: str) -> str:\n    return n", "def f(n: int, m: int) -> str:\n    return str(n)"):
        assert "line 3: " in report(installed, splice_function(bad, Callable[[int], str], formula, env))
    assert "line 2: " in report(
        installed, splice_function("def f(n: int) -> str:\n    return n", Callable[[int], str], formula, env)
    )


@checkers
def test_its_type_may_name_classes_of_the_program(installed):
    of_module = splice_function("def f(s: Seat) -> int:\n    return s.row", Callable[[Seat], int], DESK.pick, PICK)
    assert report(installed, of_module) == ""
    env = scope(INNER, LOCAL(), [])
    local = splice_function("def f(x: Local) -> int:\n    return x.x", Callable[[LOCAL], int], INNER, env)
    assert report(installed, local) == ""


# Skills whose source is not in a file


def executed(source: str, filename: str = "<nowhere>") -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__", "Skill": Skill, "NotHandled": NotHandled, "Agent": Agent}
    exec(compile(textwrap.dedent(source), filename, "exec", dont_inherit=True), names)
    return names


SESSION = """
    import dataclasses, enum, typing
    @dataclasses.dataclass
    class Point:
        x: int
        others: list["Point"] = dataclasses.field(default_factory=list)
        def norm(self) -> float:
            return 1.0
    class Color(enum.Enum):
        RED = 1
    class Pair(typing.NamedTuple):
        a: int
        b: str = ""
    class Options(typing.TypedDict):
        deep: bool
    @Skill.define
    def measure(point: Point, *more: int, options: Options, **colors: Color) -> Pair:
        '''{point}'''
        raise NotHandled
    class Bot(Agent):
        level: int = 1
        @Skill.define
        def act(self, n: int) -> str:
            '''{n}'''
            raise NotHandled
    points = [Point(1)]
    """


@checkers
def test_without_a_source_the_types_of_the_values_are_declared(installed):
    names = executed(SESSION)
    measure, point = names["measure"], names["points"][0]
    bound = measure.__signature__.bind(point, 1, options={"deep": True}, red=names["Color"].RED)
    env = {**names, **Scope.of_call(measure, bound)}
    good = """
        point.norm() + sum(more)
        Point(1, others=points).others[0].x
        Pair(1).b.upper()
        options["deep"]
        colors["a"].value
        Color.RED.name
        point = 3
        point + 1
        measure(points[0], options=options, red=Color.RED).a
        """
    assert report(installed, splice_snippet(textwrap.dedent(good), measure, env), lenient=True) == ""
    for bad in ("point.z", "Point('a')", "Color.BLUE", "sum(more).upper()", "Pair(1).c", "measure(3, options=options)"):
        assert "line 1: " in report(installed, splice_snippet(bad, measure, env), lenient=True), bad
    body = "def f(p, *m, options, **c):\n    return Pair({})"
    assert report(installed, splice_skill_body(body.format("p.x"), measure, env)) == ""
    assert "line 2" in report(installed, splice_skill_body(body.format("p"), measure, env))


@checkers
def test_a_method_without_a_source_has_its_receiver(installed):
    names = executed(SESSION)
    act = names["Bot"]().act
    env = {**names, **Scope.of_call(act, act.__signature__.bind(1))}
    good = "def act(self, n):\n    return str(self.level + n) + self.act(n)"
    assert report(installed, splice_skill_body(good, act, env)) == ""
    assert "line 2" in report(installed, splice_skill_body("def act(self, n):\n    return self.level", act, env))


@checkers
def test_without_a_skill_there_are_the_names_alone(installed):
    env = {"prices": [1.5], "Seat": Seat, "json": importlib.import_module("json"), "read": linecache.getline}
    good = "json.dumps(prices)\nSeat(1).row + 1\nread('x', 1).upper()"
    assert report(installed, splice_snippet(good, None, env), lenient=True) == ""
    assert "line 1" in report(installed, splice_snippet("read(1)", None, env), lenient=True)
    assert (
        report(installed, splice_function("def f(n: int) -> int:\n    return n", Callable[[int], int], None, {})) == ""
    )


def test_a_cell_of_a_notebook_is_a_source_and_other_cells_are_values(monkeypatch):
    cell = "@Skill.define\ndef ask(seat: Seat) -> int:\n    '''{seat}'''\n    raise NotHandled\n"
    monkeypatch.setitem(linecache.cache, "<cell 7>", (len(cell), None, cell.splitlines(keepends=True), "<cell 7>"))
    names = executed("class Seat:\n    row: int = 1\n", "<cell 3>")
    exec(compile(cell, "<cell 7>", "exec", dont_inherit=True), names)
    ask = names["ask"]
    env = {**names, **Scope.of_call(ask, ask.__signature__.bind(names["Seat"]()))}
    region = splice_snippet("seat.row + ask(Seat())", ask, env)
    assert cell.strip() in region.source
    assert region.source.path is None
    assert report(TyTypeChecker(), region, lenient=True) == ""
    assert "line 1" in report(TyTypeChecker(), splice_snippet("ask(3).upper()", ask, env), lenient=True)


def test_a_source_that_is_no_longer_what_was_run_is_not_taken(monkeypatch):
    cell = "@Skill.define\ndef ask(n: int) -> int:\n    '''{n}'''\n    raise NotHandled\n"
    names = executed(cell, "<cell 8>")
    for other in (cell.replace("ask", "tell"), "\n" + cell, cell.replace("{n}", "{n}!"), "not python at all", ""):
        monkeypatch.setitem(linecache.cache, "<cell 8>", (1, None, other.splitlines(keepends=True), "<cell 8>"))
        region = splice_snippet("ask(n)", names["ask"], names)
        assert "NotHandled" not in region.source
