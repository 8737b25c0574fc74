"""Where two requests of a call stop agreeing, in words."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents.handlers.observability import ContextEconomy, economy
from effectful_agents.handlers.observability.context_economy.headings import sections_of
from effectful_agents.operations.records import Phase, RunState
from effectful_agents.testing.stores import step

SYSTEM = {"role": "system", "content": "# Rules\n\nBe brief.\n\n## Tone\n\nBe kind.\n\n# Task\n\nAnswer."}
ASKED = {"role": "user", "content": "Where?"}
CALL = {"id": "call-1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call-1", "content": "sunny"}
MESSAGES = [SYSTEM, ASKED, CALLS, RESULT]


def tool(name: str, description: str = "") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {}}}


def rewritten(message: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {**message, "content": message["content"].replace(old, new)}


def form(of: str) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": of}}}


def turns(*requests: dict[str, Any], replies: bool = False) -> ContextEconomy:
    """The economy of a call that makes these requests, each written whole, with a tool call after each."""
    state = RunState("run")
    for place, request in enumerate(requests):
        model, called = f"000001-call/{2 * place + 1:06}-model", f"000001-call/{2 * place + 2:06}-tool"
        rest = {name: value for name, value in request.items() if name not in ("messages", "model")}
        body = {"messages": request.get("messages", MESSAGES), "set": rest, "model": request.get("model", "")}
        state.add(step("run", model, name="trip", body=body))
        if replies:
            state.add(step("run", model, Phase.COMPLETED, body={"response": {"choices": []}}))
        state.add(step("run", called, name="weather"))
    return economy(state)


CASES = {
    "model": ({"model": "a"}, {"model": "b"}, "the model: was 'a', and is 'b' now (`Fallback` may do this)"),
    "tool added": (
        {"tools": [tool("a")]},
        {"tools": [tool("a"), tool("b")]},
        "the tools: `b` is offered now",
    ),
    "tool gone": (
        {"tools": [tool("a"), tool("b")]},
        {"tools": [tool("a")]},
        "the tools: `b` is not offered any more (`ToolRouter` may do this)",
    ),
    "many tools": (
        {"tools": []},
        {"tools": [tool(name) for name in "abcde"]},
        "the tools: `a`, `b`, `c`, 2 more are offered now",
    ),
    "tools deferred": (
        {"tools": [tool("a")]},
        {"tools": [tool("search_tools"), tool("use_tool")]},
        "the tools: `a` is not offered any more and `search_tools`, `use_tool` are offered now "
        "(`DeferredTools` may do this)",
    ),
    "tools in another order": (
        {"tools": [tool("a"), tool("b")]},
        {"tools": [tool("b"), tool("a")]},
        "the tools: they are in another order",
    ),
    "tool described otherwise": (
        {"tools": [tool("a", "The weather.")]},
        {"tools": [tool("a", "The weather, at 9:00.")]},
        "the tool `a`: description was 'The weather.', and is 'The weather, at 9:00.' now",
    ),
    "form": (
        {"response_format": form("string")},
        {"response_format": form("number")},
        "the form of the answer: json_schema.schema.type was 'string', and is 'number' now",
    ),
    "form asked for": ({}, {"response_format": form("string")}, "the form of the answer: there was none"),
    "no form any more": ({"response_format": form("string")}, {}, "the form of the answer: there is none now"),
    "section changed": (
        {},
        {"messages": [rewritten(SYSTEM, "kind", "cold"), *MESSAGES[1:]]},
        "the section `Rules / Tone` of the system message: was '## Tone\\n\\nBe kind.\\n\\n', and is "
        "'## Tone\\n\\nBe cold.\\n\\n' now",
    ),
    "section added": (
        {},
        {"messages": [rewritten(SYSTEM, "# Task", "# Time\n\nNine.\n\n# Task"), *MESSAGES[1:]]},
        "the section `Task` of the system message: `Time` is in its place",
    ),
    "section added at the end": (
        {},
        {"messages": [rewritten(SYSTEM, "Answer.", "Answer.\n# Time"), *MESSAGES[1:]]},
        "the section `Task` of the system message: was '# Task\\n\\nAnswer.', and is '# Task\\n\\nAnswer.\\n' now",
    ),
    "section gone": (
        {},
        {"messages": [rewritten(SYSTEM, "# Task\n\nAnswer.", ""), *MESSAGES[1:]]},
        "the section `Task` of the system message: it is not there any more",
    ),
    "no system message": (
        {},
        {"messages": MESSAGES[1:]},
        "the system message: it is not there any more",
    ),
    "message changed": (
        {},
        {"messages": [SYSTEM, ASKED, CALLS, {**RESULT, "content": "rainy"}]},
        "message 4 (the result of `weather`): content was 'sunny', and is 'rainy' now",
    ),
    "messages dropped": (
        {},
        {"messages": [SYSTEM, ASKED]},
        "message 3 (a reply): it is not there any more",
    ),
    "summary": (
        {},
        {"messages": [SYSTEM, {"role": "user", "content": "(A summary of the conversation before, …)"}, ASKED]},
        "message 2 (what the user said): it and what came after gave way to a summary (`HistoryCompactor` may do this)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_first_difference_is_named(case: str) -> None:
    one, other, said = CASES[case]
    first, second = turns(one, other, replies=True).turns
    assert first.broken is None
    assert str(second.broken) == said
    assert second.broken is not None
    assert second.agreed + second.broken.lost == first.tokens
    assert second.agreed <= second.tokens


def test_what_is_read_before_the_difference_is_kept() -> None:
    first, second = turns(
        {"tools": [tool("a"), tool("b")]}, {"tools": [tool("a"), tool("c")], "messages": [*MESSAGES, ASKED]}
    ).turns
    assert second.agreed == first.tools["a"].definition
    *_, changed = turns({}, {"messages": [rewritten(SYSTEM, "kind", "cold"), *MESSAGES[1:]]}).turns
    assert changed.agreed == changed.system["Rules"]


def test_what_goes_on_is_no_break() -> None:
    assert not turns({}, {"messages": [*MESSAGES, ASKED]}).breaks
    assert not turns({"model": "a"}, {}).breaks  # who was asked is not recorded


def test_headings_in_code_are_none() -> None:
    code = "```python\n# no heading\n```\n~~~~\n# nor this\n~~~\n# nor this\n~~~~\n"
    text = f"# One\n{code}## Two\n### Three\n#four\n# Five\r\n"
    titles = [title for title, _ in sections_of(text)]
    assert titles == ["One", "One / Two", "Five"]
    assert "".join(part for _, part in sections_of(text)) == text


def test_parts_that_are_no_text_belong_to_the_section_before() -> None:
    picture = {"type": "image_url", "image_url": {"url": "…"}}
    content = [{"type": "text", "text": "# Map\nSee:"}, picture, {"type": "text", "text": "# End"}]
    assert list(sections_of(content)) == [("Map", "# Map\nSee:"), ("Map", picture), ("End", "# End")]
