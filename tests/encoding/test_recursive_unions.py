"""Trees of alternatives with the same keys: read in the time of their size, and errors that name one alternative."""

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pydantic
import pytest

from effectful_agents.encoding import decode, encode, json_schema

DEPTH = 60
"""Trying both alternatives at each level would take 2⁶⁰ steps."""


@dataclasses.dataclass
class Add:
    left: "Sum"
    right: "Sum"
    op: Literal["add"] = "add"


@dataclasses.dataclass
class Take:
    left: "Sum"
    right: "Sum"
    op: Literal["take"] = "take"


type Sum = Add | Take | int


class Folder(pydantic.BaseModel):
    inside: "list[Entry]" = []
    name: str


class Drive(pydantic.BaseModel):
    inside: "list[Entry]" = []
    letter: str


type Entry = Folder | Drive


class Here(TypedDict):
    next: "Way"
    here: NotRequired[int]


class There(TypedDict):
    next: "Way"
    there: NotRequired[int]


type Way = Here | There | None


def sums(leaf: Any, op: str = "take") -> Any:
    tree = leaf
    for _ in range(DEPTH):
        tree = {"op": op, "left": tree, "right": 1}
    return tree


def entries(leaf: Any) -> Any:
    tree = leaf
    for _ in range(DEPTH):
        tree = {"letter": "C", "inside": [tree]}
    return tree


def ways(leaf: Any) -> Any:
    for _ in range(DEPTH):
        leaf = {"next": leaf, "there": 1}
    return leaf


@pytest.mark.parametrize(
    ("tp", "tree"),
    [(Add | Take, sums(1)), (Folder | Drive, entries({"name": "x", "inside": []})), (Here | There, ways(None))],
)
def test_a_deep_tree_comes_back(tp, tree):
    value = decode(json.dumps(tree), tp)

    assert encode(value, tp) == tree


@pytest.mark.parametrize(
    ("tp", "tree", "told"),
    [
        (Add | Take, sums("x"), r'integer; it is "x"'),
        (Add | Take, sums({"op": "add", "left": 1}), "right is missing"),
        (Add | Take, sums({"op": "times", "left": 1, "right": 1}), r"have as `op` one of 'add', 'take'; it is {"),
        (Folder | Drive, entries({"name": 5}), r"name: Input should be a valid string; it is 5"),
        (Here | There, ways({"there": 1}), "next is missing"),
    ],
)
def test_a_fault_deep_in_a_tree_is_found_in_time_and_told_for_one_alternative(tp, tree, told):
    with pytest.raises(ValueError, match=told):
        decode(json.dumps(tree), tp)


def test_a_tag_with_a_default_may_be_left_out():
    text = '{"left": {"left": 1, "right": 2}, "right": {"op": "take", "left": 3, "right": 4}}'

    assert decode(text, Add | Take) == Add(Add(1, 2), Take(3, 4))


def test_what_is_read_loosely_is_read_so_inside_the_tree():
    assert decode('{"op": "take", "left": {"op": "add", "left": "1", "right": 2.0}, "right": 3}', Add | Take) == Take(
        Add(1, 2), 3
    )


class Way2(enum.Enum):
    UP = "up"
    DOWN = "down"


@dataclasses.dataclass
class Up:
    way: Literal[Way2.UP]
    inner: "Nested"
    number: Annotated[int, pydantic.Field(validation_alias=pydantic.AliasChoices("n", "no"))] = 0


@dataclasses.dataclass
class Down:
    way: Literal[Way2.DOWN]
    inner: "Nested"


class First(TypedDict):
    number: Literal[1]
    inner: "Nested"


class Second(TypedDict):
    number: Literal[2]
    inner: "Nested"


class Before(pydantic.BaseModel):
    inner: "Nested"

    @pydantic.model_validator(mode="before")
    @classmethod
    def same(cls, values):
        return values


type Turn = tuple[Literal["left"], Nested] | tuple[Literal["right"], Nested]
type Ways = Up | Down
type Nested = (
    Ways | First | Second | Before | Turn | decimal.Decimal | datetime.date | bytes | Literal[1] | Way2 | uuid.UUID
)


@pytest.mark.parametrize(
    "level",
    [
        lambda inner: {"way": "down", "inner": inner},
        lambda inner: {"way": "up", "inner": inner, "n": 1},
        lambda inner: {"number": 2, "inner": inner},
        lambda inner: {"inner": inner},
        lambda inner: ["right", inner],
    ],
)
def test_alternatives_of_any_kind_are_told_apart_in_time(level):
    tree: Any = "1.5"
    for _ in range(20):
        tree = level(tree)
    for tp in (Nested, list[Ways | First | Second | Before | Turn]):
        listed = tree if tp is Nested else [tree]
        encoded = encode(decode(json.dumps(listed), tp), tp)
        assert json.dumps(encoded).count('"1.5"') == 1
        with pytest.raises(ValueError, match="it is true"):
            decode(json.dumps(listed).replace('"1.5"', "true"), tp)


def test_the_tag_says_which_alternative_is_meant_whatever_else_is_wrong():
    with pytest.raises(ValueError, match=r"^left is missing\nright is missing\nx is not known$"):
        decode('{"op": "take", "x": 1}', Add | Take)


# --- paths ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Cat:
    name: str
    kind: Literal["cat"] = "cat"
    cat: "dict[str, Any] | None" = None
    Cat: "dict[str, Any] | None" = None


@dataclasses.dataclass
class Dog:
    name: str
    bones: int
    kind: Literal["dog"] = "dog"


type Tagged = Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]


@pytest.mark.parametrize("tp", [Tagged, Cat | Dog, list[Tagged]])
def test_a_key_called_like_an_alternative_does_not_mislead_the_path(tp):
    for key in ("cat", "Cat"):
        pet = {"kind": "cat", "name": 5, key: {"name": "x"}}
        listed = isinstance(tp, type(list[int]))
        with pytest.raises(ValueError, match=rf"^{r'\[0\]\.' if listed else ''}name: .*; it is 5") as raised:
            decode(json.dumps([pet] if listed else pet), tp)
        assert f"{key}.name" not in str(raised.value)


class Renaming(pydantic.BaseModel):
    length: int

    @pydantic.model_validator(mode="before")
    @classmethod
    def renamed(cls, values):
        return {"length": values["len"]}


def test_a_key_that_a_validator_made_is_named():
    with pytest.raises(ValueError, match=r"^\[0\]\.length: Input should be a valid integer"):
        decode('[{"len": "five"}]', list[Renaming])


def test_the_schema_of_a_recursive_union_is_that_of_a_union():
    assert "anyOf" in json_schema(list[Add | Take])["items"]


type Written = (
    tuple[Written, Literal["add"], Written] | tuple[Written, Literal["take"], Written] | First2 | Second2 | int
)


class First2(TypedDict):
    inner: "Written"
    number: Literal[1]


class Second2(TypedDict):
    inner: "Written"
    number: Literal[2]


def test_alternatives_are_told_apart_in_time_when_they_are_written():
    value: Any = 1
    for _ in range(30):
        value = {"inner": (value, "take", 2), "number": 2}
    encoded = encode(value, Written)
    assert decode(json.dumps(encoded), Written) == value
