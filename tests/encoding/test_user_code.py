"""Code of users that runs while a value is read: whatever it raises is an error with a place."""

import collections
import dataclasses
import datetime
import enum
import json
import threading
from typing import Annotated, Any

import attrs
import pydantic
import pytest

from effectful_agents.encoding import Codec, answer_codec, decode, encode, json_schema, register, tool_codec
from effectful_agents.types import Tool


def fail(*_: Any) -> Any:
    return {}["no such key"]


class Colour(enum.Enum):
    RED = "red"

    @classmethod
    def _missing_(cls, value):
        return fail(value)


@dataclasses.dataclass
class Checked:
    size: int

    def __post_init__(self):
        fail()


@dataclasses.dataclass
class WithInitVar:
    size: int
    scale: dataclasses.InitVar[int]

    def __post_init__(self, scale):
        if scale > 9:
            fail()
        self.size *= scale


class Validated(pydantic.BaseModel):
    size: int

    @pydantic.field_validator("size")
    @classmethod
    def check(cls, size):
        return fail(size)


class Completed(pydantic.BaseModel):
    size: int

    def model_post_init(self, context):
        fail()


class OwnConstructor(pydantic.BaseModel):
    size: int

    def __init__(self, **values):
        fail()


class Before(pydantic.BaseModel):
    size: int

    @pydantic.model_validator(mode="before")
    @classmethod
    def check(cls, values):
        return fail(values)


class Wrapped(pydantic.BaseModel):
    size: int

    @pydantic.model_validator(mode="wrap")
    @classmethod
    def check(cls, values, handler):
        return fail(handler(values))


@attrs.define
class Attrs:
    size: int = attrs.field(validator=fail)


class Registered:
    pass


register(Registered, Codec(dict[str, int], fail, fail))

RECORDS = [Checked, Validated, Completed, OwnConstructor, Before, Wrapped, Attrs, Registered]


@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize("strict", [False, True])
def test_an_error_of_any_kind_is_told_with_its_place(kind, strict):
    with pytest.raises(ValueError, match=r"^parts\[0\](\.size)?: KeyError: 'no such key'; it is "):
        decode('{"parts": [{"size": 1}]}', dict[str, list[kind]], strict=strict)


def test_an_error_in_the_search_for_a_member_of_an_enum_has_its_place():
    with pytest.raises(ValueError, match=r"^\[0\]: KeyError: 'no such key'; it is \"blue\"$"):
        decode('["blue"]', list[Colour])


@pytest.mark.parametrize("kind", RECORDS)
def test_answers_and_arguments_tell_of_it_too(kind):
    def show(part: Any) -> None:
        """Show."""

    show.__annotations__["part"] = kind
    for read in (answer_codec(kind).decode, tool_codec(Tool.define(show)).decode):
        with pytest.raises(ValueError, match="KeyError: 'no such key'"):
            read('{"part": {"size": 1}}' if read.__self__.__class__.__name__ == "ToolCodec" else '{"size": 1}')


def test_what_runs_and_does_not_fail_changes_nothing():
    assert decode('{"size": 2, "scale": 3}', WithInitVar) == WithInitVar(2, 3)
    with pytest.raises(ValueError, match="KeyError"):
        decode('{"size": 2, "scale": 10}', WithInitVar)


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (Annotated[int | str, pydantic.Field(gt=3)], '"x"'),
        (Annotated[Any, pydantic.Field(gt=3)], '"x"'),
        (Annotated[Any, pydantic.Field(max_length=3)], "5"),
    ],
)
def test_a_limit_that_a_value_has_no_sense_for_is_told_to_the_model(tp, text):
    with pytest.raises(ValueError, match=r"^\[0\]: TypeError: Unable to apply constraint"):
        decode(f"[{text}]", list[tp])


def test_a_type_described_while_another_form_is_registered_has_the_new_form():
    class Late:
        pass

    begun, go_on = threading.Event(), threading.Event()
    register(Late, Codec(str, str, str))

    class Slow:
        @classmethod
        def __get_pydantic_core_schema__(cls, source, handler):
            schema = handler(str)
            begun.set()
            assert go_on.wait(10)
            return schema

    @dataclasses.dataclass
    class Both:
        late: Late
        slow: Slow

    described = []
    thread = threading.Thread(target=lambda: described.append(json_schema(Both)))
    thread.start()
    assert begun.wait(10)
    register(Late, Codec(int, int, int))
    go_on.set()
    thread.join()

    assert described  # in one of the two forms
    assert json_schema(Both)["properties"]["late"] == {"type": "integer"}


def test_types_are_kept_up_to_a_number_and_come_back_alike():
    for size in range(1100):
        assert encode(collections.deque([size]), collections.deque[Annotated[int, size]]) == [size]


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def speechless(_: Any) -> Any:
    raise Unspeakable


def addressed(_: Any) -> Any:
    raise ValueError(f"bad {object()}")


class Unhashable:
    def __init__(self, size: int) -> None:
        self.size = size

    def __hash__(self) -> int:
        return fail()


register(Unhashable, Codec(int, lambda one: one.size, Unhashable))


@dataclasses.dataclass
class WithFactory:
    size: int = dataclasses.field(default_factory=fail)


@pytest.mark.parametrize(
    ("tp", "text", "told"),
    [
        (Annotated[int, pydantic.AfterValidator(speechless)], "1", "Unspeakable"),
        (Annotated[int, pydantic.AfterValidator(addressed)], "1", "bad <object object>$"),
        (set[Unhashable], "[1]", "KeyError"),
        (WithFactory, "{}", "KeyError"),
        (
            Annotated[
                Annotated[Checked, pydantic.Tag("a")] | Annotated[Validated, pydantic.Tag("b")],
                pydantic.Discriminator(fail),
            ],
            '{"size": 1}',
            "KeyError",
        ),
    ],
)
def test_whatever_else_runs_ends_in_an_error_for_the_model(tp, text, told):
    with pytest.raises(ValueError, match=told) as raised:
        decode(text, tp)
    assert "0x" not in str(raised.value)


@dataclasses.dataclass
class Complete:
    number: complex
    moments: set[datetime.date]

    def __post_init__(self):
        self.done = True


class CompleteModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    number: complex
    moments: set[datetime.date]
    _done: bool = False

    @pydantic.model_validator(mode="before")
    @classmethod
    def same(cls, values):
        return values

    def model_post_init(self, context):
        self._done = True


@pytest.mark.parametrize("kind", [Complete, CompleteModel])
def test_what_stands_behind_code_is_read_as_json_is(kind):
    value = kind(number=1 + 2j, moments={datetime.date(2026, 5, 1)})

    back = decode(json.dumps(encode([value], list[kind])), list[kind])[0]
    assert back == value
    assert getattr(back, "done", False) or back._done


def test_keys_that_are_no_printable_text_are_shown_as_json_has_them():
    for key in ("a\nb", "\x1b[31m", "\0arm0", "\0"):
        with pytest.raises(ValueError, match="valid integer") as raised:
            decode(json.dumps({key: "x"}), dict[str, int])
        assert str(raised.value) == f'{json.dumps(key)[1:-1]}: Input should be a valid integer; it is "x"'
        assert decode(json.dumps({key: "5"}), dict[str, int]) == {key: 5}
