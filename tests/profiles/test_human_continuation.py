"""The battery of the profile "human continuation": docs/profiles/human-continuation.md."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import NotHandled, Risk, Skill, Tool, handler, harness
from effectful_agents.errors import (
    ConfigurationError,
    MissingHandlerError,
    TokenError,
    TokenExpired,
    TokenScopeMismatch,
    TokenTampered,
    TokenUnknown,
    TokenUsed,
)
from effectful_agents.handlers.durability import Journal, SqliteCheckpointer
from effectful_agents.handlers.policy import (
    AgentHost,
    HumanInteraction,
    RiskPolicy,
    SqliteLedger,
    composition_manifest,
)
from effectful_agents.operations.loop import completion
from effectful_agents.operations.policy import Answer
from effectful_agents.operations.records import RunStatus
from effectful_agents.operations.world import now
from effectful_agents.runtime import Layers
from effectful_agents.testing import calls, says
from tests.profiles.ways import WAYS

KEY = bytes(range(32))
BOSS, CLERK = {"sub": "boss"}, {"sub": "clerk"}
YES, NO = Answer(), Answer(approved=False, reason="not today")
SENT: list[str] = []

each_way = pytest.mark.parametrize("way", WAYS)


@Tool.define(risk=Risk.HARD_WRITE)
def send(to: str) -> str:
    """Send a mail."""
    SENT.append(to)
    return f"sent to {to}"


@Skill.define
def inform(name: str) -> str:
    """Send a mail to {name}."""
    raise NotHandled


def model(**request: Any) -> Any:
    """Sends one mail, then says what came of it."""
    last = request["messages"][-1]
    return says(f"{last['content']}.") if last["role"] == "tool" else calls("send", to="ann")


@pytest.fixture(autouse=True)
def _model() -> Iterator[None]:
    SENT.clear()
    with handler({completion: model}):
        yield


ASKS = RiskPolicy(allow=Risk.SOFT_WRITE)


def people(folder: Path, key: bytes = KEY, ledger: str = "runs.db", **options: Any) -> HumanInteraction:
    return HumanInteraction(key, consumption=SqliteLedger(folder / ledger), **options)


def new_host(folder: Path, way: str = "call", *, policy: Any = ASKS, **options: Any) -> AgentHost[Any, Any]:
    """As each process of the service makes it."""
    return AgentHost(
        composer=lambda scope, resources: handler(policy)(lambda name: WAYS[way](inform, name)),
        interaction=people(folder, **options),
        scope_for_claims=lambda claims: claims.get("sub"),
        journal=lambda run_id: Journal(run_id, SqliteCheckpointer(folder / "runs.db")),
        stack=harness(model="scripted", system_prompt="brief", eval_provider="none"),
    )


def status(folder: Path) -> RunStatus:
    (info,) = SqliteCheckpointer(folder / "runs.db").runs()
    return info.status


# 1. What is installed


def test_the_manifest_has_the_stages_and_no_secret(tmp_path):
    stack = Layers(ASKS, Journal("run", SqliteCheckpointer(tmp_path / "runs.db")), people(tmp_path))
    manifest = composition_manifest(inform, stack=stack)
    assert manifest.stages == ("run.journal", "approval.suspend", "approval.redeem")
    assert [row["policy"] for row in manifest.policies] == ["risk"]
    written = manifest.to_json()
    for secret in (KEY.hex(), repr(KEY)[2:-1], str(tmp_path)):
        assert secret not in written
    again = Layers(ASKS, Journal("run", SqliteCheckpointer(tmp_path / "b.db")), people(tmp_path, bytes(32)))
    assert composition_manifest(inform, stack=again).digest == manifest.digest
    longer = Layers(ASKS, Journal("run", SqliteCheckpointer(tmp_path / "b.db")), people(tmp_path, ttl_seconds=9))
    assert composition_manifest(inform, stack=longer).digest != manifest.digest


def test_the_manifest_has_the_tool_that_asks_where_it_is_offered(tmp_path):
    def tools(**options: Any) -> list[str]:
        return [row["tool"] for row in composition_manifest(inform, stack=people(tmp_path, **options)).tools]

    assert (tools(), tools(ask_user=True)) == ([], ["ask_user"])


# 2. and 3. The stage, and the final effect


@each_way
def test_one_host_waits_and_another_goes_on(tmp_path, way):
    waits = new_host(tmp_path, way).start(BOSS, "ann")
    assert waits.suspended
    assert (waits.question.name, waits.question.arguments, waits.question.scope) == ("send", {"to": "ann"}, "boss")
    assert (SENT, status(tmp_path)) == ([], RunStatus.SUSPENDED)
    ended = new_host(tmp_path, way).redeem(waits.token, BOSS, YES)
    assert (ended.suspended, ended.value) == (False, "sent to ann.")
    assert (SENT, status(tmp_path)) == (["ann"], RunStatus.FINISHED)
    assert new_host(tmp_path).resume(waits.run_id) == ended
    assert SENT == ["ann"]


@each_way
def test_what_is_refused_is_not_sent_and_what_is_amended_is_sent_so(tmp_path, way):
    refused = new_host(tmp_path, way).start(BOSS, "ann")
    assert "not today" in new_host(tmp_path, way).redeem(refused.token, BOSS, NO).value
    assert SENT == []
    amended = new_host(tmp_path, way).start(BOSS, "ann")
    new_host(tmp_path, way).redeem(amended.token, BOSS, Answer(arguments={"to": "bob"}))
    assert SENT == ["bob"]


def test_it_goes_on_in_another_process(tmp_path):
    def process(*words: str) -> Any:
        command = [sys.executable, "-m", "tests.handlers.policy.host_script", str(tmp_path), *words]
        done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    waits = process("start", "Bob")
    assert waits["suspended"]
    assert not (tmp_path / "effects").exists()
    assert process("redeem", waits["token"], '{"sub": "ann"}', "{}")["value"] == "sent to Bob."
    assert (tmp_path / "effects").read_text().count("\n") == 1


# 4. Only the valid one goes on


@each_way
def test_every_other_token_has_its_error_and_leaves_the_run_as_it_was(tmp_path, way):
    with handler({now: lambda: 1000.0}):
        waits = new_host(tmp_path, way, ttl_seconds=60).start(BOSS, "ann")
    wrong: list[tuple[type[TokenError], str, Any, float]] = [
        (TokenScopeMismatch, waits.token, CLERK, 1001.0),
        (TokenTampered, waits.token[:-1], BOSS, 1001.0),
        (TokenExpired, waits.token, BOSS, 1060.0),
    ]
    for error, token, claims, seconds in wrong:
        with handler({now: lambda seconds=seconds: seconds}), pytest.raises(error) as caught:
            new_host(tmp_path, way).redeem(token, claims, YES)
        assert type(caught.value) is error
        assert (SENT, status(tmp_path)) == ([], RunStatus.SUSPENDED)
    with handler({now: lambda: 1059.0}):
        assert new_host(tmp_path, way).redeem(waits.token, BOSS, YES).value == "sent to ann."
        with pytest.raises(TokenUsed):
            new_host(tmp_path, way).redeem(waits.token, BOSS, YES)
    assert SENT == ["ann"]


# 5. Negative controls


def test_without_the_interaction_it_is_an_error_before_the_effect(tmp_path):
    with (
        handler(harness(system_prompt="brief", eval_provider="none")),
        handler(Journal("run", SqliteCheckpointer(tmp_path / "runs.db"))),
        handler(ASKS),
        pytest.raises(MissingHandlerError, match="HumanInteraction"),
    ):
        inform("ann")
    assert SENT == []


def test_without_a_journal_it_is_an_error_before_the_effect(tmp_path):
    with (
        handler(harness(system_prompt="brief", eval_provider="none")),
        handler(ASKS),
        handler(people(tmp_path, binding="boss")),
        pytest.raises(ConfigurationError, match="journal"),
    ):
        inform("ann")
    assert SENT == []


def test_without_a_policy_that_asks_nobody_is_asked(tmp_path):
    ended = new_host(tmp_path, policy=RiskPolicy(allow=Risk.DESTRUCTIVE)).start(BOSS, "ann")
    assert (ended.suspended, ended.value, SENT) == (False, "sent to ann.", ["ann"])


@pytest.mark.parametrize(
    ("other", "error"), [({"ledger": "other.db"}, TokenUnknown), ({"key": bytes(32)}, TokenTampered)], ids=str
)
def test_without_what_the_processes_share_no_token_is_any_good(tmp_path, other, error):
    waits = new_host(tmp_path).start(BOSS, "ann")
    with pytest.raises(error):
        new_host(tmp_path, **other).redeem(waits.token, BOSS, YES)
    assert (SENT, status(tmp_path)) == ([], RunStatus.SUSPENDED)
