"""Finding cues in a text."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.handlers.routing import RoutingContext, keyword_router
from effectful_agents.handlers.routing.context import _DEEPEST, _texts
from tests.handlers.routing.desk import ask, weather


def found(text: str, *cues: str) -> list[str]:
    router = keyword_router({cue: [cue] for cue in cues})
    return list(router(RoutingContext(text, ask, (), 1, {})))


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("Any mail?", "mail"),
        ("MAIL", "mail"),
        ("mail", "MAIL"),
        ("(mail)", "mail"),
        ("mail's gone", "mail"),
        ("What is the order   status?", "order status"),
        ("order-status", "Order Status"),
        ("order\nstatus", "order status"),
        ("STRASSE", "straße"),
        ("die Straße", "STRASSE"),
        ("E\u0301COLE", "école"),
        ("ﬁle", "file"),
        ("ΟΔΟΣ", "οδος"),
        ("今日の天気は", "天気"),
        ("\uff57\uff45\uff41\uff54\uff48\uff45\uff52", "weather"),
        ("मेरी हिन्दी किताब", "हिन्दी"),
        ("can't send", "can't"),
        ("send_mail now", "send_mail"),
        ("number 17", "17"),
    ],
)
def test_a_cue_is_found(text, cue):
    assert found(text, cue) == [cue]


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("mailbox", "mail"),
        ("e-mails", "mail"),
        ("order the status", "order status"),
        ("status order", "order status"),
        ("send_mail", "mail"),
        ("हिन्दी", "हिन"),
        ("117", "17"),
        ("", "mail"),
        ("天", "天気"),
    ],
)
def test_a_cue_is_not_found(text, cue):
    assert found(text, cue) == []


def test_all_cues_count_and_a_tool_is_named_once():
    router = keyword_router({"a": [weather, "x"], "b": ["x", "y"]}, default=["z"])
    assert router(RoutingContext("b a", ask, (), 1, {})) == ("weather", "x", "y")
    assert router(RoutingContext("c", ask, (), 1, {})) == ("z",)


@given(st.text(), st.text(min_size=1))
def test_a_cue_is_found_in_whatever_case_it_stands(around, cue):
    try:
        router = keyword_router({cue: ["tool"]})
    except ValueError:
        return  # there is no word in it
    for text in (cue, cue.casefold(), f"{around} {cue} {around}", f"¡{cue}!"):
        assert router(RoutingContext(text, ask, (), 1, {})) == ("tool",)


class Kind(enum.Enum):
    """A kind."""

    URGENT = "urgent"


@dataclasses.dataclass
class Ticket:
    """A ticket."""

    title: str
    kind: Kind
    tags: frozenset[str]
    parts: dict[str, list[int]]


class Model(pydantic.BaseModel):
    """A model."""

    note: str
    data: bytes = b"x"


def test_texts_are_found_wherever_they_stand_in_an_argument():
    ticket = Ticket("No mail", Kind.URGENT, frozenset({"b", "a"}), {"pages": [1, 2]})
    found = list(_texts([ticket, Model(note="n"), None, object(), ("x", 1.5)], _DEEPEST))
    assert found == ["No mail", "urgent", "a", "b", "1", "2", "n", "x", "1.5"]


def test_a_value_that_holds_itself_comes_to_an_end():
    loop: list[Any] = ["x"]
    loop.append(loop)
    assert set(_texts(loop, _DEEPEST)) == {"x"}


def test_the_digest_is_that_of_the_table():
    one, same = keyword_router({"a": ["x"], "b": ["y"]}), keyword_router({"b": ["y"], "a": ["x"]})
    assert one.digest == same.digest != keyword_router({"a": ["y"]}).digest
