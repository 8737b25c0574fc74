"""A script for MCP clients: the SDK's own client asks it, over both ways and in both versions of the protocol."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import mcp_types
import pytest
from jsonschema import Draft202012Validator
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from effectful_agents.harness.commands import main

DESK = str(Path(__file__).with_name("desk.py"))
TOKEN = "a token of the tests"
WORDS = ["serve", "mcp", DESK, "--with", "rules", "--with", "model", "--eval-provider", "none"]
RUN = ["-c", "import sys; from effectful_agents.harness.commands import main; sys.exit(main(sys.argv[1:]))"]

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over HTTP."""
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(TOKEN + "\n")
    words = [*WORDS, "--http", "--port", "0", "--token-file", str(file)]
    process = subprocess.Popen([sys.executable, *RUN, *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if found := re.search(r"serving at (\S+)", line):
            break
    else:
        pytest.fail(said)
    yield found[1]
    process.terminate()
    process.stderr.close()
    assert process.wait(20) in (0, -15)


class Person:
    """Whoever is asked by the client."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.says: Any = mcp_types.ElicitResult(action="accept", content={"approve": True})

    async def __call__(self, context: Any, params: Any) -> Any:
        self.asked.append(params)
        return self.says


@contextlib.asynccontextmanager
async def over_http(address: str, token: str = TOKEN) -> AsyncIterator[Any]:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as client:
        async with streamable_http_client(address, http_client=client) as streams:
            yield streams


@pytest.fixture(params=["stdio", "stdio-legacy", "http", "http-legacy"])
async def made(request: pytest.FixtureRequest, address: str) -> AsyncIterator[tuple[Client, Person]]:
    person = Person()
    way, _, legacy = request.param.partition("-")
    server = (
        StdioServerParameters(command=sys.executable, args=[*RUN, *WORDS]) if way == "stdio" else over_http(address)
    )
    async with Client(server, mode=legacy or "auto", elicitation_callback=person, cache=None) as client:
        yield client, person


def text(result: Any) -> str:
    return "".join(block.text for block in result.content)


async def test_everything_by_each_way(made: tuple[Client, Person]):
    client, person = made
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == {
        *("stock", "names", "order", "fail", "trace", "slow", "ended", "wish", "summary", "desk__ask")
    }
    assert tools["stock"].description.startswith("How many of an item")
    assert tools["stock"].input_schema["required"] == ["item"]
    assert tools["stock"].annotations.read_only_hint
    assert tools["order"].annotations.destructive_hint is False
    assert tools["desk__ask"].annotations.read_only_hint is False  # its agent could order something
    for tool in tools.values():
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema or {})
    found = await client.call_tool("stock", {"item": "bolt"})
    assert found.structured_content == {"item": "bolt", "number": 3}
    assert (await client.call_tool("names")).structured_content == {"result": ["bolt", "nut"]}
    assert "last: Summarize a book." in text(await client.call_tool("summary", {"text": "a book"}))
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert text(await client.call_tool("trace", meta={"traceparent": parent})) == parent

    # What goes wrong.
    wrong = await client.call_tool("stock", {"item": 3, "more": 1})
    assert wrong.is_error
    assert "more" in text(wrong)
    assert "no tool `nothing`" in text(await client.call_tool("nothing"))
    own = text(await client.call_tool("fail", {"kind": "own"}))
    assert own == "ValueError: no such shelf, key [secret]"
    assert "Traceback" not in text(await client.call_tool("fail", {"kind": "group"}))
    assert (await client.call_tool("fail", {"kind": "exit"})).is_error
    assert text(await client.call_tool("fail", {"kind": "file"})) == "FileNotFoundError: No such file or directory"
    broken = text(await client.call_tool("summary", {"text": "break"}))
    assert "sk-" not in broken

    # People.
    person.says = mcp_types.ElicitResult(action="accept", content={"approve": True})
    assert text(await client.call_tool("order", {"item": "nut"})) == "ordered nut"
    assert 'item = "nut"' in person.asked[-1].message
    person.says = mcp_types.ElicitResult(action="accept", content={"approve": False, "reason": "too dear"})
    assert "too dear" in text(await client.call_tool("order", {"item": "nut"}))
    person.says = mcp_types.ElicitResult(action="decline")
    assert "not allowed" in text(await client.call_tool("order", {"item": "nut"}))
    person.says = mcp_types.ElicitResult(action="accept", content={"answer": "green"})
    assert text(await client.call_tool("wish")) == "green"
    person.says = mcp_types.ElicitResult(action="accept", content={"approve": True})
    assert "last: ordered bolt" in text(await client.call_tool("desk__ask", {"question": "Order a bolt"}))

    # Several at once, and one that is given up.
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(client.call_tool, "stock", {"item": "bolt"})
    before = (await client.call_tool("ended")).structured_content["result"]
    with anyio.move_on_after(0.3):
        await client.call_tool("slow", {"seconds": 0.8})
    await client.call_tool("slow", {"seconds": 0.8})  # by its end the other one would have come to its own
    assert len((await client.call_tool("ended")).structured_content["result"]) == len(before) + 1
    heard = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    await client.call_tool("summary", {"text": "a book"}, progress_callback=progress)
    assert any("model" in message for message in heard)


async def test_each_session_has_its_own_conversation(address: str):
    def client(mode: Any) -> Client:
        return Client(over_http(address), mode=mode, elicitation_callback=Person())

    async with client("legacy") as one, client("legacy") as other:
        said = [
            text(await each.call_tool("desk__ask", {"question": "?"})).partition(" ")[0]
            for each in (one, other, one, one)
        ]
    assert said == ["1", "1", "2", "3"]
    async with client("2026-07-28") as modern:  # which knows no sessions
        said = [text(await modern.call_tool("desk__ask", {"question": "?"})).partition(" ")[0] for _ in range(2)]
    assert said == ["1", "1"]


async def test_nobody_goes_on_with_the_conversation_of_another_session(address: str):
    headers = {
        "authorization": f"Bearer {TOKEN}",
        "mcp-session-id": "made up",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "desk__ask",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }
    async with httpx2.AsyncClient(headers=headers, timeout=30) as web:
        async with Client(streamable_http_client(address, http_client=web), elicitation_callback=Person()) as client:
            said = [text(await client.call_tool("desk__ask", {"question": "?"})).partition(" ")[0] for _ in range(2)]
    assert said == ["1", "1"]


async def test_a_client_that_cannot_ask_anybody(address: str):
    for mode in ("legacy", "auto"):
        async with Client(over_http(address), mode=mode) as client:
            assert "Nobody answered" in text(await client.call_tool("order", {"item": "nut"}))


async def test_who_has_no_token_is_not_let_in(address: str):
    with pytest.raises((MCPError, ExceptionGroup)):
        async with Client(over_http(address, "another token of the tests")) as client:
            await client.list_tools()
    assert httpx.post(address, json={}).status_code == 401
    host = {"host": "evil.example", "authorization": f"Bearer {TOKEN}", "accept": "application/json"}
    assert httpx.post(address, json={}, headers=host).status_code in (400, 403, 421)
    origin = {"origin": "https://evil.example", "authorization": f"Bearer {TOKEN}", "accept": "application/json"}
    assert httpx.post(address, json={}, headers=origin).status_code == 403


async def test_what_is_no_request_ends_nothing(address: str):
    headers = {
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }
    bodies = [
        "",
        "{",
        "[]",
        "null",
        '{"jsonrpc": "2.0"}',
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}),
    ]
    for body in bodies:
        assert httpx.post(address, content=body, headers=headers).status_code >= 400
    async with Client(over_http(address)) as client:
        assert (await client.list_tools()).tools
        late = await client.session.call_tool("order", {"item": "x"}, request_state="x" * 30, allow_input_required=True)
        assert "does not wait any more" in text(late)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["serve", "mcp", "/nowhere.py"], "nowhere"),
        (["serve", "mcp", DESK, "--only", "nothing"], "no tool or skill `nothing`"),
        (["serve", "mcp", DESK, "--with", "nothing"], "nothing"),
        (["serve", "mcp", DESK, "--journal", "x.db", "--run-id", "x"], "each call"),
        (["serve", "mcp", DESK, "--http", "--token-file", "/nowhere"], "token"),
        (["serve", "gateway", "--port", "99999"], "65535"),
    ],
)
async def test_what_has_to_be_written_otherwise(words, told, capsys):
    assert main(words) == 2
    assert told in capsys.readouterr().err
