"""Annotations that pydantic reads otherwise than they are meant, and what is no type at all."""

import collections.abc
import dataclasses
import json
import pathlib
import typing
import warnings
from collections import defaultdict
from typing import Annotated, Any, Literal, LiteralString, Never, NoReturn, NotRequired, Required, TypedDict, Unpack

import jsonschema
import pydantic
import pytest
import typing_extensions
from typing_extensions import Doc

from effectful_agents.encoding import (
    Codec,
    answer_codec,
    decode,
    encode,
    json_schema,
    json_schema_for,
    register,
    tool_codec,
)
from effectful_agents.errors import AgentsError, EncodingError, OptionError
from effectful_agents.types import Tool


def some_function() -> None:
    raise NotImplementedError


NO_TYPES = [
    (any, r"the type is `typing\.Any`"),
    (callable, r"the type is `collections\.abc\.Callable`"),
    (some_function, "value of type `function`, and no type"),
    (len, "and no type"),
    (typing, "value of type `module`"),
    ([int], r"write `list\[int\]`"),
    ((int, str), r"write `tuple\[int\]`"),
    ({}, "value of type `dict`"),
    (5, "value of type `int`"),
    (..., r"stands in `tuple\[int, \.\.\.\]`"),
    (Never, "no value has the type `Never`"),
    (NoReturn, "no value has the type `NoReturn`"),
    (typing.Union, "alone says nothing"),
    (typing.Optional, "alone says nothing"),
    (Literal, "alone says nothing"),
    (typing.Generic, "is no type of values"),
    (typing.Protocol, "is no type of values"),
    (NotImplemented, "and no type"),
    (typing.ParamSpec("P"), "and no type"),
    (typing.TypeGuard[int], "`TypeGuard` is no type of values"),
    (list[...], r"stands in `tuple"),
    (dict[str, ...], r"stands in `tuple"),
    (NotRequired[int], "is for the fields of a `TypedDict`"),
    (Required[int], "is for the fields of a `TypedDict`"),
]


@pytest.mark.parametrize(("tp", "told"), NO_TYPES)
def test_what_is_no_type_is_refused_with_a_word_on_what_to_write(tp, told):
    def show(part) -> None:
        """Show."""

    show.__annotations__["part"] = tp
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AgentsError, match=told):
            tool_codec(Tool.define(show))
        with pytest.raises(EncodingError, match=told):
            json_schema(tp)


@pytest.mark.filterwarnings("ignore:.*is not a Python type")  # pydantic's own, of which a field is not told
@pytest.mark.parametrize("tp", [any, callable, [int], Never])
def test_it_is_refused_inside_of_types_too_with_the_path(tp):
    record: Any = dataclasses.make_dataclass("Record", [("name", str), ("part", tp)])
    typed: Any = TypedDict("typed", {"name": str, "part": tp})
    for inside, path in (
        (dict[str, record], r"^dict\[str, Record\]\{\}\.part: "),
        (list[typed], r"^list\[typed\]\[\]\.part: "),
    ):
        with pytest.raises(EncodingError, match=path):
            json_schema(inside)
    with pytest.raises(EncodingError, match=r"no type|no value"):
        json_schema(record | None)


def test_a_text_that_a_checker_knows_is_a_text():
    assert json_schema(LiteralString) == {"type": "string"}
    assert decode('["a"]', list[LiteralString]) == ["a"]


# --- tuples with others unpacked in them ------------------------------------------------------------------------------

TUPLES: list[tuple[Any, list[tuple[Any, ...]], list[str]]] = [
    (tuple[int, *tuple[str, ...]], [(1,), (1, "a"), (1, "a", "b")], ["[]", '["a"]', '[1, "a", 2]']),
    (tuple[int, Unpack[tuple[str, ...]]], [(1,), (1, "a", "b")], ['[1, "a", 2]']),  # noqa: UP044
    (tuple[*tuple[int, ...], str], [("a",), (1, 2, "a")], ["[1]", "[]"]),
    (tuple[int, *tuple[str, ...], bool], [(1, True), (1, "a", "b", False)], ["[1]", '[1, 2, true]', '[1, "a"]']),
    (tuple[int, *tuple[str, bool]], [(1, "a", True)], ['[1, ["a", true]]']),
    (tuple[int, *tuple[str, *tuple[bool, ...]], None], [(1, "a", None), (1, "a", True, True, None)], ["[1, null]"]),
]  # fmt: skip


@pytest.mark.parametrize(("tp", "values", "wrong"), TUPLES)
def test_a_tuple_with_another_unpacked_in_it(tp, values, wrong):
    for value in values:
        assert decode(json.dumps(value), tp) == value
        assert encode(value, tp) == list(value)
    for text in wrong:
        with pytest.raises(ValueError, match=r"Input should|is missing|required|at least"):
            decode(text, tp)
    for value in values:
        jsonschema.validate(list(value), json_schema(tp))


def test_the_schema_of_a_tuple_with_many_in_the_middle_names_what_may_follow():
    assert json_schema(tuple[int, *tuple[str, ...], bool]) == {
        "type": "array",
        "minItems": 2,
        "prefixItems": [{"type": "integer"}],
        "items": {"anyOf": [{"type": "string"}, {"type": "boolean"}]},
    }


# --- what classes say of themselves -----------------------------------------------------------------------------------


