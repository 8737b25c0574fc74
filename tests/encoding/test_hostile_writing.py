"""What hostile users and models hand to schemas, writers and the registry: it is refused in words of ours."""

import dataclasses
import enum
import io
import json
import subprocess
import sys
from typing import Annotated, Any, Literal, NewType

import pydantic
import pytest
from PIL import Image

from effectful_agents.encoding import (
    Codec,
    answer_codec,
    b64,
    decode,
    dumps,
    encode,
    format_as_content_blocks,
    json_schema,
    register,
    schema_for,
    to_jsonable,
    tool_codec,
)
from effectful_agents.errors import ConfigurationError, EncodingError, OptionError
from effectful_agents.types import Tool

Name = NewType("Name", int)


class Thing:
    """Nothing says how it is written."""


TEXT = Codec(str, str, lambda _: Thing())

type Alias = dict[str, Thing]
type Broken = list[nowhere]  # noqa: F821  # ty: ignore[unresolved-reference]
type Failing = 1 / 0  # ty: ignore[invalid-type-form]


# --- what `register` takes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kinds", [list[int], Name, int | str, Annotated[int, "x"], Alias, None, 5, Literal["a"]], ids=repr
)
def test_what_is_no_class_is_refused_and_leaves_no_trace(kinds):
    with pytest.raises(OptionError, match="takes a class, its full name, or a function"):
        register(kinds, TEXT)
    with pytest.raises(EncodingError, match="has no encoding"):
        json_schema(Thing)


@pytest.mark.parametrize("kinds", [int, str, list, "builtins.int", "datetime.date"])
def test_a_class_whose_form_is_fixed_is_refused(kinds):
    with pytest.raises(OptionError, match="is fixed; register a subclass"):
        register(kinds, TEXT)


@pytest.mark.parametrize("name", ["", "ndarray", "numpy ndarray", "numpy."])
def test_a_name_that_no_class_can_have_is_refused(name):
    with pytest.raises(OptionError, match="no full name"):
        register(name, TEXT)


@pytest.mark.parametrize("codec", [None, "x", 5, Thing])
def test_what_is_no_codec_is_refused(codec):
    with pytest.raises(OptionError, match="takes a `Codec`"):
        register(Thing, codec)


def test_a_function_that_makes_no_codec_is_named():
    class Local:
        pass

    register(Local, lambda _: "nothing")  # ty: ignore[invalid-argument-type]
    with pytest.raises(EncodingError, match=r"Local` made str, and no `Codec`"):
        encode(Local())


def run(program: str, seed: str = "0") -> str:
    """What a program prints in a process of its own, with what it registers."""
    made = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONHASHSEED": seed}, check=False
    )
    return made.stdout + made.stderr[-500:]


