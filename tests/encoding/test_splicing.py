"""Where code ends up in a module, whatever it looks like."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import Agent, NotHandled, Skill
from effectful_agents.encoding.splicing import splice_function, splice_skill_body, splice_snippet
from effectful_agents.types import Scope


class Guide(Agent):
    @Skill.define
    def find(self, place: str, *more: int, deep: bool = False) -> list[str]:
        """Find {place}."""
        raise NotHandled


GUIDE = Guide()
ENV = Scope.of_call(GUIDE.find, GUIDE.find.__signature__.bind("x"))

STATEMENTS = st.sampled_from(
    [
        "x = 1",
        "if x:\n    y = '''a\n  b\n    c'''",
        "def f(a, /, b, *c, d=1, **e):\n    return a",
        "class A:\n    x: int = 1\n\n    def g(self):\n        return f'''{self.x}\n  z'''",
        "for i in (1,\n2,\n  3): print(i)",
        "from os import (\n    path,\n)",
        "z = [n for n in place if (m := n)]",
        "# é 🙂",
        "s = 'é'; t = \\\n  '🙂'",
        "@staticmethod\ndef h(): ...",
        "match x:\n    case {'a': b, **rest}: pass",
        "type L[T] = list[T]",
        "async def co(): await co()",
        "def gen():\n\tyield 1",
        "",
    ]
)


def own_lines(region: Any) -> list[str]:
    return region.source.split("\n")[region.lo - 1 : region.hi]


@given(st.lists(STATEMENTS, max_size=6), st.lists(STATEMENTS, max_size=3))
def test_each_line_of_the_code_is_a_line_of_the_region(statements, earlier):
    snippet = "\n".join(statements)
    for skill, env in ((GUIDE.find, ENV), (None, {"place": "x", "x": 1})):
        region = splice_snippet(snippet, skill, env, ["\n".join(earlier)])
        ast.parse(region.source)
        lines = own_lines(region)
        assert [line.strip() for line in lines] == [line.strip() for line in snippet.rstrip().split("\n")]


@given(st.lists(STATEMENTS, max_size=4))
def test_the_code_means_the_same_where_it_stands(statements):
    snippet = "\n".join([*statements, "end = 1"])
    region = splice_snippet(snippet, GUIDE.find, ENV)
    [cls] = [node for node in ast.parse(region.source).body if getattr(node, "name", "") == "Guide"]
    assert isinstance(cls, ast.ClassDef)
    wrapper = cls.body[-1]
    assert isinstance(wrapper, ast.FunctionDef)
    inside = [node for node in wrapper.body if node.lineno >= region.lo and node.lineno <= region.hi]
    assert [ast.dump(node) for node in inside] == [ast.dump(node) for node in ast.parse(snippet).body]


def test_the_rest_of_the_module_stays():
    region = splice_snippet("x = 1", GUIDE.find, ENV)
    spliced = region.source.split("\n")
    own = Path(__file__).read_text(encoding="utf-8").rstrip("\n").split("\n")
    rest = [line for line in spliced if line in set(own)]
    assert [line for line in own if line not in rest] == []
    assert region.source.path == __file__


@pytest.mark.parametrize("code", ["x = 1", "", "class A:\n    def f(self): ...", "f = lambda: 1", "def f(): ...\nf()"])
def test_a_body_ends_with_a_function(code):
    with pytest.raises(ValueError, match="def"):
        splice_skill_body(code, GUIDE.find, ENV)
    with pytest.raises(ValueError, match="def"):
        splice_function(code, Any, None, {})


@pytest.mark.parametrize("code", ["x =", "def f(:\n    pass", "'''", "  x = 1", "x = 1\n  y = 2", "\0"])
def test_what_is_no_python_is_a_syntax_error(code):
    for splice in (
        lambda: splice_snippet(code, GUIDE.find, ENV),
        lambda: splice_skill_body(code, GUIDE.find, ENV),
        lambda: splice_function(code, Any, None, {}),
    ):
        with pytest.raises(SyntaxError):
            splice()


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (
            "def f(self, place, *more, deep=False):",
            "(self: Guide, place: str, *more: int, deep: bool=False) -> list[str]:",
        ),
        (
            "def f(s, p: 'é' = '🙂', *m, deep) -> (int):",
            "(s: Guide, p: str = '🙂', *m: int, deep: bool) -> (list[str]):",
        ),
        ("def f(a, b, /, *c, **d):", "(a: Guide, b: str, /, *c: int, **d) -> list[str]:"),
        ("def f(self, *all, deep):", "(self: Guide, *all, deep: bool) -> list[str]:"),
        ("def f[T: (int, str)](self, x: T):", "[T: (int, str)](self: Guide, x: str) -> list[str]:"),
        ("def f(self, place, deep):", "(self: Guide, place: str, deep: bool) -> list[str]:"),
    ],
)
def test_the_annotations_of_the_skill_are_put_in(header, expected):
    region = splice_skill_body(f"{header}\n    return []", GUIDE.find, ENV)
    assert own_lines(region)[0].strip() == f"def f{expected}"
    ast.parse(region.source)


def test_an_annotation_over_several_lines_leaves_the_lines_where_they_were():
    code = (
        "def f(\n    self,\n    a: dict[\n        str, int\n    ] = {},\n    *more,\n    deep=False,\n):\n    return 1"
    )
    region = splice_skill_body(code, GUIDE.find, ENV)
    ast.parse(region.source)
    assert own_lines(region)[8].strip() == "return 1"


# Nothing is run, and nothing is asked of objects that could answer


class Trap(type):
    def __getattr__(cls, name: str) -> Any:
        raise AssertionError("it was asked")


def test_annotations_that_a_model_wrote_are_not_evaluated():
    names: dict[str, Any] = {"__name__": "__main__", "seen": []}
    source = """
        from __future__ import annotations
        class A:
            x: seen.append(1)
            y: "seen.append(2)"
            z: list[A] | None
            def f(self, a: seen.append(3), b: "list['A']") -> dict[str, seen.append(4)]: ...
        def g(a: seen.append(5)) -> A: ...
        a = A()
        """
    exec(compile(textwrap.dedent(source), "<nowhere>", "exec", dont_inherit=True), names)
    region = splice_snippet("a.f(g(1), A)", None, names)
    assert names["seen"] == []
    assert "def f(self, a: '_typing.Any', b: 'list[A]') -> 'dict[str, _typing.Any]': ..." in region.source
    assert "z: 'list[A] | None'" in region.source


def test_objects_are_not_asked_for_their_class():
    class Lazy:
        @property
        def __class__(self) -> Any:
            raise AssertionError("it was asked")

    class Odd(metaclass=Trap):
        pass

    strange = type("not a name", (), {"also not": 1, "class": 2})
    env = {"lazy": Lazy(), "odd": Odd, "one": Odd(), "strange": strange, "other": strange()}
    ast.parse(splice_snippet("lazy, odd, one, strange, other", None, env).source)


def test_the_same_values_give_the_same_text():
    env = {"table": {"b": {3, "x"}, "a": {None, 2}}, "mixed": [1, "a", 2.5], "prices": [1, 2.5]}
    first = splice_snippet("table, mixed, prices", None, env).source
    assert "cast('list[_typing.Any]', None)" in first
    assert "cast('list[float]', None)" in first
    assert splice_snippet("table, mixed, prices", None, dict(reversed(env.items()))).source == first
