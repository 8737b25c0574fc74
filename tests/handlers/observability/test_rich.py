"""Conversations on the terminal: each message once, and the reply that is being written."""

from __future__ import annotations

import asyncio
import contextvars
import io
import re
import threading
from typing import Any

import pytest
from rich.console import Console

from effectful_agents import Agent, NotHandled, Skill, Tool, acall, fwd, handler, harness
from effectful_agents.errors import Cancelled
from effectful_agents.handlers.observability.rich import RichTerminalRenderer
from effectful_agents.messages import (
    PromptProgress,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    TextEnd,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import wait
from effectful_agents.testing import ScriptedModel, batch, calls, says

WIDTH, HEIGHT = 80, 24
CONTROL = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])")


class Terminal(io.StringIO):
    """A terminal of 80 by 24, as far as rich makes use of one."""

    @property
    def lines(self) -> list[str]:
        """What stands on it now, with what was scrolled out at the top."""
        lines, row, column = [""], 0, 0
        for piece in re.split(r"(\x1b\[\??[\d;]*[A-Za-z]|\r|\n)", self.getvalue()):
            control = CONTROL.fullmatch(piece)
            if piece == "\r":
                column = 0
            elif piece == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            elif control and control[2] == "A":
                # The cursor does not leave the screen, which is why nothing above it can be drawn again.
                row = max(row - int(control[1] or 1), len(lines) - HEIGHT, 0)
            elif control and control[2] == "K":
                lines[row] = ""
            elif not control:
                lines[row] = lines[row][:column].ljust(column) + piece + lines[row][column + len(piece) :]
                column += len(piece)
        return [line.rstrip() for line in lines]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()

    @property
    def titles(self) -> list[str]:
        """The titles of the panels that stand on it."""
        return [found[1] for line in self.lines if (found := re.match(r"╭─ (.*?) ─+╮", line))]

    @property
    def cursor_is_hidden(self) -> bool:
        return self.getvalue().count("\x1b[?25l") > self.getvalue().count("\x1b[?25h")


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
def renderer(terminal: Terminal) -> RichTerminalRenderer:
    return RichTerminalRenderer(
        Console(file=terminal, force_terminal=True, width=WIDTH, height=HEIGHT, color_system=None)
    )


@Tool.define
def measure(text: str) -> int:
    """Measure a text."""
    return len(text)


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


@Skill.define
def count(text: str) -> int:
    """Count the letters of {text}."""
    raise NotHandled


class Guide(Agent):
    """A guide."""

    @Skill.define
    def tell(self, text: str) -> str:
        """{text}"""
        raise NotHandled

    @Tool.define
    def again(self, text: str) -> str:
        """Ask once more."""
        return self.tell(text)


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def telling(*events: Any, then: Any = "The reply.") -> dict[Any, Any]:
    """A model that tells these events, or calls what is no event, and then replies or raises."""

    def model(**request: Any) -> Any:
        for event in events:
            event() if callable(event) else emit(event)
        if isinstance(then, BaseException):
            raise then
        return says(then) if isinstance(then, str) else then

    return {completion: model}


def stack(renderer: RichTerminalRenderer, *replies: Any, **options: Any) -> Any:
    """The standard stack with the renderer in its place."""
    return handler(ScriptedModel(*replies)), handler(harness(model="m", **options)), handler(renderer)


# Each message once


def test_each_message_of_a_call_stands_there_once_and_in_order(renderer, terminal):
    model, harnessed, rendering = stack(
        renderer,
        batch(says("Let me see."), calls("measure", id="a", text="abc"), calls("measure", id="b", text="12345")),
        calls("measure", id="c", text=""),
        "Three, five and none.",
        system_prompt="brief",
    )
    with model, harnessed, rendering:
        ask("How long are they?")
    assert terminal.titles == [
        *("user", "assistant", "tool: measure", "tool: measure"),
        *("assistant", "tool: measure", "assistant"),
    ]
    for text in ("How long are they?", "Let me see.", 'measure {"text": "12345"}', "Three, five and none."):
        assert terminal.text.count(text) == 1
    assert not terminal.cursor_is_hidden


