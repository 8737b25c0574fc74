"""What a piece of restricted code may use up; and afterwards the session goes on."""

from __future__ import annotations

import contextlib
import io
import threading
from textwrap import dedent

import pytest

from effectful_agents.errors import AgentsError, CodeStopped
from effectful_agents.handlers.execution import RestrictedPythonExecutor
from tests.sandbox.running import RESTRICTED, printed, run, value_of

SHORT = RestrictedPythonExecutor(seconds=0.05)

COLLIDING = "x = [i * (2 ** 61 - 1) for i in range(100_000)]\n"
"""Numbers that all lie in one place in a set."""

ENDLESS = {
    "colliding, set": COLLIDING + "set(x)",
    "colliding, class": COLLIDING + "class S(set): pass\ndef f(v): return S(v)\nf(x)",
    "colliding, map": COLLIDING + "list(map(set().update, [x]))",
    "colliding, star": COLLIDING + "{*x}",
    "colliding, keys": COLLIDING + "dict.fromkeys(x)",
    "colliding, pairs": COLLIDING + "d = {}\nd |= [(i, 1) for i in x]",
    "colliding, counter": COLLIDING + "import collections\ncollections.Counter(x)",
    "colliding, values": COLLIDING + "frozenset(dict(enumerate(x)).values())",
    "colliding, deque": COLLIDING + "import collections\nset(collections.deque((i,) for i in x))",
    "colliding, mode": COLLIDING + "import statistics\nstatistics.mode(x)",
    "a loop without calls": "while True: pass",
    "a loop over a huge range": "for i in range(10 ** 15): pass",
    "a comprehension": "[0 for a in range(99999) for b in range(99999) for c in range(99999)]",
    "a generator that never ends": "def g():\n  while True: yield 1\nsum(g())",
    "count": "import itertools\nfor _ in itertools.count(): pass",
    "a filter that finds nothing": "import itertools\nnext(filter(None, itertools.repeat(0)))",
    "islice of count": "import itertools\nnext(itertools.islice(itertools.count(), 10 ** 12, None))",
    "product in C": "import itertools\nsum(map(len, itertools.product(range(9), repeat=30)))",
    "iter of a function in C": "min(iter(int, 1))",
    "deque without places": "import collections, itertools\ncollections.deque(itertools.count(), maxlen=0)",
    "unpacking": "import itertools\na, *b = itertools.count()",
    "a star": "import itertools\nprint(*itertools.count())",
    "exponential recursion": "def f(n): return 1 if n < 2 else f(n - 1) + f(n - 2)\nf(90)",
    "swallowed by except": "while True:\n  try:\n    while True: pass\n  except: pass",
    "swallowed by finally": "def f():\n  try:\n    while True: pass\n  finally: return 1\nf()",
    "swallowed by a loop in finally": "while True:\n  try:\n    while True: pass\n  finally: continue",
    "swallowed by with": dedent("""
        class Eat:
            def __enter__(self): pass
            def __exit__(self, *a): return True
        while True:
            with Eat():
                while True: pass
    """),
    "swallowed by suppress": "import contextlib as c\nwhile True:\n  with c.suppress(Exception):\n    while True: pass",
    "a regular expression that tries everything": "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
    "growing a list that is gone through": "xs = [1]\nfor x in xs: xs.append(x)",
    "in range": "0.5 in range(10 ** 15)",
    "in iter": "-1 in iter(range(10 ** 15))",
    "in reversed": "-1 in reversed(range(10 ** 15))",
    "not in map": "-1 not in map(abs, range(10 ** 15))",
    "in operator": "import operator\noperator.contains(range(10 ** 15), 0.5)",
    "countOf": "import operator\noperator.countOf(range(10 ** 15), 1)",
    "delegated": "def g(): yield from range(10 ** 15)\nmax(g())",
    "delegated repeat": "def g(): yield from iter(int, 1)\nmax(g())",
    "lambda next": "class I:\n  __iter__ = lambda s: s\n  __next__ = lambda s: 1\nmax(I())",
    "lambda getitem": "class I:\n  __getitem__ = lambda s, k: 1\nmax(I())",
    "callback max": "list(map(max, [range(10 ** 15)]))",
    "elements": "from collections import Counter\nmax(Counter(a=10 ** 15).elements())",
    "elements map": "from collections import Counter\nmax(next(map(Counter.elements, [Counter(a=10 ** 15)])))",
    "min iter": "min(iter(range(10 ** 15)))",
    "dataclass repr": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n  x: object\n  y: object\na = 1\n"
        "for _ in range(60): a = A(a, a)\nrepr(a)"
    ),
    "dataclass asdict": (
        "from dataclasses import dataclass, asdict\n@dataclass\nclass A:\n  x: object\n"
        "  y: object\na = 1\nfor _ in range(60): a = A(a, a)\nasdict(a)"
    ),
    "dropwhile": "import itertools\nnext(itertools.dropwhile(lambda x: True, range(10 ** 15)))",
    "batched": "import itertools\nmax(itertools.batched(range(10 ** 15), 2))",
    "shlex": "import shlex\nshlex.split(\"'\" + 'a' * 10 ** 6)",
    "tomllib": "import tomllib\ntomllib.loads(''.join(f'a{i} = [1, 2, 3]\\n' for i in range(200_000)))",
    "difflib": "import difflib\nx = list(range(99)) * 99\ndifflib.SequenceMatcher(None, x, x[::-1]).ratio()",
}


