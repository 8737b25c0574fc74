"""A process that sends all requests of the examples and of a long conversation: `process URL http|litellm`."""

from __future__ import annotations

import contextlib
import shutil
import sys
from pathlib import Path
from typing import Any

from effectful_agents import handler, harness
from effectful_agents.handlers.provision.http import HttpModel
from tests.handlers.provision.http.server import listening
from tests.handlers.provision.wire.conversation import ATTEMPTS, converse
from tests.handlers.provision.wire.examples import EXAMPLES, FOLDER, run


def stacks(url: str, how: str, prompt: Any) -> list[Any]:
    settings: dict[str, Any] = {"system_prompt": prompt, "num_retries": ATTEMPTS}
    if how == "http":
        return [harness(**settings), HttpModel(url, model="test")]
    return [harness(model="openai/test", base_url=url, api_key="x", **settings)]


def main(url: str, how: str) -> None:
    # The examples stand in another place in each process.
    here = Path.cwd() / "examples"
    shutil.copytree(FOLDER, here)
    for prompt in ("brief", "full"):
        with contextlib.ExitStack() as installed:
            for layer in stacks(url, how, prompt):
                installed.enter_context(handler(layer))
            for name in EXAMPLES:
                run(name, Path.cwd(), here)
            converse(listening)


if __name__ == "__main__":
    main(*sys.argv[1:])