def test_the_system_message_is_printed_whole_and_again_only_when_it_is_another(renderer, terminal):
    model, harnessed, rendering = stack(renderer, "One.", "Two.", 3)
    with model, harnessed, rendering:
        ask("First?")
        ask("Second?")
        count("abc")
    assert terminal.titles == [
        *("system", "user", "assistant"),
        *("user #2", "assistant #2"),
        *("system #3", "user #3", "assistant #3"),
    ]
    assert len(terminal.lines) > 100
    assert [line.strip("│ ") for line in terminal.lines].count("# Harness") == 2


def test_what_an_agent_remembers_is_not_printed_again(renderer, terminal):
    model, harnessed, rendering = stack(renderer, "Hello.", calls("again", text="inner"), "Inner.", "Outer.", "Bye.")
    guide = Guide()
    with model, harnessed, rendering:
        guide.tell("Good day")
        guide.tell("Ask yourself")
        guide.tell("Good night")
    for text in ("Good day", "Hello.", "Ask yourself", "Inner.", "Outer.", "Good night", "Bye."):
        panels = [line for line in terminal.lines if line.strip("│ ") == text]
        # The inner answer is also the result of the tool that asked for it.
        assert len(panels) == (2 if text == "Inner." else 1), text
    assert not any("#2" in title for title in terminal.titles)


def test_attempts_that_are_asked_again_are_printed_once_though_they_vanish(renderer, terminal):
    model, harnessed, rendering = stack(
        renderer, "many", "several", calls("measure", text="abc"), says('{"value": 3}'), system_prompt="brief"
    )
    with model, harnessed, rendering:
        assert count("abc") == 3
    assert terminal.titles == [
        *("user", "assistant", "user", "assistant", "user"),
        *("assistant", "tool: measure", "assistant"),
    ]


def test_the_same_words_in_another_message_are_printed(renderer, terminal):
    messages: list[Any] = [user("Again?")]
    with handler(ScriptedModel("Yes.", "Yes.")), handler(renderer):
        reply: Any = completion(messages=messages)
        messages += [{**reply["choices"][0]["message"]}, user("Again?")]
        completion(messages=messages)
    assert terminal.titles == ["user", "assistant", "user", "assistant"]


def test_a_reply_that_was_changed_before_it_joined_the_conversation_is_printed_as_it_is_there(renderer, terminal):
    first = user("Your name?")
    with handler(ScriptedModel("Secret.", "Yes.")), handler(renderer):
        completion(messages=[first])
        completion(messages=[first, {"role": "assistant", "content": "[removed]"}, user("Really?")])
    assert terminal.titles == ["user", "assistant", "assistant", "user", "assistant"]


def test_what_is_remembered_is_bounded_and_a_turn_does_not_walk_over_those_before(renderer, terminal):
    class Counting(list):
        looked_at = 0

        def __getitem__(self, place):
            if isinstance(place, int):
                Counting.looked_at += 1
            return super().__getitem__(place)

    messages = Counting()
    with handler(ScriptedModel(*["Yes."] * 300)), handler(renderer):
        for number in range(300):
            messages.append(user(f"Question {number}?"))
            reply = completion(messages=messages)
            messages.append(dict(reply["choices"][0]["message"]))
    assert Counting.looked_at < 300 * 10
    assert len(terminal.titles) == 600
    (conversation,) = renderer._conversations.values()
    assert len(conversation.known) <= 64


def test_conversations_that_nobody_goes_on_with_are_forgotten(renderer):
    with handler(telling()), handler(renderer):
        for number in range(600):
            completion(messages=[user(f"{number}?")])
    assert len(renderer._conversations) == 512


# The reply that is being written


