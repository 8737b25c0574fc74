"""Laws over random types and wrong values: a mistake is refused, or read without a loss."""

import datetime
import decimal
import fractions
import json
import pathlib
from collections.abc import Callable
from typing import Any

import pydantic
from hypothesis import assume
from hypothesis import strategies as st

from effectful_agents.encoding import (
    decode,
    encode,
    tool_codec,
)
from tests.encoding.lawful import JSON, drawn, fits, law, parameters_of, settled, tool_with
from tests.encoding.random_types import build


@law(examples=120)
def test_a_mistake_is_refused_or_read_without_loss(recipe, data):
    case, value = drawn(recipe, data)
    sent = {"x": encode(value, case.tp)}
    wrong = {"x": data.draw(mistakes(sent["x"]), label="mistake")}
    codec = tool_codec(tool_with(case.tp))

    try:
        back = codec.decode(json.dumps(wrong)).arguments["x"]
    except ValueError as error:
        told = str(error)
    else:
        again = encode(settled(back), case.tp)
        assert no_loss(wrong["x"], again), (sent, wrong, back, again)
        return
    assert 0 < len(told) < 4000


@law(examples=120)
def test_a_mistake_is_refused_where_decoding_is_strict(recipe, data):
    """What is not refused is the value's own JSON, but for the spelling of a text, and defaults that were left out."""
    case, value = drawn(recipe, data)
    wrong = data.draw(mistakes(encode(value, case.tp)), label="mistake")

    try:
        back = decode(json.dumps(wrong), case.tp, strict=True)
    except ValueError:
        return
    again = encode(settled(back), case.tp)
    assert no_loss(wrong, again, exact=True), (wrong, back, again)


def mistakes(encoded: Any) -> st.SearchStrategy[Any]:
    """The JSON with one mistake somewhere in it."""
    here = [st.sampled_from([None, True, 1, 2.5, "5", "true", "x", [], [1], {}, {"zz": 1}])]
    if isinstance(encoded, bool):
        here += [st.sampled_from([int(encoded), str(encoded).lower(), "on", float(encoded)])]
    elif isinstance(encoded, int):
        here += [
            st.sampled_from(
                [
                    str(encoded),
                    float(encoded) if abs(encoded) < 2**53 else 0.5,
                    encoded + 0.5 if abs(encoded) < 2**50 else "1",
                ]
            )
        ]
    elif isinstance(encoded, str):
        here += [st.sampled_from([encoded + " ", " " + encoded, encoded.upper(), encoded + "\x00"])]
    elif isinstance(encoded, list):
        here += [
            st.just([*encoded, 1]),
            st.just([*encoded, None]),
            st.just(encoded[:-1]),
            st.just([*encoded, *encoded]),
        ]
        here += [_at(encoded, place, part) for place, part in enumerate(encoded)]
    elif isinstance(encoded, dict):
        here += [st.just({**encoded, "zz": 1})]
        here += [st.just({key: part for key, part in encoded.items() if key != gone}) for gone in encoded]
        here += [_at(encoded, key, part) for key, part in encoded.items()]
    return st.one_of(here)


def _at(encoded: Any, place: Any, part: Any) -> st.SearchStrategy[Any]:
    def put(changed: Any) -> Any:
        other = encoded.copy()
        other[place] = changed
        return other

    return mistakes(part).map(put)


@law()
def test_what_the_schema_admits_is_read_without_loss_or_refused(recipe, data):
    """What a model that is held to the schema can write, and no value of ours ever was."""
    case = build(recipe)
    tool = tool_with(case.tp)
    schema = parameters_of(tool, strict=data.draw(st.booleans(), label="strict"))
    sent = data.draw(instances(schema, schema), label="sent")
    assume(fits(schema, sent))  # a pattern may say more than what was generated from it

    try:
        back = tool_codec(tool).decode(json.dumps(sent)).arguments["x"]
    except ValueError as error:
        told = str(error)
    else:
        again = encode(settled(back), case.tp)
        assert no_loss(sent["x"], again), (sent, back, again)
        return
    assert 0 < len(told) < 4000


FORMATS = {
    "date": st.dates().map(str),
    "date-time": st.datetimes().map(lambda moment: f"{moment.isoformat()}Z"),
    "time": st.times().map(str),
    "duration": st.sampled_from(["P1D", "PT0S", "-P3DT4H", "PT0.5S", "P1Y"]),
    "uuid": st.uuids().map(str),
}


def instances(node: Any, root: Any, depth: int = 4) -> st.SearchStrategy[Any]:
    """JSON that a schema admits; references are followed so many times."""
    if "$ref" in node:
        name = node["$ref"].removeprefix("#/$defs/")
        target = root if name == "#" else root["$defs"][name]
        return instances(target, root, depth - 1) if depth else st.nothing()
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if "const" in node:
        return st.just(node["const"])
    if "anyOf" in node:
        return st.one_of([instances(part, root, depth) for part in node["anyOf"]])
    match node.get("type"):
        case "object":
            return _objects(node, root, depth)
        case "array":
            if "prefixItems" in node:
                return st.tuples(*(instances(part, root, depth) for part in node["prefixItems"])).map(list)
            limits = {"min_size": node.get("minItems", 0), "max_size": node.get("maxItems", 3)}
            parts = instances(node.get("items", {}), root, depth)
            return st.just([]) if parts.is_empty else st.lists(parts, **limits)
        case "string":
            if "pattern" in node:
                return st.from_regex(node["pattern"], fullmatch=True)
            limits = {"min_size": node.get("minLength", 0), "max_size": node.get("maxLength", 6)}
            return FORMATS.get(node.get("format", ""), st.text(st.characters(exclude_categories=["Cs"]), **limits))
        case "integer":
            return _numbers(node).filter(lambda number: number == int(number)).map(int)
        case "number":
            return _numbers(node)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
    return JSON


