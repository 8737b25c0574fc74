"""What holds for every type and every value, tried on types and values put together at random.

The laws are functions of a recipe and of Hypothesis' data; `law` makes two tests of each: one for every run, and one
marked `slow` with many more examples.
"""

import datetime
import decimal
import fractions
import hashlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema
import pydantic
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from effectful_agents import Tool
from effectful_agents.encoding import (
    answer_codec,
    decode,
    encode,
    format_as_content_blocks,
    json_schema,
    to_content_blocks,
    tool_codec,
)
from effectful_agents.errors import EncodingError
from tests.encoding import providers
from tests.encoding.random_types import Case, Recipe, build, recipes, same

EXAMPLES, MANY = 100, 600
PHASES = [phase for phase in Phase if phase is not Phase.explain]


def law(examples: int = EXAMPLES, many: int = MANY) -> Callable[[Callable[..., None]], Any]:
    """Make a law a parametrised test: `few` examples always, `many` where slow tests run."""

    def decorate(check: Callable[..., None]) -> Any:
        def run(count: int) -> None:
            chosen = settings(
                max_examples=count,
                deadline=None,
                phases=PHASES,
                suppress_health_check=list(HealthCheck),
                database=None,
                derandomize=True,  # what stops a merge is a fault of the change, not of the day
            )
            chosen(given(recipes(), st.data())(check))()

        def test(count: int) -> None:
            run(count)

        test.__name__ = test.__qualname__ = check.__name__
        test.__doc__ = check.__doc__
        test.law = check
        sizes = [pytest.param(examples, id="few"), pytest.param(many, id="many", marks=pytest.mark.slow)]
        return pytest.mark.parametrize("count", sizes)(test)

    return decorate


# --- what a model would send ------------------------------------------------------------------------------------------


def as_answer(tp: Any, encoded: Any) -> Any:
    """The JSON of an answer: the value, or an object around it where the value is none."""
    return encoded if json_schema(tp).get("type") == "object" else {"value": encoded}


def tool_with(tp: Any, default: Any = ...) -> Tool[..., Any]:
    """A tool with one parameter `x`, and with a result of the same type."""

    def use(x): ...

    use.__doc__ = "Use it."
    use.__annotations__ = {"x": tp, "return": tp}
    use.__defaults__ = () if default is ... else (default,)
    return Tool.define(use)


def parameters_of(tool: Tool[..., Any], strict: bool = False) -> dict[str, Any]:
    return tool_codec(tool).definition(strict=strict)["function"]["parameters"]


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def misfit(schema: Mapping[str, Any], value: Any) -> str:
    """Why a value is not what a schema says; empty where it is."""
    if _has_non_finite(value):  # JSON has no such numbers: they are texts where the schema says number
        return ""
    errors = jsonschema.Draft202012Validator(schema).iter_errors(value)
    return "\n".join(f"{error.json_path}: {error.message}" for error in errors)


def _has_non_finite(value: Any) -> bool:
    return any(f'"{name}"' in json.dumps(value) for name in ("NaN", "Infinity", "-Infinity"))


# --- there and back ---------------------------------------------------------------------------------------------------


def drawn(recipe: Recipe, data: Any) -> tuple[Case, Any]:
    case = build(recipe)
    return case, data.draw(case.values, label="value")


@law()
def test_what_is_encoded_is_decoded(recipe, data):
    case, value = drawn(recipe, data)
    encoded = encode(value, case.tp)
    written = json.dumps(encoded, allow_nan=False)

    back, strictly = decode(written, case.tp), decode(written, case.tp, strict=True)

    assert same(value, listed(value, back)), (written, back)
    assert same(value, listed(value, strictly)), (written, strictly)


@law()
def test_an_answer_is_read_as_the_value_and_fits_its_schema(recipe, data):
    case, value = drawn(recipe, data)
    codec = answer_codec(case.tp)
    encoded = encode(value, case.tp)
    if codec.response_format is None:  # text, which is bare, or None
        assert encoded is None or isinstance(encoded, str)
        if not encoded or encoded.isspace():
            return
        back = codec.decode(encoded)
    else:
        content = as_answer(case.tp, encoded)
        assert not misfit(codec.response_format["json_schema"]["schema"], content), content
        back = codec.decode(json.dumps(content))

    assert same(value, listed(value, back)), (encoded, back)


@law()
def test_an_argument_is_read_as_the_value_and_fits_its_schema(recipe, data):
    case, value = drawn(recipe, data)
    tool = tool_with(case.tp)
    sent = {"x": encode(value, case.tp)}

    assert not misfit(parameters_of(tool), sent), sent
    assert not misfit(parameters_of(tool, strict=True), sent), sent
    back = tool_codec(tool).decode(json.dumps(sent)).arguments["x"]
    assert same(value, listed(value, back)), (sent, back)


