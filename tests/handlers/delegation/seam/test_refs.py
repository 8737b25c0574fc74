"""References stand for the very bytes of a definition."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.handlers.delegation.seam import wire
from effectful_agents.handlers.delegation.seam.opening import Opening
from effectful_agents.handlers.delegation.seam.performing import PerformingGateway
from effectful_agents.handlers.delegation.seam.refs import ref_of
from effectful_agents.operations.elsewhere import CallContext
from effectful_agents.operations.loop import completion
from effectful_agents.testing import says

HI: Any = [{"role": "user", "content": "hi"}]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=10,
)
definitions = st.builds(
    lambda name, description, parameters: {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    },
    st.text(min_size=1, max_size=20),
    st.text(),
    st.dictionaries(st.text(max_size=6), values, max_size=5),
)


class Crossing:
    """A gateway to which all that is said crosses as JSON."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self._there = PerformingGateway({completion: self._show})

    def _show(self, **request: Any) -> Any:
        self.shown.append(json.dumps(request["tools"]))
        return says("Hi")

    def hello(self, hello: Any, context: Any) -> Any:
        there = self._there.hello(wire.read_hello(wire.read_json(wire.as_json(wire.write_record(hello)))), context)
        return wire.read_welcome(wire.read_json(wire.as_json(wire.write_welcome(there))))

    def completion(self, request: Any, context: Any, **options: Any) -> Any:
        return self._there.completion(wire.read_json(wire.as_json(request)), context, **options)

    def decide(self, effect: Any, context: Any) -> Any:
        raise NotImplementedError

    call_tool = decide


@given(st.lists(definitions, min_size=1, max_size=4, unique_by=lambda one: one["function"]["name"]))
def test_a_model_is_shown_what_the_program_sent_byte_for_byte(tools):
    gateway = Crossing()
    opening = Opening(gateway, 0)
    for _ in range(2):
        gateway.completion(opening.referring({"messages": HI, "tools": tools}), CallContext())
    assert gateway.shown == [json.dumps(tools)] * 2


@given(definitions, definitions)
def test_equal_references_are_those_of_equal_bytes(one, other):
    assert (ref_of(one) == ref_of(other)) == (json.dumps(one) == json.dumps(other))


def test_the_order_of_keys_counts():
    function = {"name": "t", "description": "T.", "parameters": {}}
    turned = {"type": "function", "function": dict(reversed(function.items()))}
    assert ref_of({"type": "function", "function": function}) != ref_of(turned)