ONLY_IN_THE_MAIN_THREAD = {"a regular expression that tries everything"}
"""What is one operation in C, which a timer of the system interrupts, and nothing else does."""


@pytest.mark.parametrize("name", ENDLESS)
def test_code_that_does_not_end_is_ended(name):
    with pytest.raises(CodeStopped) as stopped:
        run(ENDLESS[name], executor=SHORT)
    assert stopped.value.limit == "seconds"
    assert isinstance(stopped.value, TimeoutError)
    assert isinstance(stopped.value, AgentsError)


def test_the_memory_of_the_process_is_watched():
    with pytest.raises(MemoryError, match="memory"):
        run("xs = []\nwhile True: xs.append('a' * 1_000_000)", executor=RestrictedPythonExecutor(memory=50_000_000))


def test_recursion_without_end_is_an_error_of_the_code():
    assert run("def f(): return f()\ntry: f()\nexcept RecursionError as e: x = 'deep'")["x"] == "deep"


def test_recursion_goes_as_deep_as_elsewhere():
    assert run("def f(n): return 0 if n == 0 else 1 + f(n - 1)\nx = f(700)")["x"] == 700


def test_output_is_limited_and_what_came_before_it_is_there(capsys):
    with pytest.raises(CodeStopped, match="`output` of 100"):
        run("print('first')\nwhile True: print('more and more')", executor=RestrictedPythonExecutor(output=100))
    assert capsys.readouterr().out.startswith("first\nmore and more\n")


TOO_MUCH_OUTPUT = {
    "end": "for _ in range(9): print(end='x' * 50)",
    "end that lies": "class S(str):\n  def __len__(self): return 0\nfor _ in range(9): print(end=S('x' * 50))",
    "sep": "print(*[''] * 20, sep='x' * 50)",
    "sep that lies": "class S(str):\n  def join(self, parts): return ''\nprint(*[''] * 20, sep=S('x' * 50))",
    "a value that stands there often": "print(*['x' * 50] * 20)",
    "by map": "import functools\nlist(map(functools.partial(print, end='x' * 50), range(9)))",
    "a calendar": "import calendar\ncalendar.TextCalendar().pryear(2024)",
    "a calendar of the code": "import calendar\nclass C(calendar.TextCalendar): pass\nC().prmonth(2024, 1)",
}


@pytest.mark.parametrize("name", TOO_MUCH_OUTPUT)
def test_all_that_is_printed_counts(name):
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(CodeStopped, match="`output` of 100"):
        run(TOO_MUCH_OUTPUT[name], executor=RestrictedPythonExecutor(output=100))
    assert len(out.getvalue()) <= 100