def test_the_reply_is_drawn_while_it_comes(renderer, terminal):
    seen: list[str] = []

    def look() -> None:
        seen.append(terminal.text)

    events = [
        *(look, PromptProgress("loading"), look, PromptProgress("reading", 5, 9), look, StreamStart("m"), look),
        *(ReasoningDelta("Hm"), ReasoningDelta(", well."), TextDelta("Once upon"), TextDelta(" a time"), TextEnd()),
        *(look, ToolCallStart("a", "measure"), ToolCallDelta('{"text": "x"}'), ToolCallEnd(), look),
    ]
    reply = batch(says("Once upon a time"), calls("measure", text="x"))
    with handler(telling(*events, then=reply)), handler(renderer):
        completion(messages=[user("?")])
    steps = ["asking the model…", "loading the model…", "reading… 5 of 9 tokens", "waiting…"]
    assert [step in text for step, text in zip(steps, seen, strict=False)] == [True] * 4
    assert "Hm, well." in seen[4]
    assert "Once upon a time" in seen[4]
    assert 'measure {"text": "x"}' in seen[5]
    assert all(text.count("assistant …") == 1 for text in seen)
    assert terminal.titles == ["user", "assistant"]
    assert not terminal.cursor_is_hidden


def test_a_stream_that_begins_anew_replaces_what_had_come(renderer, terminal):
    seen: list[str] = []
    events = [StreamStart(), TextDelta("Onc"), TextEnd(), StreamStart(), TextDelta("Twice"), TextEnd()]
    with handler(telling(*events, lambda: seen.append(terminal.text))), handler(renderer):
        completion(messages=[user("?")])
    assert "Twice" in seen[0]
    assert "Onc" not in seen[0]


@pytest.mark.parametrize("line", ["word " * 10 + "\n", "x" * 50, "\n"])
def test_a_long_reply_never_stands_there_twice_and_costs_no_more_than_it_is(line, renderer, terminal):
    text = "The beginning. " + line * 600 + "The end."
    longest = 0

    def look() -> None:
        nonlocal longest
        longest = max(longest, len(terminal.lines))

    pieces = [TextDelta(text[start : start + len(line)]) for start in range(0, len(text), len(line))]
    with handler(telling(*pieces[:300], TextEnd(), look, *pieces[300:], TextEnd(), look, then=text)):
        with handler(renderer):
            completion(messages=[user("Go on.")])
    # While it is written, no more than one screen below the question.
    assert longest <= 3 + HEIGHT
    assert terminal.text.count("The beginning.") == terminal.text.count("The end.") == 1
    assert terminal.titles == ["user", "assistant"]
    drawn = terminal.getvalue().count("╭─ assistant …") + terminal.getvalue().count("╰")
    assert drawn < 300  # a slow machine draws ten times in a second
    assert len(terminal.lines) < 600 + 50
    assert not terminal.cursor_is_hidden


@pytest.mark.parametrize("height", [1, 2, 3, 5])
def test_on_a_low_screen_too(height, terminal):
    console = Console(file=terminal, force_terminal=True, width=40, height=height, color_system=None)
    shown: list[int] = []
    with handler(telling(*[TextDelta("line\n")] * 50, TextEnd(), lambda: shown.append(len(terminal.lines)))):
        with handler(RichTerminalRenderer(console)):
            completion(messages=[user("?")])
    assert shown[0] - 3 <= max(height, 2)
    assert terminal.titles == ["user", "assistant"]


def test_an_event_that_comes_too_late_is_not_drawn(renderer, terminal):
    contexts = []
    with handler(telling(lambda: contexts.append(contextvars.copy_context()))), handler(renderer):
        completion(messages=[user("?")])
    before = terminal.getvalue()
    contexts[0].run(emit, TextDelta("late"))
    assert terminal.getvalue() == before


# What there is in a message


