"""What the policy allows beyond RestrictedPython's own, and what stays forbidden."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import doctest
import io
import math
import types
from textwrap import dedent
from typing import Any

import pytest
from RestrictedPython.transformer import RestrictingNodeTransformer

from effectful_agents import Agent, Tool, handler
from effectful_agents.errors import Signal, Suspended
from effectful_agents.handlers.execution import RestrictedPythonExecutor, RestrictedPythonPolicy
from effectful_agents.operations import code
from effectful_agents.runtime import Operation, SignalScope
from tests.sandbox.running import RESTRICTED, printed, run, value_of

FORBIDDEN = {
    "async def f(): pass": "AsyncFunctionDef",
    "async def f():\n  await x": "AsyncFunctionDef",
    "try: pass\nexcept* ValueError: pass": "TryStar",
    "from math import *": "`*`",
    "exec('1')": "Exec calls",
    "eval('1')": "Eval calls",
    "x.__class__ = int": "`__class__`",
    "x.__dict__ = {}": "`__dict__`",
    "del x.__code__": "`__code__`",
    "x.__class__ += 1": "`__class__`",
    "x.gi_frame": "`gi_frame`",
    "__builtins__": "`__builtins__`",
    "__import__('os')": "`__import__`",
    "def __del__(self): pass": "`__del__`",
    "def f(_getattr_): pass": "`_getattr_`",
    "f = lambda _write_: 1": "`_write_`",
    "for __class__ in x: pass": "`__class__`",
    "with x as _getitem_: pass": "`_getitem_`",
    "try: pass\nexcept E as _callee_: pass": "`_callee_`",
    "import math as __builtins__": "`__builtins__`",
    "from math import __loader__": "`__loader__`",
    "global __name__": "`__name__`",
    "def f():\n  nonlocal_ = 1\n  def g():\n    nonlocal __x__": "`__x__`",
    "(_apply_ := 1)": "`_apply_`",
    "class __builtins__: pass": "`__builtins__`",
    "type __class__ = int": "`__class__`",
    "def f[__class__](x): pass": "`__class__`",
    "match x:\n  case {'a': 1, **__builtins__}: pass": "`__builtins__`",
    "match x:\n  case [*_print_]: pass": "`_print_`",
    "match x:\n  case int() as _getattr_: pass": "`_getattr_`",
    "match x:\n  case object(__class__=c): pass": "`__class__`",
    "match x:\n  case y.__class__: pass": "`__class__`",
    "match x:\n  case y.__class__(): pass": "`__class__`",
    "super = 1": "`super`",
    "breakpoint()": "`breakpoint`",
    "x: 'f()' = 1": "annotation",
    "def f(x: list['g()']): pass": "annotation",
    "def f() -> '__import__': pass": "annotation",
    "from __future__ import annotations\ndef f(x: g()): pass": "annotation",
    "f'{x.__mro__}'": "`__mro__`",
}


@pytest.mark.parametrize("source", FORBIDDEN)
def test_what_is_forbidden_is_refused_when_it_is_compiled_and_named(source):
    with handler(RESTRICTED), pytest.raises(SyntaxError, match=FORBIDDEN[source].replace("*", r"\*")):
        code.compile(source, "<test>")


def test_every_fault_is_told_at_once_with_its_line():
    with handler(RESTRICTED), pytest.raises(SyntaxError) as refused:
        code.compile("x.__mro__\n\ny.__globals__", "<test>")
    assert str(refused.value).splitlines()[0].startswith("Line 1:")
    assert "Line 3: `__globals__`" in str(refused.value)


def test_a_tree_that_is_compiled_stays_as_it_is():
    tree = ast.parse("x.y += f(1)")
    before = ast.dump(tree)
    with handler(RESTRICTED):
        code.compile(tree, "<test>")
    assert ast.dump(tree) == before


def test_future_imports_of_the_package_do_not_reach_the_code():
    env = run("def f(x: int): pass\nkind = type(f)")
    assert env["f"].__annotations__ == {"x": int}
    assert run("from __future__ import annotations\ndef f(x: list[int]): pass")["f"].__annotations__ == {
        "x": "list[int]"
    }


def test_flags_are_heeded():
    with handler(RESTRICTED):
        env: dict = {}
        code.exec(code.compile("def f(x: int): pass", "<test>", "exec", 0x1000000), env)
    assert env["f"].__annotations__ == {"x": "int"}


def test_another_policy_may_be_given():
    env = run(
        "import math\nx = [y for y, z in [(1, 2)]]\nclass C: pass\nfor i in x: n = math.sqrt(4)",
        executor=RestrictedPythonExecutor(RestrictingNodeTransformer),
    )
    assert (env["x"], env["n"], env["C"]().__class__.__name__) == ([1], 2.0, "C")
    with pytest.raises(SyntaxError, match="AnnAssign"):
        run("x: int = 1", executor=RestrictedPythonExecutor(policy=RestrictingNodeTransformer))
    assert issubclass(RestrictedPythonPolicy, RestrictingNodeTransformer)


# --- names and modules ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["open", "input", "compile", "globals", "locals", "vars", "dir", "SystemExit"])
def test_what_reaches_the_machine_has_no_name(name):
    with pytest.raises(NameError, match=name):
        run(f"x = {name}")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("open('x')", "no files"),
        ("with open('x') as f: pass", "no files"),
        ("input()", "nobody answers"),
        ("globals()['x']", "a dictionary of your own"),
        ("x = [locals]", "a dictionary of your own"),
        ("exit()", "raise an `Exception`"),
        ("raise SystemExit(1)", "raise an `Exception`"),
        ("class A(BaseException): pass", "use `Exception`"),
        ("help(len)", "__doc__"),
        ("vars()", "with one object"),
        ("def f(): return dir()\nf()", "with one value"),
    ],
)
def test_a_name_that_is_kept_back_says_what_to_write_instead(source, told):
    with pytest.raises(NameError, match="is not available here") as raised:
        run(source)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("__import__('os')", "`import` statement"),
        ("breakpoint()", "`print`"),
        ("eval('1')", "literal_eval"),
        ("x.__class__ = int", "`type(x)`"),
        ("x.__dict__ = {}", "`vars(x)`"),
        ("e.__traceback__", "error.args"),
        ("C.__mro__", "issubclass"),
        ("class A:\n  def __del__(self): pass", "`with`"),
        ("async def f(): pass", "ordinary functions"),
        ("try: f()\nexcept* ValueError: pass", "ExceptionGroup"),
    ],
)
def test_what_is_refused_at_once_says_it_too(source, told):
    with pytest.raises(SyntaxError) as raised:
        run(source)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("name", "told"), [("os.path", "no files"), ("requests", "tools"), ("asyncio", "one thread"), ("numpy", "lists")]
)
def test_a_module_that_is_not_allowed_says_what_takes_its_place(name, told):
    with pytest.raises(ImportError) as raised:
        run(f"import {name}")
    assert told in str(raised.value)


def test_a_name_that_the_program_or_an_earlier_piece_has_bound_is_that():
    env: dict[str, Any] = {"open": lambda name: f"opened {name}"}
    run("text = open('x')\ndef dir(value): return [value]\ndef later(): return open('y')", env)
    run("names = dir(3), vars", {**env, "vars": 4})
    run("found = dir(3), later()", env)
    assert (env["text"], env["found"]) == ("opened x", ([3], "opened y"))


CLOSED = ["os", "sys", "subprocess", "socket", "builtins", "inspect", "pickle", "numpy", "os.path", "urllib.request"]


@pytest.mark.parametrize("name", CLOSED)
def test_a_module_that_is_not_allowed_cannot_be_imported(name):
    with pytest.raises((ImportError, SyntaxError), match="not available"):
        run(f"import {name}")


@pytest.mark.parametrize("name", ["io.open", "io.FileIO", "time.sleep", "types.CodeType", "ast.parse", "shlex.shlex"])
def test_of_a_module_that_is_allowed_what_reaches_the_machine_is_not_there(name):
    with pytest.raises(AttributeError, match="not available"):
        run(f"import {name.partition('.')[0]}\n{name}")


def test_relative_imports_are_refused():
    with pytest.raises(ImportError, match="relative"):
        run("from . import x")


def test_modules_of_the_program_are_no_way_out():
    import os
    import uuid

    for expression in ("os.getcwd()", "uuid.os", "getattr(uuid, 'os')", "box[0].getcwd()"):
        with pytest.raises((ImportError, AttributeError), match="not available"):
            value_of(expression, {"os": os, "uuid": uuid, "box": [os]})
    assert value_of("math.sqrt(4)", {"math": math}) == 2


def test_functions_of_the_program_can_be_called_and_those_of_closed_modules_cannot():
    import os

    def double(x: int) -> int:
        return 2 * x

    assert value_of("double(2) + sum(map(double, [1]))", {"double": double}) == 6
    for expression in ("f()", "list(map(f, []))", "[g for g in [f]][0]()"):
        with pytest.raises(TypeError, match="not available"):
            value_of(expression, {"f": os.getcwd})


CALLED_BY_OTHERS = {
    "a special method": "class A(dict): __missing__ = f\ngot = A()[where]",
    "the hook of a class": "class A: __class_getitem__ = f\ngot = A[where]",
    "a format": "class A: __format__ = f\ngot = f'{A():x}'",
    "a special method that is set later": "class A: pass\nA.__getitem__ = f\ngot = A()[where]",
    "a special method that setattr sets": "class A: pass\nsetattr(A, '__call__', f)\ngot = A()(where)",
    "a property": "class A(str): x = property(f)\ngot = A(where).x",
    "a property by its name": "class A(str): x = property(fget=f)\ngot = A(where).x",
    "a class of its own that is a property": ("class P(property): pass\nclass A(str): x = P(f)\ngot = A(where).x"),
    "a static method": "class A: __class_getitem__ = staticmethod(f)\ngot = A[where]",
    "a cached property": "import functools\nclass A(str): x = functools.cached_property(f)\ngot = A(where).x",
    "a partial": "import functools\nclass A: __class_getitem__ = functools.partial(f)\ngot = A[where]",
    "a factory of a default": "import collections\nclass D(collections.defaultdict): pass\ngot = D(f)[1]",
    "a hook of the library": "import json\nclass E(json.JSONEncoder): default = f\ngot = E().encode(where.encode())",
    "a hook that is set later": (
        "import json\nclass E(json.JSONEncoder): pass\ne = E()\ne.default = f\ngot = e.encode(where.encode())"
    ),
    "a hook that is a property": (
        "import json\nclass E(json.JSONEncoder): default = property(lambda self: f)\ngot = E().encode(where.encode())"
    ),
    "a hook that is an argument": (
        "import json\nclass E(json.JSONEncoder): pass\ngot = E(default=f).encode(where.encode())"
    ),
    "a hook of a class that is made of texts": (
        "import dataclasses, json\nfields = [('default', object, f)]\n"
        "E = dataclasses.make_dataclass('E', fields, bases=(json.JSONEncoder,), init=False)\n"
        "got = E().encode(where.encode())"
    ),
}


@pytest.mark.parametrize("way", CALLED_BY_OTHERS)
def test_a_closed_function_is_not_called_by_somebody_else_either(way):
    import os

    env = {"f": os.listdir, "where": "/"}
    with pytest.raises((TypeError, AttributeError), match=r"available here|not JSON|not callable|of your own"):
        run(CALLED_BY_OTHERS[way], env)
    assert "got" not in env
    assert env["f"] is os.listdir


def test_a_class_that_calls_is_closed_too():
    import subprocess

    for expression in ("Popen(['true'])", "Popen[bytes](['true'])", "[P for P in [Popen[str]]][0](['true'])"):
        with pytest.raises(TypeError, match="`Popen` is not available"):
            value_of(expression, {"Popen": subprocess.Popen})


def test_what_a_module_of_the_program_has_imported_is_no_way_out():
    """The names of a skill's module are seen by its code; what lies about there was not given to it."""
    from effectful_agents import harness
    from effectful_agents.handlers.execution import BuiltinExecutor

    names = {
        "handler": handler,
        "harness": harness,
        "BuiltinExecutor": BuiltinExecutor,
        "executor": BuiltinExecutor(),
        "compile_": code.compile,
        "exec_": code.exec,
        "code": code,
        "skip": pytest.skip,
    }
    for expression in (
        *("handler({})", "harness()", "BuiltinExecutor()", "executor.exec", "code.exec", "skip('x')"),
        *("compile_('1', 'x')", "list(map(exec_, [], []))", "sorted([], key=exec_)", "getattr(executor, 'limits', 1)"),
    ):
        with pytest.raises((TypeError, AttributeError, ImportError), match="not available"):
            value_of(expression, names)


