"""A line in the log for each step."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from effectful_agents import NotHandled, Risk, Skill, Tool, handler, harness
from effectful_agents.errors import Denied, OptionError, ProviderError, Suspended
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.loop import acall
from effectful_agents.handlers.observability.steps_log import StepLogger
from effectful_agents.handlers.policy import GrantEffects, RiskPolicy
from effectful_agents.harness.launcher import main
from effectful_agents.messages import Usage
from effectful_agents.messages.sensitive import hidden, is_secret_name
from effectful_agents.operations.loop import DecodedToolCall, call_tool, completion
from effectful_agents.operations.policy import Answer, Decision, Disposition, decide, request_approval
from effectful_agents.operations.world import now
from effectful_agents.testing import ScriptedModel, calls, says


@Tool.define
def weather(city: str, password: str = "") -> str:
    """The weather in a city."""
    if city.startswith("Atl"):
        raise LookupError("under\nwater, says ann@example.org")
    return "rain"


@Tool.define(risk=Risk.HARD_WRITE)
def book(city: str) -> str:
    """Book a hotel."""
    return "booked"


@Skill.define
def advise(city: str) -> str:
    """What to wear in {city}. Use `weather` and `book`."""
    raise NotHandled


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def text(self) -> list[str]:
        return [f"{record.levelname} {record.getMessage()}" for record in self.records]


@pytest.fixture
def lines() -> Iterator[Lines]:
    kept = Lines()
    logger = logging.getLogger("effectful_agents.steps")
    logger.addHandler(kept)
    logger.setLevel(logging.DEBUG)
    yield kept
    logger.removeHandler(kept)
    logger.setLevel(logging.NOTSET)


@pytest.fixture
def clock() -> dict[Any, Any]:
    """A second passes whenever somebody looks."""
    return {now: itertools.count().__next__}


def test_each_step_is_a_line_with_its_tokens_and_time(lines, clock):
    last = {**says("A coat.", usage=Usage(input=30, output=4, cache_read=8)), "model": "gpt-5-mini"}
    with handler(harness()), handler(ScriptedModel(calls("weather", city="Oslo"), last)), handler(clock):
        with handler(StepLogger()):
            advise("Oslo")
    assert lines.text == [
        "INFO model 000001-model of advise: tool_calls, 100 + 20 tokens, 1.000 s",
        'INFO tool 000002-tool of advise: weather(city="Oslo", password=[secret]), 1.000 s',
        "INFO model 000003-model of advise: gpt-5-mini, stop, 30 (8 cached) + 4 tokens, 1.000 s",
        "INFO call advise: returned, 7.000 s",
    ]


def test_records_have_fields_for_programs(lines, clock):
    with handler(harness(model="m")), handler(ScriptedModel(calls("weather", city="Oslo"), "A coat.")), handler(clock):
        with handler(Journal("r", MemoryCheckpointer())), handler(StepLogger()):
            advise("Oslo")
    model, tool, _, call = lines.records
    assert (model.kind, model.model, model.input_tokens, model.output_tokens) == ("model", "m", 100, 20)
    assert (model.run_id, model.step_id, model.skill) == ("r", "000001-call/000001-model", "advise")
    assert (tool.kind, tool.tool, tool.outcome, tool.seconds) == ("tool", "weather", "completed", 1)
    assert (call.kind, call.skill, call.replayed) == ("call", "advise", False)


def test_what_failed_is_a_warning_and_the_text_is_short_without_secrets(lines, clock):
    model = ScriptedModel(calls("weather", city="Atlantis"), ProviderError("key sk-abcdefghijklmnop1234 refused"))
    with handler(harness(num_retries=2)), handler(model), handler(clock), handler(StepLogger()):
        with pytest.raises(ProviderError):
            advise("Atlantis")
    _, tool, last, call = lines.text
    assert tool.startswith("WARNING tool 000002-tool of advise: weather(")
    assert "LookupError: under\\nwater, says [EMAIL], " in tool
    assert "ProviderError: key [TOKEN] refused" in last
    assert call.startswith("WARNING call advise: ProviderError")


def test_decisions_and_approvals_are_told(lines, clock):
    with handler(harness()), handler(ScriptedModel(calls("book", city="Oslo"), "Done.")), handler(clock):
        with handler(RiskPolicy()), handler({request_approval: lambda question: Answer(by="ann")}):
            with handler(StepLogger()):
                advise("Oslo")
    assert "DEBUG decision model_call: allow" in lines.text
    assert "INFO approval book: approved, 1.000 s" in lines.text
    assert "DEBUG decision book: allow (risk, approved)" in lines.text


def test_what_is_denied_is_a_warning(lines):
    with handler(harness()), handler(ScriptedModel(calls("book", city="Oslo"), "No.")):
        with handler(GrantEffects("model_call")), handler(StepLogger()):
            advise("Oslo")
    (denied,) = [line for line in lines.text if line.startswith("WARNING decision")]
    assert denied.startswith("WARNING decision book: deny_step (grants")


def test_the_end_of_a_call_that_may_perform_nothing_any_more_is_told(lines):
    def end(effect):
        return Decision(Disposition.TERMINATE_RUN, "enough")

    with handler(harness()), handler(ScriptedModel("Hi.")), handler({decide: end}), handler(StepLogger()):
        with pytest.raises(Denied):
            advise("Oslo")
    assert lines.text[-1].startswith("WARNING call advise: Denied")


def test_a_suspended_call_is_no_failure(lines):
    with handler(harness()), handler(ScriptedModel(Suspended("later"))), handler(StepLogger()):
        with pytest.raises(Suspended):
            advise("Oslo")
    assert {record.levelname for record in lines.records} == {"INFO"}
    assert [record.outcome for record in lines.records] == ["suspended", "suspended"]


def test_what_comes_from_a_journal_says_so(lines):
    store = MemoryCheckpointer()

    def run(*replies):
        with handler(harness()), handler(ScriptedModel(*replies)), handler(Journal("r", store)):
            with handler(StepLogger()):
                advise("Oslo")

    with pytest.raises(ProviderError):
        run(calls("weather", city="Oslo"), ProviderError("down"))
    lines.records.clear()
    run("A coat.")
    assert [(record.kind, record.replayed) for record in lines.records] == [
        *(("model", True), ("tool", True), ("model", False), ("call", False))
    ]
    assert "from the journal" in lines.text[0]


@given(st.text())
def test_nobody_makes_a_line_by_what_he_writes(text):
    kept, logger = Lines(), logging.Logger("of this test")
    logger.addHandler(kept)
    with handler({completion: lambda **_: {**says("x"), "model": text}}), handler(StepLogger(logger)):
        completion(messages=[])
    (record,) = kept.records
    assert record.getMessage().isprintable()


def test_long_arguments_are_cut_and_left_out_where_nobody_wants_them(lines):
    with handler(harness()), handler(ScriptedModel(*[calls("weather", city="O" * 1000), "A coat."] * 2)):
        with handler(StepLogger(length=20)):
            advise("Oslo")
        with handler(StepLogger(length=0)):
            advise("Oslo")
    first, second = [record.getMessage() for record in lines.records if record.kind == "tool"]
    assert 'weather(city="OOOOOOOOOOOOOO…)' in first
    assert "of advise: weather, " in second


def test_secrets_are_hidden_wherever_they_stand_in_an_argument(lines):
    @Tool.define
    def send(body: dict[str, Any]) -> str:
        """Send it."""
        return "sent"

    @Skill.define
    def inform() -> str:
        """Inform them, with `send`."""
        raise NotHandled

    body = {"headers": [{"Authorization": "abc"}], "text": "card 4111 1111 1111 1111, 1234567890123456"}
    with handler(harness()), handler(ScriptedModel(calls("send", body=body), "ok")), handler(StepLogger()):
        inform()
    (line,) = [record.getMessage() for record in lines.records if record.kind == "tool"]
    assert "abc" not in line
    assert "[CARD]" in line
    assert "1234567890123456" in line  # has no check digit of a card


@pytest.mark.parametrize("name", ["api_key", "apiKey", "Authorization", "db_password", "access_token", "client_secret"])
def test_names_of_secrets_are_known(name):
    assert is_secret_name(name)
    assert not is_secret_name("max_tokens")


@given(st.text(max_size=50))
def test_a_text_without_secrets_stays_as_it_is(text):
    assert hidden(hidden(text)) == hidden(text)


def test_a_handler_of_logging_that_raises_does_not_fail_the_call():
    class Broken(logging.Filter):
        def filter(self, record):
            raise RuntimeError("no")

    logger = logging.Logger("of this test")
    logger.addFilter(Broken())
    with handler(harness()), handler(ScriptedModel("ok")), handler(StepLogger(logger)):
        assert advise("Oslo") == "ok"


def test_calls_that_are_awaited_are_told_too(lines):
    import asyncio

    async def call() -> str:
        with handler(harness()), handler(ScriptedModel("ok")), handler(StepLogger()):
            return await acall(advise, "Oslo")

    asyncio.run(call())
    assert [record.kind for record in lines.records] == ["model", "call"]


def test_a_length_that_is_none_is_told():
    with pytest.raises(OptionError, match="`length`"):
        StepLogger(length=-1)


def test_nothing_is_shown_unless_the_program_sets_up_logging():
    program = """
