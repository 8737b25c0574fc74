"""What a cassette adds to a request: replaying, recording, and with a long conversation before it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import handler
from effectful_agents.encoding import answer_codec
from effectful_agents.operations.loop import completion
from effectful_agents.testing import Cassette, SchemaModel, ScriptedModel
from effectful_agents.testing.cassette import CassetteMode

pytestmark = pytest.mark.benchmark(timer=time.process_time)


def conversation(length: int) -> list[Any]:
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": f"message {place}, of some length. " * 10} for place in range(length)]


def converse(requests: int, before: int) -> None:
    """Make so many requests, each with two messages more than the one before."""
    messages = conversation(before)
    for number in range(requests):
        messages.append({"role": "user", "content": f"question {number}"})
        messages.append(completion(model="m", messages=messages)["choices"][0]["message"])


@pytest.mark.parametrize("before", [2, 200])
@pytest.mark.parametrize("how", ["script", "replay", "record"])
def test_requests(benchmark: Any, per_model_call: Any, tmp_path: Path, how: str, before: int) -> None:
    requests, path = 100, tmp_path / "cassette.json"
    scripted = lambda: ScriptedModel(*["an answer"] * requests)  # noqa: E731
    with handler(scripted()), handler(Cassette(path, "record")):
        converse(requests, before)

    def run() -> None:
        if how == "record":
            path.unlink()
        with handler(scripted()):
            if how == "script":
                return converse(requests, before)
            mode: CassetteMode = "replay" if how == "replay" else "record"
            with handler(Cassette(path, mode)):
                converse(requests, before)

    benchmark.group = f"cassettes, {before} messages before"
    benchmark.pedantic(run, rounds=5, warmup_rounds=1)
    per_model_call(f"{how}, 100 requests, {before} messages before", requests)


def test_answer_by_schema(benchmark: Any, per_model_call: Any) -> None:
    form = answer_codec(dict[str, list[tuple[int, float | None]]]).response_format
    with handler(SchemaModel()):
        benchmark(lambda: completion(messages=conversation(2), response_format=form))
    per_model_call("an answer by schema", 1)
