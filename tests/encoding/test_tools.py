import dataclasses
import datetime
import decimal
import gc
import inspect
import json
import uuid
import weakref
from typing import Annotated, Any, Literal, NotRequired, TypedDict, Unpack

import jsonschema
import pydantic
import pytest

from effectful_agents.encoding import json_schema_for, tool_codec
from effectful_agents.errors import EncodingError
from effectful_agents.types import Tool
from tests.encoding.shapes import Colour, Person, Tree
from tests.ids import shown


def tool_of(function: Any, **attributes: Any) -> Any:
    """A tool as the codec sees one, of a function that need not have all that `Tool.define` asks for."""

    class Stand:
        __name__ = function.__name__
        __signature__ = inspect.signature(function, eval_str=True)
        description = function.__doc__ or ""
        parameters = None
        external = False

    stand = Stand()
    vars(stand).update(attributes)
    return stand


@Tool.define
def weather(
    city: Annotated[str, pydantic.Field(description="its English name")],
    days: int = 1,
    unit: Literal["C", "F"] = "C",
    near: Person | None = None,
) -> str:
    """The weather in a city."""
    raise NotImplementedError


def sent(tool: Any, arguments: Any) -> tuple[tuple, dict[str, Any]]:
    bound = tool_codec(tool).decode(arguments)
    return bound.args, bound.kwargs


def test_the_definition_shows_descriptions_and_defaults():
    definition = tool_codec(weather).definition()

    function = definition["function"]
    assert (function["name"], function.get("description")) == ("weather", "The weather in a city.")
    properties = function["parameters"]["properties"]
    assert properties["city"] == {"type": "string", "description": "its English name"}
    assert properties["days"] == {"type": "integer", "default": 1}
    assert properties["unit"] == {"type": "string", "enum": ["C", "F"], "default": "C"}
    assert properties["near"]["default"] is None
    assert function["parameters"]["required"] == ["city"]
    assert function["parameters"]["additionalProperties"] is False
    jsonschema.Draft202012Validator.check_schema(function["parameters"])


def test_the_definition_is_one_object_for_each_name():
    codec = tool_codec(weather)

    assert tool_codec(weather) is codec
    assert codec.definition() is codec.definition("weather")
    assert codec.definition("bot__weather")["function"]["name"] == "bot__weather"
    assert codec.definition("bot__weather") is codec.definition("bot__weather")


def test_the_arguments_become_values_and_defaults_are_filled_in():
    bound = tool_codec(weather).decode('{"near": {"name": "Ann"}, "city": "Rome", "unit": "F"}')

    assert bound.arguments == {"city": "Rome", "days": 1, "unit": "F", "near": Person(name="Ann")}
    assert bound.signature == weather.__signature__


@pytest.mark.parametrize("arguments", ["", "null", None, "{}", " {} ", {}, '"{}"', '"null"', '""', "  "])
def test_no_arguments_come_in_many_forms(arguments):
    def ping() -> None: ...

    def pong(times: int = 3) -> None: ...

    assert sent(tool_of(ping), arguments) == ((), {})
    assert sent(tool_of(pong), arguments) == ((3,), {})
    with pytest.raises(ValueError, match="`city` is missing"):
        tool_codec(weather).decode(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"city": "Rome", "days": 2}',
        {"city": "Rome", "days": 2},
        json.dumps('{"city": "Rome", "days": "2"}'),
        '```json\n{"city": "Rome", "days": 2}\n```',
        {"city": "Rome", "days": "2"},
    ],
)
def test_arguments_come_in_many_forms(arguments):
    assert sent(weather, arguments)[0][:2] == ("Rome", 2)


def test_everything_that_is_wrong_is_said_at_once():
    with pytest.raises(ValueError, match="do not fit") as caught:
        tool_codec(weather).decode('{"town": "Rome", "days": "many", "near": {"name": "A", "friends": [{"name": 1}]}}')

    assert str(caught.value).splitlines() == [
        "the arguments of `weather` do not fit:",
        "`city` is missing",
        'days: Input should be a valid integer; it is "many"',
        "near.friends[0].name: Input should be a valid string; it is 1",
        "`town` is not a parameter; the parameters are `city`, `days`, `unit`, `near`",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('{"a": "xx', "Invalid JSON: EOF while parsing a string"),
        ('{"city": "Rome"', "Invalid JSON: EOF"),
        ("[1, 2]", "not a JSON object; the parameters are `city`"),
        ('"Rome"', "Invalid JSON"),
        ("7", "not a JSON object"),
        (7, "not a JSON object"),
        (["Rome"], "not a JSON object"),
        ({"city": object()}, "not JSON"),
    ],
)
def test_arguments_that_are_no_object_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        tool_codec(weather).decode(arguments)
    assert "http" not in str(caught.value)