def test_tools_and_agents_of_the_program_can_be_used():
    @Tool.define
    def double(x: int) -> int:
        """Twice."""
        return 2 * x

    @dataclasses.dataclass
    class Shop(Agent):
        prices: dict[str, int]
        _seen: int = 0

        @Tool.define
        def price(self, name: str) -> int:
            """The price of a thing."""
            return self.prices[name]

    shop = Shop({"tea": 3})
    source = "x = double(shop.price('tea')) + sum(map(double, [1]))\nshop._seen += 1\nshop.prices['milk'] = 2"
    env = run(source, {"double": double, "shop": shop})
    assert (env["x"], shop._seen, shop.prices) == (8, 1, {"tea": 3, "milk": 2})


def test_values_that_reach_the_machine_are_closed(tmp_path):
    for expression in ("path.read_text()", "[path][0].name", "file.read()"):
        with open(tmp_path / "x", "w+") as file, pytest.raises((AttributeError, TypeError), match="not available"):
            value_of(expression, {"path": tmp_path, "file": file})


def test_what_may_be_written_with_a_dot_may_be_asked_for_by_name():
    source = """
        class U:
            def __init__(self): self.name, self.kids = "u", [1]
        def plain(value):
            if isinstance(value, list): return [plain(one) for one in value]
            if hasattr(value, "__dict__"): return {name: plain(one) for name, one in value.__dict__.items()}
            return value
        print(plain([U(), 3]), getattr(U(), "__dict__", {}), getattr(3, "__dict__", {}), hasattr(3, "__dict__"))
        print(hasattr(U(), "__class__"), getattr(3, "__class__").__name__, print.__name__, repr("a".format)[:20])
    """
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(dedent(source), {})
    assert printed(dedent(source)) == out.getvalue()
    with pytest.raises(AttributeError, match="isinstance"):
        run("class C: pass\nC.mro()")


