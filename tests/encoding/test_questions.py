"""What people are asked, as JSON, and the arguments that they amend."""

from __future__ import annotations

import dataclasses
import datetime
import json
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import Tool
from effectful_agents.encoding.questions import (
    amended_arguments,
    asked_of,
    printable,
    printable_text,
    question_digest,
    shown_arguments,
)
from effectful_agents.errors import AnswerError, EncodingError
from effectful_agents.operations.effects import effect_of_call
from effectful_agents.operations.policy import EffectKind, ProposedEffect, Question


@Tool.define
def order(dish: str, on: datetime.date, *extras: str, **sizes: int) -> str:
    """Order a dish."""
    return dish


@Tool.define(parameters={"type": "object", "properties": {"to": {"type": "string", "minLength": 3}}})
def by_hand(to: str) -> str:
    """Has a schema written by hand."""
    return to


DAY = datetime.date(2026, 5, 1)


def effect(*args: Any, tool: Tool = order, **kwargs: Any) -> ProposedEffect:
    return effect_of_call(tool, tool.arguments_of(*args, **kwargs))


ORDER = effect("soup", DAY, "salt", bowl=2)


def test_what_is_asked_is_plain_json():
    question = Question(text="May it?", effect=ORDER, reason_code="costs")
    assert asked_of(question) == {
        "kind": "tool_call",
        "name": "order",
        "arguments": {"dish": "soup", "on": "2026-05-01", "extras": ["salt"], "bowl": 2},
        "reason": "costs",
    }
    assert asked_of(Question(text="Which dish?")) == {"text": "Which dish?"}


@pytest.mark.parametrize(
    "other",
    [
        effect("stew", DAY, "salt", bowl=2),
        effect("soup", DAY + datetime.timedelta(1), "salt", bowl=2),
        effect("soup", DAY, bowl=2),
        effect("soup", DAY, "salt", bowl=3),
        effect("soup", DAY, "salt", plate=2),
        dataclasses.replace(ORDER, name="order_2"),
        dataclasses.replace(ORDER, kind=EffectKind.DELEGATE),
    ],
)
def test_whatever_is_different_has_another_digest(other):
    first, second = (question_digest(Question(text="?", effect=one)) for one in (ORDER, other))
    assert first != second


def test_the_text_about_an_effect_does_not_count_and_the_reason_does():
    digests = {
        question_digest(Question(text=text, effect=ORDER, reason_code=reason)) for text in "ab" for reason in "cd"
    }
    assert len(digests) == 2
    assert len({question_digest(Question(text="?", effect=ORDER), asked_in=where) for where in ("", "a", "b")}) == 3


def test_requests_are_told_apart_by_all_that_they_say():
    def digest(*texts: str) -> str:
        messages: Any = [{"role": "user", "content": text} for text in texts]
        request = ProposedEffect(kind=EffectKind.MODEL_CALL, request={"messages": messages})
        return question_digest(Question(text="?", effect=request))

    assert len({digest("a", "b"), digest("b"), digest("a"), digest("a", "c")}) == 4
    assert digest("a") == digest("a")


def test_what_has_no_form_is_told_by_its_class_or_refused():
    opaque = dataclasses.replace(ORDER, arguments={"dish": object(), "on": DAY})
    assert shown_arguments(opaque) == {"dish": {"class": "object"}, "on": "2026-05-01"}
    with pytest.raises(EncodingError, match=r"`order`.*`dish`.*`object`"):
        shown_arguments(opaque, strict=True)


@pytest.mark.parametrize(
    ("amended", "expected"),
    [
        ({}, {}),
        ({"dish": "stew"}, {"dish": "stew"}),
        ({"on": "2026-06-01"}, {"on": datetime.date(2026, 6, 1)}),
        ({"extras": ["a", "b"]}, {"extras": ("a", "b")}),
        ({"extras": []}, {"extras": ()}),
        ({"bowl": 3}, {"bowl": 3}),
        ({"bowl": 3, "dish": "stew"}, {"bowl": 3, "dish": "stew"}),
    ],
    ids=str,
)
def test_what_is_amended_has_the_types_of_the_tool_and_the_rest_stays(amended, expected):
    assert amended_arguments(ORDER, amended) == {**ORDER.arguments, **expected}


