"""What lies deeper in itself than the interpreter can follow ends the code, and not the process."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

# `N` levels are many more than the stack has room for. Each ends in an error of the code.
DEEP = {
    "a tuple, hashed": "x = ()\nfor _ in range(N): x = (x,)\nhash(x)",
    "a tuple as a key": "x = ()\nfor _ in range(N): x = (x,)\n{x: 1}",
    "a tuple by stars": "f = lambda *a: a\nx = ()\nfor _ in range(N): x = f(x)\nhash(x)",
    "a tuple in a callback": (
        "x = ()\nn = 0\ndef f(_):\n  global x, n\n  x = (x,)\n  n += 1\n"
        "  if n == N - 1: {x}\n  return 0\nmax([0] * N, key=f)"
    ),
    "a tuple by reduce": "import functools\n{functools.reduce(lambda a, _: (a,), [0] * N, ())}",
    "a type": "x = int\nfor _ in range(N): x = list[x]\nhash(x)",
    "a union": "x = int\nfor _ in range(N): x = list[x] | None\nhash(x)",
    "a type variable": "import typing\nx = int\nfor _ in range(N): x = typing.TypeVar('T', bound=x)",
    "enumerate": "x = iter([1])\nfor _ in range(N): x = enumerate(x)\nnext(x)",
    "zip": "x = iter([1])\nfor _ in range(N): x = zip(x)\nnext(x)",
    "map": "x = iter([1])\nfor _ in range(N): x = map(abs, x)\nnext(x)",
    "map by map": "x = iter([])\nfor _ in range(N): x = next(map(enumerate, [x]))\nnext(x)",
    "filter": "x = iter([1])\nfor _ in range(N): x = filter(None, x)\nnext(x)",
    "enumerate by reduce": "import functools\nnext(functools.reduce(enumerate, [0] * N, iter([])))",
    "generators": "def g(x): yield from x\nx = iter([1])\nfor _ in range(N): x = g(x)",
    "generator expressions": "x = iter([1])\nfor _ in range(N): x = (i for i in x)",
    "generators that have begun": (
        "def g(x):\n  yield 1\n  yield x\nx = iter([1])\nfor _ in range(N):\n  x = g(x)\n  next(x)"
    ),
    "generators that are linked later": (
        "L = []\ndef g():\n  i = yield\n  x = L[i]\n  yield\nL += [g() for _ in range(20_000)]\n"
        "for i in range(19_999):\n  next(L[i])\n  L[i].send(i + 1)\nL.clear()"
    ),
    "deques that are linked later": (
        "import collections\nL = [collections.deque() for _ in range(20_000)]\n"
        "for i in range(19_999): L[i].append(L[i + 1])\ndel L"
    ),
    "slices": "x = None\nfor _ in range(N): x = slice(x)",
    "properties": "x = None\nfor _ in range(N): x = property(x)",
    "deques": "import collections\nx = None\nfor _ in range(N): x = collections.deque([x])",
    "dictionaries with a default": (
        "import collections\nx = None\nfor _ in range(N): x = collections.defaultdict(None, a=x)"
    ),
    "exceptions": "x = None\nfor _ in range(N): x = AttributeError(obj=x)",
    "getters": "import operator\nx = None\nfor _ in range(N): x = operator.itemgetter(x)",
    "partial functions": "import functools\nx = print\nfor _ in range(N): x = functools.partial(print, x)",
    "caches": "import functools\nx = abs\nfor _ in range(N): x = functools.lru_cache(x)",
    "keys": "import functools\nK = functools.cmp_to_key(max)\nx = 1\nfor _ in range(N): x = K(x)",
    "readers": "import csv\nx = iter(['1'])\nfor _ in range(N): x = csv.reader(x)\nnext(x)",
    "iterators of a function": "x = int\nfor _ in range(N): x = iter(int, x)",
    **{
        f"itertools.{name}": f"import itertools\nx = iter([1])\nfor _ in range(N): x = itertools.{call}\nnext(x)"
        for name, call in {
            "islice": "islice(x, 1)",
            "accumulate": "accumulate(x)",
            "groupby": "groupby(x)",
            "chain": "chain(x)",
            "tee": "tee(x, 1)[0]",
            "takewhile": "takewhile(bool, x)",
            "compress": "compress(x, x)",
            "pairwise": "pairwise(x)",
        }.items()
    },
    "JSON": "import json\njson.loads('[' * N)",
    "JSON that is written": "import json\nx = []\nfor _ in range(N): x = [x]\njson.dumps(x)",
    "a copy": "import copy\nx = []\nfor _ in range(N): x = [x]\ncopy.deepcopy(x)",
    "a text": "x = []\nfor _ in range(N): x = [x]\nstr(x)",
    "a comparison": "x = y = []\nfor _ in range(N): x, y = [x], [y]\nx == y",
    "delegating": "def g(n):\n  if n: yield from g(n - 1)\n  yield 1\nlist(g(N))",
    "dataclasses": (
        "from dataclasses import dataclass, asdict\n@dataclass\nclass A:\n  x: object\n"
        "x = None\nfor _ in range(5000): x = A(x)\nasdict(x)"
    ),
    # As many values are freed as are made, so that the collector does not come by itself.
    **{
        f"{name}, and as much is freed": source
        for name, source in {
            "a tuple": "p = [[] for _ in range(N)]\nx = ()\nfor _ in range(N):\n  x = (x,)\n  p.pop()\nhash(x)",
            "a tuple as a key": ("p = [[] for _ in range(N)]\nx = ()\nfor _ in range(N):\n  x = x,\n  p.pop()\n{x}"),
            "a tuple by stars": (
                "import itertools\np = [[] for _ in range(2 * N)]\ndef g():\n  while p:\n    p.pop(), p.pop()\n"
                "    yield 0\nfor x in itertools.accumulate(g(), lambda *a: a): pass\nhash(x)"
            ),
            "a tuple in a callback": (
                "y = None\nfor _ in range(N): y = [], y\nx = ()\ndef f(_):\n  global x, y\n  x = (x,)\n  _, y = y\n"
                "  return 0\nmax([0] * (N - 1), key=f)\nhash(x)"
            ),
            "a tuple in a long line": (
                "p = [[[] for _ in range(1000)] for _ in range(N // 1000)]\nx = ()\nfor i in range(N // 1000):\n  "
                + "x = x,; " * 1000
                + "p[i] = None\nhash(x)"
            ),
            "a tuple by :=": (
                "p = [[[] for _ in range(1000)] for _ in range(N // 1000)]\nx = ()\nfor i in range(N // 1000):\n  ["
                + "(x := (x,)), " * 1000
                + "]\n  p[i] = None\nhash(x)"
            ),
            "a tuple in a comprehension": (
                "y = []\nfor _ in range(N): y = [y]\nx = ()\n"
                "[0 for _ in range(N - 1) for z in y if (x := (x,)) and (y := z)]\nhash(x)"
            ),
            "a tuple in a generator": (
                "import collections\ny = []\nfor _ in range(N): y = [y]\nL = [()]\n"
                "collections.deque(map(L.append, ((x,) for x in L for z in y if (y := z) or 1)), maxlen=0)\nhash(L[-1])"
            ),
            "a slice": (
                "p = [[] for _ in range(3 * N)]\nx = None\nfor _ in range(N):\n  x = slice(x)\n"
                "  p.pop(), p.pop()\nhash(x)"
            ),
            "enumerate": (
                "p = [[] for _ in range(3 * N)]\nx = iter([])\nfor _ in range(N):\n  x = enumerate(x)\n"
                "  p.pop(), p.pop(), p.pop()\nnext(x)"
            ),
        }.items()
    },
    "parentheses": "(" * 500 + ")" * 500,
    "signs": "x = " + "-" * 10_000 + "1",
    "a long sum": "a = 1\nx = " + "+".join("a" * 30_000),
    "a sum": "a = 1\nx = " + "+".join("a" * 1_500),
    "attributes": "a = 1\nx = a" + ".b" * 3000,
    "calls": "a = 1\nx = a" + "()" * 3000,
    "branches": "a = 0\nif a: pass\n" + "elif a: pass\n" * 3000,
    "nested functions": "x = " + "lambda:" * 3000 + "1",
    "nested conditions": "x = " + "1 if 1 else " * 3000 + "1",
    "nested loops": "".join(" " * i + "for i in ():\n" for i in range(99)) + " " * 99 + "pass",
}
SHALLOW = {
    "a list of pairs": "x = ()\nfor i in range(3000): x = (i, x)\nhash(x)",
    "a list of objects": "class A: pass\nx = None\nfor _ in range(20_000):\n  y = A()\n  y.x = x\n  x = y",
    "tuples that are being filled": (
        "def pair(i):\n  global x\n  x = (i, x) if i % 3000 else ()\n  return [i]\n"
        "x = ()\nfor _ in range(10): y = tuple(pair(i) for i in range(3000)), (lambda *a: a)(*map(pair, range(3000)))"
    ),
    "lists": "x = []\nfor _ in range(50_000): x = [x]",
    "a sieve of filters": (
        "def sieve(x):\n  while True:\n    p = next(x)\n    yield p\n"
        "    x = filter(lambda n, p=p: n % p, x)\ng = sieve(iter(range(2, 10_000)))\n[next(g) for _ in range(200)]"
    ),
}


@pytest.fixture(scope="module")
def ends() -> dict[str, str]:
    """How each of them ended: all in one other process, which has to survive them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sandbox.test_depth"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (0, ""), list(found)[-1:]
    return found


@pytest.mark.parametrize("name", DEEP)
def test_what_is_too_deep_is_an_error_of_the_code(name, ends):
    assert ends[name] in ("TooDeep", "RecursionError", "MemoryError", "SyntaxError")


@pytest.mark.parametrize("name", SHALLOW)
def test_what_is_not_too_deep_runs(name, ends):
    assert ends[name] == "ran"


def _main() -> None:
    from effectful_agents.handlers.execution import RestrictedPythonExecutor
    from tests.sandbox.running import run

    gc.freeze()  # what is here now need not be gone through again and again
    for name, source in {**DEEP, **SHALLOW}.items():
        end = "ran"
        try:
            run(f"N = 200_000\n{source}", executor=RestrictedPythonExecutor(seconds=60))
        except Exception as error:
            end = type(error).__name__
        print(json.dumps([name, end]), flush=True)


if __name__ == "__main__":
    _main()
