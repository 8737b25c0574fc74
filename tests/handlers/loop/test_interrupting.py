"""A call of five turns, interrupted at every single operation and at every await, in every way there is.

Whatever interrupts it: its history is as it was before, what it has begun has ended, and the next call succeeds.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import signal
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import trio
from effectful.ops.types import Operation

from effectful_agents import Agent, CallControl, Deadline, NotHandled, Skill, Tool, acall, fwd, handler, harness, steps
from effectful_agents.errors import Cancelled, Denied, LimitExceeded, ProviderError, Suspended
from effectful_agents.operations.loop import call_agent, completion
from effectful_agents.runtime import Layers, wait
from effectful_agents.runtime.bridge import Driven
from effectful_agents.testing import ScriptedModel, batch, calls, says
from tests.laws.operations import operations_of_the_package
from tests.messages.validity import faults

open_tools: list[str] = []
"""Tools that have begun and not ended."""


class begun:
    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        open_tools.append(self.name)

    def __exit__(self, *_: object) -> None:
        open_tools.remove(self.name)


@Tool.define
async def nap(name: str) -> str:
    """Sleep a little."""
    with begun(name):
        await anyio.sleep(0)
        await anyio.sleep(0)
    return name


@Tool.define
def think(name: str) -> str:
    """Think."""
    with begun(name):
        return inner(name)


@Skill.define
def inner(question: str) -> str:
    """{question}"""
    raise NotHandled


class Bot(Agent):
    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


SCRIPT = (
    calls("nap", name="a"),
    batch(calls("nap", name="b"), calls("nap", name="c")),
    calls("think", name="d"),
    "thought",
    calls("missing"),
    batch(calls("think", name="e"), calls("nap", name="f")),
    "thought",
    "done",
)


def answering(script: tuple[Any, ...] = SCRIPT) -> Any:
    """A model that is awaited."""
    replies = iter(script)

    def model(**_: Any) -> Any:
        reply = next(replies)
        wait_a_little()
        return says(reply) if isinstance(reply, str) else reply

    return {completion: model}


def wait_a_little() -> None:
    wait(anyio.sleep(0))


class At:
    """Does something when the n-th operation of the package is performed inside."""

    def __init__(self, number: int, action: Callable[[], Any]) -> None:
        self.seen = 0
        self.number = number
        self.action = action

    @property
    def handler(self) -> Any:
        return Layers({operation: self._of(operation) for operation in operations_of_the_package()})

    def _of(self, operation: Operation) -> Callable[..., Any]:
        def count(*args: Any, **kwargs: Any) -> Any:
            self.seen += 1
            if self.seen == self.number:
                self.action()
            return fwd()

        return count


def check(bot: Bot, before: list[Any]) -> None:
    assert bot.__history__ == before
    assert open_tools == []
    with handler(harness()), handler(ScriptedModel("fine")):
        assert bot.ask("again") == "fine"
    assert faults(bot.__history__) == []


def bot_with_a_past() -> tuple[Bot, list[Any]]:
    bot = Bot()
    with handler(harness()), handler(ScriptedModel("before")):
        bot.ask("first")
    return bot, list(bot.__history__)


def operations_performed() -> int:
    at = At(0, lambda: None)
    bot, _ = bot_with_a_past()
    with handler(harness()), handler(answering()), handler(at.handler):
        assert bot.ask("?") == "done"
    return at.seen


OPERATIONS = operations_performed()


def raiser(error: BaseException) -> Callable[[], Any]:
    def action() -> None:
        raise error

    return action


def test_there_is_something_to_interrupt():
    assert OPERATIONS > 60


RARELY = (Suspended, GeneratorExit, MemoryError)


@pytest.mark.parametrize(
    "kind",
    [KeyboardInterrupt, Cancelled, ProviderError, *(pytest.param(one, marks=pytest.mark.slow) for one in RARELY)],
)
def test_an_exception_at_any_operation(kind):
    for number in range(1, OPERATIONS + 1):
        bot, before = bot_with_a_past()
        at = At(number, raiser(kind("stop")))
        with handler(harness()), handler(answering()), handler(at.handler):
            try:
                bot.ask("?")
            except (kind, Denied):  # a policy that raises denies
                pass
            else:
                # What a tool raises is told to the model, and the call goes on.
                assert issubclass(kind, Exception), number
                continue
        check(bot, before)


WAYS: dict[str, Callable[[Any], Any]] = {
    "asyncio": lambda skill: asyncio.run(acall(skill, "?")),
    "trio": lambda skill: trio.run(lambda: acall(skill, "?")),
    "plain": lambda skill: skill("?"),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_framework_s_own_cancellation_at_any_operation(way):
    for number in range(1, OPERATIONS + 1):
        bot, before = bot_with_a_past()
        control = CallControl()
        at = At(number, control.cancel)
        with handler(harness()), handler(answering()), handler(at.handler), handler(control):
            with pytest.raises(Cancelled):
                WAYS[way](bot.ask)
        check(bot, before)


class Stepped:
    """Awaits a coroutine, and interrupts it at the n-th thing that it waits for."""

    def __init__(self, coroutine: Any, number: int, interrupt: Callable[[Any], Any]) -> None:
        self.coroutine = coroutine
        self.number = number
        self.interrupt = interrupt
        self.waited = 0

    def __await__(self) -> Any:
        value, error = None, None
        while True:
            self.waited += 1
            try:
                if self.waited == self.number:
                    self.interrupt(self.coroutine)
                trap = self.coroutine.throw(error) if error else self.coroutine.send(value)
            except StopIteration as stop:
                return stop.value
            try:
                value, error = (yield trap), None
            except BaseException as thrown:
                value, error = None, thrown


async def awaits() -> int:
    with handler(harness()), handler(answering()):
        stepped = Stepped(acall(Bot().ask, "?"), 0, lambda _: None)
        await stepped
    return stepped.waited


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_closing_at_any_await_on_asyncio():
    for number in range(2, asyncio.run(awaits()) + 1):
        bot, before = bot_with_a_past()

        async def main(bot: Bot = bot, number: int = number) -> None:
            with handler(harness()), handler(answering()):
                call = acall(bot.ask, "?")
            await Stepped(call, number, lambda coroutine: coroutine.close())

        with pytest.raises(RuntimeError, match="cannot reuse already awaited"):
            asyncio.run(main())
        check(bot, before)


def test_cancelling_the_task_at_any_await_on_asyncio():
    interrupted = 0
    for number in range(1, asyncio.run(awaits()) + 1):
        bot, before = bot_with_a_past()

        async def main(bot: Bot = bot, number: int = number) -> None:
            with handler(harness()), handler(answering()):
                call = acall(bot.ask, "?")
            await Stepped(call, number, lambda _: asyncio.current_task().cancel("stop"))
            await asyncio.sleep(0)  # of a call that has not waited again

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())
        if bot.__history__ == before:
            interrupted += 1
            check(bot, before)
    assert interrupted > 10


def test_cancelling_the_scope_at_any_await_on_trio():
    interrupted = 0
    for number in range(1, trio.run(awaits) + 1):
        bot, before = bot_with_a_past()

        async def main(bot: Bot = bot, number: int = number) -> bool:
            with handler(harness()), handler(answering()):
                call = acall(bot.ask, "?")
            with trio.CancelScope() as scope:
                await Stepped(call, number, lambda _: scope.cancel())
            return scope.cancelled_caught

        if trio.run(main):
            interrupted += 1
            check(bot, before)
        else:
            assert len(bot.__history__) > len(before)
    assert interrupted > 10


def test_a_timeout_of_asyncio_is_its_own():
    bot, before = bot_with_a_past()

    @Tool.define
    async def forever() -> str:
        """Sleep for ever."""
        with begun("forever"):
            await asyncio.sleep(3600)
        return ""

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    async def main() -> None:
        with handler(harness()), handler(ScriptedModel(calls("forever"))):
            async with asyncio.timeout(0.01):
                await acall(go_on)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    check(bot, before)


def test_leaving_at_any_step():
    def followed(bot: Bot) -> Any:
        with handler(harness()), handler(answering()):
            return steps(bot.ask, "?")

    total = len(list(followed(Bot())))
    assert total > 25
    for number in range(1, total + 1):
        bot, before = bot_with_a_past()
        run = followed(bot)
        for _ in range(number):
            next(run)
        run.close()
        check(bot, before)

    async def main(bot: Bot, number: int) -> None:
        async with followed(bot) as run:
            for _ in range(number):
                await anext(run)

    for number in range(1, total + 1):
        for start in (lambda coroutine: asyncio.run(coroutine()), trio.run):
            bot, before = bot_with_a_past()
            start(lambda bot=bot, number=number: main(bot, number))
            check(bot, before)


def driven_calls() -> int:
    for _ in range(3):  # what is freed may free something else
        gc.collect()
    return sum(isinstance(one, Driven) for one in gc.get_objects())


@pytest.mark.slow
def test_nothing_is_left_of_many_interrupted_calls():
    """No greenlet, task, thread or coroutine."""

    async def main() -> None:
        for number in range(1, OPERATIONS, 7):
            control = CallControl()
            at = At(number, control.cancel)
            with handler(harness()), handler(answering()):
                with handler(at.handler), handler(control), pytest.raises(Cancelled):
                    await acall(Bot().ask, "?")
                async for _ in steps(inner, "?"):
                    break
        for _ in range(3):
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    threads, greenlets = set(threading.enumerate()), driven_calls()
    asyncio.run(main())
    # Threads of other tests in this process may end meanwhile: only new ones count.
    assert set(threading.enumerate()) <= threads
    assert driven_calls() == greenlets
    assert not [one for one in gc.get_objects() if inspect.iscoroutine(one) and one.cr_running]


def test_a_call_in_an_eager_task_says_what_to_write():
    @Tool.define
    async def plain_inside() -> str:
        """Make a plain call in a task of its own."""

        async def task() -> str:
            try:
                return think("x")
            except Exception as error:
                return f"{type(error).__name__}: {error}"

        return await asyncio.get_running_loop().create_task(task())

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    def model(**request: Any) -> Any:
        said = str(request["messages"][-1]["content"])
        wait_a_little()
        return says(said) if request["messages"][-1]["role"] == "tool" else calls("plain_inside")

    async def main(eager: bool) -> Any:
        if eager:
            asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        with handler(harness()), handler({completion: model}):
            return await acall(go_on)

    for eager in (False, True):
        assert "acall" in asyncio.run(main(eager))


def test_interrupting_a_nested_call_of_the_same_agent_leaves_nothing_behind():
    class Two(Agent):
        @Skill.define
        def outer(self) -> str:
            """Outer."""
            raise NotHandled

        @Skill.define
        def inside(self) -> str:
            """Inside."""
            raise NotHandled

    for number in range(1, 4):
        two, control = Two(), CallControl()
        seen = 0

        def stop_at(skill: Any, /, *args: Any, number: int = number, control: CallControl = control, **kwargs: Any):
            nonlocal seen
            seen += 1
            if seen == number:
                control.cancel()
            return fwd()

        script = (calls("inside"), "inner answer", calls("inside"), "inner answer", "done")
        with handler(harness()), handler(ScriptedModel(*script)), handler({call_agent: stop_at}), handler(control):
            with pytest.raises(Cancelled):
                two.outer()
        assert two.__history__ == []


ENDINGS = ["task", "timeout", "deadline", "control", "tool"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("together", [False, True])
def test_what_an_asynchronous_tool_cleans_up_may_take_its_time_on_asyncio(ending, together):
    cleaned: list[str] = []
    begun: list[str] = []
    control = CallControl()
    stop: list[Callable[[], Any]] = []

    async def work(name: str) -> str:
        """Work for ever."""
        begun.append(name)
        if len(begun) == (2 if together else 1):
            for end in stop:
                asyncio.get_running_loop().call_soon(end)
        try:
            await asyncio.sleep(3600)
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            cleaned.append(name)
        return name

    tool = Tool.define(work, timeout=0.01 if ending == "tool" else None)

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    assert tool
    first = batch(calls("work", name="a"), calls("work", name="b")) if together else calls("work", name="a")

    async def main() -> None:
        limit = {"deadline": Deadline(0.5), "control": control}.get(ending, {})
        with handler(harness(eval_provider="none")), handler(ScriptedModel(first, "done")), handler(limit):
            call = acall(go_on)
        if ending == "timeout":
            async with asyncio.timeout(None) as timeout:
                stop.append(lambda: timeout.reschedule(0))
                await call
        task = asyncio.ensure_future(call) if ending != "timeout" else None
        if ending in ("task", "control"):
            stop.append(task.cancel if ending == "task" else control.cancel)
        await task

    expected = {
        "task": asyncio.CancelledError,
        "timeout": TimeoutError,
        "deadline": LimitExceeded,
        "control": Cancelled,
    }
    if ending == "tool":
        asyncio.run(main())
    else:
        with pytest.raises(expected[ending]):
            asyncio.run(main())
    assert sorted(cleaned) == (["a", "b"] if together else ["a"])


@pytest.mark.parametrize("way", ["task", "timeout"])
def test_a_cancellation_that_a_tool_ate_is_raised_at_the_next_operation(way):
    later: list[str] = []

    @Tool.define
    async def deaf() -> str:
        """Eat everything."""
        try:
            await asyncio.sleep(3600)
        except BaseException:
            later.append("eaten")
        return "fine"

    @Tool.define
    def next_one() -> str:
        """Do something."""
        later.append("happened")
        return "done"

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    async def main() -> None:
        with handler(harness()), handler(ScriptedModel(batch(calls("deaf"), calls("next_one")), "done")):
            call = acall(go_on)
        if way == "timeout":
            async with asyncio.timeout(0.01):
                await call
        else:
            task = asyncio.ensure_future(call)
            asyncio.get_running_loop().call_later(0.01, task.cancel)
            await task

    with pytest.raises(TimeoutError if way == "timeout" else asyncio.CancelledError):
        asyncio.run(main())
    assert later == ["eaten"]


def test_a_timeout_inside_a_tool_is_the_tool_s_own_affair():
    @Tool.define
    async def patient() -> str:
        """Try, and give up."""
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(3600)
        except TimeoutError:
            return inner("and now?")
        return ""

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    async def main() -> str:
        with handler(harness()), handler(ScriptedModel(calls("patient"), "fine", "done")):
            return await acall(go_on)

    assert asyncio.run(main()) == "done"


@pytest.mark.parametrize("way", ["asyncio", "trio"])
def test_ctrl_c_while_a_plain_tool_works_ends_the_call_at_its_next_operation(way):
    happened: list[str] = []

    @Tool.define
    def interrupted() -> str:
        """Press Ctrl-C."""
        signal.raise_signal(signal.SIGINT)
        return "interrupted"

    @Tool.define
    def next_one() -> str:
        """Do something."""
        happened.append("next")
        return "done"

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    with handler(harness()), handler(ScriptedModel(batch(calls("interrupted"), calls("next_one")), "done")):
        with pytest.raises(KeyboardInterrupt):
            WAYS_WITHOUT[way](go_on)
    assert happened == []


WAYS_WITHOUT: dict[str, Callable[[Any], Any]] = {
    "asyncio": lambda skill: asyncio.run(acall(skill)),
    "trio": lambda skill: trio.run(lambda: acall(skill)),
}


def test_one_tool_that_ends_the_program_keeps_those_in_the_queue_from_being_begun():
    begun_tools: list[int] = []

    @Tool.define(concurrent=True)
    def leave(number: int) -> str:
        """Leave, if it is the first."""
        begun_tools.append(number)
        if number == 0:
            raise SystemExit(3)
        threading.Event().wait(0.05)
        return "stayed"

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    reply = batch(*(calls("leave", number=number) for number in range(40)))
    with handler(harness()), handler(ScriptedModel(reply)), pytest.raises(SystemExit):
        go_on()
    assert len(begun_tools) < 40