from effectful_agents.handlers.observability.steps_log import StepLogger
from effectful_agents import handler
from effectful_agents.operations.loop import completion
with handler(StepLogger()):
    try:
        completion(messages=[])
    except Exception:
        print("failed")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("failed\n", "")


def test_the_launcher_shows_the_lines(tmp_path, monkeypatch, capsys):
    script = tmp_path / "script.py"
    script.write_text(
        "from effectful_agents import NotHandled, Skill, handler\n"
        "from effectful_agents.testing import ScriptedModel\n"
        "@Skill.define\n"
        "def greet() -> str:\n"
        "    '''Greet.'''\n"
        "    raise NotHandled\n"
        "with handler(ScriptedModel('Hello.')):\n"
        "    print(greet())\n"
    )
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main([str(script), "--model", "m", "--log", "info"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "Hello.\n"
    assert "call greet: returned, " in shown.err
    assert logging.getLogger("effectful_agents.steps").level == logging.NOTSET


class Login(BaseModel):
    user: str
    secret: object = None
    kept_back: str = Field("hunter2", exclude=True)


@dataclasses.dataclass
class Delivery:
    headers: Any
    body: Any = b""
    password: object = ""
    kept_back: str = dataclasses.field(default="hunter2", repr=False)


@pytest.mark.parametrize(
    "value",
    [
        [("Authorization", "hunter2")],
        ("x-api-key", "hunter2"),
        (b"cookie", b"hunter2"),
        [{"name": "password", "value": "hunter2"}],
        {b"password": "hunter2"},
        {"Password ": ["hunter2", "hunter2"]},
        Delivery({"password": ["hunter2", "hunter2"]}),
        Delivery([("token", "hunter2")], password={"a": ("hunter2",)}),
        Delivery({}, body=bytearray(b"hunter2")),
        Login(user="ann", secret=["hunter2"]),
        {"deep": [Login(user="ann", secret={"a": "hunter2"})]},
        [b"hunter2", bytearray(b"hunter2"), memoryview(b"hunter2")],
        '{"body": "{\\"password\\": \\"hunter2\\"}"}',
        SecretStr("hunter2"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_secrets_and_bytes_in_containers_and_objects_are_not_written(lines, value):
    @Tool.define
    def send(thing: Any) -> str:
        """Send it."""
        return "sent"

    bound = send.__signature__.bind(value)
    with handler({call_tool: lambda call: ({"content": "sent"}, "sent")}):
        with handler(StepLogger(length=2000)):
            call_tool(DecodedToolCall(send, bound, "1", "send"))
    assert lines.records
    for line in lines.text:
        assert "hunter2" not in line
        assert "send(thing=" in line


def test_of_bytes_only_the_number_is_written_and_other_arguments_stay(lines):
    @Tool.define
    def send(thing: Delivery, city: str) -> str:
        """Send it."""
        return "sent"

    bound = send.__signature__.bind(Delivery({"a": 1}, b"12345"), "Oslo")
    with handler({call_tool: lambda call: ({"content": "sent"}, "sent")}), handler(StepLogger()):
        call_tool(DecodedToolCall(send, bound, "1", "send"))
    (line,) = lines.text
    assert 'send(thing={"headers": {"a": 1}, "body": "5 bytes", "password": [secret]}, city="Oslo")' in line


def test_names_of_secrets_in_arguments_are_known(lines):
    @Tool.define
    def put(secret_key: str, pwd: str, auth: str, session_id: str, max_tokens: int, author: str) -> str:
        """Put it."""
        return "ok"

    @Skill.define
    def go() -> str:
        """Go, with `put`."""
        raise NotHandled

    given = {**dict.fromkeys(("secret_key", "pwd", "auth", "session_id"), "hunter2"), "max_tokens": 7, "author": "ann"}
    with handler(harness()), handler(ScriptedModel(calls("put", **given), "ok")), handler(StepLogger(length=1000)):
        go()
    (line,) = [record.getMessage() for record in lines.records if record.kind == "tool"]
    assert "hunter2" not in line
    assert 'max_tokens=7, author="ann")' in line


def test_messages_of_decisions_are_not_written(lines):
    def refuse(effect):
        return Decision(Disposition.DENY_STEP, "hosts", "the address of MARY is not allowed")

    with handler(harness()), handler(ScriptedModel(calls("book", city="Oslo"), "No.")), handler({decide: refuse}):
        with handler(StepLogger(length=0)), contextlib.suppress(Denied):
            advise("Oslo")
    assert any(record.kind == "decision" for record in lines.records)
    assert "MARY" not in "".join(lines.text)


@given(st.text())
def test_fields_of_records_are_on_one_line_too(text):
    kept, logger = Lines(), logging.Logger("of this test")
    logger.addHandler(kept)
    with handler({completion: lambda **_: {**says("x"), "model": text * 300}}), handler(StepLogger(logger)):
        completion(messages=[])
    (record,) = kept.records
    assert getattr(record, "model", "").isprintable()
    assert len(record.getMessage()) < 5000


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": [{"message": {"tool_calls": [{"id": "1"}]}}]},
        {"choices": 7, "usage": ["?"]},
        {"choices": [None], "model": ["a\nb"]},
        {"model": {"a": 1}},
    ],
    ids=str,
)
def test_a_reply_in_a_form_of_its_own_has_a_line(lines, capsys, reply):
    with handler({completion: lambda **_: reply}), handler(StepLogger()):
        assert completion(messages=[]) is reply
    (line,) = lines.text
    assert line.startswith("INFO model")
    assert line.isprintable()
    assert capsys.readouterr().err == ""


def test_an_error_that_cannot_be_shown_has_a_line_and_an_interruption_says_nothing(lines):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no")

    for error, told in ((Mute(), "Mute"), (KeyboardInterrupt("password hunter2"), "interrupted")):

        def fail(error=error, **_):
            raise error

        with handler({completion: fail}), handler(StepLogger()), pytest.raises(type(error)):
            completion(messages=[])
        assert lines.records[-1].outcome == told
    assert "hunter2" not in "".join(lines.text)