def test_any_kind_of_parameter_can_be_sent():
    def mixed(a: int, b: int = 2, /, c: int = 3, *rest: int, d: int, e: Colour = Colour.RED, **more: float) -> None: ...

    tool = tool_of(mixed)
    schema = tool_codec(tool).definition()["function"]["parameters"]

    assert schema["properties"]["rest"] == {"type": "array", "items": {"type": "integer"}}
    assert schema["additionalProperties"] == {"type": "number"}
    assert schema["required"] == ["a", "d"]
    assert sent(tool, '{"a": 1, "d": 4}') == ((1, 2, 3), {"d": 4, "e": Colour.RED})
    assert sent(tool, '{"d": 4, "rest": [5, "6"], "a": 1, "x": 1.5, "e": "blue"}') == (
        (1, 2, 3, 5, 6),
        {"d": 4, "e": Colour.BLUE, "x": 1.5},
    )
    with pytest.raises(ValueError, match=r"rest\[0\]: .*\nx: "):
        tool_codec(tool).decode('{"a": 1, "d": 4, "rest": ["z"], "x": "z"}')


def test_parameters_may_have_any_name():
    def odd(
        self: int,
        model_config: int,
        schema: int,
        json: int,
        copy: int,
        _x: int,
        __y: int,
        cls: int,
        value: int,
        dict: int,
    ) -> None: ...

    names = list(inspect.signature(odd).parameters)
    values = {name: number for number, name in enumerate(names)}

    assert list(json_schema_for(odd)["properties"]) == names
    assert tool_codec(tool_of(odd)).decode(json.dumps(values)).arguments == values


def test_methods_of_all_instances_share_a_codec_without_the_instance():
    class Bot:
        @Tool.define
        def find(self, what: str) -> str:
            """Find it."""
            raise NotImplementedError

    codec = tool_codec(Bot().find)

    assert tool_codec(Bot().find) is codec
    assert list(codec.definition()["function"]["parameters"]["properties"]) == ["what"]
    assert codec.decode({"what": "x"}).arguments == {"what": "x"}
    assert "self" in tool_codec(Bot.find).definition()["function"]["parameters"]["properties"]


def test_a_codec_keeps_no_tool_alive():
    def make() -> weakref.ref:
        @Tool.define
        def local(a: int) -> int:
            """Local."""
            raise NotImplementedError

        assert tool_codec(local).decode('{"a": 1}').arguments == {"a": 1}
        return weakref.ref(local)

    reference = make()
    gc.collect()

    assert reference() is None


def test_a_parameter_that_cannot_be_described_is_named():
    class Socket: ...

    def plug(cable: int, into: list[Socket]) -> None: ...

    with pytest.raises(EncodingError, match=r"^plug\(cable: int, into: list\[Socket\]\)\.into\[\]: Socket has no enc"):
        tool_codec(tool_of(plug))
    with pytest.raises(EncodingError, match=r"plug\(.*\)\.into\[\]: Socket has no encoding; register one with"):
        json_schema_for(plug)


def test_forward_references_are_found():
    def plant(tree: "Tree", others: "list[Tree]") -> None: ...

    assert json_schema_for(plant)["properties"]["others"]["items"] == {"$ref": "#/$defs/Tree"}

    def lost(tree: "Nowhere") -> None: ...  # noqa: F821  # ty: ignore[unresolved-reference]

    with pytest.raises(EncodingError, match=r"parameters of `lost`.*Nowhere"):
        json_schema_for(lost)


def test_defaults_that_have_no_form_are_not_shown():
    marker = object()

    def search(text: str = marker, limit: int = None, when: datetime.date = datetime.date(2026, 1, 2)) -> None: ...  # noqa: RUF013  # ty: ignore[invalid-parameter-default]

    tool = tool_of(search)

    assert tool_codec(tool).definition()["function"]["parameters"]["properties"] == {
        "text": {"type": "string"},
        "limit": {"type": "integer"},
        "when": {"type": "string", "format": "date", "default": "2026-01-02"},
    }
    assert sent(tool, "{}")[0] == (marker, None, datetime.date(2026, 1, 2))


