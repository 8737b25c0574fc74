"""What holds for every type and every value, tried on types and values put together at random.

The laws are functions of a recipe and of Hypothesis' data; `law` makes two tests of each: one for every run, and one
marked `slow` with many more examples.
"""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from effectful_agents.encoding import (
    answer_codec,
    decode,
    encode,
    format_as_content_blocks,
    to_content_blocks,
    tool_codec,
)
from effectful_agents.errors import EncodingError
from tests.encoding import providers
from tests.encoding.lawful import JSON, MEDIA, as_answer, drawn, fits, law, misfit, parameters_of, tool_with
from tests.encoding.random_types import Case, Recipe, build, recipes
from tests.encoding.sameness import same

# --- there and back ---------------------------------------------------------------------------------------------------


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
