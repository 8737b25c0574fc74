"""The judge of the other tests is judged first: it finds each fault, and none where there is none."""

from typing import Any

import pytest

from tests.messages.validity import faults


def asked(*ids: Any) -> Any:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": one} for one in ids]}


def answered(id: str) -> Any:
    return {"role": "tool", "tool_call_id": id, "content": ""}


USER: Any = {"role": "user", "content": ""}
SYSTEM: Any = {"role": "system", "content": ""}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [SYSTEM, USER, {"role": "assistant", "content": "x"}],
        [USER, asked("a", "b"), answered("a"), answered("b"), asked("c"), answered("c"), USER],
    ],
)
def test_a_valid_conversation_has_no_fault(messages):
    assert faults(messages) == []


@pytest.mark.parametrize(
    "messages",
    [
        [USER, SYSTEM],
        [SYSTEM, SYSTEM],
        [answered("a")],
        [asked("a")],
        [asked("a"), USER, answered("a")],
        [asked("a", "b"), answered("b"), answered("a")],
        [asked("a"), answered("a"), answered("a")],
        [asked("a", "a"), answered("a"), answered("a")],
        [asked("a"), answered("a"), asked("a"), answered("a")],
        [asked("")],
        [asked()],
        [{"role": "developer", "content": ""}],
    ],
)
def test_each_fault_is_found(messages):
    assert faults(messages)