def test_json_is_indented_where_it_does_not_fit_on_a_line(renderer, terminal):
    short, long = '{"a":[1,2]}', '{"names": ["' + "x" * 60 + '", "' + "y" * 60 + '"]}'
    replies = [short, long, calls("note", text="z" * 90), '{"a": ', "[" * 100_000]
    with handler(ScriptedModel(*replies)), handler(renderer):
        for _ in replies:
            completion(messages=[user("?")])
    assert '{"a": [1, 2]}' in terminal.text
    assert re.search(r'│ {\s+│\n│   "names": \[\s+│\n│     "x{60}",', terminal.text)
    assert re.search(r'│ note {\s+│\n│   "text":\s+│\n│ "z+', terminal.text)


def test_parts_that_are_no_text_are_named(renderer, terminal):
    parts: Any = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "paper.pdf"}},
        {"type": "file", "file": {"file_id": "f1"}},
        "what is this?",
    ]
    with handler(ScriptedModel("Nice.")), handler(renderer):
        completion(messages=[{"role": "user", "content": parts}])
    for text in ("Look:", "(a picture)", "(a sound)", "(a file: paper.pdf)"):
        assert text in terminal.text
    assert terminal.text.count("(something that is no text)") == 2
    assert "AAAA" not in terminal.getvalue()


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ({"content": "Four.", "reasoning_content": "Two and two."}, ["Two and two.", "Four."]),
        ({"content": "Four.", "thinking_blocks": [{"type": "thinking", "thinking": "Hm."}]}, ["Hm.", "Four."]),
        ({"content": None, "refusal": "I will not."}, ["I will not."]),
        ({"content": None}, ["(empty)"]),
        ({"content": "", "tool_calls": [None, {"function": None}, {"function": {"name": "f"}}]}, ["f"]),
        ({"tool_calls": [{"id": 1, "function": {"name": None, "arguments": {"x": 1}}}]}, ['{"x": 1}']),
        (None, ["(empty)"]),
        ({"content": "Four.", "tool_calls": 5}, ["Four."]),
        ({"content": 5}, ["(something that is no text)"]),
        ({"content": [1, {"type": "text", "text": "Four."}]}, ["(something that is no text)", "Four."]),
        ({"content": "Four.", "reasoning_content": {"a": 1}}, ["Four."]),
        ({"content": "Four.", "thinking_blocks": ["a", {"thinking": 5}, {"thinking": "Hm."}]}, ["Hm.", "Four."]),
        ({"content": "Four.", "thinking_blocks": 5}, ["Four."]),
        ("Four.", ["(empty)"]),
    ],
)
def test_whatever_a_reply_holds_is_shown(message, shown, renderer, terminal):
    reply = {"choices": [{"message": message}]}
    with handler(telling(then=reply)), handler(renderer):
        assert completion(messages=[user("?")]) is reply
    assert terminal.titles == ["user", "assistant"]
    assert all(text in terminal.text for text in shown)


def test_a_reply_without_a_choice_and_a_request_without_messages_pass(renderer, terminal):
    with handler(telling(then={"choices": []})), handler(renderer):
        assert completion() == completion(messages=[]) == {"choices": []}
    assert not terminal.cursor_is_hidden


@pytest.mark.parametrize("reply", [{"choices": [5]}, {"choices": {}}, {"choices": 5}, {}, "text"])
def test_a_reply_that_is_none_passes(reply, renderer, terminal):
    with handler({completion: lambda **request: reply}), handler(renderer):
        assert completion(messages=[user("?")]) is reply
    assert terminal.titles == ["user", "assistant"]


def test_what_cannot_be_shown_is_logged_and_does_not_end_the_call(renderer, terminal, caplog):
    message: Any = {"content": "without a role"}
    with handler(telling()), handler(renderer):
        assert completion(messages=[message]) == says("The reply.")
        completion(messages=[user("Again.")])
    assert "cannot be shown: KeyError: 'role'" in caplog.text
    assert "The reply." in terminal.text
    assert "Again." in terminal.text


