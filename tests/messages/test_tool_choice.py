"""`tool_choice` on the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.messages import AUTO, ToolChoice

choices: Any = st.one_of(
    st.sampled_from([ToolChoice("auto"), ToolChoice("none"), ToolChoice("required")]),
    st.builds(lambda name: ToolChoice("named", name), st.text()),
)


@given(choices)
def test_a_choice_comes_back_from_the_wire_as_it_was(choice):
    assert ToolChoice.from_wire(json.loads(json.dumps(choice.to_wire()))) == choice


@given(choices)
def test_a_choice_is_read_as_itself(choice):
    assert ToolChoice.from_wire(choice) is choice


@pytest.mark.parametrize("value", [None, "auto", "AUTO", 7, {}, {"function": {}}, {"function": {"name": 3}}, []])
def test_what_is_not_known_leaves_it_to_the_model(value):
    assert ToolChoice.from_wire(value) == AUTO


def test_the_word_of_other_services_for_required_is_read():
    assert ToolChoice.from_wire("any") == ToolChoice("required")
