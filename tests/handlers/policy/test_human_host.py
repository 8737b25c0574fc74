"""The host: what was begun for somebody is answered by them and nobody else, in whatever process, and goes on once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from effectful_agents import acall, handler, harness
from effectful_agents.errors import (
    AnswerError,
    ConfigurationError,
    JournalError,
    OptionError,
    RunInUse,
    Suspended,
    TokenError,
    TokenExpired,
    TokenScopeMismatch,
    TokenTampered,
    TokenUsed,
)
from effectful_agents.handlers.durability import Journal, SqliteCheckpointer
from effectful_agents.handlers.policy import AgentHost, HumanInteraction, SqliteLedger
from effectful_agents.operations.loop import completion
from effectful_agents.operations.policy import Answer
from effectful_agents.operations.records import RunStatus
from effectful_agents.operations.world import now
from tests.handlers.policy.host_script import KEY, effects, host_of, model, program_of

ANN, BOB = {"sub": "ann"}, {"sub": "bob"}
YES, NO = Answer(), Answer(approved=False, reason="not today")
SENT = ["ann", "Bob", "Hello!"]


@pytest.fixture(autouse=True)
def _model() -> Iterator[None]:
    with handler({completion: model}):
        yield


@pytest.fixture
def host(tmp_path: Path) -> AgentHost[Any, Any]:
    return host_of(tmp_path)


def status(folder: Path, run_id: str = "run") -> RunStatus:
    return next(info.status for info in SqliteCheckpointer(folder / "runs.db").runs() if info.run_id == run_id)


# In one process


def test_a_program_waits_and_goes_on_with_the_answer(host, tmp_path):
    waits = host.start(ANN, "Bob", run_id="run")
    assert (waits.suspended, waits.value, waits.run_id) == (True, None, "run")
    assert (waits.question.name, waits.question.arguments) == ("send", {"to": "Bob", "text": "Hello!"})
    assert waits.question.scope == "ann"
    assert effects(tmp_path) == []
    assert status(tmp_path) is RunStatus.SUSPENDED
    ended = host.redeem(waits.token, ANN, YES)
    assert (ended.suspended, ended.value, ended.question, ended.token) == (False, "sent to Bob.", None, "")
    assert effects(tmp_path) == [SENT]
    assert status(tmp_path) is RunStatus.FINISHED


def test_what_is_refused_does_not_happen(host, tmp_path):
    waits = host.start(ANN, "Bob")
    assert "not today" in host.redeem(waits.token, ANN, NO).value
    assert effects(tmp_path) == []


def test_what_is_amended_happens_so(host, tmp_path):
    waits = host.start(ANN, "Bob")
    assert host.redeem(waits.token, ANN, Answer(arguments={"text": "Good day."})).value == "sent to Bob."
    assert effects(tmp_path) == [["ann", "Bob", "Good day."]]


def test_a_program_may_ask_again_and_again(host, tmp_path):
    waits = host.start(ANN, "Bob", again=True)
    again = host.redeem(waits.token, ANN, YES)
    assert again.suspended
    assert again.question.arguments["to"] == "all"
    assert again.token != waits.token
    with pytest.raises(TokenUsed):
        host.redeem(waits.token, ANN, YES)
    assert host.redeem(again.token, ANN, YES).value == "sent to Bob. sent to all."
    assert effects(tmp_path) == [SENT, ["ann", "all", "Hello!"]]


def test_a_run_goes_on_by_its_name(host, tmp_path):
    waits = host.start(ANN, "Bob", run_id="run")
    assert host.resume("run") == waits
    assert host.start(ANN, "Bob", run_id="run") == waits
    ended = host.redeem(waits.token, ANN, YES)
    assert host.resume("run") == ended
    assert host.start(ANN, "Bob", run_id="run") == ended
    assert effects(tmp_path) == [SENT]


def test_what_a_run_was_begun_with_is_kept(host):
    host.start(ANN, "Bob", run_id="run")
    with pytest.raises(JournalError, match="other arguments"):
        host.start(ANN, "Cid", run_id="run")
    with pytest.raises(JournalError, match="other arguments"):
        host.start(ANN, "Bob", again=True, run_id="run")
    with pytest.raises(JournalError, match="no run `nobody`"):
        host.resume("nobody")


@pytest.mark.parametrize("given", [object(), ("a", "b"), {1: "a"}, float("nan"), {"a"}], ids=lambda v: type(v).__name__)
def test_what_a_run_is_begun_with_is_plain_json(host, tmp_path, given):
    for begin in (lambda: host.start(ANN, given), lambda: host.start(ANN, "Bob", again=given)):
        with pytest.raises(ConfigurationError, match="plain JSON"):
            begin()
    assert SqliteCheckpointer(tmp_path / "runs.db").runs() == []


# Who it is for


def test_a_run_is_for_the_scope_that_it_was_begun_for(host, tmp_path):
    waits = host.start(ANN, "Bob", run_id="run")
    for claims in (BOB, {}, {"sub": ""}, {"sub": None}):
        with pytest.raises(TokenScopeMismatch):
            host.redeem(waits.token, claims, YES)
    for claims in (BOB, {}):
        with pytest.raises(TokenScopeMismatch):
            host.start(claims, "Bob", run_id="run")
    with pytest.raises(ConfigurationError, match="scope_for_claims"):
        host.redeem(waits.token, {"sub": 7}, YES)
    assert effects(tmp_path) == []
    assert host.redeem(waits.token, ANN, YES).value == "sent to Bob."


def test_each_sees_what_waits_for_them(host):
    waits = {name: host.start({"sub": name}, "Cid") for name in ("ann", "bob")}
    assert host.questions(ANN) == [waits["ann"].question]
    assert host.questions(BOB) == [waits["bob"].question]
    host.redeem(waits["ann"].token, ANN, YES)
    assert host.questions(ANN) == []
    with pytest.raises(TokenScopeMismatch):
        host.questions({})


def test_each_way_to_redeem_wrongly_has_its_own_error_and_does_nothing(host, tmp_path):
    with handler({now: lambda: 1000.0}):
        waits = host.start(ANN, "Bob", run_id="run")
    token = waits.token
    other = host_of(tmp_path / "other")
    (tmp_path / "other").mkdir(exist_ok=True)
    attempts: list[tuple[type[Exception], float, Any, Any, Any, Any]] = [
        (TokenTampered, 1001.0, host, token[:-1], ANN, YES),
        (TokenTampered, 1001.0, host, "", ANN, YES),
        (TokenScopeMismatch, 1001.0, host, token, BOB, YES),
        (TokenExpired, 1e9, host, token, ANN, YES),
        (AnswerError, 1001.0, host, token, ANN, Answer(arguments={"too": "x"})),
        (AnswerError, 1001.0, host, token, ANN, True),
        (TokenError, 1001.0, other, token, ANN, YES),
    ]
    for error, seconds, where, given, claims, answer in attempts:
        with handler({now: lambda seconds=seconds: seconds}), pytest.raises(error):
            where.redeem(given, claims, answer)
        assert effects(tmp_path) == []
        assert status(tmp_path) is RunStatus.SUSPENDED
    with handler({now: lambda: 1001.0}):
        assert host.redeem(token, ANN, YES).value == "sent to Bob."
        with pytest.raises(TokenUsed):
            host.redeem(token, ANN, YES)
    assert effects(tmp_path) == [SENT]


# Somebody else has the run


def test_an_answer_is_kept_while_somebody_has_the_run(host, tmp_path):
    waits = host.start(ANN, "Bob", run_id="run")
    with handler(Journal("run", SqliteCheckpointer(tmp_path / "runs.db"))):
        with pytest.raises(RunInUse, match=r"kept.*resume\('run'\)"):
            host.redeem(waits.token, ANN, YES)
    assert effects(tmp_path) == []
    with pytest.raises(TokenUsed):
        host.redeem(waits.token, ANN, YES)
    assert host.resume("run").value == "sent to Bob."
    assert effects(tmp_path) == [SENT]


def test_an_error_of_the_program_is_raised_and_the_run_goes_on_later(host, tmp_path):
    def fails(**_: Any) -> Any:
        raise ConnectionError("no network")

    waits = host.start(ANN, "Bob", run_id="run")
    with handler({completion: fails}), pytest.raises(ConnectionError):
        host.redeem(waits.token, ANN, YES)
    assert effects(tmp_path) == [SENT]
    assert host.resume("run").value == "sent to Bob."
    assert effects(tmp_path) == [SENT]


def test_a_host_is_awaited(host, tmp_path):
    async def run() -> list[Any]:
        names = [f"Bob {number}" for number in range(5)]
        claims = [{"sub": f"ann {number}"} for number in range(5)]
        waits = await asyncio.gather(*(acall(host.start, *each) for each in zip(claims, names, strict=True)))
        assert [one.question.scope for one in waits] == [each["sub"] for each in claims]
        ended = await asyncio.gather(
            *(acall(host.redeem, one.token, each, YES) for one, each in zip(waits, claims, strict=True))
        )
        return [one.value for one in ended]

    assert asyncio.run(run()) == [f"sent to Bob {number}." for number in range(5)]
    assert sorted(effects(tmp_path)) == [[f"ann {number}", f"Bob {number}", "Hello!"] for number in range(5)]


# In several processes


needs_kill = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

ROOT = Path(__file__).parents[3]
SCRIPT = [sys.executable, "-m", "tests.handlers.policy.host_script"]


class Processes:
    """Hosts in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([*SCRIPT, str(self.folder), *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def ended(self, process: subprocess.Popen[str]) -> Any:
        """What it told; None of one that was killed."""
        assert process.stdout is not None
        out = process.stdout.read()  # and not `communicate`, which passes over what has been read ahead
        return json.loads(out) if process.wait() == 0 else None

    def run(self, *words: str) -> Any:
        return self.ended(self.start(*words))


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


@pytest.mark.slow  # a shorter one is among the tests of the profile
def test_a_run_waits_in_one_process_and_goes_on_in_another(processes, tmp_path):
    waits = processes.run("start", "Bob")
    assert (waits["suspended"], waits["question"]) == (True, ["send", {"to": "Bob", "text": "Hello!"}])
    assert processes.run("redeem", waits["token"], json.dumps(BOB), "{}") == {"error": "TokenScopeMismatch"}
    assert processes.run("redeem", waits["token"][1:], json.dumps(ANN), "{}") == {"error": "TokenTampered"}
    ended = processes.run("redeem", waits["token"], json.dumps(ANN), "{}")
    assert (ended["suspended"], ended["value"]) == (False, "sent to Bob.")
    assert processes.run("redeem", waits["token"], json.dumps(ANN), "{}") == {"error": "TokenUsed"}
    assert processes.run("resume", "run") == ended
    assert effects(tmp_path) == [SENT]


@pytest.mark.slow  # of threads, each ledger promises the same
@pytest.mark.parametrize("answers", [("{}", "{}"), ("{}", '{"approved": false}')], ids=["agreed", "at odds"])
def test_of_two_who_redeem_at_the_same_instant_one_goes_on(processes, tmp_path, answers):
    waits = processes.run("start", "Bob")
    hosts = [processes.start("redeem", waits["token"], json.dumps(ANN), answer, "wait") for answer in answers]
    (tmp_path / "go").touch()
    told = [processes.ended(one) for one in hosts]
    assert sum(one == {"error": "TokenUsed"} for one in told) == 1
    (ended,) = [one for one in told if "error" not in one]
    assert not ended["suspended"]
    done = [] if "refused" in ended["value"] else [SENT]
    assert effects(tmp_path) == done
    assert processes.run("resume", "run") == ended
    assert effects(tmp_path) == done


@needs_kill
@pytest.mark.slow
def test_a_process_that_is_killed_between_the_answer_and_what_follows_loses_nothing(processes, tmp_path):
    waits = processes.run("start", "Bob")
    assert processes.run("redeem", waits["token"], json.dumps(ANN), "{}", "kill=consumed") is None
    assert effects(tmp_path) == []
    assert status(tmp_path) is RunStatus.SUSPENDED
    question = SqliteLedger(tmp_path / "runs.db").questions()[0]
    assert question.answer == YES
    assert processes.run("redeem", waits["token"], json.dumps(ANN), "{}") == {"error": "TokenUsed"}
    assert processes.run("resume", "run")["value"] == "sent to Bob."
    assert processes.run("resume", "run")["value"] == "sent to Bob."
    assert effects(tmp_path) == [SENT]


@needs_kill
@pytest.mark.slow
def test_of_two_who_resume_after_that_one_goes_on(processes, tmp_path):
    waits = processes.run("start", "Bob")
    assert processes.run("redeem", waits["token"], json.dumps(ANN), "{}", "kill=consumed") is None
    hosts = [processes.start("resume", "run", "wait") for _ in range(2)]
    (tmp_path / "go").touch()
    told = [processes.ended(one) for one in hosts]
    ended = [one for one in told if "in use" not in one]
    assert [one["value"] for one in ended] in (["sent to Bob."], ["sent to Bob."] * 2)
    assert effects(tmp_path) == [SENT]


@needs_kill
@pytest.mark.slow
@pytest.mark.parametrize("what", ["start", "redeem"])
def test_a_process_that_is_killed_at_any_record_leaves_a_run_that_goes_on(processes, tmp_path, what):
    """Killed before a record is written, for each of them: what was approved happens once, or nobody knows it."""
    for place in range(12):
        for name in ("runs.db", "runs.db-wal", "runs.db-shm", "effects"):
            (tmp_path / name).unlink(missing_ok=True)
        begun = processes.run("start", "Bob", *([f"kill={place}"] if what == "start" else []))
        if begun is None:
            begun = processes.run("start", "Bob")
        assert begun["suspended"]
        assert effects(tmp_path) == []
        ended = processes.run(
            "redeem", begun["token"], json.dumps(ANN), "{}", *([f"kill={place}"] if what == "redeem" else [])
        )
        done = effects(tmp_path)
        if ended is None:
            ended = processes.run("resume", "run")
        if ended == {"error": "UncertainEffect"}:  # it was killed between the mail and the record of it
            assert done == effects(tmp_path)
            assert len(done) <= 1
            continue
        assert ended["value"] == "sent to Bob."
        assert effects(tmp_path) == [SENT]


# Looking before going on


def test_who_may_not_go_on_with_a_run_leaves_it_as_it_was(host, tmp_path):
    waits = host.start(ANN, "Bob", run_id="run")
    before = SqliteCheckpointer(tmp_path / "runs.db").load("run").records
    with pytest.raises(TokenScopeMismatch):
        host.start(BOB, "Bob", run_id="run")
    with pytest.raises(JournalError, match="other arguments"):
        host.start(ANN, "Cid", run_id="run")
    assert SqliteCheckpointer(tmp_path / "runs.db").load("run").records == before
    assert status(tmp_path) is RunStatus.SUSPENDED
    assert host.redeem(waits.token, ANN, YES).value == "sent to Bob."


def test_a_mistyped_name_makes_no_run(host, tmp_path):
    with pytest.raises(JournalError, match="no run `rum`"):
        host.resume("rum")
    assert SqliteCheckpointer(tmp_path / "runs.db").runs() == []


def test_an_answer_to_a_run_that_no_host_began_is_not_used_up(host, tmp_path):
    program = program_of("ann", tmp_path)
    interaction = HumanInteraction(KEY, consumption=tmp_path / "runs.db", binding="ann")
    stack = harness(journal=tmp_path / "runs.db", run_id="own", system_prompt="brief", eval_provider="none")

    def own() -> Any:
        with handler(stack), handler({completion: model}), handler(interaction):
            return program("Bob")

    with pytest.raises(Suspended) as caught:
        own()
    with pytest.raises(JournalError, match="no run `own`"):
        host.redeem(caught.value.token, ANN, YES)
    assert status(tmp_path, "own") is RunStatus.SUSPENDED
    interaction.redeem(caught.value.token, "ann", YES)
    assert own() == "sent to Bob."


def test_a_host_says_itself_who_may_answer(tmp_path):
    with pytest.raises(OptionError, match="binding"):
        host_of(tmp_path, binding="ann")


def asynchronous(folder: Path) -> AgentHost[Any, Any]:
    def composer(scope: str, resources: Path) -> Any:
        program = program_of(scope, resources)

        async def waits(name: str) -> str:
            await anyio.sleep(0)
            return await acall(program, name)

        return waits

    return AgentHost(
        composer,
        HumanInteraction(KEY, consumption=folder / "runs.db"),
        scope_for_claims=lambda claims: claims.get("sub"),
        journal=lambda run_id: Journal(run_id, folder / "runs.db"),
        stack=harness(system_prompt="brief", eval_provider="none"),
        resources=folder,
    )


@pytest.mark.parametrize("in_loop", [False, True])
def test_a_program_that_is_asynchronous_is_a_run_as_well(tmp_path, in_loop):
    host = asynchronous(tmp_path)

    def asked(function: Any, *args: Any, **kwargs: Any) -> Any:
        if not in_loop:
            return function(*args, **kwargs)
        return anyio.run(lambda: acall(function, *args, **kwargs))

    waits = asked(host.start, ANN, "Bob", run_id="run")
    assert (waits.suspended, effects(tmp_path), status(tmp_path)) == (True, [], RunStatus.SUSPENDED)
    assert asked(host.redeem, waits.token, ANN, YES).value == "sent to Bob."
    assert effects(tmp_path) == [SENT]


def test_a_program_that_has_not_begun_when_it_returns_is_refused(tmp_path):
    host = asynchronous(tmp_path)
    host._composer = lambda scope, resources: lambda name: (letter for letter in name)
    with pytest.raises(ConfigurationError, match="generator"):
        host.start(ANN, "Bob")


def test_an_outcome_that_is_logged_shows_no_token(host):
    waits = host.start(ANN, "Bob")
    assert waits.token
    assert waits.token not in f"{waits!r} {waits}"