@pytest.mark.parametrize(("encoding", "umlaut"), [("ascii", "?"), ("latin-1", "ü"), ("cp437", "ü"), ("utf-8", "ü")])
def test_a_terminal_that_has_few_characters_shows_those(encoding, umlaut):
    written = io.BytesIO()
    console = Console(
        file=io.TextIOWrapper(written, encoding=encoding, write_through=True), force_terminal=True, width=20
    )
    events = [StreamStart(), TextDelta("Grün 😀")]
    with handler(telling(*events, then="Grün 😀 日.")), handler(RichTerminalRenderer(console)):
        completion(messages=[user("A question… " + "x" * 40)])
    shown = CONTROL.sub("", written.getvalue().decode(encoding))
    assert "A question" in shown
    assert f"Gr{umlaut}n {'😀 日' if encoding == 'utf-8' else '?? ??'}." in shown
    assert "assistant" in shown


HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202eesrever\r\b [bold]as it is[/bold] [/] :smile: \ud800 a\u200cb"


def test_what_a_model_writes_is_text_and_does_not_steer_the_terminal(renderer, terminal):
    pieces = [TextDelta(HOSTILE), ReasoningDelta(HOSTILE), ToolCallStart("a", HOSTILE), ToolCallDelta(HOSTILE)]
    reply = batch(says(HOSTILE), calls(HOSTILE, text=HOSTILE))
    reply["choices"][0]["message"]["reasoning_content"] = HOSTILE
    first = user(HOSTILE)
    with handler(telling(*pieces, ToolCallEnd(), then=reply)), handler(renderer):
        answer: Any = completion(messages=[first])
        call = answer["choices"][0]["message"]["tool_calls"][0]
        result: Any = {"role": "tool", "tool_call_id": call["id"], "content": HOSTILE}
        completion(messages=[first, {**answer["choices"][0]["message"]}, result])
    written = CONTROL.sub("", terminal.getvalue())
    assert "[bold]as it is[/bold] [/] :smile:" in written
    assert {one for one in written if not one.isprintable()} == {"\n", "\r"}
    assert not re.search(r"\x1b\[(31m|2J)", terminal.getvalue())
    assert "ab" in written


def test_lines_and_tabs_stay(renderer, terminal):
    with handler(ScriptedModel("one\r\ntwo\n\n\tthree")), handler(renderer):
        completion(messages=[user("?")])
    assert [line.strip("│ ") for line in terminal.lines[4:8]] == ["one", "two", "", "three"]


# It changes nothing


def test_where_there_is_no_terminal_nothing_is_shown_and_events_pass():
    file, heard = io.StringIO(), []
    with handler({emit: heard.append}), handler(telling(TextDelta("Once"), TextEnd())):
        with handler(RichTerminalRenderer(Console(file=file))):
            completion(messages=[user("?")])
    assert file.getvalue() == ""
    assert heard == [TextDelta("Once"), TextEnd()]


def test_others_hear_every_event_and_the_reply_is_the_same_object(renderer):
    heard, events, reply = [], [StreamStart(), TextDelta("a"), TextDelta("b")], says("ab")
    with handler({emit: heard.append}), handler(telling(*events, then=reply)), handler(renderer):
        assert completion(messages=[user("?")]) is reply
        emit(TextDelta("outside of a request"))
    assert heard == [*events, TextDelta("outside of a request")]


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), KeyboardInterrupt(), Cancelled("x"), GeneratorExit()])
def test_an_exception_passes_and_what_had_come_stays(error, renderer, terminal):
    with handler(telling(TextDelta("Once upon"), then=error)), handler(renderer):
        with pytest.raises(type(error)) as raised:
            completion(messages=[user("?")])
    assert raised.value is error
    assert terminal.titles == ["user", "assistant, broken off"]
    assert "Once upon" in terminal.text
    assert not terminal.cursor_is_hidden
    with handler(telling(TextDelta("Again"))), handler(renderer):
        completion(messages=[user("?")])
    assert terminal.titles[2:] == ["user #2", "assistant #2"]


