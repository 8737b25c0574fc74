"""What a run of an example sends, in bytes, beside what a client written by hand sends."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from effectful_agents import harness
from tests.handlers.provision.http.server import Server
from tests.handlers.provision.wire import by_hand
from tests.handlers.provision.wire.examples import EXAMPLES, READ, run


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_run_sends_hardly_more_than_a_client_written_by_hand(name: str, server: Server, tmp_path: Path):
    def sent() -> tuple[int, int]:
        assert len(server.raw) == len(EXAMPLES[name].replies)
        return sum(map(len, server.raw)), len(server.raw)

    server.will(*EXAMPLES[name].replies)
    with harness(model="openai/test", base_url=server.url, api_key="x", system_prompt="brief"):
        run(name, tmp_path)
    ours, _ = sent()
    server.clear()
    server.will(*EXAMPLES[name].replies)
    program = getattr(by_hand, name)
    (functools.partial(program, read=READ) if name == "extract" else program)(by_hand.asking(server.url))
    theirs, _ = sent()
    print(f"{name}: {ours} / {theirs} = {ours / theirs:.3f}")
    assert ours <= 1.10 * theirs
