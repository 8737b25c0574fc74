"""Calls that are awaited, on asyncio and trio."""

from __future__ import annotations

import gc
import threading
from typing import Any

import anyio
import pytest
import trio

from effectful_agents.errors import Cancelled, NetworkError, ProviderError, RequestTimeoutError
from effectful_agents.messages import TextDelta
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import StopScope, bridged, handler
from tests.handlers.provision.http.server import (
    DONE,
    HI,
    Server,
    chunk,
    listening,
    recorded,
    says,
    send_piece,
    stream,
    whole,
)

RUNNERS = {"asyncio": anyio.run, "trio": trio.run}


@pytest.fixture(params=RUNNERS)
def run(request: Any) -> Any:
    yield RUNNERS[request.param]
    gc.collect()  # what was left open says so here


def asked(**request: Any) -> Any:
    return bridged(completion, messages=HI, **request)


def text(reply: Any) -> str:
    return reply["choices"][0]["message"]["content"]


def test_a_reply_is_awaited(server: Server, run):
    async def main():
        with handler(server.model()):
            return await asked(seed=1)

    assert text(run(main)) == "hi"
    assert server.bodies == [{"seed": 1, "messages": HI, "model": "m"}]


def test_many_requests_are_on_their_way_at_once(server: Server, run):
    """Each answer waits until all requests are there."""
    count = 20
    together = threading.Barrier(count)

    def answer(request: Any) -> None:
        together.wait(10)
        whole(says("hi"))(request)

    server.will(answer)
    replies: list[str] = []

    async def one():
        replies.append(text(await asked()))

    async def main():
        with handler(server.model()):
            async with anyio.create_task_group() as tasks:
                for _ in range(count):
                    tasks.start_soon(one)

    run(main)
    assert replies == ["hi"] * count


@pytest.mark.parametrize("name", ["openai", "vllm", "llama_server", "ollama"])
def test_a_stream_is_as_in_a_plain_call(server: Server, run, name):
    server.will(stream(recorded(f"{name}.sse")))
    with listening() as in_plain_call:
        reply = server.ask()

    async def main():
        with handler(server.model()), listening() as heard:
            return await asked(), heard

    assert run(main) == (reply, in_plain_call)


def test_other_tasks_go_on_between_two_pieces(server: Server, run):
    ticked = threading.Event()

    def answer(request: Any) -> None:
        stream(chunk("Hel"), broken=True)(request)
        assert ticked.wait(10)
        send_piece(request, chunk("lo", "stop") + DONE)
        request.wfile.write(b"0\r\n\r\n")

    server.will(answer)

    async def main():
        first = anyio.Event()

        def listen(event: Any) -> None:
            if isinstance(event, TextDelta):
                first.set()

        async def tick():
            await first.wait()
            ticked.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tick)
            with handler(server.model()), handler({emit: listen}):
                return await asked()

    assert text(run(main)) == "Hello"


@pytest.mark.parametrize("pieces", [(), (chunk("Hel"),)], ids=["before the first piece", "after it"])
def test_cancelling_closes_the_connection(server: Server, run, pieces):
    server.will(server.wait_until_gone(*pieces))

    async def main():
        with handler(server.model()), listening() as heard:
            with anyio.CancelScope() as scope:

                async def cancel():
                    while not (server.bodies and len(heard) == 3 * len(pieces)):
                        await anyio.sleep(0.001)
                    scope.cancel()

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(cancel)
                    await asked()
            return scope.cancelled_caught, await anyio.to_thread.run_sync(server.gone.wait, 10)

    assert run(main) == (True, True)


def test_a_time_limit_around_it_holds(server: Server, run):
    server.will(server.wait_until_gone())

    async def main():
        with handler(server.model()), pytest.raises(TimeoutError):
            with anyio.fail_after(0.05):
                await asked()

    run(main)
    assert server.gone.wait(10)


def test_the_sentinel_ends_a_body_that_stays_open(server: Server, run):
    server.will(server.wait_until_gone(chunk("Hello", "stop"), DONE, chunk(" again")))

    async def main():
        with handler(server.model()):
            return await asked(stream=True)

    assert text(run(main)) == "Hello"
    assert server.gone.wait(10)


def test_an_error_of_a_listener_closes_the_connection(server: Server, run):
    server.will(server.wait_until_gone(chunk("Hel")))

    def fail(event: Any) -> None:
        raise ValueError("enough")

    async def main():
        with handler(server.model()), handler({emit: fail}), pytest.raises(ValueError, match="enough"):
            await asked()

    run(main)
    assert server.gone.wait(10)


def test_a_call_that_is_stopped_closes_the_connection(server: Server, run):
    server.will(server.wait_until_gone(chunk("Hel")))

    async def main():
        with pytest.raises(Cancelled), StopScope() as scope:
            with handler(server.model()), handler({emit: lambda event: scope.stop(Cancelled)}):
                await asked()
        return await anyio.to_thread.run_sync(server.gone.wait, 10)

    assert run(main)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (whole({"error": "busy"}, 503), ProviderError),
        (stream(chunk("Hel"), broken=True), NetworkError),
        (stream(chunk("Hel")), NetworkError),
    ],
)
def test_failures_are_those_of_a_plain_call(server: Server, run, answer, kind):
    server.will(answer)

    async def main():
        with handler(server.model()), pytest.raises(kind):
            await asked(stream=True)

    run(main)


def test_nothing_comes(server: Server, run):
    server.will(server.wait_until_gone())

    async def main():
        with handler(server.model(timeout=0.05)), pytest.raises(RequestTimeoutError, match="nothing came"):
            await asked()

    run(main)
    assert server.gone.wait(10)


def test_it_is_tried_again(server: Server, run, pauses: list[float]):
    server.will(stream(chunk("Hel"), broken=True), says("Hello"))

    async def main():
        with handler(server.model(num_retries=1)):
            return await asked(stream=True)

    assert text(run(main)) == "Hello"
    assert pauses == [0.5]