@law(examples=60)
def test_a_parameter_with_a_default_may_be_left_out_and_may_be_sent(recipe, data):
    case, value = drawn(recipe, data)
    tool = tool_with(case.tp, default=case.some)
    codec = tool_codec(tool)
    loose, strict = parameters_of(tool), parameters_of(tool, strict=True)
    encoded = encode(value, case.tp)

    back = codec.decode(json.dumps({"x": encoded})).arguments["x"]
    assert same(value, listed(value, back))
    assert not misfit(loose, {"x": encoded})
    assert not misfit(strict, {"x": encoded})

    assert fits(loose, {})
    assert codec.decode("{}").arguments["x"] is case.some
    if "x" in strict.get("required", ()):  # null stands for the default, unless the type itself has a null
        assert fits(strict, {"x": None})
        if not null_is_a_value(case):
            assert codec.decode('{"x": null}').arguments["x"] is case.some
            assert codec.decode('{"x": null}', strict=True).arguments["x"] is case.some


def null_is_a_value(case: Case) -> bool:
    try:
        decode("null", case.tp)
    except ValueError:
        return False
    return True


@law()
def test_a_result_shows_the_value_as_it_would_be_sent(recipe, data):
    case, value = drawn(recipe, data)
    shown = tool_codec(tool_with(case.tp)).encode_result(value)
    encoded = encode(value, case.tp)

    assert isinstance(shown, str)
    if isinstance(encoded, str):
        assert shown == encoded
    else:
        assert json.loads(shown) == encoded
        back = decode(shown, case.tp)
        assert same(value, listed(value, back)), (shown, back)


def listed(value: Any, back: Any) -> Any:
    """What came back for an `Iterable` may be read only once: as the list that was sent."""
    return list(back) if isinstance(value, list) and not isinstance(back, list | tuple) else back


def settled(back: Any) -> Any:
    return list(back) if isinstance(back, Iterator) else back


# --- what is wrong ----------------------------------------------------------------------------------------------------


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
    return all(any(no_loss(part, other, exact) for other in read) for part in sent) and all(
        any(no_loss(part, other, exact) for part in sent) for other in read
    )


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


# --- what providers take ----------------------------------------------------------------------------------------------


@law()
def test_schemas_are_within_what_providers_take(recipe, data):
    case = build(recipe)
    found = []
    for asked_for in (False, True):
        function = tool_codec(tool_with(case.tp, default=case.some)).definition(strict=asked_for)["function"]
        strict, parameters = function.get("strict", False), function["parameters"]
        found += [
            f"{check.__name__} {path}: {rule}" for check in TOOL_CHECKS[strict] for path, rule in check(parameters)
        ]
        assert asked_for or not strict
    asked = answer_codec(case.tp).response_format
    if asked is not None:
        answer = asked["json_schema"]
        assert answer["strict"] == (answer_codec(case.tp).loose_because is None)
        checks = [providers.openai_strict] if answer["strict"] else [providers.openai_answer]
        found += [
            f"answer {check.__name__} {path}: {rule}" for check in checks for path, rule in check(answer["schema"])
        ]
        found += [rule for _, rule in providers.openai_name(answer["name"])]
    assert not found


TOOL_CHECKS: dict[bool, list[Callable[[Any], list[providers.Violation]]]] = {
    True: [providers.openai_strict, providers.anthropic_tool, providers.gemini_function],
    False: [providers.openai_loose, providers.anthropic_tool, providers.gemini_function],
}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