def test_validators_see_the_context():
    def known(name: str, info: pydantic.ValidationInfo) -> int:
        return info.context[name]

    def pick(name: Annotated[Any, pydantic.AfterValidator(known)]) -> None: ...

    assert tool_codec(tool_of(pick)).decode('{"name": "a"}', context={"a": 1}).arguments == {"name": 1}


def test_a_schema_written_by_hand_takes_the_place_of_the_derived_one():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "rest": {}}, "required": ["a"]}

    def raw(a, /, *rest, b=2): ...

    tool = tool_of(raw, parameters=schema)

    assert tool_codec(tool).definition()["function"]["parameters"] == schema
    assert sent(tool, '{"a": 1, "rest": [3, 4]}') == ((1, 3, 4), {"b": 2})
    with pytest.raises(ValueError, match=r"`raw` do not fit:\na: \{'x': 1\} is not of type 'integer'$"):
        tool_codec(tool).decode('{"a": {"x": 1}}')
    with pytest.raises(ValueError, match="a stands twice"):
        tool_codec(tool).decode('{"a": 1, "a": 2}')
    with pytest.raises(ValueError, match=r"`c` is not a parameter; .*\n`a` is missing"):
        tool_codec(tool).decode('{"c": 1}')
    with pytest.raises(ValueError, match="Invalid JSON"):
        tool_codec(tool).decode('{"c": ')
    with pytest.raises(ValueError, match="not a JSON object; the parameters are `a`, `rest`"):
        tool_codec(tool).decode("[1]")


def test_a_schema_written_by_hand_may_leave_the_names_to_the_tool():
    def anything(**values): ...

    tool = tool_of(anything, parameters={"type": "object"})

    assert sent(tool, '{"a": 1, "b": [2]}') == ((), {"a": 1, "b": [2]})
    assert sent(tool, '{"a": "\ud800"}') == ((), {"a": "\ufffd"})


def test_a_schema_written_by_hand_that_is_none_is_refused_when_the_tool_is_offered():
    def anything(**values): ...

    with pytest.raises(EncodingError, match="`parameters` of the tool `anything` is no JSON schema: 'objekt' is not"):
        tool_codec(tool_of(anything, parameters={"type": "objekt"}))


@pytest.mark.parametrize(
    "section",
    [
        "Args:\n    dish (str): Its name\n        on the menu.\n    portions: How many.",
        "Parameters\n----------\ndish : str\n    Its name on the menu.\nportions : int, optional\n    How many.",
        ":param dish: Its name\n    on the menu.\n:type dish: str\n:param int portions: How many.",
    ],
    ids=["google", "numpy", "rest"],
)
def test_descriptions_of_parameters_come_from_the_docstring_and_are_told_once(section):
    def order(dish: str, portions: int = 1) -> str: ...

    order.__doc__ = f"Order a dish.\n\n{section}\n"
    function = tool_codec(tool_of(order)).definition()["function"]

    assert function.get("description") == "Order a dish."
    assert function["parameters"]["properties"] == {
        "dish": {"type": "string", "description": "Its name on the menu."},
        "portions": {"type": "integer", "description": "How many.", "default": 1},
    }


def test_a_section_about_other_things_stays_in_the_description():
    def order(dish: str) -> str:
        """Order.

        Args:
            dish: The dish.
            waiter: Nobody.

        Returns:
            The bill.
        """
        raise NotImplementedError

    function = tool_codec(tool_of(order)).definition()["function"]

    assert "waiter: Nobody." in function.get("description", "")
    assert "The bill." in function.get("description", "")


def test_a_description_beside_a_type_that_stands_elsewhere_is_one_that_providers_take():
    def graft(one: Tree, other: Tree | None = None) -> None:
        """Graft.

        Args:
            one: The stock.
        """

    one = json_schema_for(graft)["properties"]["one"]

    assert one == {"description": "The stock.", "anyOf": [{"$ref": "#/$defs/Tree"}]}


class Options(TypedDict):
    size: int
    colour: NotRequired[Colour]


def test_the_keys_of_unpacked_keywords_are_parameters():
    def paint(what: str, **options: Unpack[Options]) -> None: ...

    tool = tool_of(paint)
    schema = tool_codec(tool).definition()["function"]["parameters"]

    assert list(schema["properties"]) == ["what", "size", "colour"]
    assert schema["required"] == ["what", "size"]
    assert sent(tool, '{"what": "a", "size": 1, "colour": "red"}') == (("a",), {"size": 1, "colour": Colour.RED})
    with pytest.raises(ValueError, match="`size` is missing"):
        tool_codec(tool).decode('{"what": "a"}')


