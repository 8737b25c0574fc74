"""The model that answers by schema: what it says fits, whatever the type."""

from __future__ import annotations

import asyncio
import io
import ipaddress
import json
import random
import re
import runpy
import sys
from decimal import Decimal
from typing import Annotated, Any, Literal

import annotated_types
import pydantic
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from effectful_agents import Agent, NotHandled, Skill, Tool, acall, harness
from effectful_agents.encoding import answer_codec, tool_codec
from effectful_agents.errors import EncodingError, OptionError, ResultDecodingError
from effectful_agents.messages import TextDelta, ToolChoice
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import handler
from effectful_agents.testing import SchemaModel
from effectful_agents.testing.samples import sample
from effectful_agents.testing.texts import text_like
from tests.encoding.random_types import build, recipes
from tests.encoding.test_laws import misfit, tool_with
from tests.encoding.test_table import ROWS
from tests.handlers.provision.http.server import listening
from tests.test_examples import NAMES as EXAMPLES
from tests.test_examples import path as path_of_example

BRIEF = harness(system_prompt="brief", num_retries=3)


def ask(model: SchemaModel, *messages: Any, **request: Any) -> Any:
    with handler(model):
        reply = completion(messages=[{"role": "user", "content": "hi"}, *messages], **request)
    return reply["choices"][0]["message"]


def answer(tp: Any, seed: int) -> Any:
    """An answer of a type, decoded."""
    codec = answer_codec(tp)
    form = {} if codec.response_format is None else {"response_format": codec.response_format}
    content = ask(SchemaModel(seed), **form)["content"]
    if form:
        assert not misfit(codec.response_format["json_schema"]["schema"], json.loads(content))
    return codec.decode(content)


# --- types ------------------------------------------------------------------------------------------------------------

# Bounds of a text that is an answer stand in no request; a test below is about them.
ASKED = [param for param in ROWS if "Annotated[str" not in str(param.id)]


@pytest.mark.parametrize("row", ASKED)
def test_an_answer_of_any_type_is_taken(row):
    for seed in range(12):
        answer(row.tp, seed)


@pytest.mark.parametrize("row", ROWS)
def test_arguments_of_any_type_are_taken(row):
    codec = tool_codec(tool_with(row.tp))
    for seed in range(6):
        made = ask(SchemaModel(seed, calls_tools=True), tools=[codec.definition()])
        codec.decode(made["tool_calls"][0]["function"]["arguments"])


@settings(max_examples=25)
@given(recipes(3), st.integers(0, 9))
def test_an_answer_of_a_type_at_random_is_taken(recipe, seed):
    # Of these schemas do not say all: which keys of a mapping there are, and, under a description of the user's own,
    # what a complex number or a fraction is written like.
    assume(not re.search("'texts'|'described'", repr(recipe)))
    tp = build(recipe).tp
    codec = tool_codec(tool_with(tp))
    made = ask(SchemaModel(seed, calls_tools=True), tools=[codec.definition()])
    codec.decode(made["tool_calls"][0]["function"]["arguments"])


SAID_IN_WORDS: dict[str, Any] = {
    "a decimal between": Annotated[Decimal, pydantic.Field(gt=0, lt=1)],
    "a decimal below": Annotated[Decimal, pydantic.Field(le=-1000)],
    "a large set": Annotated[set[int], pydantic.Field(min_length=50)],
    "a set of texts": Annotated[set[Literal["a", "b", "c"]], pydantic.Field(min_length=3)],
    "a list of few": Annotated[
        list[Annotated[int, annotated_types.Interval(ge=1, le=2)]], pydantic.Field(min_length=5)
    ],
    "bytes": Annotated[bytes, pydantic.Field(min_length=10)],
    "json": pydantic.Json[list[int]],
}


@pytest.mark.parametrize("tp", [pytest.param(tp, id=name) for name, tp in SAID_IN_WORDS.items()])
def test_bounds_that_are_said_in_words_are_kept(tp):
    codec = tool_codec(tool_with(tp))
    for seed in range(6):
        answer(tp, seed)
        made = ask(SchemaModel(seed, calls_tools=True), tools=[codec.definition()])
        codec.decode(made["tool_calls"][0]["function"]["arguments"])


OF_NO_SCHEMA: dict[str, Any] = {
    "naive": pydantic.NaiveDatetime,
    "aware": pydantic.AwareDatetime,
    "future": list[pydantic.FutureDate],
    "past": pydantic.PastDate,
    "future datetime": pydantic.FutureDatetime,
    "base64": pydantic.Base64Str,
}


