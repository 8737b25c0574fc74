"""Code in a session may wait for asynchronous tools at its top level, under each executor and with each event loop."""

from __future__ import annotations

import ast
import asyncio
from typing import Any

import pytest
import trio

from effectful_agents import NotHandled, Skill, Tool, acall, handler
from effectful_agents.errors import CodeStopped
from effectful_agents.handlers.execution import RestrictedPythonExecutor
from effectful_agents.operations import code
from tests.handlers.synthesis.coding import coding, results, runs

executors = pytest.mark.parametrize("executor", ["builtin", "restricted"])


@Tool.define
async def weather(city: str) -> str:
    """The weather in a city."""
    if city == "nowhere":
        raise LookupError(f"there is no {city}")
    return f"sunny in {city}"


@Tool.define
def shout(text: str) -> str:
    """A text in capitals."""
    return text.upper()


@Skill.define
def ask(n: int) -> str:
    """{n}"""
    raise NotHandled


@Skill.define
def other(n: int) -> str:
    """Another: {n}"""
    raise NotHandled


async def awaited(n: int) -> Any:
    return await acall(ask, n)


LOOPS = {"none": ask, "asyncio": lambda n: asyncio.run(awaited(n)), "trio": lambda n: trio.run(awaited, n)}
loops = pytest.mark.parametrize("loop", LOOPS)


@loops
@executors
def test_code_awaits_a_tool_and_goes_on(executor, loop):
    pieces = runs("found = await weather('Oslo')\nprint(found)"), runs("print(shout(found), await weather('Rome'))")
    with coding(*pieces, "done", eval_provider=executor, type_checker="ty") as model:
        assert LOOPS[loop](3) == "done"
    assert results(model) == ["sunny in Oslo\n", "SUNNY IN OSLO sunny in Rome\n"]


@executors
def test_what_it_raises_is_told_and_what_was_bound_stays(executor):
    pieces = runs("a = 1\nawait weather('nowhere')"), runs("print(a)")
    with coding(*pieces, "done", eval_provider=executor) as model:
        assert ask(3) == "done"
    told, printed = results(model)
    assert "LookupError: there is no nowhere" in told
    assert "line 2" in told
    assert "bridge" not in told
    assert printed == "1\n"


@pytest.mark.parametrize("loop", ["none", "asyncio"])
def test_all_of_it_may_be_asynchronous_where_nothing_is_restricted(loop):
    source = (
        "import asyncio\n"
        "async def count():\n    yield 1\n    yield 2\n"
        "async with asyncio.timeout(5):\n    both = await asyncio.gather(weather('a'), weather('b'))\n"
        "async for n in count():\n    print(n)\n"
        "print([n async for n in count()], both, other(n))"
    )
    with coding(runs(source), "inner", "done", type_checker="ty") as model:
        assert LOOPS[loop](3) == "done"
    assert results(model) == ["1\n2\n[1, 2] ['sunny in a', 'sunny in b'] inner\n"]


@pytest.mark.parametrize(
    "source",
    [
        "async def f(): pass",
        "def f():\n  await weather('x')",
        "f = lambda: await weather('x')",
        "[x async for x in y]",
        "async with x: pass",
        "async for x in y: pass",
    ],
)
def test_restricted_code_is_not_asynchronous_itself(source):
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with handler(RestrictedPythonExecutor()), pytest.raises(SyntaxError, match="not allowed: write ordinary"):
        code.compile(source, "<test>", flags=flags)


def test_restricted_code_awaits_nothing_but_tools():
    for source in ("await 3", "await f", "await (x for x in [1])"):
        with handler(RestrictedPythonExecutor()), pytest.raises(TypeError, match="an asynchronous tool gives"):
            code.exec(code.compile(source, "<test>"), {"f": weather})


def test_the_time_of_restricted_code_holds_while_it_waits():
    async def for_ever() -> None:
        await asyncio.sleep(60)

    with handler(RestrictedPythonExecutor(seconds=0.1)), pytest.raises(CodeStopped, match="seconds"):
        code.exec(code.compile("try:\n  await f()\nexcept Exception: pass", "<test>"), {"f": for_ever})