def test_a_typed_dictionary_that_says_it_is_open_is():
    class Open(typing_extensions.TypedDict, closed=False):
        a: int

    class Silent(typing_extensions.TypedDict):
        a: int

    assert decode('{"a": 1, "b": [2]}', Open) == {"a": 1, "b": [2]}
    assert encode({"a": 1, "b": {2}}, Open) == {"a": 1, "b": [2]}
    assert json_schema(Open)["additionalProperties"] is not False
    with pytest.raises(ValueError, match="b is not known"):
        decode('{"a": 1, "b": 2}', Silent)


class Relative(pathlib.PurePosixPath):
    pass


def test_a_class_of_paths_of_ones_own_is_a_path():
    assert json_schema(Relative) == json_schema(pathlib.PurePath)
    assert decode('["a/b"]', list[Relative]) == [Relative("a/b")]
    assert type(decode('"a/b"', Relative)) is Relative
    assert encode([Relative("a/b")], list[Relative]) == ["a/b"]
    assert answer_codec(Relative).decode('{"value": "a"}') == Relative("a")


def test_what_is_registered_for_a_class_of_paths_counts():
    class Shouted(pathlib.PurePosixPath):
        pass

    register(Shouted, Codec(str, lambda path: str(path).upper(), lambda text: Shouted(text.lower())))
    assert encode(Shouted("a/b")) == "A/B"


@pytest.mark.parametrize("kind", [pydantic.SecretStr, pydantic.AnyUrl])
def test_a_class_that_says_itself_how_it_is_written_cannot_be_registered(kind):
    with pytest.raises(OptionError, match="it says itself how it is written"):
        register(kind, Codec(str, str, kind))


def test_a_limit_in_the_default_of_a_field_holds_where_its_annotation_is_read_anew():
    @pydantic.dataclasses.dataclass
    class Sizes:
        sizes: Annotated[defaultdict[str, int], Doc("By name.")] = pydantic.Field(min_length=2)

    assert json_schema(Sizes)["properties"]["sizes"]["description"] == "By name."
    with pytest.raises(ValueError, match=r"^sizes: "):
        decode('{"sizes": {"a": 1}}', Sizes)
    assert decode('{"sizes": {"a": 1, "b": 2}}', Sizes).sizes == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("pattern", "told"),
    [("(", "the pattern `\\(` cannot be used: unclosed group"), ("(?=a)b", "look-around, .* is not supported")],
)
def test_a_pattern_that_cannot_be_used_is_named(pattern, told):
    with pytest.raises(EncodingError, match=told):
        json_schema(list[Annotated[str, pydantic.Field(pattern=pattern)]])


def test_a_collection_is_still_one():
    assert decode("[1]", collections.abc.Collection[int]) == [1]


@dataclasses.dataclass
class Node[T]:
    value: T
    children: "list[Node[T]]"


type Named = Node[bool]
type Renamed = Named


class Twice(typing.NamedTuple):
    first: Renamed
    second: Renamed
    third: Named


def test_a_name_for_a_recursive_type_that_is_used_twice():
    text = '[{"value": true, "children": []}, {"value": false, "children": [{"value": true, "children": []}]}, '
    value = decode(text + '{"value": true, "children": []}]', Twice)

    assert value == Twice(Node(True, []), Node(False, [Node(True, [])]), Node(True, []))
    assert decode(text + '{"value": true, "children": []}]', list[Node[bool]]) == list(value)


def test_types_that_python_calls_equal_are_not_taken_for_each_other():
    def f(x: int | str = 1, *, y: collections.abc.Collection[int] | dict[str, int | str] = ()) -> None: ...
    def g(x: str | int = 1, *, y: collections.abc.Collection[int] | dict[str, str | int] = ()) -> None: ...

    for function, first in ((f, "integer"), (g, "string")):
        properties = json_schema_for(function)["properties"]
        assert properties["x"]["anyOf"][0]["type"] == first
        assert properties["y"]["anyOf"][1]["additionalProperties"]["anyOf"][0]["type"] == first
    assert json_schema(tuple[tuple[int, str]])["prefixItems"][0]["type"] == "array"
    assert decode('[1, "a"]', tuple[*tuple[int, str]]) == (1, "a")


def test_an_iterator_with_a_limit_is_a_list_with_a_limit():
    tp: Any = Annotated[collections.abc.Iterator[int], pydantic.Field(min_length=2)]

    assert list(decode("[1, 2]", tp)) == [1, 2]
    with pytest.raises(ValueError, match="at least 2"):
        decode("[1]", tp)
    assert list(decode('[1, "a"]', typing.Iterator)) == [1, "a"]


@dataclasses.dataclass
class Taking[**P]:
    size: int


def test_the_parameters_of_a_function_in_a_generic_class_are_no_types():
    assert decode('{"size": 1}', Taking[[int, str]]) == Taking(1)


def test_a_literal_of_a_list_is_refused():
    with pytest.raises(EncodingError):
        json_schema(Literal[[1]])  # ty: ignore[invalid-type-form]


@pytest.mark.parametrize("annotation", ["int[", "math.nope", "nope", "1 +"])
def test_a_text_that_is_no_annotation_is_refused(annotation):
    def show(part): ...

    show.__annotations__["part"] = annotation
    with pytest.raises(EncodingError, match="the parameters of `show` cannot be described"):
        json_schema_for(show)
