"""Types that pydantic does not know: those of users, by one call, and those of optional packages."""

import dataclasses
import json
import re
from typing import Annotated, Any

import jsonschema
import numpy
import pandas
import pydantic
import pytest
from PIL import Image

from effectful_agents.encoding import (
    Codec,
    answer_codec,
    decode,
    encode,
    format_as_content_blocks,
    json_schema,
    json_schema_for,
    register,
    tool_codec,
)
from effectful_agents.errors import EncodingError
from effectful_agents.types import Tool


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and other.cents == self.cents

    def __hash__(self) -> int:
        return hash(self.cents)

    @classmethod
    def parse(cls, text: str) -> "Money":
        match = re.fullmatch(r"(\d+)\.(\d\d)", text)
        if match is None:
            raise ValueError(f"an amount is wanted, such as 2.50, and not {text}")
        return cls(int(match[1]) * 100 + int(match[2]))

    def __str__(self) -> str:
        return f"{self.cents // 100}.{self.cents % 100:02}"


class Euro(Money):
    pass


TIP = Money(50)
register(Money, Codec(Annotated[str, pydantic.Field(description="an amount, as 2.50")], str, Money.parse))


@dataclasses.dataclass
class Bill:
    items: dict[Money, list[Money]]
    total: Money | None = None


