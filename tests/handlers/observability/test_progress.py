"""The line that is shown while a model works."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from effectful_agents import NotHandled, Skill, fwd, handler, harness
from effectful_agents.handlers.observability.progress import ProgressDisplay
from effectful_agents.messages import PromptProgress, StreamStart, TextDelta, ToolCallDelta, ToolCallStart
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.testing import ScriptedModel, calls

CONTROL = re.compile(r"\x1b\[(\??\d*(?:;\d+)*)([A-Za-z])")


class Terminal(io.StringIO):
    """A terminal that only takes down what is written to it."""

    def isatty(self) -> bool:
        return True

    @property
    def shown(self) -> str:
        """All that could be read on it at some time."""
        return CONTROL.sub("", self.getvalue())

    @property
    def screen(self) -> str:
        """What can be read on it now."""
        lines, row, column = [""], 0, 0
        for piece in re.split(r"(\x1b\[\??[\d;]*[A-Za-z]|\r|\n)", self.getvalue()):
            control = CONTROL.fullmatch(piece)
            if piece == "\r":
                column = 0
            elif piece == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            elif control and control[2] == "A":
                row = max(row - int(control[1] or 1), 0)
            elif control and control[2] == "K":
                lines[row] = ""
            elif not control:
                lines[row] = lines[row][:column].ljust(column) + piece + lines[row][column + len(piece) :]
                column += len(piece)
        return "\n".join(lines).strip()

    @property
    def cursor_is_hidden(self) -> bool:
        return self.getvalue().count("\x1b[?25l") > self.getvalue().count("\x1b[?25h")


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
def display(terminal: Terminal) -> ProgressDisplay:
    return ProgressDisplay(Console(file=terminal, force_terminal=True, width=60, color_system=None))


JSON: Any = {"type": "json_object"}


def telling(*events: Any, then: Any = "reply") -> dict[Any, Any]:
    """A model that tells these events, and then replies or raises."""

    def model(**request: Any) -> Any:
        for event in events:
            emit(event)
        if isinstance(then, BaseException):
            raise then
        return then

    return {completion: model}


@pytest.mark.parametrize(
    ("events", "line"),
    [
        ([], "asking some-model…"),
        ([StreamStart("some-model")], "asking some-model…"),
        ([PromptProgress("loading")], "loading the model…"),
        ([PromptProgress("reading", 256, 1000)], "reading… 256 of 1000 tokens"),
        ([PromptProgress("loading"), PromptProgress("reading", 5, 9)], "reading… 5 of 9 tokens"),
        ([TextDelta("Once upon"), TextDelta(" a time")], "writing… Once upon a time"),
        ([TextDelta("one\n\n  two\tthree")], "writing… one two three"),
        (
            [ToolCallStart("a", "weather"), ToolCallDelta('{"city": '), ToolCallDelta('"Oslo"}')],
            'weather {"city": "Oslo"}',
        ),
        ([TextDelta("[bold]as it is[/bold] [/]")], "writing… [bold]as it is[/bold] [/]"),
        ([TextDelta("x" * 500 + " the end")], "xxx the end"),
    ],
    ids=["asking", "started", "loading", "reading", "reading after loading", "text", "lines", "call", "markup", "long"],
)
def test_one_line_says_what_the_model_does(events, line, display, terminal):
    with handler(telling(*events)), handler(display):
        assert completion(model="some-model", messages=[], response_format=JSON) == "reply"
    assert line in terminal.shown
    assert terminal.screen == ""
    assert not terminal.cursor_is_hidden


def test_a_long_text_stays_one_line(display, terminal):
    with handler(telling(TextDelta("word " * 100))), handler(display):
        completion(model="m", messages=[], response_format=JSON)
    assert all(len(line) <= 60 for line in re.split(r"[\r\n]", terminal.shown))


@pytest.mark.parametrize("model", ["local/[weights].gguf", "local/a[/b].gguf"])
def test_the_name_of_a_model_is_shown_as_it_is(model, display, terminal):
    with handler(telling()), handler(display):
        assert completion(model=model, messages=[]) == "reply"
    assert f"asking {model}…" in terminal.shown


def test_a_request_without_a_model_is_shown_too(display, terminal):
    with handler(telling()), handler(display):
        completion(messages=[])
    assert "asking the model…" in terminal.shown


def test_what_a_model_writes_does_not_steer_the_terminal(display, terminal):
    with handler(telling(TextDelta("\x1b[31mred\x1b]0;title\x07 \x9b2J"))), handler(display):
        completion(model="m", messages=[], response_format=JSON)
    assert "\x1b[31m" not in terminal.getvalue()
    assert "\x1b]0" not in terminal.getvalue()
    assert "\x9b" not in terminal.getvalue()
    assert "red" in terminal.shown


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), KeyboardInterrupt()])
def test_an_exception_passes_and_leaves_nothing_behind(error, display, terminal):
    with handler(telling(TextDelta("Once"), then=error)), handler(display), pytest.raises(type(error)):
        completion(model="m", messages=[], response_format=JSON)
    assert terminal.screen == ""
    assert not terminal.cursor_is_hidden
    with handler(telling(TextDelta("again"))), handler(display):
        assert completion(model="m", messages=[], response_format=JSON) == "reply"
    assert "writing… again" in terminal.shown
    assert "Once again" not in terminal.shown


def test_each_request_begins_anew(display, terminal):
    with handler(telling(TextDelta("Once"))), handler(display):
        completion(model="m", messages=[], response_format=JSON)
        completion(model="m", messages=[], response_format=JSON)
    assert "writing… Once" in terminal.shown
    assert "OnceOnce" not in terminal.shown


def test_a_request_inside_another_is_left_alone(display, terminal):
    def asks_another(**request: Any) -> Any:
        if request["model"] == "outer":
            assert completion(model="inner", messages=[]) == "inner reply"
            return "outer reply"
        emit(TextDelta("from the inner one"))
        return "inner reply"

    with handler({completion: asks_another}), handler(display):
        assert completion(model="outer", messages=[]) == "outer reply"
    assert "asking inner" not in terminal.shown
    assert terminal.screen == ""


def test_other_listeners_hear_everything(display):
    heard = []
    events = [PromptProgress("loading"), TextDelta("a"), StreamStart("m")]
    with handler({emit: heard.append}), handler(telling(*events)), handler(display):
        completion(model="m", messages=[], response_format=JSON)
        emit(TextDelta("outside of a request"))
    assert heard == [*events, TextDelta("outside of a request")]


def test_request_and_reply_pass_as_they_are(display):
    reply, seen = {"choices": []}, []

    def model(**request: Any) -> Any:
        seen.append(request)
        return reply

    with handler({completion: model}), handler(display):
        assert completion(model="m", messages=[], temperature=0) is reply
    assert seen == [{"model": "m", "messages": [], "temperature": 0}]


def test_the_output_of_the_script_stays_clean(capsys):
    with handler(telling(TextDelta("Once"))), handler(ProgressDisplay()):
        completion(model="m", messages=[], response_format=JSON)
    assert capsys.readouterr().out == ""


def test_where_there_is_no_terminal_nothing_is_shown():
    file = io.StringIO()
    with handler(telling(TextDelta("Once"))), handler(ProgressDisplay(Console(file=file))):
        completion(model="m", messages=[], response_format=JSON)
    assert file.getvalue() == ""


def test_text_for_people_is_shown_until_its_first_words_come(display, terminal):
    """The program may print it, in the place where the line is."""
    screens = []

    def hear(event: Any) -> None:
        fwd()
        if isinstance(event, TextDelta):
            screens.append(terminal.screen)

    words = (PromptProgress("loading"), TextDelta("Once"), TextDelta(" upon"))
    with handler(telling(*words)), handler(display), handler({emit: hear}):
        assert completion(messages=[]) == "reply"
        assert completion(messages=[]) == "reply"
    assert screens == [""] * 4
    assert "writing" not in terminal.shown
    assert not terminal.cursor_is_hidden


def test_a_call_of_a_skill_under_the_whole_stack(display, terminal):
    @Skill.define
    def ask(question: str) -> str:
        """{question}"""
        raise NotHandled

    with (
        handler(ScriptedModel(calls("nobody", x=1), "Once upon a time")),
        handler(harness(model="m")),
        handler(display),
    ):
        assert ask("?") == "Once upon a time"
    assert 'nobody {"x": 1}' in terminal.shown
    assert "asking the model…" in terminal.shown
    assert terminal.screen == ""