def test_print_is_as_elsewhere(capsys):
    source = "print(1, [2], sep='-', end='!')\nprint()\nprint(end='')\nprint('a', sep=None, end=None)"
    exec(source, {})
    assert printed(source) == capsys.readouterr().out


EATEN = {
    "return": "def f():\n  try: interrupt()\n  finally: return 1\nf()",
    "return in a loop": "def f():\n  try: interrupt()\n  finally:\n    for _ in (1,): return 1\nf()",
    "return in a second one": "def f():\n  try: interrupt()\n  finally:\n    try: pass\n    finally: return 1\nf()",
    "continue": "for _ in range(3):\n  try: interrupt()\n  finally: continue",
    "break": "while True:\n  try: interrupt()\n  finally: break",
    "break of an outer loop": ("while True:\n  try: interrupt()\n  finally:\n    for _ in (): pass\n    else: break"),
    "another error": "try:\n  try: interrupt()\n  finally: 1 / 0\nexcept ZeroDivisionError: pass",
    "another error from a helper": (
        "def helper(): return [][0]\ntry:\n  try: interrupt()\n  finally: helper()\nexcept IndexError: pass"
    ),
    "with": "class E:\n  def __enter__(s): return s\n  def __exit__(s, *e): return True\nwith E(): interrupt()",
    "with another error": (
        "class E:\n  def __enter__(s): return s\n  def __exit__(s, *e): 1 / 0\n"
        "try:\n  with E(): interrupt()\nexcept ZeroDivisionError: pass"
    ),
    "decorator": (
        "import contextlib\nclass C(contextlib.ContextDecorator):\n  def __enter__(s): return s\n"
        "  def __exit__(s, *e): return True\n@C()\ndef f(): interrupt()\nf()"
    ),
    "decorator that is changed": (
        "import contextlib\nclass C(contextlib.ContextDecorator):\n  def __enter__(s): return s\n"
        "  def __exit__(s, *e): return False\nC.__exit__ = lambda s, *e: True\n@C()\ndef f(): interrupt()\nf()"
    ),
    "decorator with another error": (
        "import contextlib\nclass C(contextlib.ContextDecorator):\n  def __enter__(s): return s\n"
        "  __exit__ = lambda s, *e: 1 / 0\n@C()\ndef f(): interrupt()\ntry: f()\nexcept ZeroDivisionError: pass"
    ),
    "decorator that names another": (
        "import contextlib\nclass O:\n  def __enter__(s): pass\n  def __exit__(s, *e): return True\n"
        "class C(contextlib.ContextDecorator):\n  def _recreate_cm(s): return O()\n"
        "@C()\ndef f(): interrupt()\nf()"
    ),
    "generator as a decorator": (
        "import contextlib\n@contextlib.contextmanager\ndef c():\n  try: yield\n  finally: return\n"
        "@c()\ndef f(): interrupt()\nf()"
    ),
    "generator": (
        "import contextlib\n@contextlib.contextmanager\ndef c():\n  try: yield\n  finally: return\n"
        "with c(): interrupt()"
    ),
    "stack": "import contextlib\nwith contextlib.ExitStack() as s:\n  s.push(lambda *e: True)\n  interrupt()",
    "lock of a queue": (
        "import queue\nclass M:\n  def __enter__(s): return s\n  def __exit__(s, *e): return True\n"
        "class Q(queue.Queue):\n  def _qsize(s): interrupt()\nq = Q()\nq.mutex = M()\nq.qsize()"
    ),
}


def _interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", EATEN)
@pytest.mark.filterwarnings("ignore")
def test_code_does_not_eat_that_the_program_is_interrupted(name):
    exec(compile(EATEN[name], "<test>", "exec", dont_inherit=True), {"interrupt": _interrupt})
    with pytest.raises(KeyboardInterrupt):
        run(EATEN[name], {"interrupt": _interrupt})


