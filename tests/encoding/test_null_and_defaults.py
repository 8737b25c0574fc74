"""Null stands for a default, where there is one and where the type has no null itself; for nothing else."""

import collections
import collections.abc
import dataclasses
import json
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pydantic
import pytest
import typing_extensions

from effectful_agents.encoding import decode, encode, json_schema, strict_form, tool_codec
from effectful_agents.types import Tool


@dataclasses.dataclass
class Refund:
    amount: int
    reason: str = ""


@dataclasses.dataclass
class Close:
    reason: str = ""


class Options(TypedDict, total=False):
    size: int


class Settings(pydantic.BaseModel):
    size: int = 3
    name: str | None = "x"


def refuse(value: Any) -> Any:
    raise ValueError("it is refused")


class Checked(pydantic.BaseModel):
    size: Annotated[int | None, pydantic.AfterValidator(refuse)] = 5


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("tp", "text", "told"),
    [
        (Refund | Close, '{"amount": null, "reason": "late"}', "amount: .*; it is null"),
        (Refund, '{"amount": null}', "amount: .*; it is null"),
        (Close, '{"amount": null}', "amount is not known"),
        (Options, '{"other": null, "size": null}', "other is not known"),
        (Settings, '{"sizes": null}', "sizes is not known"),
        (Checked, '{"size": null}', "size: it is refused"),
        (tuple[Settings, Options], '[{"size": null}, {"sizes": null}]', r"\[1\]\.sizes is not known"),
    ],
)
def test_null_for_what_has_no_default_is_refused(tp, text, told, strict):
    with pytest.raises(ValueError, match=told):
        decode(text, tp, strict=strict)


@pytest.mark.parametrize("strict", [False, True])
def test_null_for_what_has_one_is_the_default(strict):
    assert decode('{"size": null, "name": null}', Settings, strict=strict) == Settings(size=3, name=None)
    assert decode('{"amount": 1, "reason": null}', Refund | Close, strict=strict) == Refund(1)
    assert decode('{"size": null}', Options, strict=strict) == {}


def test_null_for_what_a_tool_does_not_know_is_refused():
    @Tool.define
    def cancel(order: int, dry_run: bool = True) -> None:
        """Cancel."""

    codec = tool_codec(cancel)
    assert codec.decode('{"order": 1, "dry_run": null}').arguments == {"order": 1, "dry_run": True}
    with pytest.raises(ValueError, match="`force` is not a parameter"):
        codec.decode('{"order": 1, "force": null}')


# --- tags ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Leaf:
    kind: Literal["leaf"] = "leaf"
    size: int = 0


@dataclasses.dataclass
class Node:
    left: "Leaf | Node"
    kind: Literal["node"] = "node"


class Circle(pydantic.BaseModel):
    kind: Literal["circle"] = "circle"
    radius: int = 1


class Square(pydantic.BaseModel):
    kind: Literal["square"] = "square"
    side: int = 1


type Shape = Annotated[Circle | Square, pydantic.Field(discriminator="kind")]


@pytest.mark.parametrize(
    ("tp", "text", "value"),
    [
        (list[Leaf | Node], '[{"kind": null, "size": 3}]', [Leaf(size=3)]),
        (Node, '{"kind": null, "left": {"kind": null, "left": {"kind": "leaf"}}}', Node(Node(Leaf()))),
        (dict[str, Shape], '{"a": {"kind": null, "side": 3}}', {"a": Square(side=3)}),
        (dict[str, Shape], '{"a": {"radius": 3}}', {"a": Circle(radius=3)}),
        (Shape, '{"kind": "square", "side": "3"}', Square(side=3)),
    ],
)
def test_a_tag_that_has_a_default_may_be_null_or_left_out(tp, text, value):
    assert decode(text, tp) == value
    assert decode(text.replace('"3"', "3"), tp, strict=True) == value


@pytest.mark.parametrize("tp", [Shape, list[Shape]])
@pytest.mark.parametrize("wrong", ['"triangle"', "[1]", "3", '{"a": 1}', "true"])
def test_a_tag_that_is_none_of_them_is_told(tp, wrong):
    text = f'{{"kind": {wrong}}}'
    with pytest.raises(ValueError, match="have as `kind` one of 'circle', 'square'"):
        decode(text if tp is Shape else f"[{text}]", tp)


def test_the_strict_form_of_a_recursive_union_can_be_answered_to_the_letter():
    assert strict_form(json_schema(Node)).reason is None
    answer = {"left": {"kind": None, "size": None}, "kind": None}
    assert decode(json.dumps(answer), Node, strict=True) == Node(Leaf())
    assert encode(Node(Leaf())) == {"left": {"kind": "leaf", "size": 0}, "kind": "node"}


class Named(NamedTuple):
    names: collections.defaultdict[str, list[int]]


class Many(typing_extensions.TypedDict, extra_items=collections.abc.Collection[int]):
    first: collections.abc.Collection[int]
    second: typing_extensions.NotRequired[collections.abc.Collection[int]]


def test_what_is_optional_stays_so_where_a_type_inside_is_read_anew():
    @Tool.define
    def show(
        named: Named = Named(collections.defaultdict(list)),  # noqa: B008
        sizes: collections.abc.Collection[int] = (),
        **more: collections.abc.Collection[str],
    ) -> None:
        """Show."""

    codec = tool_codec(show)
    assert "required" not in codec.definition()["function"]["parameters"]
    assert codec.decode("{}").arguments["sizes"] == ()
    assert codec.decode('{"sizes": [1], "other": ["a"]}').arguments["more"] == {"other": ["a"]}
    with pytest.raises(ValueError, match="other"):
        codec.decode('{"other": [1]}')
    assert decode('{"first": [1], "third": [2]}', Many) == {"first": [1], "third": [2]}
    with pytest.raises(ValueError, match="third"):
        decode('{"first": [1], "third": ["a"]}', Many)
    assert json_schema(Many)["required"] == ["first"]
