"""Types that the tests of encoding share; at the level of a module, so that forward references are found."""

from __future__ import annotations

import dataclasses
import enum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import annotated_types
import pydantic

from effectful_agents.encoding import Encodable


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Tree:
    value: int
    children: list[Tree] = dataclasses.field(default_factory=list)
    parent: Tree | None = None


class Person(pydantic.BaseModel):
    """Somebody."""

    name: Annotated[str, pydantic.Field(description="first and last")]
    age: Annotated[int, pydantic.Field(ge=0)] = 30
    friends: list[Person] = []
    colour: Colour | None = None


class Address(TypedDict):
    street: str
    number: NotRequired[int]


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclasses.dataclass(frozen=True)
class Box[T]:
    content: T


@dataclasses.dataclass
class Square:
    side: int
    kind: Literal["square"] = "square"


@dataclasses.dataclass
class Circle:
    radius: int
    kind: Literal["circle"] = "circle"


Shape = Annotated[Square | Circle, pydantic.Field(discriminator="kind")]

type Json = dict[str, Json] | list[Json] | str | int | bool | None


@dataclasses.dataclass
class Everything:
    """All that is not simple."""

    tree: Tree
    box: Box[Encodable[int]]
    shape: Shape
    point: Point
    colours: frozenset[Colour]
    level: Level
    short: Annotated[str, annotated_types.MaxLen(5)] = "abc"
    json: Json = None
    anything: Any = None
