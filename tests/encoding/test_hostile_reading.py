"""What a model may write, or a user may annotate, to make reading lose something, take long, or never end."""

import collections
import dataclasses
import json
from typing import Any

import pydantic
import pytest
import typing_extensions

from effectful_agents.encoding import PartialDecoder, answer_codec, decode, encode, json_schema, tool_codec
from effectful_agents.errors import EncodingError
from effectful_agents.types import Tool

# --- null, which stands for a default and for nothing else ------------------------------------------------------------


class Further(typing_extensions.TypedDict, extra_items=int):
    one: typing_extensions.NotRequired[int]


@dataclasses.dataclass
class Node:
    size: int = 3
    parts: "dict[str, Node]" = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("tp", "text", "path"),
    [
        (dict[str, int], '{"a": null, "b": 1}', "a"),
        (dict[int, str], '{"1": null}', "1"),
        (dict[str, int | str], '{"int": null}', "int"),
        (list[dict[str, list[int]]], '[{"a": null}]', r"\[0\]\.a"),
        (collections.Counter[str], '{"a": null}', "a"),
        (collections.defaultdict[str, int], '{"a": null}', "a"),
        (Further, '{"further": null}', "further"),
        (Node, '{"parts": {"size": null}}', r"parts\.size"),
    ],
)
def test_a_null_in_a_mapping_is_no_default(tp, text, path, strict):
    with pytest.raises(ValueError, match=f"^{path}: .*; it is null$"):
        decode(text, tp, strict=strict)


def test_a_null_for_a_field_in_a_mapping_is_the_default():
    text = '{"size": null, "parts": {"size": {"size": null, "parts": null}}}'

    assert decode(text, Node) == Node(3, {"size": Node()})
    assert decode('{"one": null, "two": 2}', Further) == {"two": 2}


def test_a_null_among_the_arguments_of_a_tool_is_no_default_of_an_entry():
    @Tool.define
    def count(names: dict[str, int], size: int = 1, **further: int) -> None:
        """Count."""
        raise NotImplementedError

    codec = tool_codec(count)
    assert codec.decode('{"names": {"size": 2}, "size": null}').arguments == {
        "names": {"size": 2},
        "size": 1,
        "further": {},
    }
    for arguments in ('{"names": {"size": null}}', '{"names": {}, "more": null}'):
        with pytest.raises(ValueError, match=r"integer; it is null$"):
            codec.decode(arguments)


# --- types that never end ---------------------------------------------------------------------------------------------

type Own = int | Own  # ty: ignore[cyclic-type-alias-definition]
type First = Second | int  # ty: ignore[cyclic-type-alias-definition]
type Second = First | str  # ty: ignore[cyclic-type-alias-definition]
type Listed = list[Listed] | Through  # ty: ignore[cyclic-type-alias-definition]
type Through = Listed | int  # ty: ignore[cyclic-type-alias-definition]
type Bare = Bare  # ty: ignore[cyclic-type-alias-definition]
type Maybe = Maybe | None  # ty: ignore[cyclic-type-alias-definition]


class Root(pydantic.RootModel):
    root: "Root | int"


@pytest.mark.parametrize("tp", [Own, First, Listed, Bare, Maybe, Root, dict[str, Own]], ids=str)
def test_a_type_that_is_an_alternative_of_itself_is_refused(tp):
    for use in (json_schema, answer_codec, lambda tp: decode("true", tp), lambda tp: encode(object(), tp)):
        with pytest.raises(EncodingError, match="has no form on the wire"):
            use(tp)


type Json = bool | int | float | str | list[Json] | dict[str, Json] | None


def test_a_type_that_contains_itself_is_not():
    assert decode('[{"a": [null, "x"]}]', Json) == [{"a": [None, "x"]}]
    assert decode('{"parts": {"a": {}}}', Node | list[Node]) == Node(parts={"a": Node()})


