"""The types of the table that have names."""

import collections
import dataclasses
import datetime
import enum
import re
import uuid
from typing import (
    ClassVar,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
)

import attrs
import pydantic
import typing_extensions

from tests.encoding.shapes import Colour, Point


class Size(enum.IntEnum):
    S = 1
    L = 3


class Planet(enum.Enum):
    EARTH = (1, "a")
    MARS = (2, "b")


class Maybe(enum.Enum):
    NO = None
    YES = "yes"


class Operator(enum.Enum):
    """Its values are no JSON: it goes by the names."""

    ADD = int
    JOIN = str


class Permission(enum.Flag):
    R = 4
    W = 2
    X = 1


class Mode(enum.IntFlag):
    A = 1
    B = 2


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Loose(TypedDict, total=False):
    title: Required[str]
    year: int


class Closed(typing_extensions.TypedDict, closed=True):
    a: int


Untyped = collections.namedtuple("Untyped", ["x", "y"])


class Segment(NamedTuple):
    start: Point
    name: str = "s"
    tags: tuple[str, ...] = ()


@dataclasses.dataclass
class Base:
    id: int


@dataclasses.dataclass
class Derived(Base):
    """Fields of every sort."""

    kinds: ClassVar[int] = 2
    secret: dataclasses.InitVar[int] = 1
    tags: list[str] = dataclasses.field(default_factory=list)
    when: datetime.date | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    a: int
    b: str = "b"


@dataclasses.dataclass
class Counted:
    a: int
    twice: int = dataclasses.field(init=False)

    def __post_init__(self):
        self.twice = self.a * 2


@dataclasses.dataclass
class Ping:
    pong: "Pong | None" = None


@dataclasses.dataclass
class Pong:
    ping: Ping
    n: int = 0


class Aliased(pydantic.BaseModel):
    first: int = pydantic.Field(alias="the-first")
    second: datetime.date = pydantic.Field(
        default=datetime.date(2024, 1, 1), validation_alias="two", serialization_alias="two"
    )


class Checked(pydantic.BaseModel):
    word: str

    @pydantic.field_validator("word")
    @classmethod
    def lower(cls, word: str) -> str:
        if word != word.lower():
            raise ValueError("in lower case")
        return word

    @pydantic.computed_field
    @property
    def length(self) -> int:
        return len(self.word)


class Exact(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    day: datetime.date
    names: tuple[str, ...] = ()
    colours: set[Colour] = set()
    id: uuid.UUID | None = None


class Extra(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    a: int


class Page[T](pydantic.BaseModel):
    items: list[T]
    next: "Page[T] | None" = None


class Numbers(pydantic.RootModel[list[int]]):
    pass


@attrs.define
class Robot:
    name: str
    arms: int = 2
    parts: list[str] = attrs.Factory(list)


@attrs.frozen
class Dot:
    x: int = attrs.field(validator=attrs.validators.ge(0))


class Ordered(pydantic.BaseModel):
    """What pydantic would write in its own way."""

    modes: collections.OrderedDict[str, Permission]
    cells: collections.OrderedDict[tuple[int, str], int]
    pattern: re.Pattern[str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    lists: collections.defaultdict[str, Colour]


UserId = NewType("UserId", int)
Bounded = TypeVar("Bounded", bound=int)
Defaulted = typing_extensions.TypeVar("Defaulted", default=str)
type Ints = list[int]
type Groups = collections.defaultdict[int, list[str]]
type Linked[T] = tuple[T, Linked[T] | None]