def test_types_with_marks_of_classes_of_the_code():
    source = """
        import typing
        from dataclasses import dataclass, fields
        from enum import Enum
        @dataclass(frozen=True)
        class Unit: name: str
        class Positive:
            def __repr__(self): return "Positive()"
        Metres = typing.Annotated[float, Unit("m"), Positive()]
        @dataclass
        class Track:
            length: Metres
            parts: list[Metres] | None = None
            next: typing.Optional["Track"] = None
            seen: typing.Optional[typing.Annotated[int, Positive]] = None
        T = typing.TypeVar("T")
        class Box(typing.Generic[T]): pass
        class Kind(str, Enum): A = "a"
        print(Track(1.0), Metres, [one.name for one in fields(Track)])
        print(Box[int], Box[Unit], typing.Literal[1, "a", Kind.A], typing.Callable[[int], str], list["Track"])
        print(typing.Optional[Track], typing.List[int] | Unit, int | None, type[Unit], dict[str, typing.Any])
    """
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(dedent(source), {"__name__": "__main__"})
    assert printed(dedent(source)) == out.getvalue()


def test_what_is_restricted_reads_as_absent():
    assert value_of("[hasattr((), n) for n in ('__reduce__', 'index', 'nothing')]") == [False, True, False]
    with pytest.raises(AttributeError, match="__reduce__"):
        value_of("getattr((), '__reduce__', None)")


