import dataclasses
import datetime
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pydantic
import pytest

from effectful_agents.encoding import b64, dumps, encode, fmt_dict, fmt_list, fmt_records, schema_for, to_jsonable
from effectful_agents.errors import ConfigurationError, EncodingError
from effectful_agents.messages import Usage
from tests.encoding.shapes import Colour, Person, Point


def test_equal_values_are_the_same_text():
    assert (
        dumps({"b": {2, 1}, "a": {"é": None}})
        == dumps({"a": {"é": None}, "b": {1, 2}})
        == ('{"a":{"é":null},"b":[1,2]}')
    )
    assert (
        dumps([datetime.date(2026, 5, 1), Colour.RED, b"\xff", 1.0]) == '["2026-05-01","red","data:;base64,/w==",1.0]'
    )


def test_another_process_gives_the_same_text():
    program = "from effectful_agents.encoding import dumps; print(dumps({'x': {'a', 'b', 'c'}, 'a': frozenset('xyz')}))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "7")
    }
    assert outputs == {'{"a":["x","y","z"],"x":["a","b","c"]}\n'}


def test_only_records_of_this_package_leave_none_out():
    @dataclasses.dataclass
    class Mine:
        a: None = None

    assert to_jsonable([Usage(input=1), Mine(), Point(1), Person(name="A"), {"a": None}]) == [
        {"input": 1, "estimated": False},
        {"a": None},
        [1, 0],
        {"name": "A", "age": 30, "friends": [], "colour": None},
        {"a": None},
    ]


def test_what_has_no_form_and_keys_that_become_alike_are_refused():
    for value in (object(), {"a": [object()]}, {1: "a", "1": "b"}, {chr(0xD800): 1, chr(0xFFFD): 2}):
        with pytest.raises(EncodingError):
            dumps(value)


def test_base64_is_plain_text():
    assert b64(bytes(range(3))) == "AAEC"


# --- lines ------------------------------------------------------------------------------------------------------------


def test_a_dictionary_is_lines_of_keys_and_values():
    assert fmt_dict({"a": "x\ny", "b": Point(1, 2), "c": None}) == "a: x\ny\nb: [1,2]\nc: null"
    assert fmt_dict({"a": "12345"}, max_value=3) == "a: 12…"
    assert fmt_dict({}) == ""


def test_a_list_is_lines_behind_a_prefix():
    assert fmt_list(["a", 1, Colour.RED]) == "· a\n· 1\n· red"
    assert fmt_list([1], prefix="") == "1"
    assert fmt_list({"c", "a", "b"}) == "· a\n· b\n· c"


def test_records_fill_a_template_each():
    rows = [{"name": "Ann", "at": Point(1)}, {"name": "Bob", "at": Point(2)}]

    assert fmt_records(rows, "{name}: {at} {{}}") == "Ann: [1, 0] {}\nBob: [2, 0] {}"
    with pytest.raises(ConfigurationError, match="there is no `age`"):
        fmt_records(rows, "{age}")
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    with pytest.raises(EncodingError, match="cannot hold a part of type `image_url`"):
        fmt_records([{"x": picture}], "{x}")


# --- forms of output --------------------------------------------------------------------------------------------------


def test_a_schema_is_made_of_a_type_a_dictionary_or_another_schema():
    class Model(pydantic.BaseModel):
        a: int

    typed = schema_for(Model)
    written = schema_for({"title": "Pair", "type": "array", "minItems": 2})

    assert (typed.name, list(typed.json_schema["properties"])) == ("Model", ["a"])
    assert typed.validate('```json\n{"a": "1"}\n```') == Model(a=1)
    assert schema_for(typed) is typed
    assert (written.name, written.validate("```\n[1, 2]\n```")) == ("Pair", [1, 2])
    for text, problem in (("[1]", "too short"), ("[1", "Invalid JSON"), ('{"a": 1, "a": 2}', "twice")):
        with pytest.raises(ValueError, match=problem):
            written.validate(text)
    with pytest.raises(EncodingError, match="the schema is no JSON schema"):
        schema_for({"type": 3})


# --- pairs ------------------------------------------------------------------------------------------------------------


class Grid(pydantic.BaseModel):
    cells: dict[tuple[int, int], Any]


@dataclasses.dataclass(frozen=True)
class Cell:
    name: str
    marks: dict[tuple[int], int] = dataclasses.field(hash=False)


def turned(value: Any) -> Any:
    """The same value with its dictionaries in the other order."""
    match value:
        case dict():
            return {key: turned(part) for key, part in reversed(value.items())}
        case list():
            return [turned(part) for part in value]
        case set():
            return {turned(part) for part in value}
        case Grid():
            return Grid(cells=turned(value.cells))
        case Cell():
            return Cell(value.name, turned(value.marks))
        case _:
            return value


@pytest.mark.parametrize(
    "value",
    [
        {(1, 2): 1, (3, 4): 2},
        {"a": [{(2,): {(4,): 1, (3,): 2}, (1,): None}]},
        {frozenset({1, 2}): {("b",): 1, ("a",): 2}, "x": 1},
        Grid(cells={(2, 1): {(2,): 1, (1,): 1}, (1, 2): 0}),
        {Cell("b", {(2,): 1, (1,): 2}), Cell("a", {})},
        {None: 1, 2: 2, "a": 3, (1,): 4},
    ],
    ids=["tuples", "inside", "sets", "a model", "a set of records", "mixed"],
)
def test_the_order_of_a_dictionary_makes_no_difference_whatever_its_keys(value):
    assert turned(value) == value
    assert dumps(turned(value)) == dumps(value)


def test_only_dumps_sorts_pairs_and_only_those_of_dictionaries():
    assert encode({(2,): 1, (1,): 2}) == [{"key": [2], "value": 1}, {"key": [1], "value": 2}]
    assert dumps([{"key": 2, "value": 1}, {"key": 1, "value": 1}]) == '[{"key":2,"value":1},{"key":1,"value":1}]'


class Broken(Mapping[str, int]):
    def __iter__(self) -> Any:
        raise KeyError("k")

    def __len__(self) -> int:
        return 1

    def __getitem__(self, key: str) -> int:
        return 1


@pytest.mark.parametrize("write", [dumps, to_jsonable, encode])
def test_a_mapping_that_fails_is_told(write):
    with pytest.raises(EncodingError, match="`Broken` cannot be encoded; KeyError") as raised:
        write(Broken())
    assert isinstance(raised.value.__cause__, KeyError)
    with pytest.raises(EncodingError, match="KeyError"):
        write({"a": [Broken()]})
