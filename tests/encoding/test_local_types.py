"""Types whose annotations are texts: those of a function, that name each other, and those that are inherited."""

from __future__ import annotations

import dataclasses
import gc
import sys
import types
import weakref
from typing import NamedTuple, TypedDict

import pytest

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.encoding import answer_codec, decode, encode, json_schema, json_schema_for, tool_codec
from effectful_agents.testing import ScriptedModel


def tree():
    type Name = str

    @dataclasses.dataclass
    class Leaf:
        name: Name

    @dataclasses.dataclass
    class Tree:
        leaves: list[Leaf]
        below: Tree | None = None

    class Typed(TypedDict):
        leaf: Leaf
        tree: Tree

    class Named(NamedTuple):
        leaf: Leaf
        other: Typed

    @Tool.define
    def show(tree: Tree, typed: list[Typed], *named: Named, **further: Leaf) -> Named:
        """Show a tree."""
        return Named(tree.leaves[0], typed[0])

    @Skill.define
    def plant(name: str) -> Tree:
        """Plant {name}."""
        raise NotHandled

    return Leaf, Tree, Typed, Named, show, plant


def test_types_of_a_function_that_name_each_other_are_parameters():
    Leaf, Tree, _, Named, show, _ = tree()

    bound = tool_codec(show).decode(
        '{"tree": {"leaves": [{"name": "a"}], "below": {"leaves": []}},'
        ' "typed": [{"leaf": {"name": "b"}, "tree": {"leaves": []}}],'
        ' "named": [[{"name": "c"}, {"leaf": {"name": "d"}, "tree": {"leaves": []}}]], "x": {"name": "e"}}'
    )

    assert bound.arguments["tree"] == Tree([Leaf("a")], Tree([]))
    assert bound.arguments["typed"] == [{"leaf": Leaf("b"), "tree": Tree([])}]
    assert bound.arguments["named"] == (Named(Leaf("c"), {"leaf": Leaf("d"), "tree": Tree([])}),)
    assert bound.arguments["further"] == {"x": Leaf("e")}


def test_they_are_answers_and_prompts():
    Leaf, Tree, Typed, _, _, plant = tree()

    assert plant.__signature__.return_annotation is Tree
    assert answer_codec(Tree).decode('{"leaves": [{"name": "a"}]}') == Tree([Leaf("a")])
    assert encode([{"leaf": Leaf("a"), "tree": Tree([])}], list[Typed])[0]["leaf"] == {"name": "a"}
    with handler(harness()), handler(ScriptedModel('{"leaves": [], "below": {"leaves": [{"name": "b"}]}}')):
        assert plant("an oak") == Tree([], Tree([Leaf("b")]))


def test_a_function_without_a_tool_is_given_the_names():
    @dataclasses.dataclass
    class Leaf:
        name: str

    @dataclasses.dataclass
    class Branch:
        leaf: Leaf

    def show(branch: Branch) -> None:
        raise NotImplementedError

    assert json_schema_for(show, localns=locals())["properties"]["branch"]["required"] == ["leaf"]


def test_what_is_defined_later_in_the_function_is_found():
    @dataclasses.dataclass
    class Early:
        late: Late

    @Tool.define
    def show(early: Early) -> None:
        """Show."""

    @dataclasses.dataclass
    class Late:
        size: int

    assert tool_codec(show).decode('{"early": {"late": {"size": 1}}}').arguments == {"early": Early(Late(1))}


def test_types_of_a_function_are_let_go():
    def define():
        @dataclasses.dataclass
        class Leaf:
            name: str

        @Tool.define
        def show(leaf: Leaf) -> None:
            """Show."""

        assert show.__signature__
        return weakref.ref(Leaf)

    held = define()
    gc.collect()
    assert held() is None


BASE = """
from __future__ import annotations
from typing import TypedDict

class Inner(TypedDict):
    size: int

class Base(TypedDict):
    inner: Inner
    many: list[Inner]
"""

CHILD = """
from __future__ import annotations
from names_of_base import Base

{inner}

class Child(Base):
    more: int
"""


@pytest.mark.parametrize("inner", ["", "class Inner: pass", "Inner = str"])
def test_a_typed_dictionary_inherits_annotations_with_the_names_of_their_module(inner, monkeypatch):
    for name, source in (("names_of_base", BASE), ("names_of_child", CHILD.format(inner=inner))):
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(source, vars(module))
    child = sys.modules["names_of_child"].Child

    value = {"inner": {"size": 1}, "many": [{"size": 2}], "more": 3}
    assert decode('{"inner": {"size": 1}, "many": [{"size": 2}], "more": 3}', child) == value
    assert encode(value, child) == value
    assert list(json_schema(child)["properties"]) == ["inner", "many", "more"]