PREDICATES = """
from effectful_agents.encoding import Codec, encode, json_schema, register
class Thing: pass
def of_tables(kind): return issubclass(kind, {what})
register(of_tables, Codec(str, lambda _: "t"))
try:
    print(encode({{"a": {{1}}}}), json_schema(Thing))
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_test_that_raises_type_error_is_not_for_the_class():
    assert "has no encoding" in run(PREDICATES.format(what="5"))


def test_a_test_that_fails_otherwise_is_named():
    assert "EncodingError the test `of_tables`" in run(PREDICATES.format(what="kind.nope"))


# --- values -----------------------------------------------------------------------------------------------------------


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@dataclasses.dataclass
class Node:
    next: "Node | None" = None


def endless_list() -> Any:
    value: Any = []
    value.append(value)
    return value


def endless_dict() -> Any:
    value: Any = {}
    value["a"] = value
    return value


def endless_node() -> Any:
    node = Node()
    node.next = node
    return node


@pytest.mark.parametrize("write", [encode, dumps, to_jsonable])
@pytest.mark.parametrize("make", [endless_list, endless_dict, endless_node])
def test_a_value_that_contains_itself_is_refused(write, make):
    with pytest.raises(EncodingError, match="it contains itself"):
        write(make())


@pytest.mark.parametrize("write", [encode, dumps, to_jsonable])
def test_a_deep_value_is_not_said_to_contain_itself(write):
    with pytest.raises(EncodingError, match="nested too deep"):
        write(nested(20_000))


@Tool.define
def huge() -> Any:
    """A number."""


@pytest.mark.parametrize("value", [10**5000, [10**5000], {10**5000: 1}], ids=["alone", "in a list", "a key"])
def test_a_number_without_a_text_is_refused(value):
    with pytest.raises(EncodingError, match=r"the tool `huge` cannot be written: .* more digits"):
        tool_codec(huge).encode_result(value)
    with pytest.raises(EncodingError, match="more digits"):
        dumps(value)
    with pytest.raises(EncodingError, match="more digits"):
        format_as_content_blocks("{x}", {"x": value})


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Odd(pydantic.BaseModel):
    @pydantic.computed_field
    @property
    def bad(self) -> int:
        raise ZeroDivisionError


def test_a_property_that_fails_is_told():
    with pytest.raises(EncodingError, match="`Odd` cannot be encoded; its `bad` raised ZeroDivisionError"):
        encode(Odd())


def test_a_value_whose_text_fails_is_refused_in_a_template():
    with pytest.raises(EncodingError, match=r"`\{x\}` of the template"):
        format_as_content_blocks("{x}", {"x": Unshowable()})
    with pytest.raises(ConfigurationError, match=r"`\{x\}` of the template"):
        format_as_content_blocks("{x!r}", {"x": Unshowable()})


@pytest.mark.parametrize("tp", [Broken, Failing], ids=["Broken", "Failing"])
def test_an_alias_that_fails_has_no_answer(tp):
    with pytest.raises(EncodingError, match="has no form on the wire"):
        answer_codec(tp)


def test_a_picture_that_is_too_large_is_told_to_the_model():
    buffer = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(buffer, "PNG")
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64(buffer.getvalue())}"}}
    with pytest.raises(ValueError, match="the picture cannot be read"):
        decode(json.dumps(part), Image.Image)


# --- schemas that users wrote -----------------------------------------------------------------------------------------

NOWHERE = {"$ref": "#/$defs/none"}
OUTSIDE = {"$ref": "http://127.0.0.1:9/schema"}
CIRCLE = {"$ref": "#/$defs/T"}


@pytest.mark.parametrize("part", [NOWHERE, OUTSIDE, CIRCLE, {"anyOf": [CIRCLE, {"type": "string"}]}], ids=str)
def test_references_that_cannot_be_followed_are_refused(part):
    schema = {"type": "object", "properties": {"a": part}, "$defs": {"T": part}}

    @Tool.define(parameters=schema)
    def by_hand(**_: Any) -> str:
        """Written by hand."""
        return ""

    with pytest.raises(
        EncodingError, match=r"`parameters` of the tool `by_hand` has (a reference that|references in a circle)"
    ):
        tool_codec(by_hand)
    with pytest.raises(EncodingError, match="the schema has"):
        schema_for(schema)


def test_a_schema_may_contain_itself_in_a_part():
    tree = {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    assert schema_for({"$ref": "#/$defs/Tree", "$defs": {"Tree": tree}}).validate("[[], [[]]]") == [[], [[]]]


# --- schemas of types -------------------------------------------------------------------------------------------------


class Extra(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(json_schema_extra={"$id": "x", "foo": 1})
    x: int = pydantic.Field(json_schema_extra={"widget": "slider"}, deprecated=True)


def test_keywords_that_are_for_programs_are_left_out():
    schema = json_schema(Extra)
    assert schema.keys() == {"type", "properties", "additionalProperties"} | ({"required"} & schema.keys())
    assert schema["properties"]["x"] == {"type": "integer", "description": "deprecated"}
    assert "writeOnly" not in json_schema(pydantic.SecretStr)


def test_what_no_keyword_says_is_in_the_description():
    above = json_schema(Annotated[int | str, pydantic.Field(gt=3, description="An amount.")])
    assert above == {"description": "An amount (greater than 3)", "anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert json_schema(pydantic.Json[list[int]])["description"].startswith("the text is JSON of the schema")


def test_what_keys_are_is_in_the_description():
    long = json_schema(dict[Annotated[str, pydantic.Field(min_length=2)], int])
    assert long.get("description") == 'each key fits the schema {"minLength": 2}'
    matched = json_schema(dict[Annotated[str, pydantic.Field(pattern="^a")], int])
    assert matched == {
        "type": "object",
        "description": "the keys match the regular expression ^a",
        "additionalProperties": {"type": "integer"},
    }


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize("keys", [Literal["red", "blue"], Color], ids=["literal", "enum"])
def test_a_mapping_with_known_keys_is_an_object_that_may_lack_some(keys):
    assert json_schema(dict[keys, int]) == {
        "type": "object",
        "properties": {"red": {"type": "integer"}, "blue": {"type": "integer"}},
        "additionalProperties": False,
    }


EXAMPLES = """
import json, pydantic
from typing import Annotated
from effectful_agents.encoding import json_schema
words = {"a", "b", "c", "d"}
class Model(pydantic.BaseModel):
    x: set[str] = pydantic.Field(examples=[words], json_schema_extra={"q": words})
    y: Annotated[list[frozenset[str]], pydantic.Field(examples=[[words]])]
    z: Annotated[str, pydantic.Field(examples=[words, "e"])]
print(json.dumps(json_schema(Model)))
"""


def test_examples_are_the_same_in_every_process():
    first = run(EXAMPLES, "1")
    assert '["a", "b", "c", "d"]' in first
    assert '"examples": ["e"]' in first
    assert {run(EXAMPLES, seed) for seed in ("2", "3", "4")} == {first}
