"""Code of a model calls what its turn is offered, by whatever reference it has come by another tool."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness
from effectful_agents.handlers.durability import HistoryBuilder, Journal, MemoryCheckpointer, TenacityRetryer
from effectful_agents.handlers.execution import BuiltinExecutor
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.handlers.routing import ToolRouter
from effectful_agents.handlers.synthesis import StatefulReplSynthesizer
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.routing.desk import DONE, asked

EXECUTORS = pytest.mark.parametrize("executor", ["builtin", "restricted"])


@Tool.define
def look(text: str) -> str:
    """Look something up."""
    DONE.append(("look", text))
    return "found"


@Tool.define
def shred(text: str) -> str:
    """Shred a paper."""
    DONE.append(("shred", text))
    return "gone"


@Tool.define
async def shred_later(text: str) -> str:
    """Shred a paper in a while."""
    DONE.append(("shred", text))
    return "gone"


@Tool.define
def tidy(text: str) -> str:
    """Tidy up, for which some papers are shredded."""
    return shred(text)


@Tool.define
async def tidy_later(text: str) -> str:
    """Tidy up in a while, for which some papers are shredded."""
    await asyncio.sleep(0)
    return shred(text)


@Tool.define
def each(function: Callable[[str], str], text: str) -> str:
    """Apply a function to a text."""
    return function(text)


class Clerk(Agent):
    """Somebody with tools."""

    @Tool.define
    def burn(self, text: str) -> str:
        """Burn a paper."""
        DONE.append(("shred", text))
        return "gone"

    def clear(self) -> str:
        return self.burn("x")

    @Skill.define
    def serve(self, wish: str) -> str:
        """{wish}"""
        raise NotHandled


@dataclasses.dataclass
class Drawer:
    clerk: Clerk
    papers: list[Any]


clerk = Clerk()
drawer = Drawer(Clerk(), [Clerk(), shred])


shredder = shred


def other_name() -> str:
    return shredder("x")


def shredding() -> str:
    return shred("x")


def shredding_by(function: Any) -> str:
    return function(shred)


class Errand:
    def __init__(self, tool: Any) -> None:
        self.tool = tool

    def run(self) -> Any:
        return self.tool("x")


def the_shredder() -> Any:
    return shred


def applied(tool: Any) -> Any:
    return tool("x")


def applied_in_there(tool: Any) -> Any:
    return (lambda: tool("x"))()


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


@Skill.define
def number(question: str) -> int:
    """{question}"""
    raise NotHandled


@Skill.define(tools=False)
def nested(question: str) -> str:
    """{question}"""
    raise NotHandled


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


def offering(*names: str) -> ToolRouter:
    return ToolRouter(lambda context: [name for name in names if name in context.names])


CODE = ("exec_code", "write_and_run_body")

CALLS = [
    'shred("x")',
    'clerk.burn("x")',
    'Clerk().burn("x")',
    'Clerk.burn(Clerk(), "x")',
    'drawer.clerk.burn("x")',
    'drawer.papers[0].burn("x")',
    'drawer.papers[1]("x")',
    'the_shredder()("x")',
    '[*map(shred, ["x"])][0]',
    '(lambda tool: tool("x"))(shred)',
    'sorted(["x", "y"], key=shred)[0]',
    '[one("x") for one in (look, shred)][0]',
    'getattr(Clerk(), "burn")("x")',
    "applied(shred)",
    "applied(Clerk().burn)",
    "applied_in_there(shred)",
    "Errand(shred).run()",
    'Clerk().serve("x")',
    'nested("x")',
]


def shredded() -> list[Any]:
    return [one for one in DONE if one[0] == "shred"]


@EXECUTORS
@pytest.mark.parametrize("call", CALLS)
def test_no_expression_in_an_argument_calls_another(call, executor):
    options = {"tool_calling": "code", "eval_provider": executor}
    model = asked(offering("look"), calls("look", call=f"look({call})"), "No.", call=lambda: ask("x"), **options)
    assert shredded() == []
    assert ("look", "gone") not in DONE
    assert len(model.requests) == 2  # no call was nested


@EXECUTORS
@pytest.mark.parametrize("call", CALLS)
def test_no_code_in_a_session_calls_another(call, executor):
    used = calls("exec_code", code=f"def later():\n    return {call}\nprint({call})")
    again = calls("exec_code", code="print(later())")
    model = asked(offering("look", *CODE), used, again, "No.", call=lambda: ask("x"), eval_provider=executor)
    assert shredded() == []
    assert len(model.requests) == 3
    told = model.requests[1]["messages"][-1]["content"]
    # What is not to be had at all has another message.
    assert "there is no tool `" in told or executor == "restricted"


@EXECUTORS
@pytest.mark.parametrize("call", CALLS)
def test_no_body_calls_another(call, executor):
    source = f"def number(question: str) -> int:\n    return len({call})"
    body = calls("write_and_run_body", implementation={"code": source})
    model = asked(offering("look", *CODE), body, 3, call=lambda: number("x"), eval_provider=executor)
    assert shredded() == []
    assert len(model.requests) == 2


@EXECUTORS
def test_no_function_that_is_an_argument_calls_another(executor):
    """It runs in the body of a tool that is offered, and yet it is the model's."""
    source = "def function(text: str) -> str:\n    return shred(text)"
    used = calls("each", function={"code": source}, text="x")
    options = {"tool_calling": "json", "eval_provider": executor}
    asked(offering("each"), used, "No.", call=lambda: ask("x"), **options)
    assert shredded() == []


