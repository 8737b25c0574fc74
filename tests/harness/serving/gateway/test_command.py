"""`effectful-agents serve gateway`, as it is typed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import handler
from effectful_agents.errors import Denied
from effectful_agents.handlers.delegation import RemoteOperations
from effectful_agents.harness import commands
from effectful_agents.harness.serving.gateway.clients import token_hash
from effectful_agents.operations.loop import completion

SCRIPT = '''
"""What programs may do."""
from effectful_agents import Tool
from effectful_agents.testing import ScriptedModel

model = ScriptedModel(*["Hello"] * 9)

@Tool.define
def stock(item: str) -> int:
    """How many of an item are in stock."""
    return 3
'''
HI: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture(autouse=True)
def _back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What loading a script changes is changed back."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])


def serve(*words: str) -> int:
    return commands.main(["serve", "gateway", "--model", "local/smollm2", *words])


def test_a_token_is_made_with_its_digest(capsys):
    assert serve("--new-token") == 0
    printed = dict(line.split(" = ") for line in capsys.readouterr().out.splitlines())
    assert token_hash(printed["token"]) == printed["token_sha256"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--clients", "absent.toml"], "cannot be read"),
        (["--with", "model"], "there is none"),
        (["absent.py"], "there is no script"),
        (["script.py", "--with", "nothing"], "`nothing` is no handler of the script"),
        (["script.py", "--only", "nothing"], "no tool or skill `nothing`; it has `stock`"),
        (["--journal", "runs.db"], "`--journal` is for the run of one program"),
        (["--journal", "runs.db", "--run-id", "x"], "`--journal` is for the run of one program"),
    ],
)
def test_what_has_to_be_written_otherwise_is_said(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text(SCRIPT)
    assert serve(*words) == 2
    assert said in capsys.readouterr().err


def test_the_help_says_how(capsys):
    assert commands.main(["serve", "--help"]) == 0
    with pytest.raises(SystemExit) as done:
        serve("--help")
    assert done.value.code == 0
    printed = capsys.readouterr().out
    assert "serve gateway [SCRIPT]" in printed
    assert "token_sha256" in printed


@pytest.mark.parametrize("kind", ["", "nothing"])
def test_another_kind_of_server_is_not_there(capsys, kind):
    assert commands.main(["serve", *([kind] if kind else [])]) == 2
    assert "gateway" in capsys.readouterr().err


@pytest.mark.slow
def test_a_gateway_is_served_and_keeps_what_was_spent(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    token = "a token for tests"
    clients = f'[clients.ann]\ntoken_sha256 = "{token_hash(token)}"\nbudget_tokens = 200\n'
    (tmp_path / "clients.toml").write_text(clients)
    words = ["script.py", "--with", "model", "--clients", "clients.toml", "--database", "spent.db", "--port", "0"]
    command = [sys.executable, "-c", "import sys; from effectful_agents.harness.commands import main; sys.exit(main())"]
    for spent in (False, True):
        process = subprocess.Popen(
            [*command, "serve", "gateway", "--model", "m", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        with process:
            try:
                assert process.stderr is not None
                url = re.search(r"http://\S+", process.stderr.readline())
                assert url is not None
                remote = RemoteOperations(url[0], token=token)
                with handler(remote):
                    if spent:
                        with pytest.raises(Denied, match="budget"):
                            completion(messages=HI)
                    else:
                        assert remote.tools[0](item="bolts") == "3"
                        completion(messages=HI)
                        completion(messages=HI)
                process.send_signal(signal.SIGINT)
                log = process.stderr.read()
            finally:
                process.kill()
        assert process.returncode == 0
        assert "client=ann op=completion" in log
        assert token not in log
