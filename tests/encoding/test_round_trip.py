"""Whatever is written can be read again, for types and values that are put together at random."""

import dataclasses
import datetime
import decimal
import inspect
import json
import uuid
from typing import Any, Literal, NamedTuple, Optional, TypedDict

import jsonschema
import pydantic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effectful_agents.encoding import answer_codec, decode, encode, json_schema, tool_codec
from tests.encoding.shapes import Box, Circle, Colour, Level, Person, Point, Shape, Square, Tree
from tests.encoding.test_tools import tool_of

text = st.text(st.characters(exclude_categories=["Cs"]))
integers = st.integers(-(2**63), 2**63)
trees = st.recursive(
    st.builds(Tree, integers), lambda inner: st.builds(Tree, integers, st.lists(inner, max_size=2), st.none() | inner)
)
people = st.builds(
    Person, name=text, age=st.integers(0, 200), friends=st.just([]), colour=st.none() | st.sampled_from(Colour)
)

# A type and a strategy for its values.
type Case = tuple[Any, st.SearchStrategy[Any]]

HASHABLE: list[Case] = [
    (str, text),
    (int, integers),
    (bool, st.booleans()),
    (None, st.none()),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Literal["a", "b", "c d"], st.sampled_from(["a", "b", "c d"])),
    (datetime.date, st.dates()),
    (datetime.datetime, st.datetimes()),
    (uuid.UUID, st.uuids()),
    (Point, st.builds(Point, integers, integers)),
]
LEAVES: list[Case] = [
    *HASHABLE,
    (float, st.floats(allow_nan=False)),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (bytes, text.map(str.encode)),
    (Tree, trees),
    (Person, people),
    (Shape, st.builds(Circle, integers) | st.builds(Square, integers)),
]


def optional(tp: Any) -> Any:
    return Optional[tp]  # noqa: UP045  # `None | None` is no type


def made_of(inner: st.SearchStrategy[Case]) -> st.SearchStrategy[Case]:
    return (
        inner.map(lambda case: (list[case[0]], st.lists(case[1], max_size=3)))
        | inner.map(lambda case: (optional(case[0]), st.none() | case[1]))
        | inner.map(lambda case: (dict[str, case[0]], st.dictionaries(text, case[1], max_size=3)))
        | inner.map(lambda case: (Box[case[0]], st.builds(Box, case[1])))
        | inner.map(as_dataclass)
        | inner.map(as_typed_dict)
        | inner.map(as_named_tuple)
        | inner.map(as_model)
        | st.tuples(inner, inner).map(lambda pair: (tuple[pair[0][0], pair[1][0]], st.tuples(pair[0][1], pair[1][1])))
        | st.sampled_from(HASHABLE).map(lambda case: (set[case[0]], st.sets(case[1], max_size=3)))
        | st.sampled_from(HASHABLE).map(lambda case: (frozenset[case[0]], st.frozensets(case[1], max_size=3)))
    )


def as_dataclass(case: Case) -> Case:
    made = dataclasses.make_dataclass("Made", [("a", case[0]), ("b", optional(case[0]), None)])
    return made, st.builds(made, case[1], st.none() | case[1])


def as_typed_dict(case: Case) -> Case:
    made = TypedDict("Made", {"a": case[0]})  # noqa: UP013  # ty: ignore[invalid-type-form]
    return made, st.fixed_dictionaries({"a": case[1]})


def as_named_tuple(case: Case) -> Case:
    made: Any = NamedTuple("Made", [("a", case[0])])  # ty: ignore[invalid-type-form]
    return made, case[1].map(made)


def as_model(case: Case) -> Case:
    made = pydantic.create_model("Made", a=(case[0], ...))
    return made, case[1].map(lambda value: made.model_construct(a=value))


cases = st.recursive(st.sampled_from(LEAVES), made_of, max_leaves=4)
relaxed = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@relaxed
@given(cases, st.data())
def test_what_is_written_can_be_read_and_fits_the_schema(case, data):
    tp, values = case
    value = data.draw(values)
    encoded = encode(value, tp)
    written = json.dumps(encoded, allow_nan=False)

    assert decode(written, tp) == value
    jsonschema.Draft202012Validator(without_infinities(json_schema(tp), encoded)).validate(encoded)


def without_infinities(schema: dict[str, Any], encoded: Any) -> dict[str, Any]:
    # `"Infinity"` is a text where the schema says number: JSON has no other way.
    return {} if "Infinity" in json.dumps(encoded) else schema


@relaxed
@given(cases, st.data())
def test_an_answer_in_the_form_that_was_asked_for_is_read(case, data):
    tp, values = case
    value = data.draw(values)
    codec = answer_codec(tp)
    encoded = encode(value, tp)
    if codec.response_format is None:
        content = encoded or "x"
        value = value or content if tp is str else None
    else:
        schema = codec.response_format["json_schema"]["schema"]
        wrapped = list(schema.get("properties", ())) == ["value"] and json_schema(tp).get("type") != "object"
        content = json.dumps({"value": encoded} if wrapped else encoded)

    if not (isinstance(content, str) and content.isspace()):
        assert codec.decode(content) == value


@relaxed
@given(st.lists(cases, max_size=3), st.data())
def test_arguments_in_the_form_that_was_shown_are_read(parameters, data):
    def function(**kwargs: Any) -> None: ...

    function.__signature__ = inspect.Signature(  # ty: ignore[unresolved-attribute]
        [
            inspect.Parameter(f"p{number}", inspect.Parameter.KEYWORD_ONLY, annotation=tp)
            for number, (tp, _) in enumerate(parameters)
        ]
    )
    values = {f"p{number}": data.draw(strategy) for number, (_, strategy) in enumerate(parameters)}
    encoded = {f"p{number}": encode(values[f"p{number}"], tp) for number, (tp, _) in enumerate(parameters)}

    assert tool_codec(tool_of(function)).decode(json.dumps(encoded)).kwargs == values
