"""A loop in C that calls nothing but C has no end in sight: classes of the code cannot have what makes one."""

from __future__ import annotations

import contextlib
import io
import threading
from textwrap import dedent

import pytest

from effectful_agents.errors import CodeStopped
from effectful_agents.handlers.execution import RestrictedPythonExecutor
from tests.sandbox.running import printed, run

SHORT = RestrictedPythonExecutor(seconds=0.05)
NEXT = "class A:\n  def __iter__(self): return self\n  __next__ = staticmethod(bool)\n"
ITEM = "class A: __getitem__ = (1).__add__\n"
LONG = "range(1, 10 ** 15)"
COUNTER = "next(map(collections.Counter.elements, [collections.Counter(a=10 ** 15)]))"

ENDLESS = {
    "any": NEXT + "any(A())",
    "filter": NEXT + "next(filter(None, A()))",
    "a loop over a filter": NEXT + "for x in filter(None, A()): pass",
    "in": NEXT + "1 in A()",
    "a star": NEXT + "print(*A())",
    "unpacking": NEXT + "a, *b = A()",
    "a slice": NEXT + "x = []\nx[:] = A()",
    "a set": NEXT + "set().update(A())",
    "delegated": NEXT + "def g(): yield from A()\nany(g())",
    "islice": NEXT + "next(itertools.islice(A(), 10 ** 15, None))",
    "deque": NEXT + "collections.deque(A(), maxlen=0)",
    "all of items": ITEM + "all(A())",
    "inherited": NEXT + "class B(A): pass\nany(B())",
    "set later": "class A:\n  def __iter__(self): return self\nA.__next__ = staticmethod(bool)\nany(A())",
    "setattr": "class A:\n  def __iter__(self): return self\nsetattr(A, '__next__', staticmethod(bool))\nany(A())",
    "an object that can be called": (
        "class C: __call__ = staticmethod(bool)\nclass A:\n  def __iter__(s): return s\n  __next__ = C()\nany(A())"
    ),
    "partial": "class A:\n  def __iter__(s): return s\n  __next__ = staticmethod(functools.partial(bool))\nany(A())",
    "a descriptor": (
        "class D:\n  def __get__(s, *a): return bool\nclass A:\n  def __iter__(s): return s\n  __next__ = D()\nany(A())"
    ),
    "an abstract class": "class A(collections.abc.Iterator): __next__ = staticmethod(bool)\nany(A())",
    "a range as iterator": f"class A:\n  def __iter__(s): return {LONG}.__iter__()\nall(A())",
    "the method of a range": f"class A: __iter__ = {LONG}.__iter__\n0 in A()",
    "the method of a range, backwards": f"class A: __iter__ = {LONG}.__reversed__\nall(A())",
    "a range by map": f"class A: pass\nA.__iter__ = lambda s: next(map(range.__iter__, [{LONG}]))\nall(A())",
    "elements": f"class A:\n  def __iter__(s): return {COUNTER}\nall(A())",
    "a stream": "class S(io.StringIO): readline = staticmethod('x'.lower)\nall(S('a'))",
    "a stream that is changed": "class S(io.StringIO): pass\ns = S('a')\ns.readline = 'x'.lower\nall(s)",
    "keys and an object": f"class A: __iter__ = {LONG}.__iter__\n{{1: 2}}.keys() & A()",
    "keys and an iterator": f"{{1: 2}}.keys() & {LONG}.__iter__()",
}
TOO_MANY = {
    "and": f"{{1: 2}}.keys() & {LONG}",
    "or": f"{{1: 2}}.items() | {LONG}",
    "minus": f"{LONG} - {{1: 2}}.keys()",
    "in place": f"x = {{1: 2}}.keys()\nx ^= {LONG}",
    "a function": f"import operator\noperator.sub({{1: 2}}.keys(), {LONG})",
    "a method": f"{{1: 2}}.keys().__and__({LONG})",
    "a method by map": f"list(map({{1: 2}}.keys().__rsub__, [{LONG}]))",
    "a bare method": f"list(map(type({{}}.keys()).__and__, [{{1: 2}}.keys()], [{LONG}]))",
    "isdisjoint": f"{{-1: 2}}.keys().isdisjoint({LONG})",
    "ordered": f"collections.OrderedDict(a=1).keys() & {LONG}",
}
MAPPINGS = ("dict(M())", "{**M()}", "print(**M())", "x = {}\nx |= M()", "{}.update(M())", "list(map(dict, [M()]))")
IMPORTS = "import collections, functools, io, itertools\n"


@pytest.mark.parametrize("name", ENDLESS)
def test_it_is_ended(name):
    with pytest.raises(CodeStopped):
        run(IMPORTS + ENDLESS[name], executor=SHORT)