def _objects(node: Any, root: Any, depth: int) -> st.SearchStrategy[Any]:
    parts = {key: instances(part, root, depth) for key, part in node.get("properties", {}).items()}
    needed = node.get("required", ())
    fixed = st.fixed_dictionaries(
        {key: part for key, part in parts.items() if key in needed},
        optional={key: part for key, part in parts.items() if key not in needed},
    )
    further = node.get("additionalProperties", {})
    if further is False:
        return fixed
    names = instances({"type": "string", **node.get("propertyNames", {})}, root, depth)
    values = instances(further if further is not True else {}, root, depth)
    if "enum" in node.get("propertyNames", {}) or values.is_empty:
        return fixed
    more = st.dictionaries(names, values, max_size=3)
    return st.builds(lambda one, other: {**other, **one}, fixed, more)


def _numbers(node: Any) -> st.SearchStrategy[Any]:
    low, high, step = node.get("minimum"), node.get("maximum"), node.get("multipleOf", 1)
    above, below = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
    if above is not None or below is not None:
        return st.floats(
            above, below, exclude_min=above is not None, exclude_max=below is not None, allow_infinity=False
        )
    whole = st.integers(low, high).map(lambda number: number * step)
    return whole | st.floats(low, high, allow_nan=False, allow_infinity=False).filter(lambda number: number % step == 0)


def no_loss(sent: Any, read: Any, exact: bool = False) -> bool:
    """Whether what was read says all that was sent. These readings lose nothing, and are all there are:

    - a number, a truth value, null, a list or an object as text, and a number for a text; a whole float for an int;
    - what was left out, or null, where there is a default; a named tuple as an object;
    - pairs of key and value for an object, none of them for an empty one;
    - another writing of the same date, time, duration, UUID, number or path;
    - the elements of a set in another order, or twice.

    Those of the first line are not `exact`.
    """
    match sent, read:
        case dict(), dict():
            names = {
                name: name if name in read else next((key for key in read if no_loss(name, key)), None) for name in sent
            }
            return all(
                part is None if names[name] is None else no_loss(part, read[names[name]], exact)
                for name, part in sent.items()
            )
        case list(), dict():
            return all(isinstance(one, dict) and one.keys() == {"key", "value"} for one in sent) and no_loss(
                {_as_text(one["key"]): one["value"] for one in sent}, read, exact
            )
        case dict(), list():
            return len(sent) <= len(read) and all(
                any(no_loss(part, other, exact) for other in read) for part in sent.values()
            )
        case list(), list():
            return _no_loss_of_parts(sent, read, exact)
        case None, _:  # the default is shown instead
            return True
        case str(), str():
            return _squeezed(sent) == _squeezed(read) or any(_reads_alike(reader, sent, read) for reader in READERS)
        case str(), _:
            return not exact and _inside(sent, read)
        case (bool(), _) | (_, bool()):
            return sent is read or (not exact and json.dumps(sent) == read)
        case int() | float(), int() | float():
            # A float may be written without a fraction, an int not with one. A large int is a float's nearest.
            return float(sent) == float(read) and not (exact and isinstance(sent, float) and isinstance(read, int))
        case int() | float(), str():
            return not exact and _as_number(sent) == _as_number(read)
    return False


def _no_loss_of_parts(sent: list[Any], read: list[Any], exact: bool) -> bool:
    if len(sent) <= len(read) and all(no_loss(*pair, exact) for pair in zip(sent, read, strict=False)):
        return True  # the rest of a named tuple are defaults
    # A set has one of what Python calls equal, such as 1 and true.
    is_set = len(sent) > len(read)
    return all(
        any(no_loss(part, other, exact) or (is_set and part == other) for other in read) for part in sent
    ) and all(any(no_loss(part, other, exact) for part in sent) for other in read)


def _inside(text: str, read: Any) -> bool:
    word = _squeezed(text)
    try:
        inside = json.loads({"none": "null"}.get(word, word))
    except ValueError:
        return _as_number(text) is not None and _as_number(text) == _as_number(read)
    return not isinstance(inside, str) and (inside is read or (read is not None and no_loss(inside, read)))


def _as_text(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _as_number(value: Any) -> complex | None:
    for kind in (complex, fractions.Fraction):
        try:
            return complex(kind(value))
        except (TypeError, ValueError, OverflowError):
            continue
    return None


# Types of which a value can be written in several ways.
READERS = [
    pydantic.TypeAdapter(kind).validate_python
    for kind in (datetime.datetime, datetime.time, datetime.timedelta, decimal.Decimal, complex, pathlib.PurePosixPath)
]


def _reads_alike(reader: Callable[[str], Any], one: str, other: str) -> bool:
    try:
        return reader(one) == reader(other)
    except ValueError:
        return False


def _squeezed(text: str) -> str:
    return text.strip().lower()