# --- keys that stand twice --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tp", [dict[str, dict[str, int]], dict[str, Any] | dict[str, dict[str, int]]], ids=str)
def test_a_key_that_stands_twice_in_json_inside_a_text_is_not_read(tp):
    text = json.dumps({"a": '{"x": 1, "x": 2}'})

    if tp == dict[str, dict[str, int]]:
        with pytest.raises(ValueError, match=r"^a: Input should be an object"):
            decode(text, tp)
    else:
        assert decode(text, tp) == {"a": '{"x": 1, "x": 2}'}


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (dict[int, str], '{"1": "a", "01": "b"}'),
        (dict[float, str], '{"1": "a", "1.0": "b"}'),
        (collections.Counter[int], '{"1": 2, "+1": 3}'),
        (dict[typing_extensions.Annotated[str, pydantic.StringConstraints(to_lower=True)], int], '{"a": 1, "A": 2}'),
    ],
    ids=str,
)
@pytest.mark.parametrize("strict", [False, True])
def test_texts_that_are_the_same_key_are_refused(tp, text, strict):
    with pytest.raises(ValueError, match="a key stands twice"):
        decode(text, tp, strict=strict)


def test_texts_that_are_different_keys_are_read_also_while_they_arrive():
    assert decode('{"1": "2", "02": 3}', dict[int, int]) == {1: 2, 2: 3}
    decoder = PartialDecoder(dict[int, list[int]])
    pieces = ('{"1": [1', ', 2], "2"', ": [3", ", 4]}")
    assert [value for piece in pieces for value in decoder.add(piece)][-1] == {1: [1, 2], 2: [3, 4]}


def test_the_one_key_of_very_many_that_stands_twice_is_named():
    # With a search for each of the keys this takes minutes.
    text = "{" + ",".join(f'"k{number}":1' for number in range(100_000)) + ',"k99999":2}'

    with pytest.raises(ValueError, match=r"^k99999 stands twice in one object$"):
        decode(text, dict[str, int])


# --- texts that make reading slow, and errors long --------------------------------------------------------------------


def test_an_open_string_with_very_many_quotes_is_read_in_one_go():
    # With a search from each quote this takes minutes.
    written = 'print("hi") ' * 50_000 + "5"
    text = json.dumps({"a": written})[:-2]

    assert list(PartialDecoder(dict[str, str]).add(text)) == [{"a": written}]


@pytest.mark.parametrize(
    ("text", "value"),
    [(r'{"a": "\" 5', {"a": '" 5'}), ('{"a": "x", "b": 5', {"a": "x"}), (r'{"a": "x\\", "b": 5', {"a": "x\\"})],
)
def test_a_number_at_the_end_waits_unless_it_is_in_a_string(text, value):
    assert list(PartialDecoder(dict[str, Any]).add(text)) == [value]


def test_errors_are_short_whatever_the_model_writes():
    @Tool.define
    def count(size: int) -> None:
        """Count."""
        raise NotImplementedError

    long = "k" * 100_000
    deep: Any = "x"
    for _ in range(50):
        deep = {long[:1000]: deep}
    type Deep = int | dict[str, Deep]
    texts: list[Any] = [
        (lambda text: decode(text, dict[str, int]), {long: "x"}),
        (lambda text: decode(text, Node), {long: 1}),
        (lambda text: decode(text, Deep), deep),
        (lambda text: decode(text, list[int]), ["x"] * 5000),
        (tool_codec(count).decode, {long: 1}),
        (tool_codec(count).decode, {f"k{number}{long[:100]}": 1 for number in range(3000)}),
    ]
    for read, data in texts:
        with pytest.raises(ValueError) as raised:  # noqa: PT011 - each says something else
            read(json.dumps(data))
        assert len(str(raised.value)) < 2000
    with pytest.raises(ValueError, match=r"^k{59}… stands twice in one object$"):
        decode(f'{{"{long}": 1, "{long}": 2}}', dict[str, int])


def test_of_very_many_places_the_first_are_told():
    with pytest.raises(ValueError, match=r"^\[0\]: .*; it is \"x\"\n(.*\n){7}and 92 more$"):
        decode(json.dumps(["x"] * 100), list[int])
    with pytest.raises(ValueError, match=r"^\[0\]: .*; it is \"x\"\n(.*\n){7}and many more$"):
        decode(json.dumps(["x"] * 100_000), list[int])
