"""Nothing that a program has let go of is kept."""

from __future__ import annotations

import gc
import sys
import threading
import types
import weakref
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.testing import ScriptedModel, calls

SOURCE = '''
from effectful_agents import NotHandled, Skill
class Big: ...
big = Big()
@Skill.define
def ask(q: str) -> str:
    """{q}"""
    raise NotHandled
'''


def test_skills_that_are_made_in_functions_are_freed_with_their_tools():
    def make() -> tuple[Any, Any]:
        @Tool.define
        def local() -> str:
            """Local."""
            return "x"

        @Skill.define
        def ask(q: str) -> str:
            """{q}"""
            raise NotHandled

        return ask, local

    def use() -> list[Any]:
        kept = []
        for _ in range(20):
            skill, tool = make()
            with handler(ScriptedModel(calls("local"), "ok")):
                skill("x")
            kept += [weakref.ref(skill), weakref.ref(tool)]
        return kept

    with handler(harness()):
        # In a function of its own: before Python 3.13 a frame that was looked into keeps what its locals were then.
        kept = use()
        gc.collect()
        assert [one() for one in kept if one() is not None] == []


def module_of(source: str) -> types.ModuleType:
    module = types.ModuleType("scratch")
    exec(compile(source, "scratch", "exec"), module.__dict__)
    return module


def test_a_global_that_was_deleted_is_freed():
    module = module_of(SOURCE)
    gone = weakref.ref(module.big)
    with handler(harness(system_prompt="brief")), handler(ScriptedModel("ok")):
        module.ask("x")
        del module.big
        gc.collect()
        assert gone() is None


def test_names_that_another_thread_takes_away_do_no_harm():
    module = module_of(SOURCE)
    done = threading.Event()

    def disturb() -> None:
        while not done.is_set():
            for number in range(50):
                module.__dict__[f"k{number}"] = object()
            for number in range(50):
                module.__dict__.pop(f"k{number}", None)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        with handler(harness()), handler(ScriptedModel(*["ok"] * 200)):
            for _ in range(200):
                module.ask("x")
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)


class Lazy:
    @property
    def __class__(self) -> Any:
        raise RuntimeError("not yet")


def test_odd_names_and_proxies_in_a_scope_do_no_harm():
    module = module_of(SOURCE)
    module.__dict__[5] = "five"
    module.__dict__["half \ud83d"] = 1
    module.lazy = Lazy()
    with handler(harness()), handler(ScriptedModel("ok")) as model:
        assert module.ask("x") == "ok"
    model.requests[0]["messages"][0]["content"].encode("utf-8")


def test_tools_that_are_alike_are_numbered_in_the_order_of_the_scope():
    def make(where: str) -> Tool:
        @Tool.define
        def look() -> str:
            """Look."""
            return where

        return look

    def stack() -> Skill:
        east, south, north = make("east"), make("south"), make("north")

        @Skill.define
        def ask() -> str:
            """Ask."""
            raise NotHandled

        assert east != south != north
        return ask

    model = ScriptedModel(calls("look", id="1"), calls("look_2", id="2"), calls("look_3", id="3"), "ok")
    with handler(harness()), handler(model):
        stack()()
    results = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert results == ["east", "south", "north"]


def test_a_parameter_may_be_called_self():
    @Skill.define
    def greet(self: str) -> str:
        """Greet {self}."""
        raise NotHandled

    with handler(harness()), handler(ScriptedModel("ok")):
        assert greet(self="Ann") == "ok"


def test_a_handler_that_raises_stop_iteration_is_heard():
    from effectful_agents.operations.loop import completion

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    with handler(harness()), handler({completion: lambda **_: next(iter(()))}), pytest.raises(StopIteration):
        ask()
