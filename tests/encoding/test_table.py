"""The table of types, row by row: an annotation, a value, and what is on the wire."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import pathlib
import re
import socket
import types
import uuid
import zoneinfo
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
)

import annotated_types
import attrs
import pydantic
import pytest
import typing_extensions

from effectful_agents import NotHandled, Skill, Tool
from effectful_agents.encoding import (
    Encodable,
    answer_codec,
    decode,
    encode,
    format_as_content_blocks,
    json_schema,
    tool_codec,
)
from effectful_agents.errors import EncodingError
from effectful_agents.messages import Audio, Document, Image
from tests.encoding.random_types import Node, Pair, Rose, same
from tests.encoding.shapes import Box, Circle, Colour, Json, Level, Person, Point, Shape, Square, Tree
from tests.encoding.test_laws import as_answer, listed, misfit, parameters_of, tool_with

# --- types of the table -----------------------------------------------------------------------------------------------


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


class Row(NamedTuple):
    tp: Any
    value: Any
    wire: Any = ...  # what the value is as JSON; a function that says whether; or whatever can be read again


def text(encoded: Any) -> bool:
    return isinstance(encoded, str)


def row(tp: Any, value: Any, wire: Any = ..., name: str | None = None) -> Any:
    shown = name or re.sub(r"[\w.]*\.(\w+)", r"\1", str(tp) if not isinstance(tp, type) else tp.__name__)
    shown = shown if name else f"{shown}={value!r}"[:70]
    return pytest.param(Row(tp, value, wire), id=shown)


UTC = datetime.UTC
ROWS = [
    # scalars
    row(str, "a", "a"),
    row(str, "ü\u2028\x00😀", "ü\u2028\x00😀"),
    row(bool, True, True),
    row(int, -7, -7),
    row(int, 10**40, 10**40),
    row(float, 0.1, 0.1),
    row(float, 1e300, 1e300),
    row(float, -0.0, -0.0),
    row(float, math.nan, "NaN"),
    row(float, -math.inf, "-Infinity"),
    row(list[float], [math.inf, 1.5], ["Infinity", 1.5]),
    row(complex, 1 + 2.5j),
    row(complex, complex(0, -1)),
    row(None, None, None),
    row(types.NoneType, None, None),
    row(bytes, b"text", text),
    row(bytes, b"\x00\xff\xfe", text),
    row(bytes, b"", text),
    row(bytearray, bytearray(b"\xff\x00"), text),
    row(decimal.Decimal, decimal.Decimal("1.10"), "1.10"),
    row(decimal.Decimal, decimal.Decimal("1E+30"), "1E+30"),
    row(fractions.Fraction, fractions.Fraction(-1, 3), "-1/3"),
    row(uuid.UUID, uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    row(pathlib.Path, pathlib.Path("/a/b c"), "/a/b c"),
    row(pathlib.PurePosixPath, pathlib.PurePosixPath("a"), "a"),
    row(datetime.datetime, datetime.datetime(2024, 2, 29, 1, 2, 3, 4), "2024-02-29T01:02:03.000004"),
    row(datetime.datetime, datetime.datetime(2024, 2, 29, tzinfo=UTC), "2024-02-29T00:00:00Z"),
    row(
        datetime.datetime, datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone(datetime.timedelta(hours=-5))), text
    ),
    row(datetime.date, datetime.date(2024, 2, 29), "2024-02-29"),
    row(datetime.time, datetime.time(1, 2, 3), "01:02:03"),
    row(datetime.timedelta, datetime.timedelta(days=1, seconds=2), "P1DT2S"),
    row(datetime.timedelta, datetime.timedelta(days=-3, microseconds=1)),
    row(zoneinfo.ZoneInfo, zoneinfo.ZoneInfo("Europe/Madrid"), "Europe/Madrid"),
    row(re.Pattern[str], re.compile("a+"), "a+"),
    row(re.Pattern, re.compile(r"\d")),
    row(re.Pattern[str], re.compile("a", re.IGNORECASE | re.VERBOSE)),
    row(re.Pattern[bytes], re.compile(b"a+")),
    # enumerations and literals
    row(Colour, Colour.RED, "red"),
    row(Level, Level.HIGH, 2),
    row(Size, Size.L, 3),
    row(Planet, Planet.MARS),
    row(Maybe, Maybe.NO),
    row(Operator, Operator.ADD, "ADD"),
    row(Permission, Permission.R),
    row(Permission, Permission.R | Permission.X),
    row(Permission, Permission(0)),
    row(Mode, Mode.A | Mode.B),
    row(Permission | None, Permission.W),
    row(Permission | str, Permission.W | Permission.X),
    row(Literal["a", "b"], "b", "b"),
    row(Literal[1, "1"], "1", "1"),
    row(Literal[1, "1"], 1, 1),
    row(Literal[1, True], True, True),
    row(Literal[1, True], 1, 1),
    row(Literal[0, False, "x"], False, False),
    row(Literal[None, "a"], None, None),
    row(Literal[None], None, None),
    row(Literal[Level.LOW, "x"], Level.LOW, 1),
    row(Literal[Planet.EARTH], Planet.EARTH),
    row(Literal[Colour.RED, 1], Colour.RED, "red"),
    row(Literal[b"x"], b"x"),
    # unions
    row(int | None, None, None),
    row(Optional[int], 3, 3),  # noqa: UP045
    row(int | str, "5", "5"),
    row(int | str, 5, 5),
    row(str | int, "true", "true"),
    row(bool | int, 1, 1),
    row(bool | int, True, True),
    row(int | bool, True, True),
    row(float | bool, 1.5, 1.5),
    row(float | str, "NaN", "NaN"),
    row(int | float, 0.5, 0.5),
    row(list[int] | dict[str, int], {"a": 1}),
    row(list[int | None] | int | None, [None, 1], [None, 1]),
    row(dict[str, int | list[str]] | None, {"a": ["x"], "b": 2}),
    row(Shape, Circle(3)),
    row(Shape | None, Square(3)),
    row(list[Square | Circle], [Circle(1), Square(2)]),
    row(Point | str, Point(1, 2)),
    row(Literal["all"] | list[Literal["a", "b"]], ["a"], ["a"]),
    row(Colour | int, Colour.BLUE, "blue"),
    row(Tree | int, Tree(1)),
    # containers
    row(list[int], [1, 2], [1, 2]),
    row(list[int], [], []),
    row(list, [1, "a", None], [1, "a", None]),
    row(list[list[list[int]]], [[[1], []]], [[[1], []]]),
    row(tuple[int, str], (1, "a")),
    row(tuple[int, ...], (1, 2), [1, 2]),
    row(tuple[()], ()),
    row(tuple, (1, "a")),
    row(tuple[int], (1,)),
    row(tuple[tuple[int, int], tuple[str, tuple[bool]]], ((1, 2), ("a", (True,)))),
    row(list[tuple[int, str]], [(1, "a")]),
    row(set[int], {3, 1, 2}, [1, 2, 3]),
    row(set, {2, 1}, [1, 2]),
    row(frozenset[str], frozenset("ba"), ["a", "b"]),
    row(set[tuple[int, str]], {(2, "b"), (1, "a")}),
    row(set[frozenset[int]], {frozenset({1, 2}), frozenset()}),
    row(dict[str, int], {"a": 1, "b": 2}),
    row(dict[str, int], {}),
    row(dict, {"a": [1]}, {"a": [1]}),
    row(dict[str, Any], {"a": [1, None]}),
    row(dict[str, dict[str, list[int]]], {"a": {"b": [1]}}),
    row(dict[int, str], {1: "a", -2: "b"}),
    row(dict[bool, int], {True: 1, False: 0}),
    row(dict[float, int], {0.5: 1}),
    row(dict[Colour, int], {Colour.RED: 1}),
    row(dict[Level, int], {Level.LOW: 1, Level.HIGH: 2}),
    row(dict[Size, int], {Size.L: 1}),
    row(dict[Planet, int], {Planet.MARS: 1}),
    row(dict[Permission, int], {Permission.R | Permission.W: 1}),
    row(dict[tuple[int, str], float], {(1, "a,b"): 0.5, (2, ""): 1.5}),
    row(dict[datetime.date, int], {datetime.date(2024, 1, 1): 1}),
    row(dict[uuid.UUID, int], {uuid.UUID(int=1): 1}),
    row(dict[Literal["a", "b"], int], {"b": 1}),
    row(dict[int | str, int], {1: 1, "1": 2}),
    row(dict[Point, int], {Point(1, 2): 1}),
    row(dict[frozenset[int], int], {frozenset({1}): 1}),
    row(collections.deque[int], collections.deque([1, 2]), [1, 2]),
    row(collections.Counter[str], collections.Counter("aab")),
    row(collections.Counter[int], collections.Counter([1, 1])),
    row(collections.defaultdict[str, list[int]], collections.defaultdict(list, a=[1])),
    row(collections.OrderedDict[str, int], collections.OrderedDict(b=1, a=2)),
    row(Mapping[str, int], {"a": 1}),
    row(MutableMapping[str, int], {"a": 1}),
    row(Sequence[int], [1], [1]),
    row(Collection[int], [1], [1]),
    row(Iterable[int], [1, 2], [1, 2]),
    row(Iterable[Point], [Point(1, 2)]),
    row(AbstractSet[int], frozenset({2, 1}), [1, 2]),
    # classes
    row(Point, Point(1, 2)),
    row(Segment, Segment(Point(1, 2), tags=("a",))),
    row(Untyped, Untyped(1, "a")),
    row(Movie, {"title": "M"}),
    row(Movie, {"title": "M", "year": 1931}),
    row(Loose, {"title": "M"}),
    row(Closed, {"a": 1}, {"a": 1}),
    row(Base, Base(1), {"id": 1}),
    row(Derived, Derived(1, tags=["a"], when=datetime.date(2024, 1, 1))),
    row(Frozen, Frozen(a=1), {"a": 1, "b": "b"}),
    row(Counted, Counted(2)),
    row(Tree, Tree(1, [Tree(2)], Tree(3))),
    row(Ping, Ping(Pong(Ping(), 2))),
    row(list[Pong], [Pong(Ping(None))]),
    row(Box[int], Box(1), {"content": 1}),
    row(Box[Box[list[str]]], Box(Box(["a"])), {"content": {"content": ["a"]}}),
    row(Node[str], Node("a", [Node("b")])),
    row(Person, Person(name="A", friends=[Person(name="B")], colour=Colour.RED)),
    row(Aliased, Aliased(**{"the-first": 1, "two": "2024-02-02"}), {"the-first": 1, "two": "2024-02-02"}),
    row(Checked, Checked(word="a")),
    row(Exact, Exact(day=datetime.date(2024, 1, 1), names=("a",), colours={Colour.RED}, id=uuid.UUID(int=1))),
    row(list[Exact], [Exact(day=datetime.date(2024, 1, 1))]),
    row(Extra, Extra(a=1, b="x"), {"a": 1, "b": "x"}),  # ty: ignore[unknown-argument]
    row(Page[int], Page[int](items=[1], next=Page[int](items=[]))),
    row(Numbers, Numbers([1, 2]), [1, 2]),
    row(dict[str, Numbers], {"a": Numbers([1])}),
    row(
        Ordered,
        Ordered(
            modes=collections.OrderedDict(a=Permission.R | Permission.W, b=Permission(0)),
            cells=collections.OrderedDict({(1, "a,b"): 2}),
            pattern=re.compile("a", re.IGNORECASE),
        ),
    ),
    row(Slots, Slots(lists=collections.defaultdict(lambda: Colour.RED, a=Colour.BLUE)), name="Slots"),
    row(Robot, Robot("R", parts=["p"]), {"name": "R", "arms": 2, "parts": ["p"]}),
    row(list[Dot], [Dot(1)], [{"x": 1}]),
    # metadata and names
    row(Annotated[int, annotated_types.Ge(0), annotated_types.Lt(10)], 3, 3),
    row(Annotated[str, annotated_types.Len(1, 3), "a note"], "abc", "abc"),
    row(Annotated[list[Annotated[int, annotated_types.Gt(0)]], annotated_types.MinLen(1)], [1], [1]),
    row(Annotated[str, pydantic.StringConstraints(pattern="^a+$")], "aa", "aa"),
    row(Annotated[datetime.date, pydantic.Strict()], datetime.date(2024, 1, 1), "2024-01-01"),
    row(Annotated[decimal.Decimal, pydantic.Field(decimal_places=2, max_digits=4)], decimal.Decimal("1.25"), "1.25"),
    row(Annotated[int, pydantic.Field(description="How many.")], 3, 3),
    row(UserId, UserId(3), 3),
    row(list[UserId], [UserId(3)], [3]),
    row(Ints, [1], [1]),
    row(Groups, collections.defaultdict(list, {1: ["a"]})),
    row(Pair[int], (1, 2)),
    row(Rose[int], [1, [2, []]], [1, [2, []]]),
    row(Linked[int], (1, (2, None))),
    row(Json, {"a": [1, None, {"b": True}]}),
    row(Bounded, 3, 3),
    row(list[Bounded], [3], [3]),
    row(Defaulted, "a", "a"),
    row(Encodable[int], 3, 3),
    row(Any, {"a": [1, None]}),
    row(list[Any], [1, "a", [None]]),
    row(object, "a", "a"),
    # content parts
    row(Image, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}),
    row(Audio, {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}),
    row(list[Document], [{"type": "file", "file": {"file_id": "f"}}]),
]

every_row = pytest.mark.parametrize("row", ROWS)


def described(row: Row) -> Any:
    encoded = encode(row.value, row.tp)
    json.dumps(encoded, allow_nan=False)
    return encoded


@every_row
def test_a_value_has_its_form_and_is_read_again(row):
    encoded = described(row)

    if callable(row.wire):
        assert row.wire(encoded)
    elif row.wire is not ...:
        assert same(encoded, row.wire)
    back = decode(json.dumps(encoded), row.tp)
    assert same(row.value, listed(row.value, back)), back


@every_row
def test_a_value_is_an_answer(row):
    encoded = described(row)
    codec = answer_codec(row.tp)
    if codec.response_format is None:
        back = codec.decode(encoded)
    else:
        content = as_answer(row.tp, encoded)
        assert not misfit(codec.response_format["json_schema"]["schema"], content)
        back = codec.decode(json.dumps(content))

    assert same(row.value, listed(row.value, back)), back


@every_row
def test_a_value_is_an_argument_and_a_result(row):
    encoded = described(row)
    tool = tool_with(row.tp)
    assert not misfit(parameters_of(tool), {"x": encoded})

    back = tool_codec(tool).decode(json.dumps({"x": encoded})).arguments["x"]
    shown = tool_codec(tool).encode_result(row.value)

    assert same(row.value, listed(row.value, back)), back
    if isinstance(shown, str):
        assert shown == encoded or json.loads(shown) == encoded
    else:  # parts of a message
        assert shown == (encoded if isinstance(encoded, list) else [encoded])


# --- one way only -----------------------------------------------------------------------------------------------------


def double(x: int) -> int:
    """Twice as much."""
    return x * 2


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    raise NotImplementedError


@Skill.define
def plan(month: str) -> str:
    """Plan for {month}."""
    raise NotHandled


@pytest.mark.parametrize("value", [double, weather, plan], ids=["function", "tool", "skill"])
def test_what_is_written_one_way_names_itself_in_a_prompt(value):
    (block,) = format_as_content_blocks("Use {x}.", {"x": value})

    assert value.__name__ in block["text"]
    assert "0x" not in block["text"]


@pytest.mark.parametrize(
    "value",
    [(number for number in range(3)), iter([1]), open, object(), socket, int],
    ids=["generator", "iterator", "builtin", "object", "module", "class"],
)
def test_what_has_no_form_is_refused_by_name(value):
    with pytest.raises(EncodingError) as raised:
        encode(value)

    assert "0x" not in str(raised.value)


# --- refused types ----------------------------------------------------------------------------------------------------


class Plain:
    pass


@dataclasses.dataclass
class Step:
    name: str
    socket: socket.socket


@attrs.define
class Holder:
    plain: Plain


class Held(TypedDict):
    steps: dict[str, list[Step]]


@pytest.mark.parametrize(
    ("tp", "path", "culprit"),
    [
        (socket.socket, "", "socket.socket"),
        (list[Step], "[].socket", "socket.socket"),
        (Held, ".steps{}[].socket", "socket.socket"),
        (tuple[int, Plain], "[1]", "Plain"),
        (dict[str, Plain], "{}", "Plain"),
        (Plain | None, "", "Plain"),
        (Holder, ".plain", "Plain"),
        (list[Holder], "[].plain", "Plain"),
        (set[Plain], "[]", "Plain"),
        (Box[Plain], ".content", "Plain"),
        (types.ModuleType, "", "module"),
        (type[int], "", "a class"),
    ],
    ids=str,
)
def test_a_type_without_a_form_is_refused_with_the_path_to_the_part_at_fault(tp, path, culprit):
    with pytest.raises(EncodingError) as as_answer_:
        answer_codec(tp)
    with pytest.raises(EncodingError) as as_parameter:
        tool_codec(tool_with(tp)).definition()

    for error in (as_answer_, as_parameter):
        assert culprit in str(error.value)
        assert path in str(error.value)
        assert "0x" not in str(error.value)
    assert re.match(rf"use\(x: .*\)\.x{re.escape(path)}: .*{culprit}", str(as_parameter.value))


def test_the_message_of_a_refused_parameter():
    def plan(steps: list[Step]) -> None:
        """Plan."""

    with pytest.raises(EncodingError, match=r"plan\(steps: list\[Step\]\)\.steps\[\]\.socket: socket\.socket has no"):
        tool_codec(Tool.define(plan)).definition()


# --- values that do not fit -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tp", "sent"),
    [
        (int, "true"),
        (int, "1.5"),
        (int, '"x"'),
        (int, "null"),
        (int, "[1]"),
        (float, "true"),
        (bool, "1"),
        (bool, '"maybe"'),
        (str, "5"),
        (str, "null"),
        (list[int], "[1, true]"),
        (list[int], '{"a": 1}'),
        (set[int], "[false]"),
        (tuple[int, str], '[1, "a", 3]'),
        (tuple[int, str], "[1]"),
        (tuple[()], "[1]"),
        (dict[str, int], '{"a": "x"}'),
        (dict[str, int], '{"a": 1, "a": 2}'),
        (Base, '{"id": 1, "id": 1}'),
        (Base, '{"id": 1, "zz": 1}'),
        (Base, "{}"),
        (Base, '{"id": true}'),
        (Movie, '{"title": "M", "zz": 1}'),
        (Closed, '{"a": 1, "b": 2}'),
        (Person, '{"name": "A", "zz": 1}'),
        (Person, '{"name": "A", "age": -1}'),
        (Checked, '{"word": "A"}'),
        (Colour, '"green"'),
        (Level, "3"),
        (Level, "true"),
        (Literal[1], "true"),
        (Literal[1], '"x"'),
        (Literal[True], "1"),
        (Literal[Level.LOW], "2"),
        (datetime.date, "5"),
        (datetime.date, '"2024-02-30"'),
        (datetime.datetime, "1700000000"),
        (datetime.timedelta, "3"),
        (uuid.UUID, '"x"'),
        (re.Pattern[str], '"("'),
        (Annotated[int, annotated_types.Ge(0)], "-1"),
        (Annotated[str, annotated_types.MaxLen(2)], '"abc"'),
        (Annotated[list[int], annotated_types.MinLen(1)], "[]"),
        (Annotated[float, pydantic.AllowInfNan(False)], '"NaN"'),
        (Robot, '{"name": "R", "zz": 1}'),
        (Dot, '{"x": -1}'),
        (Permission, "64"),
        (Shape, '{"kind": "triangle", "side": 1}'),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(tp, sent):
    with pytest.raises(ValueError, match=r"\S") as raised:
        tool_codec(tool_with(tp)).decode(f'{{"x": {sent}}}')

    assert len(str(raised.value)) < 1000
    with pytest.raises(ValueError, match=r"\S"):
        decode(sent, tp)


@pytest.mark.parametrize(
    ("tp", "sent", "read"),
    [
        (int | str, '"5"', "5"),
        (str | int, '"5"', "5"),
        (str | int, "5", 5),
        (bool | str, '"true"', "true"),
        (int | float, "1", 1),
        (int | bool, "true", True),
        (float, "1", 1.0),
        (int, "3.0", 3),
        (list[int], "[3.0]", [3]),
    ],
    ids=str,
)
def test_what_has_one_reading_is_read(tp, sent, read):
    assert same(tool_codec(tool_with(tp)).decode(f'{{"x": {sent}}}').arguments["x"], read)
    assert same(decode(sent, tp), read)


@pytest.mark.parametrize("sent", ['{"x": [1]}', '"{\\"x\\": [1]}"', '```json\n{"x": [1]}\n```', {"x": [1]}])
def test_the_packaging_of_arguments_is_forgiven(sent):
    assert tool_codec(tool_with(list[int])).decode(sent).arguments == {"x": [1]}


@pytest.mark.parametrize("sent", ['{"value": [1]}', "[1]", '```\n{"value": [1]}\n```', "```json\n[1]\n```", '"[1]"'])
def test_the_packaging_of_an_answer_is_forgiven(sent):
    assert answer_codec(list[int]).decode(sent) == [1]


# --- equal types that are not the same --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (int | str, str | int),
        (Literal["a", "b"], Literal["b", "a"]),
        (list[Literal["a", "b"]], list[Literal["b", "a"]]),
        (Literal[1], Literal[True]),
        (dict[str, Literal[0]], dict[str, Literal[False]]),
        (Annotated[int, annotated_types.Ge(1)], Annotated[int, annotated_types.Ge(True)]),
    ],
    ids=str,
)
def test_types_that_python_calls_equal_keep_their_own_order(one, other):
    first, second = json.dumps(json_schema(one)), json.dumps(json_schema(other))

    assert json.dumps(json_schema(one)) == first
    assert json.dumps(json_schema(other)) == second
    if "Ge" not in str(one):
        assert first != second


def test_a_forward_reference_is_resolved_where_the_function_is_written():
    def use(x: "dict[str, Point]", y: "Ping | None" = None) -> "list[Later]":
        """Use it."""

    codec = tool_codec(Tool.define(use))

    point = encode(Point(1, 2), Point)
    assert codec.decode(json.dumps({"x": encode({"a": Point(1, 2)}, dict[str, Point])})).arguments["x"] == {
        "a": Point(1, 2)
    }
    assert json.loads(codec.encode_result([Later(Point(1, 2))])) == [{"point": point}]


@dataclasses.dataclass
class Later:
    point: Point


def test_a_callable_is_offered_as_source_or_refused():
    """Without a handler of code there is nobody to read one; the definition says which it is."""
    try:
        definition = tool_codec(tool_with(Callable[[int], int])).definition()
    except EncodingError as error:
        assert "Callable" in str(error)  # noqa: PT017
    else:
        assert definition["function"]["parameters"]["properties"]["x"]


def test_an_iterator_as_a_parameter_can_be_read():
    back = tool_codec(tool_with(Iterator[int])).decode('{"x": [1, 2]}').arguments["x"]

    assert list(back) == [1, 2]