@pytest.mark.parametrize("name", ["any", "all of items", "the method of a range", "a stream", "keys and an object"])
def test_it_is_ended_in_another_thread(name):
    seen: list[BaseException] = []

    def go() -> None:
        try:
            run(IMPORTS + ENDLESS[name], executor=SHORT)
        except CodeStopped as error:
            seen.append(error)

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    thread.join(20)
    assert len(seen) == 1


@pytest.mark.parametrize("name", TOO_MANY)
def test_sets_of_keys_take_no_more_than_a_value_may_have(name):
    with pytest.raises(CodeStopped):
        run(IMPORTS + TOO_MANY[name], executor=SHORT)


@pytest.mark.parametrize("use", MAPPINGS)
def test_a_mapping_has_no_more_keys_than_a_value_may_have(use):
    source = "class M:\n  def keys(self): return range(10 ** 15)\n  __getitem__ = (1).__add__\n"
    with pytest.raises(CodeStopped):
        run(source + use, executor=SHORT)


ITEMS = {
    "a function": "class D(dict):\n  def items(self): return range(300_000_000)\nd = D(a=1)",
    "a lambda": "class D(dict): items = lambda self: range(300_000_000)\nd = D(a=1)",
    "a function in C": "class D(dict): items = range(300_000_000).__iter__\nd = D(a=1)",
    "set later": "class D(dict): pass\nd = D(a=1)\nD.items = lambda self: range(300_000_000)",
    "of an object": "class D(dict): pass\nd = D(a=1)\nd.items = lambda: range(300_000_000)",
    "of an object, otherwise": (
        "class D(dict): pass\nd = D(a=1)\nobject.__setattr__(d, 'items', lambda: range(300_000_000))"
    ),
    "of an object, by vars": "class D(dict): pass\nd = D(a=1)\nvars(d)['items'] = lambda: range(300_000_000)",
}


@pytest.mark.parametrize("name", ITEMS)
def test_no_list_is_made_of_what_a_mapping_says_it_has(name):
    with pytest.raises(CodeStopped):
        run(f"{ITEMS[name]}\nimport json\njson.dumps([d])", executor=SHORT)


def test_functions_of_the_language_stand_in_classes_as_elsewhere():
    source = """
        class Words:
            def __init__(self, words): self.words = words
            def __getitem__(self, number): return self.words[number]
            __len__ = lambda self: len(self.words)
        class Numbers(list):
            __iter__ = list.__reversed__
            __getitem__ = list.__getitem__
        class Pairs:
            def keys(self): return ["a", "b"]
            def __getitem__(self, key): return key * 2
        def named(**names): return names
        class Sorted(dict):
            def items(self): return sorted(dict.items(self))
            values = lambda self: [1, 2]
        class Cart:
            def __init__(self): self.items, self.keys = ["tea"], lambda: ["a"]
        class Kinds:
            @classmethod
            def values(cls): return [cls.__name__]
            @staticmethod
            def items(a, b=2): print(a, b)
            keys = len
        print(Kinds.values(), Kinds().values(), Kinds.items(1), Kinds().items(3, b=4))
        print(Kinds().keys("abc"), Kinds.keys(""))
        import json
        print(json.dumps(Sorted(b=1, a=2)), Sorted().values(), Cart().items, Cart().keys(), Sorted(a=1).keys())
        print([*Words("ab")], "a" in Words("ab"), [*Numbers([1, 2])], Numbers([1, 2])[0], dict(Pairs()), {**Pairs()})
        print(named(**Pairs()), {"a": 1}.keys() & ["a", "b"], {"a": 1}.keys() - {"a"}, {1: 2}.items() | [(3, 4)])
        print({"a": 1, "b": 2}.keys() ^ {"b"}, 7 - 2, 7 & 3, 7 | 8, 7 ^ 1, {1, 2} - {2}, {1} | {1}, {1: 2} | {1: 3})
    """
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(dedent(source), {})
    assert printed(dedent(source)) == out.getvalue()


@pytest.mark.parametrize("where", ["main", "other"])
@pytest.mark.parametrize(
    "source",
    [
        "class Q(queue.Queue):\n  def _put(self, item): self.put(item)\nQ().put(1)",
        "q = queue.PriorityQueue()\nclass I:\n  def __lt__(self, other): return q.qsize() > q.put(self)\n"
        "q.put(I())\nq.put(I())",
        "class Q(queue.SimpleQueue):\n  def _get(self): return self.get()\nq = Q()\nq.put(1)\nq.get()",
    ],
)
def test_a_queue_does_not_wait_for_itself(source, where):
    seen: list[BaseException] = []

    def go() -> None:
        try:
            run(f"import queue\n{source}", executor=SHORT)
        except Exception as error:
            seen.append(error)

    if where == "main":
        go()
    else:
        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        thread.join(20)
    assert len(seen) == 1