def test_a_pattern_reads_what_a_dot_reads():
    for pattern in ("str(format=f)", "[str(format=f)] | str(format=f)"):
        with pytest.raises(AttributeError, match="reaches into"):
            run(f"match '{{0.real}}':\n  case {pattern}: f(1)")


@pytest.mark.parametrize("cases", ["case x: pass\n  case y: pass", "case [x, x]: pass", "case [x] | [y]: pass"])
def test_a_pattern_that_cannot_be_is_a_syntax_error(cases):
    with pytest.raises(SyntaxError, match="pattern"):
        run(f"match 1:\n  {cases}")


# --- namespaces ----------------------------------------------------------------------------------------------------


def test_only_what_the_code_binds_comes_back():
    env: dict = {"x": 1, "gone": 2}
    run("print('')\ny = x + 1\ndel gone\nfor i in [3]: pass", env)
    assert env == {"x": 1, "y": 2, "i": 3}


def test_what_was_bound_before_an_error_stays_bound():
    env: dict = {}
    with pytest.raises(ZeroDivisionError):
        run("x = 1\ny = 1 / 0", env)
    assert env == {"x": 1}


def test_a_function_and_later_pieces_share_their_globals():
    env = run("total = 0\ndef add(n):\n  global total\n  total += n")
    run("add(2)\nadd(3)", env)
    assert env["total"] == 5
    env["total"] = 10
    assert run("add(1)", env)["total"] == 11
    env["add"](4)
    assert value_of("total", env) == 15