@pytest.mark.parametrize("tp", [pytest.param(tp, id=name) for name, tp in OF_NO_SCHEMA.items()])
def test_what_no_schema_says_is_mended_when_it_is_sent_back(tp):
    @Skill.define
    def any_of_it() -> tp:
        """One."""
        raise NotHandled

    for seed in range(4):
        with handler(SchemaModel(seed)), handler(BRIEF):
            any_of_it()


def test_a_text_is_mended_when_it_is_sent_back():
    @Skill.define
    def code() -> Annotated[str, pydantic.StringConstraints(pattern="^[A-Z]{2}[0-9]{4}$")]:
        """A code."""
        raise NotHandled

    @Skill.define
    def initials() -> Annotated[str, annotated_types.Len(1, 3)]:
        """Initials."""
        raise NotHandled

    with handler(SchemaModel()), handler(BRIEF):
        assert re.fullmatch("[A-Z]{2}[0-9]{4}", code())
        assert 1 <= len(initials()) <= 3


def test_an_answer_that_is_sent_back_is_followed_by_another():
    asked: list[int] = []

    def even(number: int) -> int:
        asked.append(number)
        if number % 2:
            raise ValueError("it is odd")
        return number

    @Skill.define
    def number() -> Annotated[int, annotated_types.Interval(ge=0, le=99), pydantic.AfterValidator(even)]:
        """An even number."""
        raise NotHandled

    with handler(SchemaModel()), handler(harness(system_prompt="brief", num_retries=20)):
        assert number() % 2 == 0


# --- schemas ----------------------------------------------------------------------------------------------------------

RECURSIVE = {"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "properties": {"next": {}}, "required": ["next"]}}}
SCHEMAS: dict[str, Any] = {
    "exclusive bounds": {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5},
    "a narrow number": {"type": "number", "exclusiveMinimum": 0.1, "exclusiveMaximum": 0.1001},
    "a number alone": {"type": "number", "minimum": 0.3, "maximum": 0.3},
    "a multiple": {"type": "number", "multipleOf": 0.25, "exclusiveMinimum": 0.25},
    "large": {"type": "integer", "minimum": 10**30},
    "negative": {"type": "integer", "maximum": -(10**30)},
    "different items": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
    "too many wanted": {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
    "a tuple": {"type": "array", "prefixItems": [{"type": "null"}, {"type": "integer"}], "minItems": 2, "items": False},
    "a longer tuple": {"type": "array", "prefixItems": [{"type": "null"}], "items": {"type": "integer"}, "minItems": 4},
    "several kinds": {"type": ["string", "null", "integer"], "minLength": 4, "minimum": 9},
    "all of": {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 4}, {"minimum": 4}]},
    "one of": {"oneOf": [{"type": "integer"}, {"type": "integer", "minimum": 5}]},
    "not": {"type": "integer", "minimum": 0, "maximum": 3, "not": {"enum": [0, 1]}},
    "if": {
        "type": "object",
        "properties": {"a": {"type": "boolean"}},
        "if": {"required": ["a"]},
        "then": {"required": ["b"]},
    },
    "required only": {"type": "object", "required": ["x"], "properties": {}, "additionalProperties": {"type": "null"}},
    "many names": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 5},
    "patterns of names": {
        "type": "object",
        "patternProperties": {"^x-[a-z]{2}$": {"type": "integer"}},
        "additionalProperties": False,
        "minProperties": 0,
    },
    "without a type": {"properties": {"a": {"minimum": 3}}, "required": ["a"]},
    "a text of a length": {"type": "string", "minLength": 40, "maxLength": 41},
    "a short text": {"type": "string", "maxLength": 1},
    "a long pattern": {"type": "string", "pattern": "^[ab]+$", "minLength": 70},
    "a pattern inside": {"type": "string", "pattern": "x[0-9]", "minLength": 10, "maxLength": 12},
    "names with signs": {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}},
    "definitions by their old name": {"$ref": "#/definitions/A", "definitions": {"A": {"const": 3}}},
    "a list in itself": {"type": "array", "items": {"$ref": "#"}},
    "two in each other": {
        "$ref": "#/$defs/A",
        "$defs": {
            "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}, "required": ["b"]},
            "B": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
        },
    },
    "branches": {
        "$ref": "#/$defs/N",
        "$defs": {
            "N": {
                "anyOf": [
                    {"type": "integer"},
                    {"type": "array", "items": {"$ref": "#/$defs/N"}, "minItems": 3, "maxItems": 9},
                ]
            }
        },
    },
    "anything": {},
    "true": True,
    "anything in an object": RECURSIVE,
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_value_fits_its_schema(name):
    schema = SCHEMAS[name]
    for seed in range(30):
        value = sample(schema, seed)
        assert not misfit(schema, value), value
        assert len(json.dumps(value)) < 5000