@pytest.mark.parametrize(
    "call", ["""eval('shred("x")')""", """exec('shred("x")')""", """__import__(__name__).shred("x")"""]
)
def test_no_text_that_code_evaluates_calls_another(call):
    asked(offering("look", *CODE), calls("exec_code", code=call), "No.", call=lambda: ask("x"), eval_provider="builtin")
    assert shredded() == []


def test_no_annotation_that_is_evaluated_calls_another():
    code = "class A:\n    x: \"shred('x')\"\nimport typing\nprint(typing.get_type_hints(A))"
    for executor in ("builtin", "restricted"):
        router = offering("look", *CODE)
        asked(router, calls("exec_code", code=code), "No.", call=lambda: ask("x"), eval_provider=executor)
    assert shredded() == []


def test_no_code_calls_one_that_is_asynchronous():
    code = 'print(await shred_later("x"))'
    asked(offering("look", *CODE), calls("exec_code", code=code), "No.", call=lambda: ask("x"), eval_provider="builtin")
    assert shredded() == []


def test_no_thread_that_code_begins_calls_one():
    code = 'import asyncio\nprint(await asyncio.to_thread(shred, "x"))'
    asked(offering("look", *CODE), calls("exec_code", code=code), "No.", call=lambda: ask("x"), eval_provider="builtin")
    assert shredded() == []


def test_nor_where_the_program_handles_the_tool_itself():
    """A handler of the one tool takes the place of all handlers of tools."""
    done: list[str] = []
    with handler({shred: lambda text: done.append(text) or "gone", Clerk.burn: lambda self, text: fwd()}):
        for call in ('shred("x")', 'clerk.burn("x")', 'Clerk.burn(Clerk(), "x")'):
            code = calls("exec_code", code=call)
            asked(offering("look", *CODE), code, "No.", call=lambda: ask("x"), eval_provider="builtin")
    assert done == shredded() == []


@pytest.mark.parametrize("names", [("tidy", *CODE), ("look", *CODE)], ids=["another", "the same"])
def test_of_two_routers_code_has_what_both_offer(names):
    stack = Layers(
        AgentLoop(system_prompt="brief"),
        offering(*names),
        offering("look", *CODE),
        LexicalToolExtractor(),
        HistoryBuilder(),
        BuiltinExecutor(),
        StatefulReplSynthesizer(),
        TenacityRetryer(),
    )
    with handler(stack), handler(ScriptedModel(calls("exec_code", code='print(look("x"))'), "Done.")):
        assert ask("x") == "Done."
    assert ([("look", "x")] if "look" in names else []) == DONE


# --- what goes on -----------------------------------------------------------------------------------------------------