@pytest.mark.parametrize(
    "amended",
    [
        *({"dish": 3}, {"on": "some day"}, {"extras": [1]}, {"extras": "a"}, {"bowl": "big"}, {"sizes": 3}),
        *({"plate": 3}, {"dihs": "stew"}, {"self": 1}),
    ],
    ids=str,
)
def test_what_the_tool_does_not_take_is_refused(amended):
    with pytest.raises(AnswerError):
        amended_arguments(ORDER, amended)


def test_a_schema_that_is_written_by_hand_holds():
    assert amended_arguments(effect("ann", tool=by_hand), {"to": "bob"}) == {"to": "bob"}
    with pytest.raises(AnswerError):
        amended_arguments(effect("ann", tool=by_hand), {"to": "x"})


def test_what_is_no_call_has_no_arguments_to_amend():
    with pytest.raises(AnswerError, match="approve or refuse"):
        amended_arguments(ProposedEffect(kind=EffectKind.IMPORT, name="os"), {"name": "re"})


@given(st.text())
def test_text_for_a_terminal_steers_nothing(text):
    shown = printable_text(text)
    assert shown.isprintable()
    assert text.isprintable() is (shown == text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_json_for_a_terminal_is_json(value):
    shown = printable(value)
    assert shown.isprintable()
    assert json.loads(shown) == value


# What is shown is all of it


class Mail(pydantic.BaseModel):
    to: str
    bcc: str = pydantic.Field("", exclude=True)


class Payment(pydantic.BaseModel):
    iban: pydantic.SecretStr


class Short(pydantic.BaseModel):
    to: str

    @pydantic.field_serializer("to")
    def _before_the_sign(self, to: str) -> str:
        return to.split("@")[0]


class Alike(pydantic.BaseModel):
    to: str = pydantic.Field(exclude=True, default="")

    def __eq__(self, other: object) -> bool:
        return True


@dataclasses.dataclass
class Base:
    to: str


@dataclasses.dataclass
class Derived(Base):
    cc: str = ""
    note: str = dataclasses.field(default="", compare=False)


HIDING = [Mail(to="ann", bcc="eve"), Payment(iban=pydantic.SecretStr("EVE")), Short(to="ann@eve"), Alike(to="eve")]
SHOWN = [
    (Mail, Mail(to="ann"), {"to": "ann"}),
    (Short, Short(to="ann"), {"to": "ann"}),
    (Base, Derived("ann", "eve", "now"), {"to": "ann", "cc": "eve", "note": "now"}),
    (Any, Derived("ann", "eve"), {"to": "ann", "cc": "eve", "note": ""}),
    (Any, [(Base("ann"), DAY)], [[{"to": "ann"}, "2026-05-01"]]),
    (list[Base], [Base("ann")], [{"to": "ann"}]),
    (Any, {"a": [1, 2.5, None, True]}, {"a": [1, 2.5, None, True]}),
    (set[int], {2, 1}, [1, 2]),
]


def given_to(tp: Any, value: Any) -> ProposedEffect:
    def post(what):
        """Post it."""

    post.__annotations__ = {"what": tp, "return": str}
    return effect(value, tool=Tool.define(post))


@pytest.mark.parametrize("value", HIDING, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("wrap", [lambda tp, value: (tp, value), lambda tp, value: (list[tp], [value])])
@pytest.mark.parametrize("declared", [True, False])
def test_what_would_not_be_shown_cannot_be_asked_about(value, wrap, declared):
    tp, given = wrap(type(value), value)
    with pytest.raises(EncodingError, match="`what`"):
        shown_arguments(given_to(tp if declared else Any, given), strict=True)


@pytest.mark.parametrize(("tp", "value", "shown"), SHOWN)
def test_what_is_shown_is_all_of_it(tp, value, shown):
    assert shown_arguments(given_to(tp, value), strict=True) == {"what": shown}


def test_what_the_declared_type_leaves_out_tells_questions_apart():
    first, second = (question_digest(Question(text="?", effect=given_to(Base, Derived("ann", cc)))) for cc in "ab")
    assert first != second
