"""What a piece of restricted code may use up; and afterwards the session goes on."""

from __future__ import annotations

import threading
from textwrap import dedent

import pytest

from effectful_agents.errors import AgentsError, CodeStopped
from effectful_agents.handlers.execution import RestrictedPythonExecutor
from tests.sandbox.running import RESTRICTED, printed, run, value_of

SMALL = RestrictedPythonExecutor(size=500_000, seconds=60)
SHORT = RestrictedPythonExecutor(seconds=0.05)

ENDLESS = {
    "a loop without calls": "while True: pass",
    "a loop over a huge range": "for i in range(10 ** 15): pass",
    "nested loops": "for a in range(99999):\n  for b in range(99999): pass",
    "a comprehension": "[0 for a in range(99999) for b in range(99999) for c in range(99999)]",
    "sum of a range": "sum(range(10 ** 15))",
    "max of a map": "max(map(abs, range(10 ** 15)))",
    "a generator that never ends": "def g():\n  while True: yield 1\nsum(g())",
    "an iterator of its own": "class I:\n  __iter__ = lambda s: s\n  def __next__(s): return 1\nfor _ in I(): pass",
    "count": "import itertools\nfor _ in itertools.count(): pass",
    "repeat in C": "import itertools\nany(map(bool, itertools.repeat(0)))",
    "a filter that finds nothing": "import itertools\nnext(filter(None, itertools.repeat(0)))",
    "cycle": "import itertools\nsum(itertools.cycle([0]))",
    "islice of count": "import itertools\nnext(itertools.islice(itertools.count(), 10 ** 12, None))",
    "product in C": "import itertools\nsum(map(len, itertools.product(range(9), repeat=30)))",
    "iter of a function in C": "min(iter(int, 1))",
    "deque without places": "import collections, itertools\ncollections.deque(itertools.count(), maxlen=0)",
    "unpacking": "import itertools\na, *b = itertools.count()",
    "a star": "import itertools\nprint(*itertools.count())",
    "exponential recursion": "def f(n): return 1 if n < 2 else f(n - 1) + f(n - 2)\nf(90)",
    "swallowed by except": "while True:\n  try:\n    while True: pass\n  except: pass",
    "swallowed by except Exception": "while True:\n  try:\n    while True: pass\n  except Exception: continue",
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
    "elements of a counter": "from collections import Counter\nsum(map(len, Counter(a=10 ** 15).elements()))",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_code_that_does_not_end_is_ended(name):
    with pytest.raises(CodeStopped) as stopped:
        run(ENDLESS[name], executor=SHORT)
    assert stopped.value.limit == "seconds"
    assert isinstance(stopped.value, TimeoutError)
    assert isinstance(stopped.value, AgentsError)


HUGE = {
    "a power": "10 ** 10 ** 10",
    "a power by pow": "pow(10, 10 ** 10)",
    "a power of a special method": "(10).__pow__(10 ** 10)",
    "a shift": "1 << 10 ** 12",
    "a product": "(1 << 4 * 10 ** 5) * (1 << 4 * 10 ** 5)",
    "a factorial": "import math\nmath.factorial(10 ** 9)",
    "binomials": "import math\nmath.comb(10 ** 9, 5 * 10 ** 8)",
    "permutations": "import math\nmath.perm(10 ** 9)",
    "a product of many": "import math\nmath.prod([1 << 10 ** 5] * 20)",
    "a repeated text": "'a' * 10 ** 10",
    "a repeated list": "10 ** 10 * [0]",
    "a repeated list in place": "x = [0]\nx *= 10 ** 10",
    "an item in place": "d = {'a': 'b'}\nd['a'] *= 10 ** 10",
    "an attribute in place": "class C: x = 'b'\nC.x *= 10 ** 10",
    "by an operator function": "import operator\noperator.mul('a', 10 ** 10)",
    "by reduce": "import functools, operator\nfunctools.reduce(operator.mul, ['a', 10 ** 4, 10 ** 4])",
    "by a special method": "'a'.__mul__(10 ** 10)",
    "by a bare special method": "str.__mul__('a', 10 ** 10)",
    "doubling": "x = 'a'\nfor _ in range(99): x = x + x",
    "doubling in place": "x = [1]\nfor _ in range(99): x += x",
    "doubling by extend": "x = [1]\nfor _ in range(99): x.extend(x)",
    "padding": "'a'.ljust(10 ** 10)",
    "padding by map": "list(map('a'.center, [10 ** 10]))",
    "padding with noughts": "'1'.zfill(10 ** 10)",
    "tabs": "'\\t'.expandtabs(10 ** 10)",
    "replacing": "('a' * 10 ** 5).replace('a', 'b' * 10 ** 5)",
    "joining": "('b' * 10 ** 5).join(['a'] * 10 ** 5)",
    "translating": "('a' * 10 ** 5).translate({97: 'b' * 10 ** 5})",
    "an f-string": "f'{1:>10000000000}'",
    "an f-string with a width": "w = 10 ** 10\nf'{1:>{w}}'",
    "a format": "format(1, '10000000000')",
    "a template": "'{:>10000000000}'.format(1)",
    "a template with a width": "'{:>{}}'.format(1, 10 ** 10)",
    "a percent format": "'%10000000000d' % 1",
    "a percent format with a width": "'%*d' % (10 ** 10, 1)",
    "a list of a range": "list(range(10 ** 10))",
    "a list of a map": "list(map(abs, range(10 ** 10)))",
    "a set of a generator": "import itertools\nset(itertools.islice(itertools.count(), 10 ** 9))",
    "a sorted range": "sorted(range(10 ** 10))",
    "bytes": "bytes(10 ** 10)",
    "a bytearray": "bytearray(10 ** 10)",
    "bytes of a number": "(1).to_bytes(10 ** 10, 'big')",
    "packed bytes": "import struct\nstruct.pack('10000000000x')",
    "random bytes": "import random\nrandom.randbytes(10 ** 10)",
    "random choices": "import random\nrandom.choices([1], k=10 ** 10)",
    "an integer of a decimal": "from decimal import Decimal\nint(Decimal('1e10000000000'))",
    "a power of a fraction": "from fractions import Fraction\nFraction(3, 2) ** 10 ** 9",
    "indentation": "import json\njson.dumps([1], indent=10 ** 10)",
}


@pytest.mark.parametrize("name", HUGE)
def test_what_is_too_large_is_not_built(name):
    with pytest.raises(CodeStopped) as stopped:
        run(HUGE[name], executor=SMALL)
    assert stopped.value.limit == "size"
    assert isinstance(stopped.value, MemoryError)


def test_code_may_catch_that_a_value_is_too_large():
    assert run("try: x = 'a' * 10 ** 10\nexcept MemoryError: x = 'too large'")["x"] == "too large"


def test_large_values_below_the_limit_are_built():
    env = run("x = 2 ** 100_000\ny = 'a' * 1_000_000\nz = sum(range(1_000_000))\nw = list(range(200_000))")
    assert (env["x"].bit_length(), len(env["y"]), env["z"], len(env["w"])) == (
        100_001,
        1_000_000,
        499999500000,
        200_000,
    )


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


def test_a_session_goes_on_after_a_piece_was_stopped():
    env = run("x = 1")
    with pytest.raises(CodeStopped):
        run("x = 2\nwhile True: pass", env, SHORT)
    assert run("x += 1", env)["x"] == 3


def test_what_a_stopped_piece_has_eaten_comes_out_at_its_end():
    with pytest.raises(CodeStopped):
        run("def f():\n  try:\n    while True: pass\n  finally: return 1\nx = f()", executor=SHORT)


def test_in_another_thread_too():
    seen: list[BaseException] = []

    def work() -> None:
        try:
            run("while True: pass", executor=SHORT)
        except CodeStopped as error:
            seen.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(seen) == 1


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


def test_printing_is_not_slowed_by_what_it_prints():
    assert printed("print('x', end='')", RESTRICTED) == "x"
