import dataclasses
import datetime
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.encoding import format_as_content_blocks
from effectful_agents.errors import ConfigurationError, EncodingError
from tests.encoding.shapes import Colour, Tree

PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def text(template: str, **env: Any) -> str:
    blocks = format_as_content_blocks(template, env)
    assert [block["type"] for block in blocks] in (["text"], [])
    return "".join(block.get("text", "") for block in blocks)


def test_fields_are_filled_as_str_format_does():
    tree = Tree(1, [Tree(2)])

    assert text("{x}", x="plain") == "plain"
    assert text("{x.value} {x.children[0].value} {y[key]} {z[1]}", x=tree, y={"key": "v"}, z=[1, 2]) == "1 2 v 2"
    assert text("{x!r} {x:>5} {x!s:<4}|", x="ab") == "'ab'    ab ab  |"
    assert text("{n:{width}.{digits}f}", n=3.14159, width=8, digits=2) == "    3.14"
    assert text("{{x}} {{{x}}}", x=1) == "{x} {1}"
    assert text("{d:%Y}", d=datetime.date(2026, 5, 1)) == "2026"
    assert text("") == ""


@given(st.text(), st.text(alphabet="ab{}[]\n é\ud800"))
def test_text_comes_through_as_it_is(value, around):
    template = around.replace("{", "{{").replace("}", "}}")

    assert text(template + "{x}" + template, x=value) == (around + value + around).replace("\ud800", "\ufffd")


def test_values_are_encoded():
    assert text("{x}", x={"a": [1, None]}) == '{"a": [1, null]}'
    assert text("{x}", x=Tree(1)) == '{"value": 1, "children": [], "parent": null}'
    assert text("{x} {y} {z}", x=Colour.RED, y=datetime.date(2026, 5, 1), z=None) == "red 2026-05-01 null"


def test_media_become_blocks_in_their_place():
    assert format_as_content_blocks("See {a} and {b}.", {"a": PICTURE, "b": {"x": PICTURE}}) == [
        {"type": "text", "text": "See "},
        PICTURE,
        {"type": "text", "text": ' and {"x": '},
        PICTURE,
        {"type": "text", "text": "}."},
    ]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{nobody}", "there is no `nobody`"),
        ("{nobody.name[0]:>3}", "there is no `nobody`"),
        ("{x.nothing}", "AttributeError.*nothing"),
        ("{x[9]}", "IndexError"),
        ("{}", "by name"),
        ("{0}", "by name"),
        ("{x:>{nobody}}", "nobody"),
        ("{x:q}", "formatted with `q`"),
        ("{x!z}", "formatted with `z`"),
        ("{x", "cannot be read"),
        ("}", "cannot be read"),
    ],
)
def test_a_field_that_cannot_be_filled_is_named(template, message):
    with pytest.raises(ConfigurationError, match=message):
        format_as_content_blocks(template, {"x": [1]})


class Silent:
    pass


class Speaking:
    def __str__(self) -> str:
        return "I speak"


@dataclasses.dataclass
class Holder:
    inside: Any


def test_what_cannot_be_encoded_says_itself_or_is_refused():
    assert text("{x}", x=Speaking()) == "I speak"
    assert text("{x}", x=int) == "<class 'int'>"
    for value in (Silent(), lambda: 1, object(), Silent().__init__, [Silent()], Holder(Silent())):
        with pytest.raises(EncodingError, match=r"the field `\{x\}`"):
            text("{x}", x=value)


@pytest.mark.parametrize("template", ["{x!r}", "{x!s:>80}", "{x!a}", "{x.inside!r}"])
def test_addresses_never_reach_a_prompt(template):
    value = Holder(Silent())

    assert "0x" not in text(template, x=value)


def test_a_hexadecimal_number_is_no_address():
    assert text("{n:#x}", n=0x7F00DEADBEEF) == "0x7f00deadbeef"
    assert text("{n!s}", n="it is at 0x7f00deadbeef") == "it is at 0x7f00deadbeef"


class Told(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Raising:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getitem__(self, key: Any) -> Any:
        raise self.error

    @property
    def part(self) -> Any:
        raise self.error

    def __format__(self, spec: str) -> str:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [(RuntimeError("gone"), "RuntimeError: gone"), (ZeroDivisionError(), "ZeroDivisionError"), (Told(), "Told")],
    ids=["text", "no text", "a text that fails"],
)
@pytest.mark.parametrize("template", ["{x[0]}", "{x[a].b}", "{x.part}", "{x:>3}"])
def test_what_users_wrote_may_raise_anything(template, error, said):
    field = template.partition(":")[0].rstrip("}") + "}"

    with pytest.raises(ConfigurationError, match=re.escape(f"the field `{field}` of the template cannot be")) as raised:
        text(template, x=Raising(error))
    assert said in str(raised.value)
    assert raised.value.__cause__ is error
