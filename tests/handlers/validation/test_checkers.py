"""Code that a model wrote is checked as a part of the module that it is for, and only it is reported."""

from __future__ import annotations

import gc
import importlib
import linecache
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, propagate
from effectful_agents.encoding.splicing import (
    ModuleSource,
    SplicedRegion,
    splice_function,
    splice_skill_body,
    splice_snippet,
)
from effectful_agents.errors import MissingDependencyError, TypeCheckerError
from effectful_agents.handlers.validation import TyTypeChecker, ty_server
from effectful_agents.handlers.validation.mypy import MypyTypeChecker
from effectful_agents.operations import code
from effectful_agents.types import Scope

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

checkers = pytest.mark.parametrize(
    "checker", [TyTypeChecker, pytest.param(MypyTypeChecker, marks=pytest.mark.slow)], scope="module"
)


@pytest.fixture(scope="module")
def installed(checker):
    return checker()


def report(installed: Any, region: SplicedRegion | tuple[str], *, lenient: bool = False) -> str:
    """What is said of the code; empty where it passes."""
    with handler(installed):
        try:
            code.type_check(*region, lenient=lenient)
        except TypeError as error:
            return str(error)
    return ""


def scope(skill: Any, *args: Any, **more: Any) -> dict[str, Any]:
    return {**Scope.of_call(skill, skill.__signature__.bind(*args)), **more}


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
    assert snippet.split("\n")[line - 1].strip() in told


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


