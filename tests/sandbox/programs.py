"""Programs as a model writes them, and what each prints: all of them run in the sandbox as they do elsewhere."""

from __future__ import annotations

from textwrap import dedent

_PROGRAMS: dict[str, str] = {
    "dataclass": """
        from dataclasses import dataclass, field, asdict, replace

        @dataclass(order=True)
        class Item:
            price: float
            name: str = field(compare=False)
            tags: list[str] = field(default_factory=list, compare=False)

        items = [Item(3.5, "tea"), Item(1.25, "milk", ["cold"])]
        items.sort()
        print(items[0], asdict(items[1]), replace(items[0], price=2.0).price)
    """,
    "frozen dataclass": """
        from dataclasses import dataclass, field, FrozenInstanceError

        @dataclass(frozen=True, slots=True)
        class Point:
            x: int
            y: int
            norm: float = field(init=False)

            def __post_init__(self):
                object.__setattr__(self, "norm", (self.x ** 2 + self.y ** 2) ** 0.5)

        p = Point(3, 4)
        try:
            p.x = 5
        except FrozenInstanceError as e:
            print(type(e).__name__, p.norm, hash(p) == hash(Point(3, 4)))
    """,
    "dataclass with annotations as text": """
        from __future__ import annotations
        from dataclasses import dataclass, fields
        from typing import ClassVar, Optional

        @dataclass
        class Node:
            value: int
            next: Optional[Node] = None
            count: ClassVar[int] = 0

        print(Node(1, Node(2)), [f.name for f in fields(Node)], fields(Node)[1].type)
    """,
    "enum": """
        from enum import Enum, IntEnum, Flag, auto

        class Color(Enum):
            RED = "r"
            GREEN = "g"

            @classmethod
            def parse(cls, text):
                return cls(text[0])

            def __str__(self):
                return self.name.lower()

        class Level(IntEnum):
            LOW = 1
            HIGH = auto()

        class Perm(Flag):
            R = auto()
            W = auto()

        print(Color.parse("red"), Color["GREEN"].value, list(Color), Level.HIGH > Level.LOW, Perm.R | Perm.W)
    """,
    "functional enum and namedtuple": """
        from collections import namedtuple
        from enum import Enum
        Suit = Enum("Suit", "CLUBS HEARTS")
        Card = namedtuple("Card", "rank suit", defaults=[Suit.CLUBS])
        card = Card(3)._replace(rank=4)
        print(card.rank, card.suit.name, card._asdict(), Card._fields, [s.value for s in Suit])
    """,
    "typed named tuple and typed dict": """
        from typing import NamedTuple, TypedDict, get_type_hints

        class Employee(NamedTuple):
            name: str
            id: int = 3

            def label(self) -> str:
                return f"{self.name}#{self.id}"

        class Movie(TypedDict, total=False):
            title: str
            year: int

        movie: Movie = {"title": "Alien", "year": 1979}
        print(Employee("Ann").label(), movie["title"], get_type_hints(Movie))
    """,
    "generators": """
        def fibonacci():
            a, b = 0, 1
            while True:
                yield a
                a, b = b, a + b

        def take(n, it):
            for _, value in zip(range(n), it):
                yield value

        def flatten(xs):
            for x in xs:
                if isinstance(x, list):
                    yield from flatten(x)
                else:
                    yield x

        print(list(take(10, fibonacci())), list(flatten([1, [2, [3, [4]]]])))
    """,
    "generator with send": """
        def average():
            total, count, value = 0.0, 0, None
            while True:
                value = yield value
                total += value
                count += 1
                value = total / count

        g = average()
        next(g)
        print([g.send(x) for x in (10, 20, 60)])
        g.close()
    """,
    "regular expressions": r"""
        import re
        LOG = re.compile(r"(?P<level>\w+):\s+(?P<text>.*?)(?:\s+\[(?P<code>\d+)\])?$", re.M)
        text = "ERROR: disk full [42]\nINFO: done"
        for m in LOG.finditer(text):
            print(m.group("level"), m["text"], m.groupdict()["code"], m.span("level"))
        print(re.sub(r"\d+", lambda m: str(int(m.group()) * 2), "a1b22"), re.split(r"[,;]\s*", "a, b;c"))
    """,
    "dates": """
        from datetime import date, datetime, timedelta, timezone
        d = datetime.strptime("2024-02-28 13:45", "%Y-%m-%d %H:%M")
        print((d + timedelta(days=2)).strftime("%A %d %B %Y"), f"{d:%H:%M}", format(d, "%j"))
        print(date(2024, 3, 1) - date(2024, 2, 1), datetime(2024, 1, 1, tzinfo=timezone.utc).isoformat())
        print(list(map(lambda s: datetime.strptime(s, "%d/%m/%Y").date(), ["01/02/2023"])), d.date().isocalendar()[1])
    """,
    "dates through C": """
        from datetime import datetime
        days = [datetime(2024, 1, n) for n in (1, 2)]
        print(list(map(datetime.isoformat, days)), [*map(str, days)], max(days).strftime("%Y"))
        for text in map(datetime.strftime, days, ["%d", "%m"]): print(text)
    """,
    "json": """
        import json

        class Encoder(json.JSONEncoder):
            def default(self, o):
                if isinstance(o, set):
                    return sorted(o)
                return super().default(o)

        text = json.dumps({"b": {3, 1}, "a": [None, True, 1.5]}, cls=Encoder, sort_keys=True, indent=2)
        print(text)
        print(json.loads(text, object_hook=lambda d: tuple(d.items())))
        try:
            json.loads("{bad}")
        except json.JSONDecodeError as e:
            print(e.lineno, e.msg)
    """,
    "csv": """
        import csv
        lines = ["name,amount", "ann,3", "bob,4"]
        rows = list(csv.DictReader(lines))
        print(sum(int(r["amount"]) for r in rows), rows[0]["name"])

        class Lines(list):
            def write(self, text):
                self.append(text)

        out = Lines()
        writer = csv.writer(out)
        writer.writerow(["a", 'say "hi"', 3])
        print(out)
    """,
    "decimal and fractions": """
        from decimal import Decimal, getcontext, ROUND_HALF_UP, localcontext
        from fractions import Fraction
        getcontext().prec = 30
        print(Decimal(1) / Decimal(7), Decimal("2.675").quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))
        with localcontext() as ctx:
            ctx.prec = 5
            print(Decimal(2).sqrt())
        print(Fraction(1, 3) + Fraction("0.25"), Fraction(3, 4) ** 2, float(Fraction(1, 8)), round(Decimal("3.14159"), 2))
    """,
    "itertools": """
        import itertools as it
        print(list(it.islice(it.count(10, 5), 3)), list(it.accumulate([1, 2, 3], lambda a, b: a * b)))
        print([(k, list(g)) for k, g in it.groupby("aabccc")], list(it.chain.from_iterable([[1], [2, 3]])))
        print(list(it.combinations("abc", 2)), sum(1 for _ in it.product(range(3), repeat=2)), list(it.pairwise([1, 2, 3])))
        print(next(it.cycle([7])), list(it.zip_longest([1], [2, 3], fillvalue=0)), ["".join(p) for p in it.permutations("ab")])
    """,
    "grouper": """
        from itertools import zip_longest, tee, takewhile, dropwhile, starmap, compress, repeat
        args = [iter("abcdefg")] * 3
        print(list(zip_longest(*args, fillvalue="-")))
        a, b = tee([1, 2, 3])
        next(b)
        print(list(zip(a, b)), list(takewhile(lambda x: x < 3, [1, 2, 5])), list(starmap(pow, [(2, 3)])), list(map(pow, [2, 3], repeat(2))))
    """,
    "match": """
        from dataclasses import dataclass

        @dataclass
        class Circle:
            r: float

        @dataclass
        class Rect:
            w: float
            h: float

        def describe(x):
            match x:
                case Circle(r=r) if r > 10:
                    return "big circle"
                case Circle(r):
                    return f"circle {r}"
                case Rect(w, h) | (w, h):
                    return w * h
                case {"kind": "point", **rest}:
                    return sorted(rest)
                case [first, *others]:
                    return first, others
                case str() as s:
                    return s.upper()
                case None | True:
                    return "constant"
                case _:
                    return "?"

        for x in (Circle(12), Circle(1), Rect(2, 3), (4, 5), {"kind": "point", "y": 1}, [1, 2, 3], "abc", None, 3.5):
            print(describe(x))
    """,
    "typing": """
        from typing import Any, Callable, Generic, Iterable, Iterator, Optional, Protocol, TypeVar, Union, cast, overload

        T = TypeVar("T")

        class Shape(Protocol):
            def area(self) -> float: ...

        class Square:
            def __init__(self, side: float) -> None:
                self.side = side
            def area(self) -> float:
                return self.side ** 2

        class Stack(Generic[T]):
            def __init__(self) -> None:
                self._items: list[T] = []
            def push(self, item: T) -> None:
                self._items.append(item)
            def pop(self) -> Optional[T]:
                return self._items.pop() if self._items else None
            def __iter__(self) -> Iterator[T]:
                return iter(self._items)

        def total(shapes: Iterable[Shape]) -> float:
            return sum(s.area() for s in shapes)

        s: Stack[int] = Stack[int]()
        s.push(3)
        s.push(cast(int, 4))
        print(s.pop(), list(s), total([Square(2), Square(3)]))
    """,
    "new generics": """
        type Pair[T] = tuple[T, T]

        class Box[T]:
            def __init__(self, value: T) -> None:
                self.value = value
            def map[U](self, f) -> "Box[U]":
                return Box(f(self.value))

        def first[T](xs: list[T]) -> T:
            return xs[0]

        p: Pair[int] = (1, 2)
        print(first([Box(3).map(lambda v: v + 1).value]), p)
    """,
    "operators of a class": """
        import math

        class Vector:
            __slots__ = ("x", "y")
            def __init__(self, x, y):
                self.x, self.y = x, y
            def __repr__(self): return f"Vector({self.x!r}, {self.y!r})"
            def __add__(self, other): return Vector(self.x + other.x, self.y + other.y)
            def __sub__(self, other): return Vector(self.x - other.x, self.y - other.y)
            def __mul__(self, k): return Vector(self.x * k, self.y * k)
            __rmul__ = __mul__
            def __truediv__(self, k): return Vector(self.x / k, self.y / k)
            def __neg__(self): return Vector(-self.x, -self.y)
            def __abs__(self): return math.hypot(self.x, self.y)
            def __eq__(self, other): return (self.x, self.y) == (other.x, other.y)
            def __hash__(self): return hash((self.x, self.y))
            def __bool__(self): return bool(self.x or self.y)
            def __iter__(self): return iter((self.x, self.y))
            def __getitem__(self, i): return (self.x, self.y)[i]
            def __len__(self): return 2
            def __contains__(self, v): return v in (self.x, self.y)
            def __matmul__(self, o): return self.x * o.x + self.y * o.y
            def __format__(self, spec): return f"<{self.x:{spec}}, {self.y:{spec}}>"
            def __iadd__(self, o):
                self.x += o.x
                return self

        v = Vector(3, 4)
        v += Vector(1, 0)
        a, b = v
        print(v + Vector(1, 1), 2 * v, v / 2, -v, abs(Vector(3, 4)), v == Vector(4, 4), bool(Vector(0, 0)), a, v[1], 4 in v, v @ v, f"{v:.1f}", {v: 1}, len(v))
    """,
    "decorators": """
        import functools

        def repeat(n):
            def decorator(f):
                @functools.wraps(f)
                def wrapper(*args, **kwargs):
                    return [f(*args, **kwargs) for _ in range(n)]
                return wrapper
            return decorator

        @repeat(2)
        def hello(name: str) -> str:
            "Say hello."
            return f"hello {name}"

        def counted(f):
            def inner(*a):
                inner.calls += 1
                return f(*a)
            inner.calls = 0
            return inner

        @counted
        def square(x): return x * x

        square(2), square(3)
        print(hello("ann"), hello.__name__, hello.__doc__, square.calls)
    """,
    "class decorators and registries": """
        REGISTRY = {}

        def register(cls):
            REGISTRY[cls.__name__.lower()] = cls
            return cls

        class Plugin:
            plugins = []
            def __init_subclass__(cls, /, name=None, **kwargs):
                super().__init_subclass__(**kwargs)
                cls.name = name or cls.__name__
                Plugin.plugins.append(cls)

        @register
        class Add(Plugin, name="plus"):
            def __call__(self, a, b): return a + b

        print(REGISTRY["add"]()(1, 2), [p.name for p in Plugin.plugins])
    """,
    "context managers": """
        from contextlib import contextmanager, suppress

        class Timer:
            def __enter__(self):
                print("enter")
                return self
            def __exit__(self, exc_type, exc, tb):
                print("exit", exc_type.__name__ if exc_type else None)
                return exc_type is ValueError

        with Timer() as t, Timer():
            raise ValueError("x")

        @contextmanager
        def tag(name):
            print(f"<{name}>")
            try:
                yield name
            finally:
                print(f"</{name}>")

        with tag("b") as b, suppress(KeyError):
            {}[b]
        print("done")
    """,
    "exceptions": """
        class AppError(Exception):
            def __init__(self, code, message):
                super().__init__(message)
                self.code = code

        def risky(n):
            try:
                if n == 0: raise AppError(7, "bad")
                if n == 1: return 1 / 0
                if n == 2: return [][n]
                return "ok"
            except AppError as e:
                return e.code, str(e), e.args
            except (ZeroDivisionError, IndexError) as e:
                return type(e).__name__
            else:
                return "else"
            finally:
                print("finally", n)

        print([risky(n) for n in range(4)])
        try:
            try:
                int("x")
            except ValueError as e:
                raise RuntimeError("wrapped") from e
        except RuntimeError as e:
            print(e)
        try:
            raise
        except:
            print("nothing to raise")
    """,
    "formats": """
        name, value = "pi", 3.14159
        print(f"{name:>6}|{value:.2f}|{value!r:<10}|{1000000:,}|{0.25:%}|{255:#x}|{name=}")
        width = 8
        print(f"{value:{width}.{3}f}", "{:>5}{:<5}|".format(1, "a"), "{a} {b:03d}".format(a=1, b=2), "%-5s|%05.1f|%d%%" % ("x", 2.5, 50))
        print("{n}".format_map({"n": 1}), format(42, "b"), "{0}{1}{0}".format("a", "b"), str.format("{}", 3))
    """,
    "strings": """
        s = "The quick brown fox"
        print(s.split(), s[::-1], s.lower().count("o"), "-".join(w.capitalize() for w in s.split()), s.replace("quick", "slow"))
        print(s.center(30, "*"), "7".zfill(3), "a\\tb".expandtabs(4), s.partition(" "), s.translate(str.maketrans("ao", "01")), s.encode("utf-8")[:3])
        print("abc".ljust(5) + "|", "".join(sorted("hello")), s.title().swapcase(), "x" * 3, "a" in s, s.startswith(("The", "A")))
    """,
    "comprehensions": """
        matrix = [[1, 2, 3], [4, 5, 6]]
        print([list(row) for row in zip(*matrix)], {k: v for k, v in enumerate("ab")}, {x % 3 for x in range(10)})
        print([(x, y) for x in range(3) for y in range(x) if (x + y) % 2], sum(n := 0 or i for i in range(3)), n)
        print([y for x in [1, 2] if (y := x * 2) > 2], {**{"a": 1}, "b": 2}, [*range(3), *"ab"])
    """,
    "recursion": """
        def hanoi(n, a, b, c, moves):
            if n:
                hanoi(n - 1, a, c, b, moves)
                moves.append((a, c))
                hanoi(n - 1, b, a, c, moves)
            return moves

        def depth(n):
            return 0 if n == 0 else 1 + depth(n - 1)

        print(len(hanoi(6, "a", "b", "c", [])), depth(500))
        def forever(): return forever()
        try:
            forever()
        except RecursionError as e:
            print("too deep")
    """,
    "memo": """
        from functools import cache, lru_cache, cached_property, partial, reduce, total_ordering, cmp_to_key

        @cache
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)

        @lru_cache(maxsize=None)
        def ways(n, coins=(1, 5, 10)):
            if n == 0: return 1
            return sum(ways(n - c, coins[i:]) for i, c in enumerate(coins) if c <= n)

        class Data:
            @cached_property
            def value(self):
                print("computed")
                return 3

        d = Data()
        print(fib(80), ways(20), fib.cache_info().hits > 0, d.value + d.value, partial(pow, 2)(5), reduce(lambda a, b: a * b, [1, 2, 3, 4]))
        print(sorted([3, 1, 2], key=cmp_to_key(lambda a, b: b - a)))
    """,
    "total ordering": """
        from functools import total_ordering

        @total_ordering
        class Version:
            def __init__(self, text):
                self.parts = tuple(map(int, text.split(".")))
            def __eq__(self, other): return self.parts == other.parts
            def __lt__(self, other): return self.parts < other.parts

        print(Version("1.10") >= Version("1.9"), max([Version("1.2"), Version("2.0")]).parts)
    """,
    "heap": """
        import heapq
        graph = {"a": {"b": 1, "c": 4}, "b": {"c": 2, "d": 5}, "c": {"d": 1}, "d": {}}

        def dijkstra(start):
            dist = {start: 0}
            queue = [(0, start)]
            while queue:
                d, node = heapq.heappop(queue)
                if d > dist.get(node, float("inf")):
                    continue
                for other, w in graph[node].items():
                    if d + w < dist.get(other, float("inf")):
                        dist[other] = d + w
                        heapq.heappush(queue, (d + w, other))
            return dist

        print(dijkstra("a"), heapq.nlargest(2, [5, 1, 9]), list(heapq.merge([1, 4], [2, 3])))
    """,
    "statistics": """
        import statistics as st
        data = [2, 4, 4, 5, 7, 9]
        print(st.mean(data), st.median(data), st.mode(data), round(st.stdev(data), 3), st.quantiles(data, n=4))
        print(st.NormalDist(0, 1).cdf(0), round(st.correlation([1, 2, 3], [2, 4, 7]), 3))
    """,
    "collections": """
        from collections import Counter, ChainMap, OrderedDict, defaultdict, deque
        words = "the cat and the hat and the bat".split()
        counts = Counter(words)
        groups = defaultdict(list)
        for w in words:
            groups[len(w)].append(w)
        queue = deque([1, 2, 3], maxlen=3)
        queue.append(4)
        queue.rotate(1)
        counts["the"] += 1
        counts.update(["zoo"])
        od = OrderedDict(a=1, b=2)
        od.move_to_end("a")
        print(counts.most_common(2), dict(groups)[4] if 4 in groups else None, list(queue), ChainMap({"a": 1}, {"b": 2})["b"], list(od), (counts - Counter(the=9)).total())
    """,
    "user containers": """
        from collections import UserDict, UserList
        from collections.abc import Mapping, MutableSequence

        class Lower(UserDict):
            def __setitem__(self, key, value):
                super().__setitem__(key.lower(), value)

        class Frozen(Mapping):
            def __init__(self, data): self._data = dict(data)
            def __getitem__(self, key): return self._data[key]
            def __iter__(self): return iter(self._data)
            def __len__(self): return len(self._data)

        class Missing(dict):
            def __missing__(self, key):
                self[key] = key * 2
                return self[key]

        d = Lower(A=1)
        print(d, "a" in d, dict(Frozen({"x": 1}).items()), Frozen({}) == {}, Missing()["ab"])
    """,
    "attribute hooks": """
        class Config:
            def __init__(self, **values):
                self._values = values
            def __getattr__(self, name):
                try:
                    return self._values[name]
                except KeyError:
                    raise AttributeError(name) from None
            def __setattr__(self, name, value):
                if name != "_values" and not isinstance(value, int):
                    raise TypeError(name)
                super().__setattr__(name, value)

        c = Config(size=3)
        c.depth = 2
        print(c.size, c.depth, hasattr(c, "missing"), getattr(c, "missing", 5))
        try:
            c.depth = "x"
        except TypeError as e:
            print("refused", e)
    """,
    "descriptors": """
        class Positive:
            def __set_name__(self, owner, name):
                self.name = "_" + name
            def __get__(self, obj, owner=None):
                return self if obj is None else getattr(obj, self.name, 0)
            def __set__(self, obj, value):
                if value < 0:
                    raise ValueError(f"{self.name[1:]} must be positive")
                setattr(obj, self.name, value)

        class Account:
            balance = Positive()

        a = Account()
        a.balance = 5
        a.balance += 10
        try:
            a.balance = -1
        except ValueError as e:
            print(a.balance, e)
    """,
    "properties": """
        class Temperature:
            def __init__(self, celsius=0.0):
                self._celsius = celsius
            @property
            def fahrenheit(self):
                return self._celsius * 9 / 5 + 32
            @fahrenheit.setter
            def fahrenheit(self, value):
                self._celsius = (value - 32) * 5 / 9
            @classmethod
            def boiling(cls): return cls(100)
            @staticmethod
            def absolute(): return -273.15

        t = Temperature.boiling()
        t.fahrenheit = 50
        print(t._celsius, t.fahrenheit, Temperature.absolute())
    """,
    "private names": """
        class Account:
            __count = 0
            def __init__(self, owner):
                self.__owner = owner
                self.__balance = 0
                Account.__count += 1
            def deposit(self, n):
                self.__balance += n
                return self.__check()
            def __check(self):
                return f"{self.__owner}: {self.__balance}"
            @classmethod
            def count(cls): return cls.__count

        a = Account("ann")
        print(a.deposit(5), Account.count(), a._Account__owner)
    """,
    "inheritance": """
        from abc import ABC, abstractmethod

        class Shape(ABC):
            def __init__(self, name): self.name = name
            @abstractmethod
            def area(self): ...
            def __str__(self): return f"{type(self).__name__} {self.name} {self.area():.2f}"

        class Sq(Shape):
            def __init__(self, s):
                super().__init__("square")
                self.s = s
            def area(self): return self.s ** 2

        class Mixin:
            def loud(self): return str(self).upper()

        class Loud(Mixin, Sq):
            def area(self): return super().area() + 1

        try:
            Shape("x")
        except TypeError as e:
            print("abstract")
        print(Sq(2), Loud(2).loud(), isinstance(Loud(1), Shape), issubclass(Loud, Mixin))
    """,
    "abstract by metaclass": """
        from abc import ABCMeta, abstractmethod
        class Base(metaclass=ABCMeta):
            @abstractmethod
            def run(self): pass
        class Impl(Base):
            def run(self): return "ran"
        print(Impl().run())
    """,
    "singleton": """
        class Singleton:
            _instance = None
            def __new__(cls, *args):
                if cls._instance is None:
                    cls._instance = super().__new__(cls)
                return cls._instance

        class Celsius(float):
            def __new__(cls, value): return float.__new__(cls, round(value, 1))

        class Pair(tuple):
            def __new__(cls, a, b): return tuple.__new__(cls, (a, b))

        print(Singleton() is Singleton(), Celsius(3.14159), Pair(1, 2))
    """,
    "closures": """
        def counter():
            n = 0
            def inc(by=1):
                nonlocal n
                n += by
                return n
            return inc

        total = 0
        def add(x):
            global total
            total += x

        c = counter()
        c(); c(5)
        add(3); add(4)
        fs = [lambda x, k=k: x * k for k in range(3)]
        print(c(), total, [f(2) for f in fs])
    """,
    "unpacking": """
        a, *b, c = range(5)
        (x, y), [z, *rest] = (1, 2), "hello"
        def f(*args, key=None, **kwargs): return args, key, sorted(kwargs)
        data = {"key": 1, "other": 2}
        print(a, b, c, x, y, z, rest, f(*b, **data), {**data, "more": 3}, [*b, *rest])
        for i, (k, v) in enumerate({"a": 1, "b": 2}.items()): print(i, k, v)
        a, b = b, a
        print(a, b)
    """,
    "augmented": """
        counts = {}
        for ch in "hello":
            counts[ch] = counts.get(ch, 0) + 1
            counts[ch] *= 2
        grid = [[0] * 3 for _ in range(2)]
        grid[1][2] += 5
        class Box:
            n = 1
            items = []
        box = Box()
        box.n += 1
        box.n <<= 3
        box.items += [1]
        x = [1]
        y = x
        x += [2]
        s = {1, 2}
        s |= {3}
        print(counts, grid, box.n, Box.items, y, s)
    """,
    "sieve and primes": """
        def sieve(n):
            is_prime = [True] * (n + 1)
            is_prime[0:2] = [False, False]
            for i in range(2, int(n ** 0.5) + 1):
                if is_prime[i]:
                    is_prime[i * i :: i] = [False] * len(is_prime[i * i :: i])
            return [i for i, p in enumerate(is_prime) if p]

        def factor(n):
            out, d = [], 2
            while d * d <= n:
                while n % d == 0:
                    out.append(d)
                    n //= d
                d += 1
            return out + ([n] if n > 1 else [])

        print(len(sieve(1000)), factor(360), pow(3, 200, 13), 2 ** 100, divmod(17, 5))
    """,
    "dynamic programming": """
        def lcs(a, b):
            dp = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
            for i, x in enumerate(a):
                for j, y in enumerate(b):
                    dp[i + 1][j + 1] = dp[i][j] + 1 if x == y else max(dp[i][j + 1], dp[i + 1][j])
            return dp[-1][-1]

        def knapsack(items, cap):
            best = [0] * (cap + 1)
            for w, v in items:
                for c in range(cap, w - 1, -1):
                    best[c] = max(best[c], best[c - w] + v)
            return best[cap]

        print(lcs("AGGTAB", "GXTXAYB"), knapsack([(1, 1), (3, 4), (4, 5)], 7))
    """,
    "backtracking": """
        def queens(n):
            solutions = []
            def place(row, cols, diag, anti):
                if row == n:
                    solutions.append(tuple(cols))
                    return
                for c in range(n):
                    if c in cols or row - c in diag or row + c in anti:
                        continue
                    place(row + 1, cols + [c], diag | {row - c}, anti | {row + c})
            place(0, [], set(), set())
            return solutions

        print(len(queens(6)), queens(4)[0])
    """,
    "graphs": """
        from collections import deque, defaultdict
        from graphlib import TopologicalSorter

        edges = [(1, 2), (1, 3), (2, 4), (3, 4), (4, 5)]
        graph = defaultdict(set)
        for a, b in edges:
            graph[a].add(b)

        def bfs(start):
            seen, queue, order = {start}, deque([start]), []
            while queue:
                node = queue.popleft()
                order.append(node)
                for n in sorted(graph[node] - seen):
                    seen.add(n)
                    queue.append(n)
            return order

        print(bfs(1), list(TopologicalSorter({"b": {"a"}, "c": {"b"}}).static_order()))
    """,
    "countdown": """
        from itertools import permutations
        import operator
        OPS = [("+", operator.add), ("-", operator.sub), ("*", operator.mul), ("/", operator.truediv)]

        def solve(numbers, target):
            if len(numbers) == 1:
                return numbers[0][1] if abs(numbers[0][0] - target) < 1e-9 else None
            for i, j in permutations(range(len(numbers)), 2):
                rest = [numbers[k] for k in range(len(numbers)) if k not in (i, j)]
                (a, ea), (b, eb) = numbers[i], numbers[j]
                for symbol, op in OPS:
                    try:
                        value = op(a, b)
                    except ZeroDivisionError:
                        continue
                    found = solve(rest + [(value, f"({ea} {symbol} {eb})")], target)
                    if found:
                        return found

        print(solve([(n, str(n)) for n in (4, 7, 8)], 20))
    """,
    "linked list": """
        class Node:
            def __init__(self, value, next=None):
                self.value, self.next = value, next

        class LinkedList:
            def __init__(self, values=()):
                self.head = None
                for v in reversed(list(values)):
                    self.head = Node(v, self.head)
            def __iter__(self):
                node = self.head
                while node:
                    yield node.value
                    node = node.next
            def reverse(self):
                prev, node = None, self.head
                while node:
                    node.next, prev, node = prev, node, node.next
                self.head = prev
                return self

        print(list(LinkedList([1, 2, 3]).reverse()))
    """,
    "iterator class": """
        class Countdown:
            def __init__(self, n): self.n = n
            def __iter__(self): return self
            def __next__(self):
                if self.n <= 0:
                    raise StopIteration
                self.n -= 1
                return self.n + 1
        class Squares:
            def __getitem__(self, i):
                if i >= 4: raise IndexError(i)
                return i * i
            def __len__(self): return 4
            def __reversed__(self): return (self[i] for i in range(3, -1, -1))
        print(list(Countdown(3)), sum(Countdown(4)), list(Squares()), list(reversed(Squares())), 9 in Squares(), max(Countdown(2)))
    """,
    "sorting": """
        from operator import attrgetter, itemgetter, methodcaller
        people = [{"name": "bob", "age": 30}, {"name": "ann", "age": 25}, {"name": "cid", "age": 30}]
        class P:
            def __init__(self, n, a): self.n, self.a = n, a
            def __repr__(self): return self.n
        ps = [P("x", 2), P("y", 1)]
        print(sorted(people, key=itemgetter("age", "name"))[0]["name"], sorted(ps, key=attrgetter("a")), list(map(methodcaller("upper"), ["a"])))
        print(sorted(people, key=lambda p: (-p["age"], p["name"]))[0], min(people, key=lambda p: p["age"])["name"], sorted("bca", reverse=True))
    """,
    "bisect and arrays": """
        from array import array
        from bisect import bisect_left, insort
        xs = [1, 3, 5]
        insort(xs, 4)
        a = array("i", [1, 2, 3])
        a.append(4)
        print(xs, bisect_left(xs, 3), sum(a), a.tolist(), memoryview(b"abc")[1])
    """,
    "hashes and bytes": """
        import base64, binascii, hashlib, struct, uuid
        h = hashlib.sha256(b"abc")
        h.update(b"d")
        print(h.hexdigest()[:8], base64.b64encode(b"hi").decode(), binascii.hexlify(b"a"), struct.unpack("<IH", struct.pack("<IH", 1, 2)))
        print(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"), len(str(uuid.uuid4())), bytes([1, 2]), bytearray(b"ab") + b"c", int.from_bytes(b"\\x01\\x00", "big"), (258).to_bytes(2, "big"))
    """,
    "random": """
        import random
        random.seed(7)
        a = [random.randint(1, 6) for _ in range(5)]
        random.seed(7)
        b = [random.randint(1, 6) for _ in range(5)]
        rng = random.Random(3)
        deck = list(range(10))
        rng.shuffle(deck)
        print(a == b, sorted(deck) == list(range(10)), len(rng.sample(deck, 3)), random.choice("a"), 0 <= random.random() < 1, len(random.choices([1, 2], weights=[1, 3], k=4)))
    """,
    "text tools": """
        import difflib, string, textwrap, unicodedata
        print(textwrap.fill("the quick brown fox jumps", 12), textwrap.dedent("  a\\n  b"), textwrap.shorten("hello there world", 12))
        print(difflib.get_close_matches("appel", ["apple", "ape"]), round(difflib.SequenceMatcher(None, "abcd", "abxd").ratio(), 2))
        print(string.ascii_lowercase[:3], string.Template("$who likes $what").substitute(who="ann", what="tea"), string.capwords("a b"))
        print(unicodedata.normalize("NFKD", "é")[0], unicodedata.name("a"))
    """,
    "calendar": """
        import calendar
        print(calendar.monthrange(2024, 2), calendar.isleap(2024), calendar.month_name[3], list(calendar.day_abbr)[0])
        print(calendar.TextCalendar().formatmonth(2024, 2).splitlines()[0], calendar.weekday(2024, 1, 1))
    """,
    "complex numbers": """
        import cmath, math
        z = 3 + 4j
        print(abs(z), z.conjugate(), z.real, cmath.phase(1j), math.isclose(0.1 + 0.2, 0.3), math.gcd(12, 18), math.factorial(10), math.comb(5, 2), math.prod([1, 2, 3]), math.inf > 1)
        print(round(2.567, 1), round(-2.5), abs(-3), int("ff", 16), bin(5), hex(255), oct(8), ord("a"), chr(98), bool([]), 7 // 2, -7 % 3, 1e3, 0b11)
    """,
    "main guard": """
        def main() -> None:
            print("main runs")

        if __name__ == "__main__":
            main()
    """,
    "doctest in a docstring": '''
        def double(x: int) -> int:
            """Twice.

            >>> double(2)
            4
            """
            return 2 * x

        print(double(4), double.__doc__.splitlines()[0])
    ''',
    "dispatch": """
        from functools import singledispatch, singledispatchmethod

        @singledispatch
        def show(x): return "other"

        @show.register
        def _(x: int): return f"int {x}"

        @show.register(list)
        def _(x): return f"list of {len(x)}"

        class Neg:
            @singledispatchmethod
            def neg(self, arg): raise NotImplementedError
            @neg.register
            def _(self, arg: int): return -arg

        print(show(1), show([1]), show("a"), Neg().neg(3))
    """,
    "type hints read": """
        from __future__ import annotations
        from typing import get_type_hints, get_args, get_origin, Annotated, Literal

        class Node:
            left: Node | None
            tags: dict[str, list[int]]
            mode: Literal["r", "w"]

        def f(x: int, y: Annotated[str, "a note"]) -> list[Node]: ...

        hints = get_type_hints(Node)
        print(get_args(hints["left"])[1], get_origin(hints["tags"]), get_args(hints["mode"]), get_type_hints(f)["y"])
    """,
    "copying": """
        import copy
        class Tree:
            def __init__(self, *kids): self.kids = list(kids)
            def __deepcopy__(self, memo): return Tree(*[copy.deepcopy(k, memo) for k in self.kids])
        a = {"x": [1, 2], "t": Tree(Tree())}
        b = copy.deepcopy(a)
        c = copy.copy(a)
        b["x"].append(3)
        print(a["x"], b["x"], c["x"] is a["x"], len(b["t"].kids))
    """,
    "queues": """
        import queue
        q = queue.PriorityQueue()
        for item in [(3, "c"), (1, "a"), (2, "b")]:
            q.put(item)
        out = []
        while not q.empty():
            out.append(q.get()[1])
        fifo = queue.Queue()
        fifo.put(1)
        print(out, fifo.get(), fifo.qsize())
        try:
            fifo.get_nowait()
        except queue.Empty:
            print("empty")
    """,
    "state machine": """
        class Machine:
            TRANSITIONS = {("idle", "start"): "running", ("running", "stop"): "idle"}
            def __init__(self):
                self.state = "idle"
                self._log: list[tuple[str, str]] = []
            def fire(self, event: str) -> "Machine":
                key = (self.state, event)
                if key not in self.TRANSITIONS:
                    raise ValueError(f"no {event!r} in {self.state!r}")
                self._log.append(key)
                self.state = self.TRANSITIONS[key]
                return self

        m = Machine().fire("start").fire("stop")
        print(m.state, m._log)
    """,
    "parser": """
        import re
        TOKEN = re.compile(r"\\s*(?:(\\d+\\.?\\d*)|(.))")

        def tokens(text):
            for number, op in TOKEN.findall(text):
                yield float(number) if number else op
            yield None

        class Parser:
            def __init__(self, text):
                self._tokens = tokens(text)
                self._next = next(self._tokens)
            def _advance(self):
                token, self._next = self._next, next(self._tokens, None)
                return token
            def expr(self):
                value = self.term()
                while self._next in ("+", "-"):
                    value = value + self.term() if self._advance() == "+" else value - self.term()
                return value
            def term(self):
                value = self.atom()
                while self._next in ("*", "/"):
                    value = value * self.atom() if self._advance() == "*" else value / self.atom()
                return value
            def atom(self):
                token = self._advance()
                if token == "(":
                    value = self.expr()
                    self._advance()
                    return value
                return -self.atom() if token == "-" else token

        print(Parser("2 * (3 + 4) - -1").expr())
    """,
    "matrices": """
        class Matrix:
            def __init__(self, rows): self.rows = [list(r) for r in rows]
            def __matmul__(self, other):
                return Matrix([[sum(a * b for a, b in zip(r, c)) for c in zip(*other.rows)] for r in self.rows])
            def __pow__(self, n):
                result = Matrix([[int(i == j) for j in range(len(self.rows))] for i in range(len(self.rows))])
                base = self
                while n:
                    if n & 1: result = result @ base
                    base, n = base @ base, n >> 1
                return result
            def __repr__(self): return "\\n".join(" ".join(map(str, r)) for r in self.rows)
        print(Matrix([[1, 1], [1, 0]]) ** 10)
    """,
    "print options": """
        print(1, 2, sep="-", end="!\\n")
        print()
        print(*[1, 2, 3], sep=", ")
        list(map(print, ["a", "b"]))
        p = print
        p("through a name", flush=True)
    """,
    "slices": """
        xs = list(range(10))
        xs[2:5] = [20]
        del xs[0], xs[-1]
        s = slice(1, 3)
        print(xs, xs[s], xs[::-2], "abcdef"[-3:], xs[1:2] * 2, list(reversed(xs))[:2])
    """,
    "global walk": """
        import math, statistics
        from math import sqrt as root
        import collections.abc as cabc
        import collections.abc
        print(math.floor(root(17)), isinstance([], cabc.Sequence), isinstance({}, collections.abc.Mapping), collections.Counter("aa"))
        assert math.pi > 3, "pi"
        try:
            assert 1 > 2, "never"
        except AssertionError as e:
            print(e)
    """,
}

PROGRAMS = {name: dedent(source) for name, source in _PROGRAMS.items()}
