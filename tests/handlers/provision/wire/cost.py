"""The page of the documentation that says what calls cost: `uv run python -m tests.handlers.provision.wire.cost`."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from effectful_agents import NotHandled, Skill, fwd, handler, harness
from effectful_agents.handlers.legibility import DeferredTools, worth_deferring
from effectful_agents.handlers.provision.local import LocalModel
from effectful_agents.operations.counting import count_tokens
from effectful_agents.operations.loop import call_assistant
from effectful_agents.testing import ScriptedModel, calls
from effectful_agents.types.walk import ToolSet
from tests.handlers.legibility.offers import fleet
from tests.handlers.provision.http.server import Server
from tests.handlers.provision.wire import by_hand
from tests.handlers.provision.wire.conversation import will_answer
from tests.handlers.provision.wire.examples import EXAMPLES, READ, run

PAGE = Path(__file__).parents[4] / "docs" / "cost.md"

HEAD = """\
<!-- Written by `uv run python -m tests.handlers.provision.wire.cost`; a test checks that it is what is measured. -->

# What a call costs

What is sent is taken from the wire: a server on this machine gets what LiteLLM makes of the requests. The replies are
written down, so each run asks the same. Two processes send the same bytes, whatever their folder, home and hash seed.

`harness(system_prompt="brief")` sends what the authors of the skill, its tools and its types wrote, and nothing else.
The full system message explains the framework and holds the source of the skill's module, and with it come the tools
for code that the model writes, unless `eval_provider="none"` says otherwise. Both are the same in each request of a
conversation, so a provider's prompt cache has them from the second request on.
"""

BYTES = """\
## Bytes of a whole run

The examples beside clients that were written by hand, with the same words, tools and forms of the answer
(`tests/handlers/provision/wire/by_hand.py`). A test holds brief runs to 1.10 times what these send.

| example | requests | by hand | brief | brief / by hand | full |
| --- | --- | --- | --- | --- | --- |
"""

TOKENS = """\
## Tokens of a request

In tokens of SmolLM2. The growth is what a request has more than the one before it, on average; a conversation of one
request has none.

| example | system message | | tools | | form of the answer | growth per turn | |
| --- | --- | --- | --- | --- | --- | --- | --- |
|   | **brief** | **full** | **brief** | **full** | | **brief** | **full** |
"""

TOOLS = """\
## Many tools

Tokens of SmolLM2 for tools of one shape, each with two parameters, with and without
[`DeferredTools`](handlers/legibility.md#many-tools), for a call in brief mode that uses one tool. It takes two
requests, and with deferral a third, to search. A full system message would add its tokens to each of them.

| tools | a request, all | a request, deferred | the call, all | the call, deferred | `worth_deferring` |
| --- | --- | --- | --- | --- | --- |
"""


class Run(NamedTuple):
    """The requests of a run, as they were sent."""

    bodies: list[Any]
    bytes: int


def measured(server: Server, name: str, program: Callable[[], Any]) -> Run:
    """Run a program of an example against a server that answers as a model would."""
    server.clear()
    will_answer(server, EXAMPLES[name].replies)
    program()
    assert len(server.raw) == len(EXAMPLES[name].replies)
    return Run(list(server.bodies), sum(map(len, server.raw)))


def run_by_hand(server: Server, name: str) -> Run:
    return measured(server, name, lambda: by_hand.run(name, server.url, READ))


def run_example(server: Server, name: str, folder: Path, prompt: Any) -> Run:
    with harness(model="openai/test", base_url=server.url, api_key="x", system_prompt=prompt):
        return measured(server, name, lambda: run(name, folder))


def page(server: Server, folder: Path) -> str:
    """The whole page.

    Args:
        server: Where the requests are sent.
        folder: Where there is room for files.
    """
    runs = {
        name: (run_by_hand(server, name), *(run_example(server, name, folder, how) for how in ("brief", "full")))
        for name in EXAMPLES
    }
    with handler(LocalModel()):
        parts = [
            HEAD,
            BYTES + _lines(_bytes(name, *of_name) for name, of_name in runs.items()),
            TOKENS + _lines(_tokens(name, *of_name[1:]) for name, of_name in runs.items()),
            TOOLS + _lines(map(_tools, (1, 10, 100))),
        ]
    return "\n".join(parts)


def _lines(rows: Iterable[Sequence[Any]]) -> str:
    return "".join(
        f"| {' | '.join(f'{one:,}' if isinstance(one, int) else str(one) for one in row)} |\n" for row in rows
    )


def _bytes(name: str, hand: Run, brief: Run, full: Run) -> Sequence[Any]:
    return name, len(brief.bodies), hand.bytes, brief.bytes, f"{brief.bytes / hand.bytes:.2f}", full.bytes


def _tokens(name: str, brief: Run, full: Run) -> Sequence[Any]:
    forms = [_field(run, "response_format") for run in (brief, full)]
    assert forms[0] == forms[1]
    tools = [_field(run, "tools") for run in (brief, full)]
    return name, _system(brief), _system(full), *tools, forms[0], _growth(brief), _growth(full)


def _field(of: Run, name: str) -> int:
    first = of.bodies[0]
    return _count(first[name]) if name in first else 0


def _system(of: Run) -> int:
    message = of.bodies[0]["messages"][0]
    return _count(message["content"]) if message["role"] == "system" else 0


def _growth(of: Run) -> Any:
    sizes = [_of_messages(body["messages"]) for body in of.bodies]
    return round(statistics.mean(after - before for before, after in pairwise(sizes))) if len(sizes) > 1 else "–"


def _of_messages(messages: Any) -> int:
    return count_tokens(messages).tokens


def _count(value: Any) -> int:
    return count_tokens(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).tokens


@Skill.define
def _ask(question: str) -> str:
    """{question}"""
    raise NotHandled


def _tools(count: int) -> Sequence[Any]:
    tools = fleet(count)

    def offering(messages: Any, response_type: Any, env: Any, _: Any = frozenset()) -> Any:
        return fwd(messages, response_type, env, ToolSet(tools))

    def tokens(deferral: DeferredTools, *replies: Any) -> tuple[int, int]:
        stack = harness(system_prompt="brief", tool_collection="none", defer_tools=False)
        with handler(stack), handler(deferral), handler({call_assistant: offering}):
            with handler(ScriptedModel(*replies)) as model:
                _ask("A berth in Rome?")
        of_tools = [_count(request["tools"]) for request in model.requests]
        return of_tools[0], sum(of_tools) + sum(_of_messages(request["messages"]) for request in model.requests)

    use = {"name": "harbour_0", "arguments": {"city": "Rome"}}
    plain = tokens(DeferredTools(threshold=10**9), calls("harbour_0", city="Rome"), "Yes.")
    search = calls("search_tools", query="harbours with a berth")
    deferred = tokens(DeferredTools(threshold=0), search, _call("use_tool", use), "Yes.")
    return count, plain[0], deferred[0], plain[1], deferred[1], "yes" if worth_deferring(tools) else "no"


def _call(name: str, arguments: dict[str, Any]) -> Any:
    reply: Any = calls(name, id="b")
    reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = json.dumps(arguments)
    return reply


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(Server(), Path(folder)), encoding="utf-8")
