"""Which span is the current one: in tools, tasks and threads, around iterators, and for whoever comes from outside."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import trio
from opentelemetry import trace

from effectful_agents import NotHandled, Skill, Tool, fwd, handler, harness, propagate
from effectful_agents.handlers.loop import acall, steps, stream
from effectful_agents.operations.call_context import CallContext, current_call_context
from effectful_agents.operations.loop import completion
from effectful_agents.testing import ScriptedModel, batch, calls

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def current() -> trace.SpanContext:
    return trace.get_current_span().get_span_context()


@Tool.define
def look(place: str) -> str:
    """Look at a place."""
    return f"{current().span_id:016x}"


@Tool.define
async def look_slowly(place: str) -> str:
    """Look at a place for long."""
    before = current().span_id
    await _nothing()
    assert current().span_id == before
    return f"{before:016x}"


async def _nothing() -> None:
    if trio.lowlevel.in_trio_run():
        await trio.lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)


@Tool.define(concurrent=True)
def look_beside(place: str) -> str:
    """Look at a place, beside others."""
    return f"{current().span_id:016x}"


@Skill.define
def find(what: str) -> str:
    """Find {what}."""
    raise NotHandled


def results(model: ScriptedModel) -> list[str]:
    return [one["content"] for one in model.requests[-1]["messages"] if one["role"] == "tool"]


def ids(traced, name: str) -> list[str]:
    return [f"{span.context.span_id:016x}" for span in traced.spans if span.name == name]


def test_spans_of_the_user_stand_below_the_tool_they_are_made_in(traced):
    tracer = traced.provider.get_tracer("users")

    @Tool.define
    def fetch(url: str) -> str:
        """Fetch a page."""
        with tracer.start_as_current_span("GET"):
            return "page"

    @Skill.define
    def read(url: str) -> str:
        """Read {url}, with `fetch`."""
        raise NotHandled

    with tracer.start_as_current_span("request"):
        with handler(harness()), handler(ScriptedModel(calls("fetch", url="x"), "Read.")), handler(traced.tracer()):
            read("x")
    assert traced.tree() == "request\n  invoke_agent read\n    chat\n    execute_tool fetch\n      GET\n    chat"


def test_what_asks_the_model_is_inside_of_the_request(traced):
    seen = []

    def watched(**_):
        seen.append(f"{current().span_id:016x}")
        return fwd()

    with handler(harness()), handler(ScriptedModel("ok")), handler({completion: watched}), handler(traced.tracer()):
        find("keys")
    assert seen == ids(traced, "chat")


@pytest.mark.parametrize("run_async", [asyncio.run, trio.run], ids=["asyncio", "trio"])
def test_asynchronous_tools_that_run_together_have_their_own_spans(traced, run_async):
    model = ScriptedModel(batch(calls("look_slowly", place="a"), calls("look_slowly", place="b")), "Found.")

    async def main() -> str:
        with handler(harness()), handler(model), handler(traced.tracer()):
            value = await acall(find, "keys")
            assert not current().is_valid
            return value

    value = run_async(main) if run_async is trio.run else run_async(main())
    assert value == "Found."
    assert sorted(results(model)) == sorted(ids(traced, "execute_tool look_slowly"))
    assert traced.tree().count("\n  execute_tool look_slowly") == 2


def test_tools_that_run_in_threads_have_their_own_spans(traced):
    model = ScriptedModel(batch(calls("look_beside", place="a"), calls("look_beside", place="b")), "Found.")
    with handler(harness()), handler(model), handler(traced.tracer()):
        find("keys")
    assert sorted(results(model)) == sorted(ids(traced, "execute_tool look_beside"))
    assert traced.tree() == "invoke_agent find\n  chat\n  execute_tool look_beside\n  execute_tool look_beside\n  chat"


def test_calls_of_several_tasks_belong_to_the_span_that_each_is_made_in(traced):
    tracer = traced.provider.get_tracer("users")

    async def one(name: str) -> None:
        with tracer.start_as_current_span(name):
            await acall(find, name)

    async def main() -> None:
        with handler(harness()), handler(ScriptedModel("1", "2", "3")), handler(traced.tracer()):
            await asyncio.gather(one("a"), one("b"), one("c"))

    asyncio.run(main())
    for name in "abc":
        (below,) = [
            span for span in traced.spans if span.parent and span.parent.span_id == traced[name].context.span_id
        ]
        assert below.name == "invoke_agent find"


def test_a_thread_that_is_given_a_propagated_function_goes_on_below(traced):
    tracer = traced.provider.get_tracer("users")
    with handler(harness()), handler(ScriptedModel("ok")), handler(traced.tracer()), ThreadPoolExecutor() as pool:
        with tracer.start_as_current_span("request"):
            pool.submit(propagate(find), "keys").result()
    assert traced.tree() == "request\n  invoke_agent find\n    chat"


def test_a_call_that_is_followed_does_not_leave_its_span_to_whoever_follows_it(traced):
    model = ScriptedModel(calls("look", place="a"), "Found.")
    with handler(harness()), handler(model), handler(traced.tracer()):
        run = steps(find, "keys")
        for _ in run:
            assert not current().is_valid
            assert current_call_context() == CallContext()
    assert run.value == "Found."
    assert results(model) == ids(traced, "execute_tool look")
    assert traced.tree() == "invoke_agent find\n  chat\n  execute_tool look\n  chat"


@pytest.mark.parametrize("leave", ["close", "drop", "raise"])
def test_a_call_that_is_left_early_ends_its_spans(traced, leave):
    with handler(harness()), handler(ScriptedModel("A long answer")), handler(traced.tracer()):
        run = stream(find, "keys")
        next(run)
        assert not current().is_valid
        if leave == "close":
            run.close()
        elif leave == "raise":
            with pytest.raises(KeyError):
                run.throw(KeyError("enough"))
        else:
            del run
            gc.collect()
    assert not current().is_valid
    assert traced.tree() == "invoke_agent find\n  chat"
    expected = (None, "KeyError") if leave == "raise" else ("closed", None)
    for span in traced.spans:
        assert (span.attributes.get("effectful_agents.outcome"), span.attributes.get("error.type")) == expected


def test_a_call_that_is_dropped_in_another_thread_ends_its_spans_with_the_next(traced):
    with handler(harness()), handler(ScriptedModel("A long answer", "Another")), handler(traced.tracer()):
        runs = [stream(find, "keys")]
        next(runs[0])

        def drop() -> None:
            runs.clear()
            gc.collect()

        thread = threading.Thread(target=drop)
        thread.start()
        thread.join()
        assert list(stream(find, "keys"))
    assert not current().is_valid
    assert traced.tree() == "invoke_agent find\n  chat\ninvoke_agent find\n  chat"
    assert [span.attributes.get("effectful_agents.outcome") for span in traced.spans] == [
        "closed",
        "closed",
        None,
        None,
    ]


def test_a_call_followed_asynchronously_does_not_leave_its_span_either(traced):
    async def main() -> None:
        with handler(harness()), handler(ScriptedModel(calls("look_slowly", place="a"), "Found.")):
            with handler(traced.tracer()):
                async for _ in steps(find, "keys"):
                    assert not current().is_valid
                async with stream(find, "keys") as run:
                    with pytest.raises(Exception, match="asked once more"):
                        async for _ in run:
                            pass

    asyncio.run(main())
    assert traced.tree().startswith("invoke_agent find\n  chat\n  execute_tool look_slowly\n  chat")


def test_a_cancelled_task_ends_its_spans(traced):
    async def main() -> None:
        begun = asyncio.Event()

        @Tool.define
        async def wait() -> str:
            """Wait."""
            begun.set()
            await asyncio.Event().wait()
            return ""

        @Skill.define
        def rest() -> str:
            """Rest, with `wait`."""
            raise NotHandled

        with handler(harness()), handler(ScriptedModel(calls("wait"))), handler(traced.tracer()):
            task = asyncio.create_task(acall(rest))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert traced["execute_tool wait"].attributes["effectful_agents.outcome"] == "cancelled"
    assert traced["invoke_agent rest"].attributes["effectful_agents.outcome"] == "cancelled"


def test_a_call_belongs_to_the_trace_of_who_asked_for_it(traced):
    incoming = CallContext.from_headers({"Traceparent": PARENT, "TraceState": "vendor=1"})
    with handler({current_call_context: lambda: incoming}), handler(harness()), handler(ScriptedModel("ok")):
        with handler(traced.tracer()):
            find("keys")
            assert current_call_context() == incoming
    call = traced["invoke_agent find"]
    assert call.context.trace_id == 0x0AF7651916CD43DD8448EB211C80319C
    assert call.parent.span_id == 0xB7AD6B7169203331
    assert call.context.trace_state.get("vendor") == "1"


def test_the_current_span_is_what_is_handed_on(traced):
    handed = []

    @Tool.define
    def fetch() -> str:
        """Fetch it."""
        handed.append(current_call_context().headers())
        return "it"

    @Skill.define
    def read() -> str:
        """Read it, with `fetch`."""
        raise NotHandled

    incoming = CallContext(PARENT, "vendor=1")
    with handler({current_call_context: lambda: incoming}), handler(harness()):
        with handler(ScriptedModel(calls("fetch"), "ok")), handler(traced.tracer()):
            read()
    span = traced["execute_tool fetch"].context
    assert handed == [{"traceparent": f"00-{span.trace_id:032x}-{span.span_id:016x}-01", "tracestate": "vendor=1"}]


def test_without_a_tracer_what_came_in_is_handed_on():
    incoming = CallContext(PARENT)
    assert current_call_context() == CallContext()
    with handler({current_call_context: lambda: incoming}):
        seen = []
        thread = threading.Thread(target=propagate(lambda: seen.append(current_call_context())))
        thread.start()
        thread.join()
    assert seen == [incoming]


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "nonsense",
        PARENT.replace("00-", "ff-", 1),
        PARENT.upper(),
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
        PARENT + "\r\nX-Evil: 1",
    ],
)
def test_a_traceparent_that_is_none_counts_as_absent(parent):
    assert CallContext.from_headers({"traceparent": parent, "tracestate": "a=1"}) == CallContext()