class Invoice(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    bill: Bill
    paid: Money = Money(0)


def test_a_registered_type_works_in_all_four_directions():
    @Tool.define
    def pay(amount: Money, bills: list[Bill], tip: Money = TIP) -> Money:
        """Pay."""
        raise NotImplementedError

    codec = tool_codec(pay)
    properties = codec.definition()["function"]["parameters"]["properties"]
    bill = Bill({Money(100): [Money(1)]}, Money(101))

    assert properties["amount"] == {"type": "string", "description": "an amount, as 2.50"}
    assert properties["tip"]["default"] == "0.50"
    bound = codec.decode(json.dumps({"amount": "2.50", "bills": [encode(bill)]}))
    assert bound.arguments == {"amount": Money(250), "bills": [bill], "tip": Money(50)}
    assert codec.encode_result(Money(250)) == "2.50"
    assert format_as_content_blocks("{x} of {y}", {"x": Money(5), "y": [Money(6)]}) == [
        {"type": "text", "text": '0.05 of ["0.06"]'}
    ]
    assert answer_codec(Money).decode('{"value": "1.00"}') == Money(100)
    with pytest.raises(ValueError, match=r"^the arguments of `pay` do not fit:\namount: .*such as 2.50, and not 3"):
        codec.decode('{"amount": "3", "bills": []}')


def test_a_registered_type_works_inside_classes_and_keys():
    bill = Bill({Money(100): [Money(1), Money(2)]})
    written = {"items": {"1.00": ["0.01", "0.02"]}, "total": None}

    for tp, value, form in (
        (Bill, bill, written),
        (Invoice, Invoice(bill=bill), {"bill": written, "paid": "0.00"}),
        (dict[str, Bill | int], {"a": bill}, {"a": written}),
    ):
        assert encode(value, tp) == form
        assert decode(json.dumps(form), tp) == value
        jsonschema.validate(form, json_schema(tp))


def test_subclasses_are_written_as_their_base_is():
    assert encode(Euro(100)) == encode(Euro(100), Money) == "1.00"


def test_what_is_registered_last_counts():
    class Token:
        pass

    with pytest.raises(EncodingError, match="Token has no encoding; register one with"):
        json_schema(list[Token])
    register(Token, Codec(int, lambda _: 1, lambda _: Token()))
    assert json_schema(list[Token])["items"] == {"type": "integer"}
    register(lambda kind: kind is Token, lambda kind: Codec(str, lambda _: kind.__name__))
    assert encode([Token()]) == [1], "a codec of the class itself comes before a test that it passes"


def test_a_codec_without_a_decoder_is_one_way_and_names_the_place():
    class Handle:
        pass

    register(Handle, Codec(str, lambda _: "a handle"))

    def use(handles: dict[str, list[Handle]]) -> None: ...

    assert encode({"a": [Handle()]}, dict[str, list[Handle]]) == {"a": ["a handle"]}
    with pytest.raises(EncodingError, match=r"^use\(.*\)\.handles\{\}\[\]: Handle can be shown to a model, but not"):
        json_schema_for(use)


def test_a_decoder_may_look_at_the_context():
    class Known:
        def __init__(self, value: Any) -> None:
            self.value = value

    register(Known, Codec(str, lambda known: known.value, lambda name, env: Known(env[name])))

    assert answer_codec(list[Known]).decode('{"value": ["a"]}', context={"a": 7})[0].value == 7


def test_a_codec_that_fails_is_told_without_the_value():
    class Broken:
        def __repr__(self) -> str:
            return "secret"

    register(Broken, Codec(str, lambda value: value.nothing))

    with pytest.raises(EncodingError, match=r"`Broken` cannot be encoded; AttributeError while") as caught:
        encode([Broken()])
    assert "secret" not in str(caught.value)


# --- optional packages ------------------------------------------------------------------------------------------------


def test_a_picture_is_a_block_of_its_own_and_can_be_read():
    picture = Image.new("RGB", (2, 3), "red")

    blocks = format_as_content_blocks("Look at {x} and {y}.", {"x": picture, "y": [picture, 1]})
    assert [block["type"] for block in blocks] == ["text", "image_url", "text", "image_url", "text"]
    back = decode(json.dumps(encode(picture)), Image.Image)
    assert (back.size, back.tobytes()) == (picture.size, picture.tobytes())
    jsonschema.validate(encode(picture), json_schema(Image.Image))
    for url in ("https://example.org/a.png", "data:image/png;base64,AAAA", "data:image/png;base64,?"):
        with pytest.raises(ValueError, match="picture"):
            decode(json.dumps({"type": "image_url", "image_url": {"url": url}}), Image.Image)


def test_an_array_is_shown_with_shape_and_dtype_and_cannot_be_asked_for():
    array = numpy.arange(6, dtype="int16").reshape(2, 3)

    assert encode(array) == "array of shape (2, 3), dtype int16:\n[[0, 1, 2],\n [3, 4, 5]]"
    assert encode({"a": [array]}, dict[str, list[numpy.ndarray]])["a"][0].startswith("array of shape")
    assert len(encode(numpy.zeros((1000, 1000)))) < 1000
    with pytest.raises(EncodingError, match=r"list\[ndarray\]\[\]: numpy.ndarray can be shown to a model, but not"):
        json_schema(list[numpy.ndarray])
    with pytest.raises(EncodingError, match=r"numpy.ndarray can be shown"):
        json_schema(numpy.typing.NDArray[numpy.float64])


@pytest.mark.parametrize(
    ("value", "form"),
    [(numpy.int16(3), 3), (numpy.float64(1.5), 1.5), (numpy.float32(0.5), 0.5), (numpy.bool_(True), True)],
)
def test_a_number_of_numpy_is_a_number(value, form):
    assert encode(value) == encode([value])[0] == form
    back = decode(json.dumps(form), type(value))
    assert back == value
    assert type(back) is type(value)


def test_a_number_that_is_too_large_for_its_type_is_refused():
    with pytest.raises(ValueError, match="too large for int8"):
        decode("1000", numpy.int8)


def test_a_table_is_shown_with_shape_and_dtypes():
    table = pandas.DataFrame({"city": ["Oslo", "Rome"], "degrees": [1.5, 20.0]})

    text = encode(table)
    assert text.startswith("table of shape (2, 2), dtypes city: ")
    assert "degrees: float64:\n" in text
    assert "Rome" in text
    assert len(encode(pandas.DataFrame({"a": range(100_000)})).splitlines()) < 100
    assert encode(table["degrees"]).startswith("column of shape (2,), dtype float64:\n")
    with pytest.raises(EncodingError, match="DataFrame can be shown to a model, but not written"):
        json_schema(pandas.DataFrame)
