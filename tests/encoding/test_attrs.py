"""Classes of the attrs library: generics, subclasses, and fields that their constructors make."""

import dataclasses
import json
from typing import Any, Generic, TypeVar

import attrs
import pydantic
import pytest

from effectful_agents import Tool
from effectful_agents.encoding import decode, encode, json_schema, tool_codec

T = TypeVar("T")


@attrs.define
class Box(Generic[T]):  # noqa: UP046 - the older way of writing it
    x: T
    more: "list[Box[T]]" = attrs.field(factory=list)


@attrs.define
class Crate[X: int]:
    x: X
    xs: dict[str, X | None] = attrs.field(factory=dict)


@attrs.define
class Labelled(Box[str], Generic[T]):  # noqa: UP046 - with the variable of its base, which means another type
    label: T | None = None


@attrs.define
class Base:
    a: int


@attrs.define
class Derived(Base):
    b: int = 2


@attrs.define
class Counted:
    a: int
    seen: int = attrs.field(init=False, default=3)


@dataclasses.dataclass
class Holder:
    box: Box[int]


class Model[Y](pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    box: Box[Y]
    boxes: dict[str, Box[int] | None] = {}

    @pydantic.field_validator("box")
    @classmethod
    def not_nine(cls, box: Box[Y]) -> Box[Y]:
        if box.x == 9:
            raise ValueError("no nine")
        return box


@pytest.mark.parametrize(
    ("tp", "value", "wrong"),
    [
        (Box[int], Box(1, [Box(2)]), {"x": "a"}),
        (Box[int], Box(1), {"x": 1, "more": [{"x": "a"}]}),
        (Box[Box[int]], Box(Box(1)), {"x": {"x": "a"}}),
        (Box[int | str], Box("a"), {"x": None}),
        (Crate[bool], Crate(True, {"a": None}), {"x": 2}),
        (Crate, Crate(2), {"x": "a"}),
        (Labelled[int], Labelled("a", [Box("b")], 1), {"x": "a", "label": "b"}),
        (Labelled[int], Labelled("a"), {"x": 1}),
        (Holder, Holder(Box(1)), {"box": {"x": "a"}}),
        (Model[str], Model[str](box=Box("a"), boxes={"a": Box(1), "b": None}), {"box": {"x": 1}}),
        (Model[int], Model[int](box=Box(1)), {"box": {"x": 1}, "boxes": {"a": {"x": "a"}}}),
        (dict[str, list[Box[int] | None]], {"a": [Box(1), None]}, {"a": [{"x": "a"}]}),
    ],
    ids=str,
)
def test_what_a_generic_class_is_given_holds_for_its_fields(tp, value, wrong):
    assert decode(json.dumps(encode(value, tp)), tp) == value
    with pytest.raises(ValueError, match="Input should be"):
        decode(json.dumps(wrong), tp)


def test_validators_of_a_model_run_around_a_generic_class():
    with pytest.raises(ValueError, match="no nine"):
        decode('{"box": {"x": 9}}', Model[int])


def test_the_same_class_with_other_arguments_is_another_type():
    schema = json_schema(tuple[Box[int], Box[str]])
    kinds = [part["properties"]["x"]["type"] for part in schema["$defs"].values()]

    assert kinds == ["integer", "string"]


def test_a_generic_class_is_a_parameter():
    @Tool.define
    def ship(box: Box[int]) -> str:
        """Ship it."""
        return "shipped"

    parameters = tool_codec(ship).definition()["function"]["parameters"]
    assert parameters["$defs"]["Box"]["properties"]["x"] == {"type": "integer"}
    with pytest.raises(ValueError, match=r"box\.x"):
        tool_codec(ship).decode('{"box": {"x": "a"}}')


@pytest.mark.parametrize("tp", [list[Base], list[Base | None], list[Any]], ids=str)
def test_an_instance_of_a_subclass_is_written_with_all_that_it_has(tp):
    assert encode([Derived(1, 5), Base(1)], tp) == [{"a": 1, "b": 5}, {"a": 1}]


def test_what_the_constructor_makes_is_shown_and_never_asked_for():
    value = Counted(1)
    value.seen = 9

    assert encode(value) == {"a": 1, "seen": 9}
    assert json_schema(Counted)["properties"]["seen"] == {"type": "integer", "readOnly": True}
    assert json_schema(Counted)["required"] == ["a"]
    assert decode('{"a": 1, "seen": 9}', Counted) == Counted(1)