@pytest.mark.filterwarnings("ignore:.* in a 'finally' block:SyntaxWarning")
def test_a_finally_may_leave_by_return_as_elsewhere():
    source = dedent("""
        def f(error):
            try:
                if error: raise ValueError
                return 1
            finally: return 2
        def g():
            found = []
            for i in range(4):
                try:
                    if i % 2: 1 / 0
                finally:
                    found.append(i)
                    if i < 3: continue
                    break
            return found
        def h():
            try: yield 1
            finally: return
        def k():
            try:
                try: 1 / 0
                finally: [][0]
            except IndexError as error: return type(error).__name__
        x = [f(True), f(False), g(), list(h()), k()]
    """)
    assert run(source)["x"] == [2, 2, [0, 1, 2, 3], [1], "IndexError"]
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:  # what the program is at is nothing that the code could eat
        assert run(source)["x"][0] == 2


def test_a_session_goes_on_after_a_piece_was_stopped():
    env = run("x = 1")
    with pytest.raises(CodeStopped):
        run("x = 2\nwhile True: pass", env, SHORT)
    assert run("x += 1", env)["x"] == 3


def test_what_a_stopped_piece_has_eaten_comes_out_at_its_end():
    with pytest.raises(CodeStopped):
        run("def f():\n  try:\n    while True: pass\n  finally: return 1\nx = f()", executor=SHORT)


@pytest.mark.parametrize("name", [name for name in ENDLESS if name not in ONLY_IN_THE_MAIN_THREAD])
def test_in_another_thread_too(name):
    seen: list[BaseException] = []

    def work() -> None:
        try:
            run(ENDLESS[name], executor=SHORT)
        except CodeStopped as error:
            seen.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [error.limit for error in seen] == ["seconds"]


def test_a_function_that_was_left_behind_has_its_time_for_each_call():
    env = run("def spin():\n  while True: pass\ndef fine(n): return sum([i for i in range(n)])", executor=SHORT)
    for _ in range(2):
        with pytest.raises(CodeStopped):
            env["spin"]()
        assert env["fine"](10) == 45


def test_code_that_runs_inside_code_has_the_time_that_is_left():
    def inner() -> None:
        run("while True: pass")

    with pytest.raises(CodeStopped):
        run("inner()", {"inner": inner}, SHORT)


def test_a_limit_that_no_code_could_keep_is_refused():
    for options in ({"seconds": 0}, {"size": -1}, {"output": "many"}, {"isolation": "moon"}, {"policy": dict}):
        with pytest.raises(ValueError, match=r"`\w+` is"):
            RestrictedPythonExecutor(**options)


def test_no_limit_of_time_is_possible():
    assert value_of("1 + 1", executor=RestrictedPythonExecutor(seconds=None, memory=None)) == 2


NEAR_THE_LIMIT = {
    "a loop": (("seconds", "depth"), "pass"),
    "a deep value": (("depth",), "x = (x,)"),
}


@pytest.mark.parametrize("name", NEAR_THE_LIMIT)
def test_code_that_has_no_room_left_in_the_stack_is_stopped(name):
    limits, step = NEAR_THE_LIMIT[name]
    source = dedent(f"""
        def f(x=()):
            try: f()
            except RecursionError: pass
            while True:
                try:
                    while True: {step}
                except RecursionError: pass
        f()
    """)
    with pytest.raises(CodeStopped) as stopped:
        run(source, executor=SHORT if "seconds" in limits else RESTRICTED)
    assert stopped.value.limit in limits


def test_what_is_thrown_away_in_a_generator_that_is_freed_gives_no_message(monkeypatch):
    told: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", told.append)
    with pytest.raises(CodeStopped):
        run("def g():\n  try: yield\n  finally:\n    while True: pass\nx = g()\nnext(x)\ndel x", executor=SHORT)
    assert told == []


def test_what_the_program_throws_away_meanwhile_is_told(monkeypatch):
    told: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: told.append(str(unraisable.exc_value)))

    class Noisy:
        def __del__(self) -> None:
            raise ValueError("heard")

    run("free()", {"free": lambda: Noisy() and None})
    assert told == ["heard"]


def test_printing_is_not_slowed_by_what_it_prints():
    assert printed("print('x', end='')", RESTRICTED) == "x"
