"""What the program has among its names, and what it asks of what the code has made."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import io
import os
import sys
import types

import pytest

from effectful_agents import Tool
from effectful_agents.encoding.parameters import json_schema_for
from effectful_agents.errors import DefinitionError, EncodingError
from effectful_agents.types.local_types import leave_names
from tests.sandbox.running import printed, run, value_of

HARMFUL = "().__class__.__base__.__subclasses__()[0] and int"


@pytest.mark.parametrize("kind", ["T", "list[T]", "Kinds[1]"])
def test_a_text_that_names_another_is_not_evaluated_with_all_powers(kind):
    env = run(
        f"class Kinds:\n  def __class_getitem__(cls, key): return T\nT = {HARMFUL!r}\n"
        f"def f(x: {kind!r}) -> int:\n  'Say something.'\n  return 1"
    )
    with pytest.raises(EncodingError, match="name types"):
        json_schema_for(env["f"])
    with pytest.raises(DefinitionError, match="name types"):
        _ = Tool.define(env["f"]).__signature__


def test_types_of_functions_of_the_code_are_read_as_elsewhere():
    env = run(
        "from typing import Annotated, Literal\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Item:\n  name: 'str'\n"
        "def f(a: 'list[int] | None', b: Literal['x-y', '*'] = '*', c: Annotated[int, 'cm (or so)'] = 1) -> 'Item':\n"
        "  'Say something.'\n  return Item(str(a))"
    )
    schema = json_schema_for(env["f"])
    assert schema["properties"]["b"]["enum"] == ["x-y", "*"]
    assert Tool.define(env["f"]).__signature__.return_annotation is env["Item"]


@pytest.mark.parametrize(
    "source",
    [
        *(
            "got = [line for line in file]",
            "got = [*file]",
            "first, *got = file",
            "got = next(file)",
            "got = ''.join(file)",
        ),
        *("got = list(file)", "got = []\ngot += file", "got = []\ngot[:] = file", "got = []\ngot.extend(file)"),
        *("got = 'a\\n' in file", "got = [1]\ns = slice(0, 1)\ngot[s] = file", "[got] = [*map(list, [file])]"),
        *("import itertools\ngot = list(itertools.chain(file))", "import itertools\ngot = next(itertools.cycle(file))"),
        *("import math\ngot = math.prod(file)", "import json\ngot = json.dumps([file], default=list)"),
        *("import enum\ngot = enum.Enum('Lines', file)", "import collections\ngot = collections.UserList([1]) + file"),
        *("def g(): yield from file\ngot = list(g())", "got = max(*file)", "got = dict.fromkeys(file)"),
    ],
)
def test_a_file_of_the_program_is_not_taken_apart(source, tmp_path):
    path = tmp_path / "secret"
    path.write_text("a\nb\n")
    with path.open() as file, pytest.raises(TypeError, match=r"not available|cannot be added"):
        run(source, {"file": file})


def test_streams_in_memory_are_open():
    stream = io.StringIO("a\nb")
    assert value_of("[line.strip() for line in stream]", {"stream": stream}) == ["a", "b"]
    run("print('x', file=stream)", {"stream": stream})
    assert stream.getvalue() == "a\nbx\n"


def test_read_only_views_are_read_and_stay_read_only():
    @dataclasses.dataclass
    class Reading:
        value: float = dataclasses.field(metadata={"unit": "cm"})

    inner = {"a": 1}
    env = {"view": types.MappingProxyType(inner), "Reading": Reading}
    run(
        "import dataclasses\nunit = dataclasses.fields(Reading)[0].metadata['unit']\n"
        "both, same, copy = view | {'b': 2}, view == {'a': 1}, dict(view)\ncopy['c'] = 3",
        env,
    )
    assert (env["unit"], env["both"], env["same"], inner) == ("cm", {"a": 1, "b": 2}, True, {"a": 1})
    with pytest.raises(TypeError, match="cannot be changed"):
        run("view['b'] = 2", env)


def test_of_an_operation_there_is_the_call():
    @Tool.define
    def double(x: int) -> int:
        """Twice a number."""
        return 2 * x

    env = {"double": double}
    assert value_of("double(2), double.__name__, double.description", env) == (4, "double", "Twice a number.")
    for name in ("function", "_perform_unhandled", "forward_past"):
        for expression in (f"double.{name}", f"type(double).{name}", f"getattr(double, {name!r})"):
            with pytest.raises(AttributeError, match="of an operation is not available"):
                value_of(expression, env)


def test_what_the_code_redirects_is_redirected_until_its_end():
    redirect = "import contextlib, io\nkept = io.StringIO()\n"
    assert (
        printed(redirect + "with contextlib.redirect_stdout(kept): print('a')\nprint(kept.getvalue() * 2)")
        == "a\na\n\n"
    )
    assert printed(redirect + "contextlib.redirect_stdout(kept).__enter__()\nprint('a')") == ""
    assert printed("print('b')") == "b\n"


@pytest.mark.parametrize("kind", ["Kinds[1]", "Kinds.text", "list['Kinds.text']"])
def test_a_text_in_a_class_that_leads_to_another_is_not_evaluated_either(kind):
    env = run(
        "from dataclasses import dataclass\nfrom effectful_agents import Tool\n"
        "def make():\n"
        f"  class Kinds:\n    text = {HARMFUL!r}\n    def __class_getitem__(cls, key): return {HARMFUL!r}\n"
        f"  @dataclass\n  class Item:\n    x: {kind!r} = 1\n"
        "  @Tool.define\n  def f(x: Item) -> int:\n    'Say something.'\n    return 1\n  return f, Item, Kinds\n"
        "tool, Item, Kinds = make()".replace("from effectful_agents import Tool\n", ""),
        {"Tool": Tool},
    )
    leave_names(env["Item"], {"Item": env["Item"], "Kinds": env["Kinds"]})
    with pytest.raises(Exception, match=r"Kinds|name types"):
        json_schema_for(env["tool"])


CALLS_WITH_SPECIAL_NAMES = {
    "replace": "import copy, types\ncopy.replace(types.SimpleNamespace(a=1), __reduce_ex__=lambda version: (int, ()))",
    "partial": "import functools, types\nfunctools.partial(types.SimpleNamespace, __reduce_ex__=lambda v: (int, ()))",
    "enumeration": (
        "import enum, types\nclass E(types.SimpleNamespace, enum.Enum):\n"
        "    A = {'__reduce_ex__': lambda version: (int, ())}\n"
    ),
    "mapping": "import types\ntypes.SimpleNamespace(**{'__reduce_ex__': lambda version: (int, ())})",
}


@pytest.mark.parametrize("way", CALLS_WITH_SPECIAL_NAMES)
def test_special_names_do_not_become_attributes_by_way_of_arguments(way):
    with pytest.raises((TypeError, ValueError, AttributeError)):
        run(CALLS_WITH_SPECIAL_NAMES[way], {})


def test_what_the_interpreter_shows_to_with_is_not_thrown():
    code = (
        "seen = []\n"
        "class C:\n"
        "    def __enter__(self): return self\n"
        "    def __exit__(self, kind, error, trace): seen.append(error)\n"
        "def inside():\n"
        "    with C(): yield 1\n"
        "def outside(): yield 1\n"
        "one, other = inside(), outside()\n"
        "next(one), one.close(), next(other)\n"
        "other.throw(seen[0])\n"
    )
    with pytest.raises(TypeError, match="only an `Exception`"):
        run(code, {})


def test_a_made_dataclass_does_not_give_away_a_mapping_of_the_program():
    real = {"a": 1}
    code = (
        "import dataclasses, collections\n"
        "G = dataclasses.make_dataclass('G', ['x'], bases=(collections.OrderedDict,))\n"
        "(settings | G({})).x['mine'] = 1\n"
    )
    with pytest.raises(TypeError, match="classes of your own"):
        run(code, {"settings": types.MappingProxyType(real)})
    assert real == {"a": 1}


@pytest.mark.parametrize(
    "source",
    [
        "import types\ntypes.GenericAlias(lambda: [Given].pop(), int)()",
        "import types\nclass C:\n  def __new__(cls): return Given\ndef f(x): x()\nf(types.GenericAlias(C, int))",
        "class C[T]:\n  def __new__(cls): return Given\nC[int]()",
        "class C[T]:\n  def __new__(cls, x): return Given\nlist(map(C[int], [1]))",
        (
            "class C[T]:\n  def __new__(cls): return Given\nimport dataclasses\n@dataclasses.dataclass\n"
            "class D:\n  x: object = dataclasses.field(default_factory=C[int])\nD()"
        ),
        "class C[T]:\n  def __new__(cls): return Given\nimport collections\ncollections.defaultdict(C[int])[1]",
    ],
)
def test_a_generic_class_that_is_called_writes_nothing_into_what_comes_out(source):
    class Given:
        pass

    exec(source, {"Given": Given})
    del Given.__orig_class__  # ty: ignore[unresolved-attribute] - without a sandbox it is there
    with contextlib.suppress(TypeError):
        run(source, {"Given": Given})
    assert not hasattr(Given, "__orig_class__")


NOTE = "def note(self, flag):\n  if isinstance(flag, dict): flag['mine'] = 1\n  return 1\n"


@pytest.mark.parametrize(
    "source",
    [
        "class F(enum.Flag):\n  A = 1\n  _get_value = note\ndef join(a, b): return a | b\njoin(view, F.A)",
        (
            "import operator\nclass E(enum.IntFlag): _get_value = note\nclass F(E): A = 1\n"
            "list(map(operator.or_, [view], [F.A]))"
        ),
        "class F(enum.Flag): A = 1\nF._get_value = note\n[view | one for one in [F.A]]",
    ],
)
def test_a_flag_gets_a_copy_of_what_is_behind_a_view(source):
    source = f"import enum\n{NOTE}{source}"
    settings = {"a": 1}
    if sys.version_info >= (3, 13):  # before, a flag asks nobody
        exec(source, {"view": types.MappingProxyType(settings)})
        assert settings.pop("mine")
    with contextlib.suppress(TypeError):
        run(source, {"view": types.MappingProxyType(settings)})
    assert settings == {"a": 1}


def test_enumerations_of_the_program_are_as_elsewhere():
    class Perm(enum.Flag):
        R, W, X = 4, 2, 1

    class Mode(enum.IntFlag):
        A, B = 2, 4

    source = (
        "x = [list(Perm), len(Perm), Perm(6), Perm['R'], Perm.R | Perm.W, ~Perm.R, Perm.R in Perm(6),"
        " list(map(Perm, [1, 6])), max(Mode), isinstance(Perm.R, Perm), list(reversed(Perm)),"
        " sorted(Perm, key=lambda one: one.value), dict.fromkeys(Perm), list(enumerate(Perm)), list(zip(Perm, Mode)),"
        " Mode.A | 4, 1 | Mode.A, Mode(6) & 2, {*Perm} == set(Perm)]"
    )
    plain: dict[str, object] = {"Perm": Perm, "Mode": Mode}
    exec(source, plain)
    assert run(source, {"Perm": Perm, "Mode": Mode})["x"] == plain["x"]


@pytest.mark.parametrize(
    "source",
    [
        "f._function = sorted",
        "f._template = ['/']\ngot = f",
        "got = f._function",
        "object.__setattr__(f, '_template', ['/'])",
        "f.__init__(functions[0], '/')\ngot = f()",
        "type(f).__init__(f, functions[0], '/')\ngot = f()",
        "f.__init__(bytes, 10**9)\ngot = f()",
        "got = type(f)(functions[0], '/')()",
        "got = type(f)(bytes, 10**9)()",
        "class K(type(f)): pass\ngot = K(functions[0], '/')()",
        "import queue\nqueue.Queue().queue = got = [1]",
        "import queue\nvars(queue.Queue())['queue'] = got = [1]",
        "import string\nstring.Formatter().parse = got = len",
        "import pprint\npprint.PrettyPrinter()._options = {}",
    ],
)
def test_what_stands_for_something_of_the_library_is_as_closed(source):
    env = {"functions": [os.listdir]}
    with pytest.raises((TypeError, AttributeError)):
        run(f"f = 'x'.format\n{source}\ngot = True", env)
    assert env.get("got") is not True
