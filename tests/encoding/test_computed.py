"""What classes compute is shown, ignored where it comes back, and opens no class to other keys."""

import dataclasses
import datetime
import functools
import json
from typing import Any, Literal

import attrs
import pydantic
import pytest
from pydantic import ConfigDict, computed_field

from effectful_agents.encoding import answer_codec, decode, dumps, encode, json_schema, strict_form
from effectful_agents.errors import EncodingError


class Model(pydantic.BaseModel):
    a: int
    note: str = ""

    @computed_field
    @property
    def twice(self) -> int:
        return self.a * 2


class Closed(Model):
    model_config = ConfigDict(extra="forbid")


class Open(Model):
    model_config = ConfigDict(extra="allow")


class Named(pydantic.BaseModel):
    a: int

    @computed_field(alias="zwei")
    @functools.cached_property
    def twice(self) -> list[datetime.date]:
        return [datetime.date(2026, 5, self.a)]


class Built(Closed):
    def __init__(self, **values: Any) -> None:
        super().__init__(**values)


class Exact(Model):
    model_config = ConfigDict(strict=True)
    pair: tuple[int, datetime.date] = (1, datetime.date(2026, 5, 1))


class Generic[T](pydantic.BaseModel):
    a: T

    @computed_field
    @property
    def twice(self) -> list[T]:
        return [self.a, self.a]


@dataclasses.dataclass
class Plain:
    a: int
    note: str = ""
    twice: int = dataclasses.field(init=False, default=0)


@dataclasses.dataclass(slots=True)
class Slotted:
    a: int
    twice: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.twice = self.a * 2


@pydantic.dataclasses.dataclass
class Checked:
    a: int
    half: int = pydantic.Field(init=False, default=4)

    @computed_field
    @property
    def twice(self) -> int:
        return self.a * 2


@attrs.define
class Attrs:
    a: int
    twice: int = attrs.field(init=False, default=3)


CLASSES: list[Any] = [
    Model, Closed, Open, Named, Built, Exact, Generic[int], Plain, Slotted, Checked, Attrs,
]  # fmt: skip
every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


@every_class
def test_what_is_written_is_read_as_the_same_value(cls):
    for value, tp in (
        (cls(a=1), cls),
        ([cls(a=1)], list[cls]),
        (cls(a=1), cls | None),
        ({"k": cls(a=1)}, dict[str, cls]),
    ):
        assert decode(json.dumps(encode(value, tp)), tp) == value


@every_class
def test_it_may_be_missing_or_anything(cls):
    schema = json_schema(cls)
    for key in (name for name, part in schema["properties"].items() if part.get("readOnly")):
        for value in (None, 5, "x", [1]):
            assert decode(json.dumps({"a": 1, key: value}), cls) == cls(a=1)
    assert decode('{"a": 1}', cls) == cls(a=1)
    assert cls is Open or strict_form(schema).reason is None


@every_class
def test_every_other_key_is_refused(cls):
    if cls is Open:
        assert decode('{"a": 1, "nota": "x", "twice": 9}', cls).__pydantic_extra__ == {"nota": "x"}
        return
    assert json_schema(cls)["additionalProperties"] is False
    with pytest.raises(ValueError, match=r"nota`? is not known"):
        decode('{"a": 1, "nota": "x"}', cls)


def test_what_was_given_of_a_model_does_not_tell_what_it_computes():
    back = decode('{"a": 1, "twice": 2}', Model)

    assert (back.model_fields_set, back.__pydantic_extra__, vars(back)) == ({"a"}, None, {"a": 1, "note": ""})


def test_a_key_of_a_field_stays_that_of_the_field():
    class Both(pydantic.BaseModel):
        a: int = pydantic.Field(validation_alias="twice")

        @computed_field
        @property
        def twice(self) -> int:
            return 0

    assert decode('{"twice": 5}', Both).a == 5


@dataclasses.dataclass
class Left:
    parts: "list[Left | Right]" = dataclasses.field(default_factory=list)
    left: int = dataclasses.field(init=False, default=1)


@dataclasses.dataclass
class Right:
    parts: "list[Left | Right]" = dataclasses.field(default_factory=list)
    right: int = dataclasses.field(init=False, default=1)


def test_alternatives_are_told_apart_by_what_they_compute():
    value = Right([Left(), Right([Left()])])

    assert answer_codec(Left | Right).decode(json.dumps({"value": encode(value, Left | Right)})) == value


# --- properties that fail ---------------------------------------------------------------------------------------------


class Faulty(pydantic.BaseModel):
    kind: Literal["attribute", "key", "cached"]

    @computed_field
    @property
    def area(self) -> int:
        if self.kind == "key":
            raise KeyError("k")
        return self.misspelt if self.kind == "attribute" else 1  # ty: ignore[unresolved-attribute]

    @computed_field
    @functools.cached_property
    def kept(self) -> int:
        return self.misspelt if self.kind == "cached" else 1  # ty: ignore[unresolved-attribute]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("attribute", "`area` raised AttributeError"),
        ("key", "`area` raised KeyError"),
        ("cached", "`kept` raised Attr"),
    ],
)
def test_a_property_that_fails_is_an_error_that_names_it(kind, told):
    for write in (encode, dumps, lambda value: encode(value, list[Faulty])):
        with pytest.raises(EncodingError, match=f"`Faulty` cannot be encoded; its {told}") as raised:
            write([Faulty(kind=kind)])
        assert isinstance(raised.value.__cause__, AttributeError | KeyError)


def test_a_field_that_the_constructor_left_unset_is_left_out():
    @dataclasses.dataclass
    class Unset:
        a: int
        later: int = dataclasses.field(init=False)

    @attrs.define
    class Later:
        a: int
        later: int = attrs.field(init=False)

    assert encode([Unset(1), Later(1)]) == [{"a": 1}, {"a": 1}]
