"""What is read loosely: every row of the table in docs/encodable.md, and what strict decoding makes of it."""

import dataclasses
import decimal
import fractions
import json
from typing import Any, Literal

import pytest

from effectful_agents.encoding import answer_codec, decode, tool_codec
from effectful_agents.encoding.forgiving import LOOSE
from effectful_agents.types import Tool
from tests.encoding.shapes import Colour, Level, Tree

ROWS: list[tuple[Any, str, Any]] = [
    (int, '"5"', 5),
    (int, "5.0", 5),
    (float, '"1.5"', 1.5),
    (decimal.Decimal, "1.25", decimal.Decimal("1.25")),
    (fractions.Fraction, "2", fractions.Fraction(2)),
    (complex, "2", 2 + 0j),
    (bool, '"True"', True),
    (int | None, '"null"', None),
    (Level, '"2"', Level.HIGH),
    (Literal["1", "2"], "2", "2"),
    (list[int], '"[1, 2]"', [1, 2]),
    (Tree, '{"value": 1, "parent": "{\\"value\\": 2}"}', Tree(1, parent=Tree(2))),
    (dict[str, int], '[{"key": "a", "value": 1}]', {"a": 1}),
    (dict[int, list[bool]], '{"1": ["false"], "2": "[\\"true\\"]"}', {1: [False], 2: [True]}),
]


@pytest.mark.parametrize(("tp", "text", "value"), ROWS)
def test_a_loose_value_is_read_and_refused_where_decoding_is_strict(tp, text, value):
    read = decode(text, tp)

    assert read == value
    assert type(read) is type(value)
    with pytest.raises(ValueError, match=r"Input should be|text|null"):
        decode(text, tp, strict=True)


def test_every_reading_of_the_list_is_in_the_table():
    assert len(LOOSE) == 10, "a row of `docs/encodable.md`, and one above, belong to each"


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (int, '"5 apples"'),
        (int, "5.5"),
        (int, "true"),
        (float, "false"),
        (bool, "1"),
        (bool, '"yes"'),
        (str, "5"),
        (list[int], '"1"'),
        (list[str], '"a"'),
        (Colour, '"RED"'),
        (bool | Level, '"3"'),
        (list[int] | dict[str, int], '"7"'),
        (dict[str, int], '[{"key": "a", "value": 1}, {"key": "a", "value": 2}]'),
        (Tree, '{"value": null}'),
    ],
)
def test_what_would_be_a_guess_is_refused(tp, text):
    with pytest.raises(ValueError, match="it is "):
        decode(text, tp)


def test_alternatives_that_would_read_a_text_differently_refuse_it():
    with pytest.raises(ValueError, match=r"integer; or .*boolean"):
        decode('"seven"', int | bool)
    assert decode('"5"', int | float) == 5
    assert decode('"5"', int | str) == "5"
    assert decode('"true"', bool | int) is True


@dataclasses.dataclass
class Options:
    size: int = 3
    names: list[str] = dataclasses.field(default_factory=list)
    limit: int | None = 5


def test_null_is_the_default_where_the_type_has_no_null_also_where_decoding_is_strict():
    for strict in (False, True):
        assert decode('{"size": null, "names": null, "limit": null}', Options, strict=strict) == Options(3, [], None)


def test_an_error_behind_what_was_forgiven_is_the_one_that_is_told():
    with pytest.raises(ValueError, match=r"^names\[1\]: Input should be a valid string; it is 2$"):
        decode('{"size": "4", "names": ["a", 2]}', Options)


@pytest.mark.parametrize("content", ['"{\\"value\\": 7}"', '```json\n{"value": 7}\n```', "7"])
def test_packaging_around_an_answer_is_refused_where_decoding_is_strict(content):
    assert answer_codec(int).decode(content) == 7
    with pytest.raises(ValueError, match=r"Input should be|JSON"):
        answer_codec(int).decode(content, strict=True)
    assert answer_codec(int).decode('{"value": 7}', strict=True) == 7


def test_packaging_around_arguments_is_refused_where_decoding_is_strict():
    @Tool.define
    def add(one: int) -> int:
        """Add."""
        raise NotImplementedError

    codec = tool_codec(add)
    for arguments in (json.dumps('{"one": 1}'), '```json\n{"one": 1}\n```', '{"one": "1"}'):
        assert codec.decode(arguments).arguments == {"one": 1}
        with pytest.raises(ValueError, match="do not fit"):
            codec.decode(arguments, strict=True)


def test_escapes_of_lone_surrogates_are_replaced():
    assert decode(r'["a\ud800", "\ud83d\ude00", "\\ud800"]', list[str]) == ["a\ufffd", "😀", r"\ud800"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a": 1, "a": 2}', "a"),
        ('[{"x": {"b" : 1, "c": "d:e", "b": 1}}]', r"\[0\]\.x\.b"),
        (r'{"\u0061": 1, "a": 2}', "a"),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_its_path(text, path):
    for tp in (Any, dict[str, Any] | list[Any]):
        with pytest.raises(ValueError, match=f"^{path} stands twice in one object$"):
            decode(text, tp)
    with pytest.raises(ValueError, match="stands twice"):
        answer_codec(list[Any]).decode(f'{{"value": [{text}]}}')
