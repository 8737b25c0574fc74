"""Pydantic models and skills of the program among the names of restricted code, and what of the code is remembered."""

from __future__ import annotations

import collections.abc
import typing

import pydantic
import pytest

from effectful_agents import NotHandled, Skill
from effectful_agents.encoding import json_schema
from tests.sandbox.running import run, value_of


class Order(pydantic.BaseModel):
    a: int = 1
    copy_of: str = ""

    def total(self) -> int:
        """Twice what it holds."""
        return 2 * self.a


@pytest.mark.parametrize("target", ["Order", "order", "super(Order, order)", "typing.Annotated[Order, 1]"])
@pytest.mark.parametrize(
    "name",
    [
        *("parse_raw", "parse_file", "parse_obj", "from_orm", "construct", "model_construct", "update_forward_refs"),
        *("model_rebuild", "model_config", "model_fields", "model_extra", "model_json_schema", "register", "mro"),
        *("model_parametrized_name", "model_post_init", "copy", "schema", "validate"),
    ],
)
def test_what_pydantic_gives_a_model_beside_its_fields_is_closed(target, name):
    if name in ("register", "mro") and target in ("order", "super(Order, order)"):
        return  # an object has no such attribute
    with pytest.raises((AttributeError, TypeError)):
        value_of(f"{target}.{name}", {"Order": Order, "order": Order(), "typing": typing})


def test_models_are_made_read_and_written():
    source = (
        "o = Order(a=2)\no.a += 1\n"
        "x = [o.total(), o.model_dump(), o.model_dump_json(), Order.model_validate({'a': 5}).a, o.model_copy().a,"
        " Order.model_validate_json('{\"a\": 7}') == Order(a=7), sorted(o.model_fields_set), hasattr(o, 'b'),"
        " o.model_copy(update={'a': 9}).total()]"
    )
    plain: dict[str, object] = {"Order": Order}
    exec(source, plain)
    assert run(source, {"Order": Order})["x"] == plain["x"]


@pytest.mark.parametrize(
    "source",
    [
        "class Sub(Order): pass",
        "class Sub(typing.Annotated[Order, 1]): pass",
        "class Sub(type(Order())): x: 'int' = 1",
        "enum.Enum('Sub', {'A': 1}, type=Order)",
        "dataclasses.make_dataclass('Sub', ['x'], bases=(Order,))",
        "Order.model_validate(Order(), from_attributes=True)",
        "Order.total = len",
    ],
)
def test_a_model_of_the_program_is_not_derived_from_nor_changed(source):
    with pytest.raises((AttributeError, TypeError)):
        run(f"import dataclasses, enum, typing\n{source}", {"Order": Order})


@pytest.mark.parametrize(
    "way", ["ask.define(g)", "type(ask).define(g)", "Skill.define(g)", "[*map(Skill.define, [g])]"]
)
def test_the_code_defines_no_skills(way):
    @Skill.define
    def ask(question: str) -> str:
        """{question}"""
        raise NotHandled

    with pytest.raises((AttributeError, TypeError)):
        run(f"def g(x: str) -> str: '{{x.__class__}}'\n{way}", {"ask": ask, "Skill": Skill})


def test_a_member_of_the_code_does_not_stand_for_a_text_in_what_is_remembered():
    with pytest.raises(TypeError, match="of its own"):
        run(
            "import enum, typing\nclass E(enum.Enum): Account = 1\n"
            "E.__eq__ = lambda self, other: True\ntyping.List[E.Account]"
        )
    assert typing.List["Account"].__args__ == (typing.ForwardRef("Account"),)  # noqa: UP006, F821


@pytest.mark.parametrize("base", ["collections.abc.Sequence", "numbers.Number", "Given"])
@pytest.mark.parametrize("way", ["My.register(int)", "operator.methodcaller('register', int)(My)", "register(My, int)"])
def test_nobody_is_told_that_a_class_is_one_of_the_library_or_the_program(base, way):
    import abc

    class Given(abc.ABC):  # noqa: B024
        pass

    source = f"import collections.abc, numbers, operator\nclass My({base}): pass\n"
    with pytest.raises((AttributeError, TypeError, NameError)):
        run(f"{source}def register(a, b): getattr(a, 'register')(b)\n{way}", {"Given": Given})
    assert not isinstance(5, collections.abc.Sequence)
    assert not isinstance(5, Given)


def test_abstract_classes_of_the_code_alone_take_who_they_like():
    source = "import abc\nclass Shape(abc.ABC): pass\nclass C: pass\nShape.register(C)\nx = isinstance(C(), Shape)"
    assert run(source)["x"] is True


def test_texts_in_classes_of_the_code_are_types_as_elsewhere():
    source = (
        "import dataclasses, typing\n"
        "def make():\n"
        "  @dataclasses.dataclass\n  class Node:\n    name: 'str'\n    next: 'Node | None' = None\n"
        "  class Pair[T](typing.NamedTuple):\n    a: 'T'\n    b: 'list[int]'\n"
        "  class Row(typing.TypedDict):\n    x: 'typing.NotRequired[int]'\n"
        "  return Node, Pair, Row\n"
        "Node, Pair, Row = make()"
    )
    env = run(source)
    plain: dict[str, typing.Any] = {"__name__": __name__}
    exec(source.replace("'Node | None'", "'Node | None'"), plain)
    assert json_schema(env["Node"])["$defs"]["Node"]["properties"].keys() == {"name", "next"}
    assert json_schema(env["Row"])["properties"]["x"]["type"] == "integer"
    assert json_schema(env["Pair"][int])


@pytest.mark.parametrize("made_by", ["enum.Enum", "typing.Annotated[enum.Enum, 1]", "property(lambda self: enum.Enum)"])
def test_the_library_makes_no_class_of_what_it_finds_in_one_of_the_code(made_by):
    source = (
        f"import enum, string, typing\nseen = []\nclass F(string.Formatter):\n  get_value = {made_by}\n"
        "  def check_unused_args(self, *args): pass\n"
        "  def format_field(self, value, spec):\n    seen.append(value)\n    return ''\n"
        "F().vformat('{E}', [('__annotations__', {'x': '().__class__'})], {})"
    )
    with pytest.raises(ValueError, match="cannot have an attribute"):
        run(source)


def test_an_enumeration_is_derived_from_by_way_of_a_class_or_a_function():
    source = (
        "import enum\ndef base(): return enum.Enum\nclass Kinds: base = enum.Enum\n"
        "class A(base()): X = 1\nclass B(Kinds.base): X = 2\nx = [A.X.value, B(2).name, isinstance(A.X, enum.Enum)]"
    )
    assert run(source)["x"] == [1, "X", True]