NODE = {**closed(next={"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}), "title": "N"}
OPENAI, LOOSE, GEMINI = providers.openai_strict, providers.openai_loose, providers.gemini_function
CLAUDE, STRICT_CLAUDE = providers.anthropic_tool, providers.anthropic_strict


@pytest.mark.parametrize(
    ("check", "schema", "broken"),
    [
        (OPENAI, closed(a={"type": "integer", "minimum": 1}, b={"$ref": "#/$defs/N"}) | {"$defs": {"N": NODE}}, []),
        (
            OPENAI,
            {"type": "array", "items": {}},
            ["the root is an object", "the root has `properties`", "a schema has a `type`"],
        ),
        (OPENAI, closed(a={"type": "object", "properties": {}}), ["objects have `additionalProperties: false`"]),
        (OPENAI, closed(a={"type": "string"}) | {"required": []}, ["all fields are `required`"]),
        (OPENAI, closed(a={"type": "string", "maxLength": 3}), ["the keyword `maxLength` is not supported"]),
        (OPENAI, closed(a={"type": "string", "default": "x"}), ["the keyword `default` is not supported"]),
        (OPENAI, closed(a={"type": "string", "format": "binary"}), ["the format `binary` is not supported"]),
        (OPENAI, closed(a={"type": "string", "pattern": "^(?!x)"}), ["a pattern looks neither ahead nor behind"]),
        (OPENAI, closed(a={"type": "array"}), ["arrays have `items`"]),
        (OPENAI, closed(a={"description": "anything"}), ["a schema has a `type`"]),
        (OPENAI, closed(a={"$ref": "#/$defs/M"}), ["`#/$defs/M` refers to no definition"]),
        (
            OPENAI,
            closed(**{f"p{n}": {"enum": [n]} for n in range(5001)}),
            ["at most 5000 properties", "at most 1000 values of enumerations"],
        ),
        (
            OPENAI,
            closed(a={"$ref": "#/$defs/N", "description": "x"}) | {"$defs": {"N": NODE}},
            ["`$ref` with `description` beside it"],
        ),
        (LOOSE, closed(a={"type": "array"}), ["arrays have `items`"]),
        (LOOSE, closed(a={}) | {"oneOf": []}, ["no `oneOf` at the top"]),
        (CLAUDE, closed(**{"a b": {"type": "integer"}}), ["`a b` is not a name of a property"]),
        (CLAUDE, closed(a={"type": "int"}), ["JSON Schema draft 2020-12"]),
        (GEMINI, closed(a={"enum": [True]}), ["values of an enumeration are texts and numbers"]),
        (GEMINI, closed(**{"a-b": {"type": "integer"}}), ["`a-b` is not a name of a parameter"]),
        (STRICT_CLAUDE, closed(a={"type": "integer", "minimum": 1}), ["the keyword `minimum` is not supported"]),
        (STRICT_CLAUDE, closed(a={"$ref": "#/$defs/N"}) | {"$defs": {"N": NODE}}, ["recursion is not supported"]),
        (providers.gemini_ignored, closed(a={"const": 1}), ["the keyword `const` is ignored"]),
    ],
)
def test_the_checkers_find_what_they_look_for(check, schema, broken):
    assert [rule for _, rule in check(schema)] == broken


# --- equal types, equal bytes -----------------------------------------------------------------------------------------


def wire_bytes(recipe: Recipe) -> str:
    """All that is sent for a type, and for one of its values, as text."""
    case = build(recipe)
    tool = tool_with(case.tp, default=case.some)
    definitions = [tool_codec(tool).definition(strict=strict) for strict in (False, True)]
    return json.dumps([answer_codec(case.tp).response_format, *definitions, encode(case.some, case.tp)])


@law(examples=60, many=2000)
def test_a_type_that_is_made_twice_gives_the_same_bytes(recipe, data):
    assert wire_bytes(recipe) == wire_bytes(recipe)


def sample(count: int) -> list[Recipe]:
    found: list[Recipe] = []

    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate], derandomize=True)
    @given(recipes())
    def collect(recipe: Recipe) -> None:
        found.append(recipe)

    collect()
    return found


ELSEWHERE = """
import ast, sys
from tests.encoding.test_laws import digest
print(digest(ast.literal_eval(sys.stdin.read())))
"""


def digest(some: list[Recipe]) -> list[str]:
    return [hashlib.sha256(wire_bytes(recipe).encode()).hexdigest()[:12] for recipe in some]


@pytest.mark.parametrize("count", [pytest.param(150, id="few"), pytest.param(1000, id="many", marks=pytest.mark.slow)])
def test_another_process_gives_the_same_bytes(count):
    some = sample(count)
    here = digest(some)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", ELSEWHERE],
        input=repr(some[::-1]),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "12345"},
    )
    there = ast_list(ran.stdout)[::-1]

    assert [recipe for recipe, one, other in zip(some, here, there, strict=True) if one != other] == []


def ast_list(text: str) -> list[str]:
    return json.loads(text.replace("'", '"'))


# --- prompts ----------------------------------------------------------------------------------------------------------


def linear(blocks: list[Any]) -> str:
    """The blocks read one after the other, those that are not text as JSON."""
    return "".join(block["text"] if block["type"] == "text" else json.dumps(block) for block in blocks)


MEDIA = st.sampled_from(
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f"}},
        {"type": "text", "text": "not a block"},
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | MEDIA,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(JSON)
def test_blocks_read_in_order_are_the_json_of_the_value(value):
    blocks = to_content_blocks(value)

    assert_tidy(blocks)
    if not isinstance(value, str):
        assert linear(blocks) == json.dumps(value)


def assert_tidy(blocks: list[Any]) -> None:
    kinds = [block["type"] for block in blocks]
    assert all(pair != ("text", "text") for pair in itertools.pairwise(kinds))
    assert all(block["text"] for block in blocks if block["type"] == "text")


@law(examples=60)
def test_a_prompt_read_in_order_is_its_text_and_the_json_of_its_values(recipe, data):
    value = drawn(recipe, data)[1]
    texts = data.draw(st.lists(PLAIN, min_size=2, max_size=2))
    media = data.draw(MEDIA)
    before, after = (text.replace("{", "{{").replace("}", "}}") for text in texts)

    try:
        encoded = encode(value)
    except EncodingError as error:  # no type is declared that says how such keys are written
        assume("several of its keys are the same text" not in str(error))
        raise

    blocks = format_as_content_blocks(before + "{x}" + after + "{m}", {"x": value, "m": [media]})

    middle = encoded if isinstance(encoded, str) else json.dumps(encoded)
    assert_tidy(blocks)
    assert linear(blocks) == texts[0] + middle + texts[1] + json.dumps([media])