FORMATS = {
    "date": "date", "time": "time", "date-time": "date-time", "email": "email", "ipv4": "ipv4", "ipv6": "ipv6",
    "uuid": "uuid", "regex": "regex",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_a_text_has_the_format_that_is_asked_for(name):
    import jsonschema

    checker = jsonschema.FormatChecker()
    for seed in range(20):
        assert checker.conforms(sample({"type": "string", "format": name}, seed), name)


KINDS = [
    *(pydantic.AnyUrl, pydantic.IPvAnyAddress, pydantic.IPvAnyNetwork, pydantic.IPvAnyInterface, pydantic.UUID7),
    *(ipaddress.IPv4Network, ipaddress.IPv6Interface, pydantic.AwareDatetime, pydantic.PastDate),
    *(pydantic.PositiveFloat, pydantic.conlist(int, min_length=2), pydantic.SecretStr, pydantic.ByteSize),
]


@pytest.mark.parametrize("tp", KINDS, ids=lambda tp: getattr(tp, "__name__", "?"))
def test_a_type_of_pydantics_is_answered(tp):
    for seed in range(5):
        answer(tp, seed)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4},
        {"type": "number", "exclusiveMinimum": 3, "maximum": 3},
        {"type": "string", "pattern": "^a$", "minLength": 3},
        {"type": "string", "pattern": "("},
        {"type": "array", "items": {"const": 1}, "uniqueItems": True, "minItems": 2},
        {"not": {}},
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "#/properties/a"}}, "required": ["a"]},
        {
            "$ref": "#/$defs/A",
            "$defs": {"A": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/A"}, "minItems": 1}]}},
        },
    ],
    ids=str,
)
def test_where_nothing_fits_it_says_so(schema):
    with pytest.raises(EncodingError):
        sample(schema)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^\d{3}-[\w.]+$", r"a|b|cd", r"^(?:x|yz){2,}?$", r"^[^a-z]+$", r"(?P<q>['\"]).*?(?P=q)", r"^.$", r"^\S\D\W$",
        r"^(?=.*[0-9])[a-z0-9]{4}$", r"^(?!ab)[ab]{2}$", r"\bword\b", r"^[\x00-\x1f]$", r"^\+?[1-9]\d{1,14}$", "",
        "^é+$",
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(5))
def test_a_text_fits_its_pattern(pattern, seed):
    text = text_like(pattern, random.Random(seed))
    assert text is not None
    assert re.search(pattern, text)


# --- tools ------------------------------------------------------------------------------------------------------------


def tool(name: str, **properties: Any) -> Any:
    parameters = {"type": "object", "properties": properties, "required": [*properties]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [tool("add", x={"type": "integer"}), tool("stop"), tool("say", text={"type": "string"})]


def called(message: Any) -> list[str]:
    return [call["function"]["name"] for call in message.get("tool_calls", ())]


def test_tools_are_called_where_that_is_wanted():
    assert called(ask(SchemaModel(), tools=TOOLS)) == []
    assert called(ask(SchemaModel(calls_tools=True), tools=TOOLS)) == ["add", "stop", "say"]
    assert called(ask(SchemaModel(calls_tools=["say", "stop"]), tools=TOOLS)) == ["stop", "say"]
    assert called(ask(SchemaModel(calls_tools=True), tools=TOOLS, parallel_tool_calls=False)) == ["add"]
    assert called(ask(SchemaModel(calls_tools=True), tools=[])) == []


def test_a_tool_is_called_once():
    model = SchemaModel(calls_tools=True)
    first = ask(model, tools=TOOLS)
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "failed"} for call in first["tool_calls"]]
    assert called(ask(model, first, *results, tools=TOOLS)) == []
    assert called(ask(model, first, *results, {"role": "user", "content": "Could not be decoded."}, tools=TOOLS)) == []
    assert called(ask(model, first, *results, tools=[*TOOLS, tool("new")])) == ["new"]


@pytest.mark.parametrize(
    ("choice", "names"),
    [("none", []), ("required", ["add"]), (ToolChoice("named", "say"), ["say"]), (ToolChoice("named", "no"), [])],
    ids=str,
)
def test_it_keeps_to_the_choice_of_tools(choice, names):
    assert called(ask(SchemaModel(), tools=TOOLS, tool_choice=choice)) == names


def test_a_tool_that_cannot_be_called_is_left_out():
    never = tool("never", x={"not": {}})
    with pytest.warns(UserWarning, match="does not call the tool `never`"):
        assert called(ask(SchemaModel(calls_tools=True), tools=[never, *TOOLS])) == ["add", "stop", "say"]
    with pytest.raises(EncodingError):
        ask(SchemaModel(calls_tools=["never"]), tools=[never])