@EXECUTORS
@pytest.mark.parametrize("name", ["tidy", "tidy_later"])
def test_what_a_tool_calls_in_its_own_body_is_its_own_affair(name, executor):
    """Whoever calls it: the model by JSON, by an expression, or code in a session."""
    by_json = (calls(name, text="x"), "Done.")
    asked(offering(name), *by_json, call=lambda: ask("x"), tool_calling="json", eval_provider=executor)
    wait = "await " if name == "tidy_later" else ""
    in_session = (calls("exec_code", code=f'print({wait}{name}("y"))'), "Done.")
    asked(offering(name, *CODE), *in_session, call=lambda: ask("x"), eval_provider=executor)
    assert shredded() == [("shred", "x"), ("shred", "y")]


@EXECUTORS
@pytest.mark.parametrize("call", ["shredding()", "shredding_by(applied)", "Clerk().clear()", "other_name()"])
def test_what_a_function_of_the_program_calls_that_names_the_tool_is_its_own_affair(call, executor):
    """It could do the same without a tool, and code that sees it may call it."""
    used = calls("exec_code", code=f"print({call})")
    asked(offering("look", *CODE), used, "Done.", call=lambda: ask("x"), eval_provider=executor)
    assert shredded() == [("shred", "x")]


@EXECUTORS
def test_code_calls_what_is_offered(executor):
    used = calls("exec_code", code='print(look("x"), drawer.clerk is clerk)\nprint(clerk.burn("y"))')
    router = offering("look", "clerk__burn", *CODE)
    asked(router, used, "Done.", call=lambda: ask("x"), eval_provider=executor)
    assert DONE == [("look", "x"), ("shred", "y")]


@EXECUTORS
def test_a_skill_that_code_calls_has_a_palette_of_its_own(executor):
    """One that it may call; what is called in there is not held to the palette outside."""
    palettes = {"ask": ["number", *CODE], "number": ["shred"]}
    router = ToolRouter(lambda context: [n for n in palettes[context.skill.__name__] if n in context.names])
    replies = (calls("exec_code", code='print(number("x"))'), calls("shred", text="x"), 3, "Done.")
    asked(router, *replies, call=lambda: ask("x"), eval_provider=executor)
    assert shredded() == [("shred", "x")]


def test_the_palette_is_that_of_the_turn():
    """Also for a function that an earlier turn has left in the session."""
    router = ToolRouter(lambda context: [("shred" if context.turn == 1 else "look"), *CODE], per="turn")
    first = calls("exec_code", code='def later():\n    return shred("later")\nprint(shred("x"))')
    asked(router, first, calls("exec_code", code="later()"), "Done.", call=lambda: ask("x"), eval_provider="builtin")
    assert shredded() == [("shred", "x")]


def test_the_program_calls_what_it_likes():
    """A function that the model made, once it is the program's."""

    @Skill.define
    def make(question: str) -> Callable[[str], str]:
        """{question}"""
        raise NotHandled

    answer = {"code": "def function(text: str) -> str:\n    return shred(text)"}
    stack = harness(type_checker="none", system_prompt="brief", eval_provider="builtin", tool_router=offering("look"))
    with handler(stack), handler(ScriptedModel(answer)):
        made = make("x")
        assert shred("a") == made("b") == "gone"
    assert shredded() == [("shred", "a"), ("shred", "b")]


def test_when_a_run_is_resumed_code_is_held_to_the_same():
    """What was refused is refused again, and nothing that was recorded lets it in."""
    store = MemoryCheckpointer()
    code = 'print(look("a"))\ntry:\n    shred("x")\nexcept ValueError as error:\n    print(error)'
    for replies in ((calls("exec_code", code=code), RuntimeError("down")), ("Done.",)):
        options: Any = {"system_prompt": "brief", "type_checker": "none", "eval_provider": "restricted"}
        stack = harness(**options, tool_router=offering("look", *CODE))
        with handler(stack), handler(ScriptedModel(*replies)) as model, handler(Journal("run", store)):
            with contextlib.suppress(RuntimeError):
                assert ask("x") == "Done."
    assert DONE == [("look", "a")]
    assert "there is no tool `shred`" in model.requests[0]["messages"][-1]["content"]
