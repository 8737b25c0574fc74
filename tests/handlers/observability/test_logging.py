"""`StepLogger`: one line a step, without secrets."""

from __future__ import annotations

import dataclasses
import logging
import threading
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Risk, Skill, Tool, acall, handler, harness, propagate
from effectful_agents.errors import Denied, OptionError
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.observability.logging import StepLogger
from effectful_agents.handlers.policy import GrantEffects, Policy, RiskPolicy
from effectful_agents.operations.policy import Answer, Decision, Disposition, request_approval
from effectful_agents.operations.world import now
from effectful_agents.testing import ScriptedModel, batch, calls, says

KEY = "sk-abcdefghijklmnopqrstuvwx"


@Tool.define
def look_up(word: str) -> str:
    """Look a word up."""
    if word == "nothing":
        raise LookupError(f"no such word; asked with {KEY}")
    return f"{word} is a word"


@Tool.define(risk=Risk.HARD_WRITE)
def send(text: str, api_key: str = "") -> str:
    """Send a text."""
    return "sent"


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


class Clerk(Agent):
    """A clerk."""

    @Skill.define
    def explain(self, word: str) -> str:
        """Explain {word}."""
        raise NotHandled


clerk = Clerk()


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, "effectful_agents.steps")
    return lambda: [(one.levelname, one.getMessage()) for one in caplog.records if one.name == "effectful_agents.steps"]


def test_each_step_is_a_line(lines):
    model = ScriptedModel(
        batch(calls("look_up", id="a", word="tea"), calls("look_up", id="b", word="nothing")), "Tea is a word."
    )
    with handler(model), handler(harness()), handler({now: lambda: 0.0}), handler(StepLogger()):
        ask("What is tea?")
    assert lines() == [
        ("INFO", "ask 000001-model: the model -> look_up, look_up (100+20 tokens, 0.00 s)"),
        ("INFO", "ask 000002-tool: look_up(word='tea') -> 'tea is a word' (0.00 s)"),
        (
            "WARNING",
            "ask 000003-tool: look_up(word='nothing') failed: LookupError: no such word; asked with [secret] (0.00 s)",
        ),
        ("INFO", "ask 000004-model: the model -> answer (100+20 tokens, 0.00 s)"),
        ("INFO", "ask 000005-final: 'Tea is a word.'"),
    ]


def test_records_have_what_a_program_looks_for(caplog):
    caplog.set_level(logging.DEBUG, "effectful_agents.steps")
    times = iter(range(100))
    model = ScriptedModel(calls("clerk__explain", word="tea"), "A drink.", "Tea is a drink.")
    with handler(model), handler(harness(journal=MemoryCheckpointer(), run_id="monday")):
        with handler({now: lambda: float(next(times))}), handler(StepLogger()):
            ask("What is tea?")
    done = [one for one in caplog.records if one.levelno == logging.INFO]
    assert [one.step for one in done] == ["model", "model", "delegate", "model", "final"]
    assert {one.run_id for one in done} == {"monday"}
    assert [one.skill for one in done] == ["ask", "clerk__explain", "ask", "ask", "ask"]
    first = done[0]
    assert (first.input_tokens, first.output_tokens, first.seconds) == (100, 20, 1.0)
    assert done[2].seconds > done[1].seconds
    assert done[2].tool == "clerk__explain"


def test_a_resumed_run_tells_what_it_repeats_only_to_who_debugs(lines, caplog):
    store = MemoryCheckpointer()

    def once(*replies: Any) -> str:
        with handler(ScriptedModel(*replies)), handler(harness()), handler(Journal("monday", store)):
            with handler(StepLogger()):
                return ask("What is tea?")

    with pytest.raises(RuntimeError):
        once(calls("look_up", word="tea"), RuntimeError("down"))
    caplog.clear()
    once("A drink.")
    assert [text.split(" (")[0] for _, text in lines()] == [
        "ask 000001-call/000003-model: the model -> answer",
        "ask 000001-call/000004-final: 'A drink.'",
    ]
    caplog.clear()
    caplog.set_level(logging.DEBUG, "effectful_agents.steps")
    assert once() == "A drink."
    assert all(level == "DEBUG" for level, _ in lines())


def test_what_fails_is_a_warning(lines):
    with handler(ScriptedModel(ConnectionError("no route\nto host"))), handler(harness()), handler(StepLogger()):
        with pytest.raises(ConnectionError):
            ask("?")
    ((level, text),) = lines()
    assert level == "WARNING"
    assert "the model failed: ConnectionError: no route\\nto host" in text


