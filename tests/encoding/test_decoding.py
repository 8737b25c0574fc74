from typing import Annotated, Any

import pydantic
import pytest

from effectful_agents.encoding import decode
from tests.encoding.shapes import Colour, Everything, Person, Point, Tree


def test_json_text_becomes_a_value_of_the_type():
    assert decode('{"value": 1, "children": [{"value": "2"}]}', Tree) == Tree(1, [Tree(2)])
    assert decode("[1, 2]", Point) == Point(1, 2)
    assert decode('["red", "red"]', set[Colour]) == {Colour.RED}
    assert decode('"5"', int | str) == "5"


@pytest.mark.parametrize(
    "text",
    ['"[1, 2]"', "```json\n[1, 2]\n```", "```\n[1,\n2]```", "  ```JSON\n[1, 2]\n```\n", "\n [1, 2] "],
)
def test_packaging_is_forgiven(text):
    assert decode(text, list[int]) == [1, 2]


def test_a_text_that_looks_like_packaging_is_a_text_where_text_is_asked_for():
    assert decode('"[1, 2]"', str) == "[1, 2]"
    assert decode('"[1, 2]"', str | list[int]) == "[1, 2]"


def test_validators_see_the_context():
    def in_stock(name: str, info: pydantic.ValidationInfo) -> str:
        if name not in info.context:
            raise ValueError(f"{name} is not in stock")
        return name

    tp = dict[str, Annotated[str, pydantic.AfterValidator(in_stock)]]

    assert decode('{"a": "tea"}', tp, {"tea"}) == {"a": "tea"}
    with pytest.raises(ValueError, match=r"^a: rum is not in stock$"):
        decode('{"a": "rum"}', tp, {"tea"})


def test_errors_name_the_place_and_what_was_found():
    with pytest.raises(ValueError, match="wanted") as caught:
        decode('{"name": 3, "age": "wanted", "friends": [{}]}', Person)

    assert str(caught.value).splitlines() == [
        "name: Input should be a valid string; it is 3",
        'age: Input should be a valid integer; it is "wanted"',
        "friends[0].name is missing",
    ]


def test_errors_are_short_and_without_addresses_of_pages():
    text = '{"tree": [' + ", ".join('"' + "x" * 1000 + '"' for _ in range(50)) + "]}"

    for tp in (Everything, dict[str, list[int]], list[Any], int):
        with pytest.raises(ValueError, match="Input should be") as caught:
            decode(text, tp)
        assert len(str(caught.value)) < 2000
        assert "http" not in str(caught.value)


@pytest.mark.parametrize("text", ['{"a": "xx', "", "nothing", '"', "```json\n```", "[" * 100_000, '{"a": 1} and more'])
def test_text_that_is_no_json_says_so(text):
    with pytest.raises(ValueError, match="Invalid JSON"):
        decode(text, dict[str, int])


def test_what_a_validator_made_is_not_shown():
    class Handle:
        pass

    def refuse(handle: Handle) -> None:
        raise ValueError("closed")

    tp = Annotated[Any, pydantic.AfterValidator(refuse), pydantic.BeforeValidator(lambda _: Handle())]

    with pytest.raises(ValueError, match=r"^closed$"):
        decode("1", tp)


def test_json_inside_packaging_that_does_not_fit_is_spoken_of():
    with pytest.raises(ValueError, match=r"^\[1\]: Input should be a valid integer"):
        decode('"[1, null]"', list[int])


def test_a_lone_surrogate_does_no_harm():
    assert decode('"a\ud800"', str) == "a\ufffd"
