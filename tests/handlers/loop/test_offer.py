"""The names of the tools of a request."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import Tool
from effectful_agents.handlers.loop.offer import offer


def tool(name: str) -> Tool[..., Any]:
    @Tool.define(name=name)
    def go() -> None:
        """Go."""

    return go


def test_a_long_name_keeps_its_end_which_is_that_of_the_tool():
    named = list(offer(frozenset({tool(f"{'x' * 70}__{end}") for end in ("ask", "tell")}), None).tools)
    assert [name.rpartition("__")[2] for name in named] == ["ask", "tell"]
    assert [len(name) for name in named] == [64, 64]


@given(st.lists(st.text(alphabet="xyz_é.", max_size=80), max_size=6))
def test_every_name_is_one_that_providers_take_and_no_two_are_the_same(names):
    offered = offer(frozenset(map(tool, names)), None)
    assert len(offered.tools) == len(names)
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in offered.tools)
