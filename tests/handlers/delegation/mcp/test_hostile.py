"""Servers that are not there, are slow, lie, or mean harm: a typed error, or what can be used of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import NotHandled, Skill, handler, harness
from effectful_agents.errors import PeerError
from effectful_agents.handlers.delegation.mcp import MCPTools
from effectful_agents.handlers.delegation.mcp.described import names_for
from effectful_agents.testing import ScriptedModel, calls

HOSTILE = str(Path(__file__).with_name("hostile.py"))


def hostile(word: str, **options: Any) -> MCPTools:
    return MCPTools.stdio(sys.executable, [HOSTILE, word], prefix="h", **{"timeout": 30.0, **options})


@pytest.mark.slow
@pytest.mark.parametrize("word", ["garbage", "mute", "ends"])
def test_what_never_says_who_it_is_is_an_error_within_the_time(word):
    with handler(hostile(word, connect_timeout=6.0)) as box, pytest.raises(PeerError) as raised:
        box.tools  # noqa: B018
    assert raised.value.peer == Path(sys.executable).name


def test_nobody_is_there():
    with handler(MCPTools.http("http://127.0.0.1:9/mcp")) as box, pytest.raises(PeerError, match="reached"):
        box.tools  # noqa: B018
    with handler(MCPTools.stdio("/nowhere/at/all")) as box, pytest.raises(PeerError, match="No such file"):
        box.tools  # noqa: B018


@pytest.mark.slow
def test_a_list_that_never_comes_is_an_error_of_the_call_and_leaves_no_history():
    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    with handler(harness(eval_provider="none")), handler(ScriptedModel("x")) as model:
        with handler(hostile("silent", timeout=0.3)), pytest.raises(PeerError, match=r"longer than 0\.3 s"):
            ask()
    assert not model.requests


@pytest.mark.slow
def test_lists_are_bounded():
    for word, number in (("endless", 1), ("many", 1_000)):
        with handler(hostile(word)) as box:
            assert len(box.tools) == number


def test_names_are_short_unique_identifiers():
    with handler(hostile("names")) as box:
        names = [tool.__name__ for tool in box.tools]
        assert len(set(names)) == len(names) == 11
        assert all(name.isidentifier() and name.isascii() and len(name) <= 64 for name in names)


@given(st.lists(st.text(max_size=80), max_size=20), st.sampled_from(["", "fs", "1", "a b", "_"]))
def test_names_of_any_kind_are_short_unique_identifiers(names, prefix):
    made = names_for(names, prefix)
    assert len(set(made.values())) == len(made)
    assert all(name.isidentifier() and name.isascii() and len(name) <= 64 for name in made.values())
    assert made == names_for(names, prefix)


@pytest.mark.slow
def test_schemas_that_cannot_be_used_are_left_out_and_named(caplog):
    with handler(hostile("schemas")) as box:
        tools = {tool.__name__: tool for tool in box.tools}
        assert tools.keys() == {"h_odd", "h_long"}
        assert len(tools["h_long"].description) < 9_000
        assert "\x1b" not in tools["h_long"].description
        with handler(harness(eval_provider="none")):
            assert tools["h_odd"](**{"a-b": "x", "class": 1}) == ""
    assert all(f"`{name}`" in caplog.text for name in ("recursive", "far", "large", "wrong"))


@pytest.mark.slow
def test_a_schema_that_would_be_checked_for_ever_ends_nothing():
    with handler(hostile("slow")) as box, handler(harness(eval_provider="none")):
        assert [tool.__name__ for tool in box.tools] == ["h_slow"]
        assert box.tool("slow")(x="a" * 60 + "!") == {"x": "a" * 60 + "!"}


def test_names_do_not_depend_on_the_order_of_the_list():
    names = ["a-b", "a.b", "c", "x" * 70 + "1", "x" * 70 + "2"]
    made = names_for(names, "fs")
    assert made == names_for(names[::-1], "fs")
    assert made["c"] == "fs_c"


@pytest.mark.slow
def test_results_that_lie_or_cannot_be_read_are_errors_of_the_tool():
    with handler(hostile("lies")) as box, pytest.raises(PeerError):
        box.tool("lie")()
    with handler(hostile("plain")) as box:
        with pytest.raises(PeerError, match="base64"):
            box.tool("bad_picture")()
        with pytest.raises(PeerError) as raised:
            box.tool("gone")()
        assert "\x1b" not in str(raised.value)
        assert box.tool("nothing")() == ""
        model = ScriptedModel(calls("h_gone"), "It is not there.")

        @Skill.define
        def ask() -> str:
            """Ask."""
            raise NotHandled

        with handler(harness(eval_provider="none")), handler(model), handler(box):
            assert ask() == "It is not there."
