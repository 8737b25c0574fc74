"""What holds of the economy of any run: sums, what is counted, and that pictures of it can be read."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effectful_agents.handlers.durability.requests import RequestLog
from effectful_agents.handlers.observability import ContextEconomy, economy
from effectful_agents.handlers.observability.context_economy import Section, ToolEconomy
from effectful_agents.messages import Usage
from effectful_agents.operations.counting import count_tokens
from effectful_agents.operations.recorded import request_of
from effectful_agents.operations.records import Phase, Record, RunState
from effectful_agents.testing.stores import step

FEWER = settings(max_examples=40)

TEXTS = st.text(max_size=12) | st.sampled_from(["# Rules\nBe brief.\n## Tone\nKind.", "<b>&\x00\ud800", "日本語"])
NAMES = st.sampled_from(["weather", "hotels", "a<b>&\"'\x01", "search_tools"])
COUNTS = st.none() | st.integers(0, 5000)


def asks(names: list[str]) -> dict[str, Any]:
    tool_calls = [
        {"id": f"call-{place}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for place, name in enumerate(names)
    ]
    return {"role": "assistant", "content": None, "tool_calls": tool_calls}


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": name * 3, "parameters": {}}}


MESSAGES = (
    st.builds(lambda text: {"role": "user", "content": text}, TEXTS)
    | st.builds(lambda text: {"role": "assistant", "content": text}, TEXTS)
    | st.builds(asks, st.lists(NAMES, min_size=1, max_size=2))
    | st.builds(
        lambda text, n: {"role": "tool", "tool_call_id": f"call-{n}", "content": text}, TEXTS, st.integers(0, 2)
    )
    | st.just({"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {}}]})
)
TOOLS = st.lists(NAMES, max_size=3, unique=True).map(lambda names: [tool(name) for name in names])
SYSTEMS = st.none() | TEXTS


@st.composite
def requests(draw: st.DrawFn) -> list[tuple[str, dict[str, Any]]]:
    """Requests of several calls, which go on from each other, drop or replace something, or begin anew."""
    made: list[tuple[str, dict[str, Any]]] = []
    for call in range(1, draw(st.integers(1, 3)) + 1):
        head = draw(SYSTEMS)
        messages = [] if head is None else [{"role": "system", "content": head}]
        messages.append({"role": "user", "content": draw(TEXTS)})
        if made and draw(st.booleans()):  # the call of an agent that remembers
            messages = [*made[-1][1]["messages"], messages[-1]]
        tools = draw(TOOLS)
        for turn in range(1, draw(st.integers(1, 4)) + 1):
            if draw(st.integers(0, 3)) == 0:
                tools = draw(TOOLS)
            request: dict[str, Any] = {"messages": list(messages)}
            request |= {"tools": tools} if tools else {}
            request |= {"response_format": {"type": "json_object"}} if draw(st.booleans()) else {}
            made.append((f"{call:06}-call/{turn:06}-model", request))
            change = draw(st.integers(0, 5))
            place = draw(st.integers(0, len(messages)))
            new = draw(st.lists(MESSAGES, max_size=2))
            messages = messages[:place] + new if change == 0 else messages + new
    return made


USAGES = st.builds(
    lambda read, written, cached: {
        "prompt_tokens": read,
        "completion_tokens": written,
        "prompt_tokens_details": {"cached_tokens": cached},
    },
    *(COUNTS, COUNTS, COUNTS),
)
REPLIES = st.builds(
    lambda usage, model, message: {
        "response": {"choices": [{"message": message}], "usage": usage, **({"model": model} if model else {})}
    },
    st.none() | USAGES,
    st.sampled_from(["", "gpt-5-mini", "nobody/knows-this"]),
    st.builds(asks, st.lists(NAMES, max_size=2)),
)
ENDS = REPLIES | st.just({"error": {"text": "NetworkError: no line"}}) | st.none()


def written_short() -> Callable[[str, dict[str, Any]], dict[str, Any]]:
    log = RequestLog()
    return lambda step_id, request: log.note(step_id, request)[1]  # ty: ignore[invalid-argument-type]


def written_whole() -> Callable[[str, dict[str, Any]], dict[str, Any]]:
    return lambda _, request: {
        "messages": request["messages"],
        "set": {name: value for name, value in request.items() if name != "messages"},
    }


@st.composite
def journals(draw: st.DrawFn) -> tuple[RunState, RunState]:
    """A journal as it is written, and the same with each request whole."""
    asked = draw(requests())
    ends = [(draw(ENDS), draw(st.booleans())) for _ in asked]
    states = []
    for written in (written_short(), written_whole()):
        records: list[Record] = []
        for (step_id, request), (end, calls_a_tool) in zip(asked, ends, strict=True):
            records.append(step("run", step_id, name="trip", body=written(step_id, request)))
            if end is not None:
                records.append(step("run", step_id, Phase.COMPLETED, name="trip", body=end))
            if calls_a_tool:
                records.append(step("run", step_id.replace("model", "tool"), name="weather"))
        states.append(RunState("run", records))
    return states[0], states[1]


@FEWER
@given(journals())
def test_the_parts_of_each_turn_add_up(written: tuple[RunState, RunState]) -> None:
    for turn in economy(written[0]).turns:
        assert sum(turn.system.values()) == turn.sections.get(Section.SYSTEM, 0)
        assert sum(tool.definition for tool in turn.tools.values()) == turn.sections.get(Section.TOOLS, 0)
        assert sum(tool.results for tool in turn.tools.values()) == turn.sections.get(Section.RESULTS, 0)
        assert all(tokens > 0 for tokens in turn.sections.values())
        assert turn.agreed <= turn.tokens


def usage_of(usages: list[Usage]) -> Usage:
    """A sum in which a count is None as soon as one is."""
    counts = {}
    for name in ("input", "output", "reasoning", "cache_read", "cache_write"):
        known = [getattr(usage, name) for usage in usages]
        counts[name] = None if None in known or not known else sum(known)
    return Usage(**counts)


def whole_of(turns: list[Any]) -> dict[str, Any]:
    """The sums of turns, made by adding up."""
    tools: dict[str, ToolEconomy] = {}
    for turn in turns:
        for name, each in turn.tools.items():
            tools[name] = tools.get(name, ToolEconomy()) + each
    titles = {title for turn in turns for title in turn.system}
    return {
        "sections": {part: total for part in Section if (total := sum(turn.sections.get(part, 0) for turn in turns))},
        "system": {title: sum(turn.system.get(title, 0) for turn in turns) for title in titles},
        "tools": tools,
        "usage": usage_of([turn.usage for turn in turns]),
        "tokens": sum(turn.tokens for turn in turns),
    }


@FEWER
@given(journals())
def test_the_turns_with_a_reply_add_up_to_the_whole(written: tuple[RunState, RunState]) -> None:
    seen = economy(written[0])
    counted = [turn for turn in seen.turns if turn.is_counted]
    for name, expected in whole_of(counted).items():
        assert getattr(seen, name) == expected, name
    assert len(seen.counted) + len(seen.attempted) == len(seen.turns) == len(written[0].steps()) - tools_in(written[0])
    costs = [turn.cost for turn in counted]
    assert seen.cost == (None if not costs or None in costs else pytest.approx(sum(filter(None, costs))))
    assert sum(known.turns for known in seen.models.values()) == len(counted)
    assert usage_of([known.usage for known in seen.models.values()]) == seen.usage
    retries = seen.retries
    assert retries.failed + retries.unknown == len(seen.attempted)
    assert seen.cached is None or 0 <= seen.cached <= 1


def tools_in(state: RunState) -> int:
    return sum(step_id.endswith("tool") for step_id in state.steps())


@FEWER
@given(journals())
def test_each_message_of_a_request_is_counted_once(written: tuple[RunState, RunState]) -> None:
    state = written[0]
    for turn in economy(state).turns:
        request = request_of(state, turn.step_id)
        said = [message for message in request["messages"] if message["role"] != "system"]
        parts = (Section.EARLIER, Section.USER, Section.REPLIES, Section.RESULTS)
        assert sum(turn.sections.get(part, 0) for part in parts) == sum(count_tokens([each]).tokens for each in said)
        assert (Section.FORM in turn.sections) == ("response_format" in request)


@FEWER
@given(journals())
def test_it_is_the_same_however_requests_are_written(written: tuple[RunState, RunState]) -> None:
    short, whole = (economy(state).as_data() for state in written)
    for one, other in zip(short["turns"], whole["turns"], strict=True):
        for turn in (one, other):  # which call goes on from which, only what was written short says
            del turn["agreed"], turn["broken"]
        assert one == other
    assert short["whole"] == whole["whole"]


@FEWER
@given(st.lists(st.lists(MESSAGES, max_size=2), max_size=5), SYSTEMS, TOOLS)
def test_a_conversation_that_only_grows_breaks_nothing(
    added: list[list[Any]], head: str | None, tools: list[Any]
) -> None:
    messages = [] if head is None else [{"role": "system", "content": head}]
    messages.append({"role": "user", "content": "Begin."})
    log, records = RequestLog(), []
    for place, new in enumerate([[], *added], 1):
        messages = [*messages, *new]
        _, body = log.note(f"{place:06}-model", {"messages": messages, "tools": tools})  # ty: ignore[invalid-argument-type]
        records.append(step("run", f"{place:06}-model", body=body))
    turns = economy(RunState("run", records)).turns
    assert [turn.broken for turn in turns] == [None] * len(turns)
    assert [turn.agreed for turn in turns[1:]] == [turn.tokens for turn in turns[:-1]]


def same_beginning(one: Any, other: Any) -> int:
    """How many items two lists begin with alike."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