def test_a_strict_definition_asks_for_every_parameter_and_reads_null_as_the_default():
    function = tool_codec(weather).definition(strict=True)["function"]
    properties = function["parameters"]["properties"]

    assert function.get("strict") is True
    assert function["parameters"]["required"] == ["city", "days", "unit", "near"]
    assert properties["days"] == {
        "description": "null for the default, 1",
        "anyOf": [{"type": "integer"}, {"type": "null"}],
    }
    assert tool_codec(weather).definition()["function"].get("strict") is None
    assert sent(weather, '{"city": "Rome", "days": null, "unit": null, "near": null}') == (("Rome", 1, "C", None), {})


def test_a_tool_without_a_strict_form_is_shown_as_it_is():
    def count(words: dict[str, Any]) -> None: ...

    codec = tool_codec(tool_of(count))

    assert codec.definition(strict=True) == codec.definition()


# --- results ----------------------------------------------------------------------------------------------------------


def result(value: Any, tp: Any = Any) -> Any:
    def tool():
        """A tool."""

    tool.__annotations__["return"] = tp
    return tool_codec(tool_of(tool)).encode_result(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is \n", "as it is \n"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (Colour.RED, "red"),
        (datetime.datetime(2026, 5, 1), "2026-05-01T00:00:00"),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"b", "a"}, '["a","b"]'),
        (b"bytes", "bytes"),
        ({datetime.date(2026, 5, 1): "é"}, '{"2026-05-01":"é"}'),
        ("a\ud800", "a\ufffd"),
        (["a\ud800"], '["a\ufffd"]'),
        (Tree(1), '{"value":1,"children":[],"parent":null}'),
        (float("nan"), "NaN"),
    ],
    ids=shown,
)
def test_a_result_reads_well(value, text):
    assert result(value) == text
    assert result(value, type(value)) == text


def test_a_long_text_is_whole():
    text = "x" * 5_000_000

    assert result(text, str) == text


def test_a_result_is_written_by_the_declared_type_or_else_by_its_own():
    cents = Annotated[int, pydantic.PlainSerializer(lambda amount: f"{amount / 100:.2f}")]

    assert result([250], list[cents]) == '["2.50"]'
    assert result({"a": 1}, list[cents]) == '{"a":1}'
    socket_like = type("SocketLike", (), {})
    assert result(3, socket_like) == "3"
    with pytest.raises(EncodingError, match=r"result of the tool `tool`.*`SocketLike`"):
        result(socket_like(), socket_like)


@pytest.mark.parametrize("value", [int, lambda: 1, object(), {"a": [int]}, {1: 1, "1": 2}], ids=shown)
def test_a_result_without_a_form_names_the_tool(value):
    with pytest.raises(EncodingError, match=r"the result of the tool `tool` cannot be written: .*type `") as caught:
        result(value)
    assert "0x" not in str(caught.value)


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
TEXT = {"type": "text", "text": "a cat"}


def test_content_parts_become_blocks():
    assert result(PICTURE) == [PICTURE]
    assert result([TEXT, PICTURE]) == [TEXT, PICTURE]
    assert result({"photo": PICTURE}) == [
        {"type": "text", "text": '{"photo": '},
        PICTURE,
        {"type": "text", "text": "}"},
    ]


def test_what_only_resembles_a_content_part_is_json():
    assert result({"type": "file", "file": "a.txt"}) == '{"type":"file","file":"a.txt"}'
    assert result([]) == "[]"


def test_a_dataclass_with_serializers_is_written_as_declared():
    @dataclasses.dataclass
    class Money:
        cents: Annotated[int, pydantic.PlainSerializer(str)]

    assert result(Money(3), Money) == result(Money(3)) == '{"cents":"3"}'


@pytest.mark.parametrize("reference", ["$ref", "$dynamicRef"])
def test_a_reference_of_a_schema_written_by_hand_that_leads_nowhere_is_refused(reference):
    @Tool.define(parameters={"type": "object", "properties": {"x": {reference: "#nowhere"}}})
    def show(x: int) -> None:
        """Show."""

    with pytest.raises(EncodingError, match="leads nowhere: #nowhere"):
        tool_codec(show)
