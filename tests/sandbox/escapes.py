"""Attempts to get out of the sandbox, by kind, each in three variants.

Each attempt binds `got` to what it was after. Under plain `exec` it gets it; the tests check that too, so that no
attempt is here that could not have worked.

The variants: `helper` goes through a function or class of its own, `module` through an allowed module, `data` through a
data structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

KINDS: dict[str, dict[str, str]] = {
    "class of a value": {
        "helper": """
            def climb(x): return x.__class__.__base__.__subclasses__()
            got = climb(())
        """,
        "module": """
            import operator
            got = operator.attrgetter("__class__.__base__")(())
        """,
        "data": """
            steps = ["__class__", "__base__"]
            value = ()
            for step in steps: value = getattr(value, step)
            got = value
        """,
    },
    "globals of a function": {
        "helper": """
            def f(): pass
            def read(g): return g.__globals__
            got = read(f)
        """,
        "module": """
            import functools, json
            got = functools.reduce(getattr, ["__globals__"], json.dumps)
        """,
        "data": """
            table = {"f": lambda: 0}
            got = [getattr(f, "__glo" + "bals__") for f in table.values()]
        """,
    },
    "code of a function": {
        "helper": """
            def f(): pass
            got = (lambda g: g.__code__)(f)
        """,
        "module": """
            from operator import attrgetter
            def f(): pass
            got = attrgetter("__code__.co_consts")(f)
        """,
        "data": """
            def f(): pass
            got = dict(c=getattr(f, "__code__"))["c"]
        """,
    },
    "frame of a generator": {
        "helper": """
            def g(): yield 1
            def frame(x): return x.gi_frame
            got = frame(g())
        """,
        "module": """
            import operator
            got = operator.attrgetter("gi_frame.f_back")((x for x in [1])) or operator.attrgetter("gi_code")((x for x in [1]))
        """,
        "data": """
            names = {"first": "gi_fr" + "ame"}
            got = getattr((x for x in [1]), names["first"]).f_globals
        """,
    },
    "traceback of an exception": {
        "helper": """
            def fail():
                try: 1 / 0
                except Exception as e: return e.__traceback__.tb_frame
            got = fail()
        """,
        "module": """
            import operator
            try: 1 / 0
            except Exception as e: got = operator.attrgetter("__traceback__.tb_frame.f_globals")(e)
        """,
        "data": """
            class Catch:
                def __enter__(self): return self
                def __exit__(self, *args):
                    self.kept = args
                    return True
            c = Catch()
            with c: 1 / 0
            got = c.kept[2].tb_frame
        """,
    },
    "import of a module": {
        "helper": """
            def fetch():
                import os
                return os
            got = fetch()
        """,
        "module": """
            import collections
            got = __import__("os").getcwd()
        """,
        "data": """
            loaders = [lambda: __import__("sys")]
            got = loaders[0]()
        """,
    },
    "module inside a module": {
        "helper": """
            import uuid
            def inner(m): return m.os
            got = inner(uuid)
        """,
        "module": """
            import typing
            got = typing.sys.modules
        """,
        "data": """
            import json, random, statistics
            got = [getattr(m, n) for m, n in [(random, "_os")]]
        """,
    },
    "from-import of a module inside": {
        "helper": """
            def fetch():
                from uuid import sys
                return sys
            got = fetch()
        """,
        "module": """
            from queue import threading as t
            got = t
        """,
        "data": """
            from random import _os, _exp
            got = [_os.system]
        """,
    },
    "builtins by name": {
        "helper": """
            def reach(): return open
            got = reach()
        """,
        "module": """
            import functools
            got = functools.partial(eval, "1 + 1")()
        """,
        "data": """
            got = {"e": exec, "c": compile}
        """,
    },
    "names of the frame": {
        "helper": """
            def scope(): return globals()
            got = scope()
        """,
        "module": """
            import json
            got = vars(json)
        """,
        "data": """
            got = [locals, dir][0]()
        """,
    },
    "format that reaches": {
        "helper": """
            def show(t, x): return t.format(x)
            got = show("{0.__class__.__mro__}", 1)
        """,
        "module": """
            import operator
            got = operator.methodcaller("format", 1)("{0.__class__}")
        """,
        "data": """
            got = list(map("{0.__class__}".format, [1]))
        """,
    },
    "format of a mapping": {
        "helper": """
            def show(t, **kw): return t.format_map(kw)
            got = show("{x.__class__}", x=1)
        """,
        "module": """
            import functools
            got = functools.partial(str.format_map, "{x.__class__}")({"x": 1})
        """,
        "data": """
            methods = [str.format, str.format_map]
            got = methods[1]("{x.__class__}", {"x": 1})
        """,
    },
    "formatter object": {
        "helper": """
            import string
            def make(): return string.Formatter()
            got = make().format("{0.__class__}", 1)
        """,
        "module": """
            import string
            class F(string.Formatter): pass
            got = F().get_field("0.__class__", (1,), {})
        """,
        "data": """
            import string
            got = [string.Formatter().vformat("{x.__class__}", (), {"x": 1})]
        """,
    },
    "format as a hook": {
        "helper": """
            import json
            class E(json.JSONEncoder):
                default = "{0.__class__}".format
            got = E().encode(object())
        """,
        "module": """
            import json
            got = json.dumps(object(), default="{0.__class__}".format)
        """,
        "data": """
            got = sorted([1], key=dict(k="{0.__class__}".format)["k"])
        """,
    },
    "text of a type": {
        "helper": """
            import typing
            def f(x): pass
            f.__annotations__["x"] = "__import__('os')"
            got = typing.get_type_hints(f)
        """,
        "module": """
            import typing
            def f(x: "__import__('os')"): pass
            got = typing.get_type_hints(f)
        """,
        "data": """
            import typing
            alias = typing.List["().__class__.__base__"]
            def f(x: alias): pass
            got = typing.get_type_hints(f)
        """,
    },
    "forward reference": {
        "helper": """
            import typing
            def make(t): return typing.ForwardRef(t)
            got = make("__import__('os')")._evaluate({}, {}, recursive_guard=frozenset(), type_params=())
        """,
        "module": """
            import typing
            ref = typing.get_args(typing.Optional["__import__('os')"])[0]
            got = ref._evaluate({}, {}, recursive_guard=frozenset(), type_params=())
        """,
        "data": """
            import typing
            kinds = {"r": typing.get_args(typing.Dict[str, "().__class__"])[1]}
            got = getattr(kinds["r"], "_evaluate")({}, {}, recursive_guard=frozenset(), type_params=())
        """,
    },
    "dispatch on a text": {
        "helper": """
            import functools
            seen = []
            def note(x): seen.append(x); return int
            @functools.singledispatch
            def f(x): return 0
            def g(x: "note(().__class__.__base__)"): return 1
            f.register(g)
            got = seen
        """,
        "module": """
            import functools, typing
            @functools.singledispatch
            def f(x): return 0
            @f.register
            def g(x: "typing.sys.intern and int"): return 1
            got = f(1)
        """,
        "data": """
            import functools
            class C:
                @functools.singledispatchmethod
                def f(self, x): return 0
                @f.register
                def g(self, x: "[int, ().__class__.__base__][0]"): return 1
            got = C().f(1)
        """,
    },
    "hostile field names": {
        "helper": """
            import dataclasses
            def make(name): return dataclasses.make_dataclass("C", [(name, int, 1)])
            got = make("__class__")
        """,
        "module": """
            import collections
            class Field(str): pass
            got = collections.namedtuple("N", ["a"], module="os").__module__ == "os"
        """,
        "data": """
            import dataclasses
            got = [dataclasses.make_dataclass("C", ["x"], namespace={"__del__": lambda s: None})]
        """,
    },
    "injected annotations": {
        "helper": """
            import dataclasses
            class C: pass
            C.__annotations__ = {"x": "__import__('os').getpid()"}
            got = dataclasses.dataclass(C)
        """,
        "module": """
            import operator
            class C:
                x: int = 1
            operator.attrgetter("__annotations__")(C)["y"] = int
            got = C
        """,
        "data": """
            class C:
                x: int = 1
            got = [getattr(C, "__annotations__")]
        """,
    },
    "enumeration made of texts": {
        "helper": """
            import enum
            def make(names): return enum.Enum("E", names)
            got = make({"__del__": lambda s: None, "A": 1})
        """,
        "module": """
            from enum import Enum
            got = Enum("E", ["A"], module="os").__module__
        """,
        "data": """
            import enum
            got = [enum.Enum("E", [("__reduce_ex__", lambda *a: 1), ("A", 1)])]
        """,
    },
    "class by type": {
        "helper": """
            def make(*args): return type(*args)
            got = make("C", (), {"__getattribute__": lambda s, n: 1})
        """,
        "module": """
            import functools
            got = functools.partial(type, "C", ())({"__del__": lambda s: 0})
        """,
        "data": """
            got = list(map(type, ["C"], [()], [{"__getattribute__": lambda s, n: 1}]))
        """,
    },
    "class by new": {
        "helper": """
            def make(t): return t.__new__(t, "C", (), {"__del__": lambda s: 0})
            got = make(type)
        """,
        "module": """
            import abc
            got = abc.ABCMeta("C", (), {"__del__": lambda s: 0})
        """,
        "data": """
            import enum
            got = [type(enum.Enum)][0].__call__
        """,
    },
    "metaclass": {
        "helper": """
            class M(type):
                def __getattribute__(cls, name): return name
            class C(metaclass=M): pass
            got = C.anything
        """,
        "module": """
            import abc
            class M(abc.ABCMeta):
                def __call__(cls, *a): return cls.__mro__
            class C(metaclass=M): pass
            got = C()
        """,
        "data": """
            def meta(*a, **k): return a
            class C(metaclass=[meta][0]): pass
            got = C
        """,
    },
    "descriptor": {
        "helper": """
            class D:
                def __get__(self, obj, owner): return owner.__mro__
            class C: x = D()
            got = C.x
        """,
        "module": """
            import functools
            class C:
                @functools.cached_property
                def x(self): return 1
            got = C.x.__dict__
        """,
        "data": """
            class C:
                @property
                def x(self): return 1
            got = [C.__dict__["x"].fget.__globals__]
        """,
    },
    "hook of a subclass": {
        "helper": """
            class Base:
                def __init_subclass__(cls, **kw): Base.seen = cls.__base__.__base__.__subclasses__
            class C(Base): pass
            got = Base.seen()
        """,
        "module": """
            import string
            class T(string.Template):
                def __init_subclass__(cls): T.found = string._re
            class U(T): pass
            got = T.found
        """,
        "data": """
            found = []
            class Base:
                def __init_subclass__(cls): found.append(cls.__dict__)
            class C(Base): pass
            got = found
        """,
    },
    "pattern that reads": {
        "helper": """
            def read(f):
                match f:
                    case object(__globals__=g): return g
            got = read(read)
        """,
        "module": """
            import abc
            def f(): pass
            class Evil(abc.ABC):
                __match_args__ = ("__globals__",)
            Evil.register(type(f))
            match f:
                case Evil(g): got = g
        """,
        "data": """
            names = ("__code__",)
            class Evil:
                __match_args__ = names
                def __code__(self): return 1
            match Evil():
                case Evil(c): got = c
        """,
    },
    "pattern for a method": {
        "helper": """
            def pick(t):
                match t:
                    case str(format=f): return f
            got = pick("{0.__class__}")(1)
        """,
        "module": """
            import uuid
            match uuid:
                case object(os=o): got = o
                case _: raise LookupError
        """,
        "data": """
            match [(x for x in [1])]:
                case [object(gi_frame=f)]: got = f
        """,
    },
    "copied attributes": {
        "helper": """
            import functools
            class Sink:
                def __setattr__(self, name, value): object.__setattr__(self, "kept", value)
            def f(): pass
            s = Sink()
            functools.update_wrapper(s, f, assigned=("__globals__",), updated=())
            got = s.kept
        """,
        "module": """
            import functools, json
            def sink(): pass
            got = functools.wraps(json.dumps, assigned=("__doc__",), updated=())(sink).__wrapped__
        """,
        "data": """
            import functools
            class Sink: pass
            def f(): pass
            got = functools.update_wrapper(Sink(), f, assigned=["__code__"], updated=()).__code__
        """,
    },
    "reduction": {
        "helper": """
            import copy
            class C:
                def __reduce__(self): return (type, ("X", (), {}))
            got = copy.copy(C())
        """,
        "module": """
            import copy
            class C:
                def __reduce_ex__(self, v): return (eval, ("1 + 1",))
            got = copy.deepcopy(C())
        """,
        "data": """
            import copy
            got = [().__reduce_ex__(4)]
        """,
    },
    "unbound special methods": {
        "helper": """
            def read(x, name): return object.__getattribute__(x, name)
            got = read((), "__class__")
        """,
        "module": """
            import functools
            got = functools.partial(object.__getattribute__, ())("__class__")
        """,
        "data": """
            got = [type.__getattribute__(int, "__subclasses__")]
        """,
    },
    "super as a way up": {
        "helper": """
            class C:
                def up(self): return super().__getattribute__("__class__")
            got = C().up()
        """,
        "module": """
            import json
            class E(json.JSONEncoder):
                def up(self): return super().__thisclass__
            got = E().up()
        """,
        "data": """
            class C: pass
            got = [super(C, C()).__self_class__]
        """,
    },
    "names by a class of its own": {
        "helper": """
            class Name(str):
                def startswith(self, *a): return False
                def __getitem__(self, i): return "x"
            got = getattr((), Name("__class__"))
        """,
        "module": """
            import operator
            class Name(str): pass
            got = operator.attrgetter(Name("__class__"))(())
        """,
        "data": """
            class Name(str):
                def __getitem__(self, i): return "x"
            got = {k: getattr(int, k) for k in [Name("__subclasses__")]}
        """,
    },
    "everything that is caught": {
        "helper": """
            def grab(f):
                try: f()
                except BaseException as e: return type(e).__mro__[-2]
            def stop(): raise KeyboardInterrupt
            got = grab(stop)
        """,
        "module": """
            import contextlib
            with contextlib.suppress(BaseException):
                raise SystemExit(3)
            got = 1
        """,
        "data": """
            kinds = (ValueError, [BaseException][0])
            try: raise GeneratorExit
            except kinds: got = 1
        """,
    },
    "changed library": {
        "helper": """
            import json
            def patch(cls): cls.default = lambda self, o: "patched"
            class Probe(json.JSONEncoder): pass
            kept = json.JSONEncoder.default
            patch(json.JSONEncoder)
            got = json.dumps(object())
            json.JSONEncoder.default = kept
        """,
        "module": """
            import math
            setattr(math, "tau", math.tau)
            got = 1
        """,
        "data": """
            import textwrap
            table = [textwrap.TextWrapper]
            table[0].extra = 1
            got = textwrap.TextWrapper.extra
            del table[0].extra
        """,
    },
    "registered classes": {
        "helper": """
            import collections.abc
            class C: pass
            def add(base): return base.register(C)
            got = add(collections.abc.Hashable)
        """,
        "module": """
            import numbers
            class C: pass
            numbers.Number.register(C)
            got = isinstance(C(), numbers.Number)
        """,
        "data": """
            import collections.abc
            class C: pass
            got = [m(C) for m in [collections.abc.Sized.register]]
        """,
    },
    "objects that wait": {
        "helper": """
            import queue
            def lock(q): return q.mutex
            got = lock(queue.Queue())
        """,
        "module": """
            import operator, queue
            got = operator.attrgetter("not_empty._lock")(queue.Queue())
        """,
        "data": """
            import queue
            got = [q.all_tasks_done for q in [queue.PriorityQueue()]]
        """,
    },
    "private parts of the library": {
        "helper": """
            import collections
            def find(m): return m._sys
            got = find(collections)
        """,
        "module": """
            import re
            got = re._compiler
        """,
        "data": """
            import random
            got = [getattr(random, "_inst"), getattr(random, "_os")]
        """,
    },
    "what the machine says": {
        "helper": """
            import uuid
            def mac(): return uuid.getnode()
            got = mac()
        """,
        "module": """
            import random
            got = random.SystemRandom().random()
        """,
        "data": """
            import hashlib
            got = [hashlib.file_digest]
        """,
    },
    "guards by their names": {
        "helper": """
            def _getattr_(o, n): return n
            got = (1).real or _getattr_
        """,
        "module": """
            import math as _getitem_
            got = _getitem_
        """,
        "data": """
            for _write_ in [1]: got = _write_
        """,
    },
    "destructor": {
        "helper": """
            got = []
            class C:
                def __del__(self): got.append(1)
            c = C()
            del c
        """,
        "module": """
            import dataclasses
            got = []
            @dataclasses.dataclass
            class C:
                x: int = 1
                def __del__(self): got.append(self.x)
            C()
        """,
        "data": """
            got = []
            class C: pass
            setattr(C, "__del__", lambda self: got.append(1))
            C()
        """,
    },
    "class of a class": {
        "helper": """
            class C:
                def leak(self): return __class__.__mro__
            got = C().leak()
        """,
        "module": """
            import enum
            got = enum.Enum.__class__.__call__
        """,
        "data": """
            got = [type(type(1))("X", (), {})]
        """,
    },
    "closures": {
        "helper": """
            def outer():
                secret = 1
                def inner(): return secret
                return inner
            got = outer().__closure__[0].cell_contents
        """,
        "module": """
            import functools
            @functools.lru_cache
            def f(): return 1
            got = f.__wrapped__
        """,
        "data": """
            def f(a=[1]): return a
            got = getattr(f, "__defaults__")
        """,
    },
    "function by its class": {
        "helper": """
            def f(): pass
            def again(g): return type(g)(g.__code__, {})
            got = again(f)
        """,
        "module": """
            import functools
            class C:
                def m(self): return 1
            got = functools.partial(type(C().m), C.m)(3)
        """,
        "data": """
            kinds = [type(lambda: 0), type((x for x in []))]
            got = [kind.__new__ for kind in kinds]
        """,
    },
    "fields with other names": {
        "helper": """
            import dataclasses
            @dataclasses.dataclass
            class C:
                x: int = 1
            def rename(field, name): field.name = name
            rename(dataclasses.fields(C)[0], "__class__")
            got = dataclasses.asdict(C())
        """,
        "module": """
            import dataclasses, operator
            @dataclasses.dataclass
            class C:
                x: int = 1
            operator.methodcaller("__setattr__", "name", "__class__")(dataclasses.fields(C)[0])
            got = dataclasses.astuple(C())
        """,
        "data": """
            import dataclasses
            @dataclasses.dataclass
            class C:
                x: int = 1
            for field in dataclasses.fields(C): object.__setattr__(field, "name", "__class__")
            got = dataclasses.asdict(C())
        """,
    },
    "callables in slots": {
        "helper": """
            class C: __call__ = type
            def make(*args): return C()(*args)
            got = make("X", (), {"__del__": lambda self: None})
        """,
        "module": """
            import abc
            class C: __call__ = abc.ABCMeta
            got = C()("X", (), {"__del__": lambda self: None})
        """,
        "data": """
            kinds = [type(int), type[int]]
            class C: __call__ = kinds[1]
            got = C()("X", (), {"__del__": lambda self: None})
        """,
    },
    "classes that call": {
        "helper": """
            import functools
            class P(functools.partial): pass
            def make(p): return p({"__del__": lambda self: None})
            got = make(P(type, "X", ()))
        """,
        "module": """
            import functools
            class C: make = functools.partialmethod(type, "X", ())
            got = type(C).__call__(C)
        """,
        "data": """
            class M(map): pass
            got = list(M(type, ["X"], [()], [{"__del__": lambda self: None}]))
        """,
    },
    "template of a class of its own": {
        "helper": """
            class T(str):
                def show(self, x): return super().format(x)
            got = T("{0.__class__}").show(1)
        """,
        "module": """
            import json
            class T(str):
                def hook(self): return super().format
            got = json.dumps(object(), default=T("{0.__class__}").hook())
        """,
        "data": """
            class T(str): pass
            got = [m(T("{0.__class__}"), 1) for m in [T.format]]
        """,
    },
    "private methods of metaclasses": {
        "helper": """
            import enum
            class E(enum.Enum): A = 1
            def convert(cls): return cls._convert_("F", "os", lambda name: name == "O_RDONLY")
            got = convert(E)
        """,
        "module": """
            import enum, operator
            class E(enum.Enum): A = 1
            got = operator.methodcaller("_convert_", "F", "os", lambda name: name == "O_RDWR")(E)
        """,
        "data": """
            import enum
            class E(enum.Enum): A = 1
            got = [getattr(E, name) for name in ("_create_", "_check_for_existing_members_")]
        """,
    },
    "register by a pattern": {
        "helper": """
            import collections.abc
            class C: pass
            def pick(x):
                match x:
                    case object(register=r): return r
            got = pick(collections.abc.Hashable)(C)
        """,
        "module": """
            import numbers, operator
            class C: pass
            got = operator.methodcaller("register", C)(numbers.Number)
        """,
        "data": """
            import collections.abc
            class C: pass
            match {"kind": collections.abc.Sized}:
                case {"kind": object(register=r)}: got = r(C)
        """,
    },
    "decorated library": {
        "helper": """
            import dataclasses, json
            def decorate(cls): return dataclasses.dataclass(eq=False, repr=False, init=False)(cls)
            got = decorate(json.JSONDecodeError)
            del json.JSONDecodeError.__dataclass_fields__
        """,
        "module": """
            import typing, json
            got = typing.final(json.JSONEncoder)
        """,
        "data": """
            import abc, textwrap
            got = [d(f) for d, f in [(abc.abstractmethod, textwrap.dedent)]]
        """,
    },
    "constants that are shared": {
        "helper": """
            import hashlib
            def add(names): names.add("mine")
            add(hashlib.algorithms_available)
            got = "mine" in __import__("hashlib").algorithms_available
        """,
        "module": """
            import decimal
            decimal.DefaultContext.prec = decimal.DefaultContext.prec
            got = decimal.DefaultContext
        """,
        "data": """
            import csv
            for d in [csv.excel]: d.delimiter = ","
            got = 1
        """,
    },
    "names for patterns, later": {
        "helper": """
            class C: pass
            def set_names(cls): cls.__match_args__ = ("__code__",)
            set_names(C)
            got = C.__match_args__
        """,
        "module": """
            import abc
            class C(abc.ABC): pass
            setattr(C, "__match_args__", ("__globals__",))
            C.register(type(lambda: 0))
            match (lambda: 0):
                case C(g): got = g
        """,
        "data": """
            import abc
            names = ["gi_frame"]
            class C(abc.ABC): __match_args__ = tuple(names)
            C.register(type(x for x in []))
            match (x for x in [1]):
                case C(f): got = f
        """,
    },
    "texts of types made later": {
        "helper": """
            import typing
            def make(text): return typing.NamedTuple("N", [("a", text)])
            got = typing.get_type_hints(make("__import__('os')"))
        """,
        "module": """
            import dataclasses
            C = dataclasses.make_dataclass("C", [("a", "__import__('os').getcwd()")])
            got = C
        """,
        "data": """
            import typing
            table = {"a": "().__class__"}
            got = typing.get_type_hints(typing.TypedDict("T", table))
        """,
    },
    "result of a hook": {
        "helper": """
            import enum
            class E(enum.Enum):
                def _generate_next_value_(name, start, count, last): return object.__subclasses__
                A = enum.auto()
            got = E.A.value()
        """,
        "module": """
            import string
            class T(string.Template):
                idpattern = "__class__"
            got = T.pattern.__class__
        """,
        "data": """
            import collections
            class D(collections.defaultdict):
                def __missing__(self, key): return getattr(self, key)
            got = D()["__class__"]
        """,
    },
}


def attempts() -> Iterator[tuple[str, str]]:
    """Each attempt: what it is called, and its source."""
    for kind, variants in KINDS.items():
        for variant, source in variants.items():
            yield f"{kind}, {variant}", dedent(source)