@FEWER
@given(requests())
def test_what_agrees_is_the_longest_beginning_of_all_earlier_prompts(asked: list[tuple[str, dict[str, Any]]]) -> None:
    written = written_short()
    seen = economy(RunState("run", [step("run", name, body=written(name, request)) for name, request in asked]))

    def parts(request: dict[str, Any]) -> list[str]:
        form = request.get("response_format")
        return [json.dumps(each) for each in [*request.get("tools", ()), form, *request["messages"]]]

    def tokens(request: dict[str, Any], count: int) -> int:
        """Of the first parts; a system message counts as a whole, though a part of it may agree."""
        tools = request.get("tools", [])
        form = [request["response_format"]] if "response_format" in request else []
        whole = [count_tokens(json.dumps(each, ensure_ascii=False)).tokens for each in tools[:count]]
        whole += [count_tokens(json.dumps(each)).tokens for each in form[: max(0, count - len(tools))]]
        messages = request["messages"][: max(0, count - len(tools) - 1)]
        of_messages = [count_tokens([each]).tokens for each in messages if each["role"] != "system"]
        return sum(whole) + sum(of_messages)

    for place, (turn, (_, request)) in enumerate(zip(seen.turns, asked, strict=True)):
        same = [same_beginning(parts(earlier), parts(request)) for _, earlier in asked[:place]]
        least = tokens(request, max(same, default=0))
        of_system = turn.sections.get(Section.SYSTEM, 0)
        assert least <= turn.agreed <= least + of_system
        if any(whole == len(parts(request)) for whole in same):
            assert turn.agreed == turn.tokens


# --- as it is shown ---------------------------------------------------------------------------------------------------


SVG = "{http://www.w3.org/2000/svg}"


@FEWER
@given(journals(), st.text(max_size=8))
def test_a_picture_is_xml_with_a_bar_for_each_turn(written: tuple[RunState, RunState], name: str) -> None:
    seen = ContextEconomy(name, economy(written[0]).turns)
    root = ET.fromstring(seen.to_svg().encode())
    bars = root.findall(f"{SVG}g")
    assert len(bars) == len(seen.turns)
    for bar, turn in zip(bars, seen.turns, strict=True):
        colors = [rect.get("fill") for rect in bar.findall(f"{SVG}rect") if str(rect.get("fill")).startswith("#")]
        assert len(colors) == len(turn.sections)
    identifiers = [element.get("id") for element in root.iter() if element.get("id")]
    assert set(str(root.get("aria-labelledby")).split()) <= set(identifiers)


@FEWER
@given(journals())
def test_text_and_json_can_be_written_of_anything(written: tuple[RunState, RunState]) -> None:
    seen = economy(written[0])
    assert json.loads(seen.to_json()) == json.loads(json.dumps(seen.as_data()))
    assert all(one.isprintable() or one == "\n" for one in seen.text())