def test_a_program_with_tools_runs():
    seen: list[Any] = []

    @Tool.define
    def measure(city: Literal["Oslo", "Rome"], days: Annotated[int, annotated_types.Ge(1)]) -> float:
        """Measure."""
        seen.append((city, days))
        return 20.0

    @Skill.define
    def plan() -> list[Literal["Oslo", "Rome"]]:
        """Plan."""
        raise NotHandled

    model = SchemaModel(calls_tools=["measure"])
    with handler(model), handler(harness(eval_provider="none")):
        assert set(plan()) <= {"Oslo", "Rome"}
        assert set(asyncio.run(acall(plan))) <= {"Oslo", "Rome"}
    assert len(seen) == 2
    assert len(model.requests) == 4


@Skill.define
def plan(what: str) -> str:
    """Plan {what}, with `check`."""
    raise NotHandled


@Skill.define
def check(what: str) -> str:
    """Check {what}, with `plan`."""
    raise NotHandled


class Guide(Agent):
    """A guide."""

    @Skill.define
    def first(self, what: str) -> str:
        """{what}, then `second`."""
        raise NotHandled

    @Skill.define
    def second(self, what: str) -> str:
        """{what}, then `first`."""
        raise NotHandled

    @Skill.define
    def again(self, what: str) -> str:
        """{what}, and `again`."""
        raise NotHandled


def test_skills_that_offer_each_other_come_to_an_end():
    with handler(SchemaModel(calls_tools=True)) as model, handler(harness(eval_provider="none")):
        assert plan("a trip")
    # `plan` calls `check`, which calls no `plan`.
    assert len(model.requests) == 3
    with (
        handler(SchemaModel(calls_tools=["first", "second", "again"])) as model,
        handler(harness(eval_provider="none")),
    ):
        guide = Guide()
        assert [guide.first("a"), guide.second("b"), guide.again("c")]


def test_many_skills_that_offer_each_other_come_to_an_end_soon():
    space: dict[str, Any] = {"Skill": Skill, "NotHandled": NotHandled}
    source = "@Skill.define\ndef s{0}(x: str) -> str:\n    'Do {{x}}.'\n    raise NotHandled\n"
    exec("".join(source.format(number) for number in range(8)), space)
    with handler(SchemaModel(calls_tools=True)) as model, handler(harness(eval_provider="none")):
        assert space["s0"]("it")
    assert 1 <= len(model.requests) < 99


# --- the same again ---------------------------------------------------------------------------------------------------


def test_the_same_request_has_the_same_reply():
    form = answer_codec(dict[str, list[float]]).response_format
    replies = {ask(SchemaModel(3), response_format=form)["content"] for _ in range(3)}
    assert replies == {'{"72": [8.5, 0], "10": [5]}'}
    others = {ask(SchemaModel(seed), response_format=form)["content"] for seed in range(9)}
    assert len(others) > 3


def test_a_reply_is_told_in_pieces():
    with listening() as heard:
        content = ask(SchemaModel(chunk_size=2))["content"]
    pieces = [event.text for event in heard if isinstance(event, TextDelta)]
    assert "".join(pieces) == content
    assert max(map(len, pieces)) == 2


def test_an_object_of_any_form_is_one():
    assert ask(SchemaModel(), response_format={"type": "json_object"})["content"] == "{}"


@pytest.mark.parametrize("options", [{"chunk_size": 0}, {"calls_tools": "add"}], ids=str)
def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(OptionError):
        SchemaModel(**options)


def test_without_retries_a_text_that_does_not_fit_is_an_error():
    @Skill.define
    def short() -> Annotated[str, annotated_types.Len(1, 3)]:
        """Short."""
        raise NotHandled

    with handler(SchemaModel()), handler(harness(num_retries=0)), pytest.raises(ResultDecodingError):
        short()


# --- programs ---------------------------------------------------------------------------------------------------------


RUNS = [(name, tools) for name in EXAMPLES for tools in (False, True)]
# Its tools are for a person to allow, and it ends until there is an answer.
RUNS.remove(("durable/approving_mail", True))


@pytest.mark.parametrize(
    ("name", "calls_tools"), RUNS, ids=lambda value: value if isinstance(value, str) else str(value)
)
def test_an_example_runs_without_a_script(name, calls_tools, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.md").write_text("All about lions.")
    words = {"extract": ["text.md"]}.get(name, [])
    monkeypatch.setattr(sys, "argv", [path_of_example(name), *words])
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\nHello\n\n"))
    with harness(system_prompt="brief", eval_provider="builtin", type_checker="none", num_retries=5):
        with handler(SchemaModel(calls_tools=calls_tools)) as model:
            runpy.run_path(path_of_example(name), run_name="__main__")
    assert model.requests
    assert capsys.readouterr().out