def test_an_exception_before_anything_came_leaves_nothing_of_the_reply(renderer, terminal):
    with handler(telling(then=ZeroDivisionError("x"))), handler(renderer), pytest.raises(ZeroDivisionError):
        completion(messages=[user("?")])
    assert terminal.titles == ["user"]
    assert not terminal.cursor_is_hidden


class Gone(io.StringIO):
    """A terminal that was closed."""

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def test_a_terminal_that_is_gone_does_not_end_the_call():
    renderer = RichTerminalRenderer(Console(file=Gone(), force_terminal=True))
    with handler(telling(TextDelta("a"), TextEnd())), handler(renderer):
        for _ in range(2):
            assert completion(messages=[user("?")]) == says("The reply.")


def test_a_terminal_that_is_closed_does_not_end_the_call(renderer, terminal):
    terminal.close()
    with handler(telling(TextDelta("a"), TextEnd())), handler(renderer):
        for _ in range(2):
            assert completion(messages=[user("?")]) == says("The reply.")


def test_of_two_renderers_one_shows_a_request(renderer, terminal):
    with handler(ScriptedModel("Hello.")), handler(renderer), handler(RichTerminalRenderer(renderer.console)):
        completion(messages=[user("Hi.")])
    assert terminal.titles == ["user", "assistant"]


# Several at once


def test_a_request_inside_another_is_printed_when_it_is_complete(renderer, terminal):
    def asks_another(**request: Any) -> Any:
        if request["messages"][0]["content"] == "outer?":
            emit(TextDelta("outer begins"))
            completion(messages=[user("inner?")])
            emit(TextDelta(", outer ends"))
            emit(TextEnd())
            seen.append(terminal.text)
            return says("outer begins, outer ends")
        emit(TextDelta("inner text"))
        return says("inner text")

    seen: list[str] = []
    with handler({completion: asks_another}), handler(renderer):
        completion(messages=[user("outer?")])
    assert "outer begins, outer ends" in seen[0]
    assert terminal.titles == ["user", "user #2", "assistant #2", "assistant"]
    assert terminal.text.count("inner text") == 1


def test_two_threads_share_the_terminal_and_neither_waits(renderer, terminal):
    both = threading.Barrier(2, timeout=30)

    def slow(**request: Any) -> Any:
        name = request["messages"][0]["content"]
        emit(StreamStart())
        both.wait()  # each of them is in the middle of its request
        for number in range(200):
            emit(TextDelta(f"{name} {number}\n"))
        emit(TextEnd())
        both.wait()
        return fwd()

    def program(name: str) -> None:
        with handler(telling(then=f"reply to {name}")), handler({completion: slow}), handler(renderer):
            completion(messages=[user(name)])

    threads = [threading.Thread(target=program, args=(name,)) for name in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(terminal.titles) == ["assistant", "assistant #2", "user", "user #2"]
    assert all(terminal.text.count(f"reply to {name}") == 1 for name in ("ann", "bob"))
    assert not terminal.cursor_is_hidden


def test_awaited_calls_share_it_too_and_one_that_is_cancelled_gives_it_back(renderer, terminal):
    waiting = []

    def model(**request: Any) -> Any:
        text = request["messages"][-1]["content"]
        emit(TextDelta(f"Thinking of {text}"))
        emit(TextEnd())
        waiting.append(text)
        wait(asyncio.sleep(0 if "quick" in text else 1000))
        return says(f"Done: {text}")

    async def program() -> None:
        slow = asyncio.create_task(acall(ask, "slow one"))
        while not waiting:
            await asyncio.sleep(0)
        await acall(ask, "quick one")
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        await acall(ask, "quick and last")

    with handler({completion: model}), handler(harness(model="m", system_prompt="brief")), handler(renderer):
        asyncio.run(program())
    assert terminal.titles == [
        *("user", "user #2", "assistant #2", "assistant, broken off", "user #3", "assistant #3"),
    ]
    assert not terminal.cursor_is_hidden