def test_decisions_are_told(lines):
    model = ScriptedModel(calls("send", text="Hi"), "I could not.")
    with handler(model), handler(harness()), handler(GrantEffects("model_call")), handler(StepLogger()):
        ask("Send it.")
    warnings = [text for level, text in lines() if level == "WARNING"]
    assert warnings[0].startswith("ask 000002-tool: send deny_step by grants: ")
    assert warnings[1].startswith("ask 000002-tool: send(text='Hi', api_key=[secret]) failed: ")


def test_questions_to_people_are_told(lines):
    model = ScriptedModel(calls("send", text="Hi", api_key=KEY), "Done.")
    with handler(model), handler(harness()), handler(RiskPolicy()), handler(StepLogger()):
        with handler({request_approval: lambda question: Answer(by="ann")}):
            ask("Send it.")
    told = [text for _, text in lines() if "approval" in text]
    assert len(told) == 1
    assert told[0].split(" (")[0].endswith("-> approved by ann")
    assert KEY not in "".join(text for _, text in lines())


@dataclasses.dataclass
class Login:
    """What opens a mailbox."""

    user: str
    password: str


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("never")


def test_values_of_any_kind_are_shown_without_secrets(lines):
    seen: list[Any] = [
        Login("ann", "hunter2"),
        {"api_key": "hunter2", "headers": {"Authorization": "hunter2"}, 1: "x"},
        [f"curl -H 'Authorization: Bearer {KEY}'"],
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n" + "a" * 50_000,
        "x" * 150 + KEY,
        b"hunter2",
        "postgresql://ann:hunter2@db/mail",
        "a\r\nWARNING ask 000009-final: forged\x1b[2J\u202e",
        Broken(),
        "y" * 1_000_000,
        float("nan"),
        {"deep": [[[[[["hunter2"]]]]]]},
    ]

    @Tool.define
    def take(n: int) -> Any:
        """Take one of them."""
        return seen[n]

    @Skill.define
    def look(question: str) -> str:
        """{question}"""
        raise NotHandled

    script = [calls("take", n=n) for n in range(len(seen)) if not isinstance(seen[n], Broken)]
    with handler(ScriptedModel(*script, "Done.")), handler(harness(turns=30)), handler(StepLogger()):
        look("?")
    texts = [text for _, text in lines()]
    assert "hunter2" not in "".join(texts)
    assert KEY not in "".join(texts)
    assert all(text.isprintable() and len(text) < 600 for text in texts)


def test_without_content_no_value_is_written(lines):
    model = ScriptedModel(calls("look_up", word="tea"), calls("look_up", word="nothing"), "Tea.")
    with handler(model), handler(harness()), handler({now: lambda: 0.0}), handler(StepLogger(content=False)):
        ask("?")
    assert [text for _, text in lines()] == [
        "ask 000001-model: the model -> look_up (100+20 tokens, 0.00 s)",
        "ask 000002-tool: look_up(…) (0.00 s)",
        "ask 000003-model: the model -> look_up (100+20 tokens, 0.00 s)",
        "ask 000004-tool: look_up(…) failed: LookupError (0.00 s)",
        "ask 000005-model: the model -> answer (100+20 tokens, 0.00 s)",
        "ask 000006-final: str",
    ]


class Failing(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise OSError("the disk is full")


def test_a_log_that_fails_ends_no_call(capsys):
    log = logging.Logger("failing", logging.INFO)
    log.addHandler(Failing())
    with handler(ScriptedModel("Tea.")), handler(harness()), handler(StepLogger(logger=log)):
        assert ask("?") == "Tea."
    assert "the disk is full" in capsys.readouterr().err


def test_calls_at_once_each_have_their_lines(lines):
    def reply(request: Any) -> Any:
        return says(f"said {request['messages'][-1]['content'].splitlines()[2]}")

    with handler(ScriptedModel(*[reply] * 8)), handler(harness()), handler(StepLogger()):
        threads = [threading.Thread(target=propagate(ask), args=(str(n),)) for n in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finals = [text for _, text in lines() if "final" in text]
    assert sorted(finals) == [f"ask 000002-final: 'said {n}'" for n in range(8)]


@pytest.mark.anyio
async def test_calls_that_are_awaited(lines):
    with handler(ScriptedModel("Tea.")), handler(harness()), handler(StepLogger()):
        assert await acall(ask, "?") == "Tea."
    assert len(lines()) == 2


def never(effect: Any) -> Decision:
    return Decision(Disposition.TERMINATE_RUN, message="Not today.")


def test_a_denied_run_is_told(lines):
    with handler(ScriptedModel("Tea.")), handler(harness()), handler(Policy(never)), handler(StepLogger()):
        with pytest.raises(Denied):
            ask("?")
    assert [level for level, _ in lines()] == ["WARNING"]


@pytest.mark.parametrize("level", ["INFO", None, True])
def test_a_level_is_a_number(level):
    with pytest.raises(OptionError, match=r"logging\.INFO"):
        StepLogger(level)