# What belongs to the user's program


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose modules import each other."""
    folder = tmp_path / "booking_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "hall.py").write_text(
        "from __future__ import annotations\nfrom booking_of_a_test import desk\n"
        "def find(seat: desk.Seat) -> int:\n    return 1\n"
    )
    (folder / "desk.py").write_text(
        "# mypy: ignore-errors\n# type: ignore\nfrom effectful_agents import Skill, NotHandled\nfrom . import hall\n"
        "class Seat:\n    pass\n"
        "@Skill.define\ndef pick(text: str) -> Seat:\n    '''{text}'''\n    raise NotHandled\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield importlib.import_module("booking_of_a_test.desk")
    for name in [name for name in sys.modules if name.startswith("booking_of_a_test")]:
        del sys.modules[name]


@checkers
def test_the_module_is_the_one_that_others_import(installed, package):
    env = scope(package.pick, "x")
    assert report(installed, splice_snippet("hall.find(Seat())", package.pick, env), lenient=True) == ""
    told = report(installed, splice_snippet("hall.find(3)", package.pick, env), lenient=True)
    assert "line 1: " in told
    assert str(Path(package.__file__).parent) not in told


def test_a_file_that_was_changed_is_read_again(package):
    checker, env = TyTypeChecker(), scope(package.pick, "x")
    region = splice_snippet("hall.find(3)", package.pick, env)
    assert report(checker, region, lenient=True) != ""
    hall = Path(package.__file__).with_name("hall.py")
    hall.write_text("def find(seat: int) -> int:\n    return 1\n")
    assert report(checker, region, lenient=True) == ""


def test_a_module_of_an_installed_package_is_checked_as_well(tmp_path):
    for folder in (".venv/lib/site-packages", "node_modules", "build"):
        path = tmp_path / folder / "mine.py"
        path.parent.mkdir(parents=True)
        path.write_text("")
        assert "line 1: " in report(TyTypeChecker(), (ModuleSource("x: int = 'a'\n", str(path)),))


def test_a_module_that_only_python_finds_is_no_fault(monkeypatch):
    monkeypatch.setitem(sys.modules, "made_while_running", type(sys)("made_while_running"))
    assert report(TyTypeChecker(), ("import made_while_running\n",)) == ""


def test_settings_of_the_user_do_not_count(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.ty.rules]\nall = "ignore"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert "line 1: " in report(TyTypeChecker(), (ModuleSource("x: int = 'a'\n", str(tmp_path / "a.py")),))


# The operation


def test_without_a_checker_everything_passes():
    code.type_check("x: int = 'a'\n")


@checkers
def test_only_the_lines_that_are_asked_for_are_reported(installed):
    source = "x: int = 'a'\ny: int = 1\nz: int = 'b'\n"
    assert report(installed, (source, 2, 2)) == ""
    told = report(installed, (source, 2, 3))
    assert "1 error" in told
    assert "line 2: " in told
    assert "2 errors" in report(installed, (source,))


@checkers
def test_what_is_no_python_is_a_fault(installed):
    for source in ("x = (1,\n", "def f(:\n    pass\n", "x = 'a\n"):
        assert "line 1" in report(installed, (source,)) or "line 2" in report(installed, (source,))


@checkers
def test_other_letters_and_ends_of_lines_are_counted_rightly(installed):
    told = report(installed, ("a = 'é\u2028\x0c'\r\nb = '🙂'; c: int = 'é'\r\n",))
    assert "line 2: " in told
    assert "\n    b = '🙂'; c: int = 'é'\n" in told


def test_a_long_report_is_cut():
    told = report(TyTypeChecker(), ("\n".join(f"x{n}: int = 'a'" for n in range(30)),))
    assert "30 errors" in told
    assert told.endswith("… and 20 more.")
    assert len(told) < 3000


def test_rules_that_are_ignored_count_where_it_is_strict():
    checker = TyTypeChecker(lenient_ignored_rules=("invalid-assignment",))
    assert report(checker, ("x: int = 'a'\n",), lenient=True) == ""
    assert report(checker, ("x: int = 'a'\n",)) != ""


def test_two_checkers_are_both_asked():
    class Never(TyTypeChecker):
        def _check(self, *args: Any) -> None:
            raise TypeError("never")

    with handler(Never()), handler(TyTypeChecker()), pytest.raises(TypeError, match="never"):
        code.type_check("x = 1\n")


# The checker itself


@checkers
def test_no_files_are_left_behind(checker, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ty_server._keeper.stop()
    own = checker()
    assert report(own, ("x: int = 1\n",)) == ""
    assert report(own, ("x: int = 'a'\n",)) != ""
    del own
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_died_is_started_again():
    assert report(TyTypeChecker(), ("x: int = 1\n",)) == ""
    server = ty_server._keeper._server
    assert server is not None
    server._process.kill()
    assert report(TyTypeChecker(), ("y: int = 'a'\n",)) != ""


def test_a_server_that_is_stuck_is_given_up(monkeypatch):
    assert report(TyTypeChecker(), ("x: int = 1\n",)) == ""
    server = ty_server._keeper._server
    assert server is not None
    server._process.send_signal(19)  # SIGSTOP
    monkeypatch.setattr(ty_server, "_SECONDS", 1.0)
    assert report(TyTypeChecker(), ("y: int = 'a'\n",)) != ""


def test_a_checker_that_does_not_run_is_an_error_and_no_pass(monkeypatch):
    ty_server._keeper.stop()
    monkeypatch.setattr("ty.find_ty_bin", lambda: "/bin/false")
    with handler(TyTypeChecker()), pytest.raises(TypeCheckerError, match="ty does not start") as caught:
        code.type_check("x = 1\n")
    assert isinstance(caught.value, RuntimeError)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with handler(MypyTypeChecker()), pytest.raises(TypeCheckerError, match="mypy"):
        code.type_check("x = 1\n")


def test_a_comment_that_turns_the_check_off_is_an_error_and_no_pass():
    with handler(TyTypeChecker()), pytest.raises(TypeCheckerError, match="no line of this module"):
        code.type_check("# ty: ignore\nx: int = 'a'\n")


def test_a_checker_that_is_missing_says_what_to_install(monkeypatch):
    ty_server._keeper.stop()
    monkeypatch.setitem(sys.modules, "ty", None)
    with handler(TyTypeChecker()), pytest.raises(MissingDependencyError, match="pip install ty"):
        code.type_check("x = 1\n")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with handler(MypyTypeChecker()), pytest.raises(MissingDependencyError, match="mypy"):
        code.type_check("x = 1\n")


def test_threads_share_a_server_and_get_their_own_answers():
    found: dict[int, bool] = {}

    def check(n: int) -> None:
        try:
            code.type_check(f"x{n}: int = {1 if n % 2 else repr('a')}\n")
            found[n] = True
        except TypeError as error:
            found[n] = f"x{n}" not in str(error)

    with handler(TyTypeChecker()):
        threads = [threading.Thread(target=propagate(check), args=(n,)) for n in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert found == {n: n % 2 == 1 for n in range(6)}


PROGRAM = """
import os, sys
from effectful_agents import NotHandled, Skill, handler
from effectful_agents.encoding.splicing import splice_snippet
from effectful_agents.handlers.validation import TyTypeChecker
from effectful_agents.operations import code
from effectful_agents.types import Scope
import beside

class Seat:
    row = 1

@Skill.define
def pick(text: str) -> Seat:
    '''{text}'''
    raise NotHandled

def check(snippet):
    try:
        code.type_check(*splice_snippet(snippet, pick, Scope.of_call(pick, pick.__signature__.bind("x"))), lenient=True)
        print("passed")
    except TypeError as error:
        print(error)

with handler(TyTypeChecker()):
    check("beside.find(Seat().row)")
    for snippet in sys.argv[1:]:
        check(snippet)
    sys.stdout.flush()
    child = os.fork()
    if not child:
        check("pick(text).nothing")
        sys.exit()
    os.waitpid(child, 0)
    check("beside.find(pick(text).row) + 1")
"""


def test_a_script_says_the_same_in_every_process(tmp_path):
    outputs = []
    for name, history in (("one", []), ("two", ["beside.find(1)", "text.nothing", "text = 2"])):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "beside.py").write_text("def find(row: int) -> int:\n    return row\n")
        (folder / "script.py").write_text(PROGRAM)
        run = subprocess.run(
            [sys.executable, "-W", "error", str(folder / "script.py"), *history],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert run.stderr == ""
        outputs.append(run.stdout)
    assert outputs[0].startswith("passed\nthe code does not pass")
    assert outputs[0].endswith("\npassed\n")
    assert outputs[1].endswith(outputs[0].removeprefix("passed\n"))
