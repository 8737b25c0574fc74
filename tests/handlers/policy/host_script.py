"""A host in a process of its own: started by `test_human_host.py`, with orders as words. It answers in a line of JSON.

    host_script.py FOLDER start NAME | redeem TOKEN CLAIMS ANSWER | resume RUN   [wait] [kill=PLACE]

What it does outside is a line in the file `effects`, as a bank adds one to its books.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from effectful_agents import NotHandled, Risk, Skill, Tool, handler, harness
from effectful_agents.errors import AgentsError, RunInUse
from effectful_agents.handlers.durability import Journal, SqliteCheckpointer
from effectful_agents.handlers.policy import AgentHost, CallOutcome, HumanInteraction, RiskPolicy, SqliteLedger
from effectful_agents.operations.loop import completion
from effectful_agents.operations.policy import Answer
from effectful_agents.testing import calls, says

KEY = bytes(range(32))


def effects(folder: Path) -> list[Any]:
    """What was done outside."""
    path = folder / "effects"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def program_of(scope: str, folder: Path) -> Any:
    @Tool.define(risk=Risk.HARD_WRITE)
    def send(to: str, text: str) -> str:
        """Send a mail."""
        file = os.open(folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, json.dumps([scope, to, text]).encode() + b"\n")
        os.close(file)
        return f"sent to {to}"

    @Skill.define
    def inform(name: str) -> str:
        """Inform {name}."""
        raise NotHandled

    def program(name: str, again: bool = False) -> str:
        with handler(RiskPolicy(allow=Risk.READ)):
            told = inform(name)
            return f"{told} {inform('all')}" if again else told

    return program


def model(**request: Any) -> Any:
    """Sends one mail, then says what came of it."""
    last = request["messages"][-1]
    if last["role"] == "tool":
        return says(f"{last['content']}.")
    name = last["content"].rpartition("Inform ")[2].rstrip(".")
    return calls("send", to=name, text="Hello!")


class Killing(SqliteCheckpointer):
    """A database whose process is killed after so many records."""

    place: int | None = None

    def lease(self, run_id: str, *, seconds: float = 30.0) -> Any:
        lease = super().lease(run_id, seconds=seconds)
        append, count = lease.append, 0

        def killing(*records: Any) -> None:
            nonlocal count
            if count == self.place:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            append(*records)

        lease.append = killing  # ty: ignore[invalid-assignment]
        return lease


class KillingLedger(SqliteLedger):
    """A ledger whose process is killed right after it has kept an answer."""

    def consume(self, token_id: str, answer: Answer, at: float) -> Any:
        super().consume(token_id, answer, at)
        os.kill(os.getpid(), signal.SIGKILL)


def host_of(folder: Path, kill: str = "", **options: Any) -> AgentHost[Any, Any]:
    path = folder / "runs.db"
    runs = Killing(path, synchronous="normal")
    runs.place = int(kill) if kill.isdigit() else None
    ledger = KillingLedger(path) if kill == "consumed" else SqliteLedger(path)
    return AgentHost(
        program_of,
        HumanInteraction(KEY, consumption=ledger, **options),
        scope_for_claims=lambda claims: claims.get("sub"),
        journal=lambda run_id: Journal(run_id, runs),
        stack=harness(system_prompt="brief", eval_provider="none"),
        resources=folder,
    )


def told(outcome: CallOutcome[Any]) -> dict[str, Any]:
    """An outcome as JSON."""
    asked = None if outcome.question is None else [outcome.question.name, dict(outcome.question.arguments)]
    return {**dataclasses.asdict(dataclasses.replace(outcome, question=None)), "question": asked}


def main(folder: Path, what: str, *words: str) -> dict[str, Any]:
    options = dict(word.partition("=")[::2] for word in words if word == "wait" or word.startswith("kill="))
    words = tuple(word for word in words if word.partition("=")[0] not in options)
    host = host_of(folder, options.get("kill", ""))
    print("ready", flush=True)
    while "wait" in options and not (folder / "go").exists():
        time.sleep(0.001)
    try:
        with handler({completion: model}):
            if what == "start":
                return told(host.start({"sub": "ann"}, *words, run_id="run"))
            if what == "redeem":
                token, claims, answer = words
                return told(host.redeem(token, json.loads(claims), Answer(**json.loads(answer))))
            return told(host.resume(*words))
    except RunInUse as error:
        return {"in use": str(error)}
    except AgentsError as error:
        return {"error": type(error).__name__}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), *sys.argv[2:])), flush=True)