def test_eval_binds_nothing():
    env = {"x": 1}
    assert value_of("(y := x + 1)", env) == 2
    assert env == {"x": 1}


def test_an_environment_of_a_module_keeps_its_own_builtins():
    module = types.ModuleType("somewhere")
    module.__dict__["__builtins__"] = __builtins__
    run("x = len('abc')", module.__dict__)
    assert module.x == 3
    assert module.__dict__["__builtins__"] is __builtins__
    assert module.__name__ == "somewhere"


def test_functions_inside_functions_have_no_other_builtins_later():
    env = run("def f():\n  def g(): return open\n  return g()")
    eval("1", env["f"].__globals__)  # puts builtins where there are none
    with pytest.raises(NameError, match="open"):
        env["f"]()


def test_source_can_be_read_back():
    import inspect

    with handler(RESTRICTED):
        env: dict = {}
        code.exec(code.compile(code.parse("def f(x):\n    return x.real\n", "<back>"), "<back>"), env)
    assert inspect.getsource(env["f"]) == "def f(x):\n    return x.real\n"


# --- exceptions and signals ------------------------------------------------------------------------------------------


@Operation.define
def ask() -> str:
    raise Suspended


@pytest.mark.parametrize(
    "source",
    [
        "try: ask()\nexcept: pass",
        "try: ask()\nexcept BaseException: pass",
        "try: ask()\nexcept (ValueError, KeyboardInterrupt): pass",
        "def f():\n  try: ask()\n  finally: return 1\nf()",
        "import contextlib\nwith contextlib.suppress(Exception): ask()",
        "class Eat:\n  def __enter__(self): pass\n  def __exit__(self, *a): return True\nwith Eat(): ask()",
        "Exception = object\ntry: ask()\nexcept: pass",
    ],
)
@pytest.mark.parametrize("error", [Suspended, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_is_not_caught(source, error):
    def fail() -> str:
        raise error

    if "finally" in source and not issubclass(error, Signal):
        return  # a `return` in a `finally` is the language's own
    with pytest.raises(error), SignalScope(), handler({ask: fail}):
        run(source, {"ask": ask})


def test_exceptions_are_caught_as_elsewhere():
    assert printed("try: 1 / 0\nexcept BaseException as e: print(type(e).__name__)") == "ZeroDivisionError\n"
    assert printed("try: [][0]\nexcept (KeyError, IndexError): print('yes')") == "yes\n"
    with pytest.raises(TypeError, match="inherit from BaseException"):
        run("try: 1 / 0\nexcept 3: pass")


def test_what_is_no_exception_cannot_be_raised():
    for kind in (KeyboardInterrupt, SystemExit(1)):
        with pytest.raises(TypeError, match="cannot be raised here"):
            run("raise kind", {"kind": kind})


# --- doctests --------------------------------------------------------------------------------------------------------


def doctested(text: str) -> str:
    """What doctest reports of a text whose examples are compiled and run by the executor."""
    examples = doctest.DocTestParser().get_doctest(text, {}, "text", "<doctest>", 0)
    runner = doctest.DocTestRunner(verbose=False)
    report = io.StringIO()
    with handler(RESTRICTED), pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(doctest, "compile", code.compile, raising=False)
        patch.setattr(doctest, "exec", code.exec, raising=False)
        runner.run(examples, out=report.write, clear_globs=False)
    return report.getvalue()


def test_examples_run_under_the_policy():
    assert doctested(">>> x = 2\n>>> x * 2\n4\n>>> print('a')\na\n>>> for i in range(2): i\n0\n1\n") == ""
    assert "NameError" in doctested(">>> open('/etc/passwd').read()\n''\n")
    assert "`__mro__` is not available" in doctested(">>> tuple.__mro__\n()\n")


@pytest.mark.parametrize(
    "source",
    ["x = " + "+".join("t" * 5_000), "if t: pass\n" + "elif t: pass\n" * 2_000, "x = t" + ".strip()" * 2_000],
    ids=["sum", "branches", "chain"],
)
def test_what_lies_too_deep_is_a_syntax_error_that_says_what_to_write(source):
    with pytest.raises(SyntaxError, match="Write several statements"):
        run("t = ''\n" + source)
