"""`effectful-agents manifest`: how a stack is put together, without a model and without a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import handler, harness
from effectful_agents.handlers.policy import composition_manifest
from effectful_agents.harness.commands import main as command

CONSOLE = Path(sys.executable).with_name("effectful-agents")
MODEL = ("--model", "local/absent.gguf")

SCRIPT = '''
from effectful_agents import harness
from effectful_agents.handlers.loop import Deadline
from effectful_agents.handlers.routing import ToolRouter, keyword_router
from effectful_agents.types import Risk

print("loaded")

@Tool.define(risk=Risk.HARD_WRITE)
def send(text: str) -> None:
    """Send a text."""
    raise AssertionError("no tool is called")

@Tool.define
def look(place: str) -> str:
    """Look at a place."""
    raise AssertionError("no tool is called")

@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled

class Guide(Agent):
    """Somebody."""
    @Tool.define
    def note(self, text: str) -> None:
        """Note a text."""

    @Skill.define
    def suggest(self, wish: str) -> str:
        """{wish}"""
        raise NotHandled

class Named(Agent):
    """A guide with a name."""
    def __init__(self, name):
        self.name = name

    @Skill.define
    def tell(self, wish: str) -> str:
        """{wish}"""
        raise NotHandled

late = Deadline(9)
stack = harness(tool_router=ToolRouter(keyword_router({"send": [send]})), model="gpt-5-mini", eval_provider="none")
number = 3

if __name__ == "__main__":
    raise AssertionError("the script is not run")
'''


@pytest.fixture
def manifest(script, capsys, monkeypatch, tmp_path, here):
    """A function that runs the command in this process, and gives its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    script(SCRIPT, model=True)

    def run(*words: str) -> tuple[int, str, str]:
        try:
            code = command(["manifest", *words])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def rows(text: str) -> dict[str, Any]:
    return {row["tool"]: row for row in json.loads(text)["tools"]}


def test_it_says_who_decides_and_what_runs_code(manifest):
    code, out, _ = manifest("script.py", *MODEL)
    assert code == 0
    said = next(line for line in out.splitlines() if line.startswith("authority"))
    assert said.startswith("authority    nothing that is described here decides; what the script installs itself")
    assert said.endswith("is not seen")
    assert "code         nothing runs code that the model writes" in out
    assert "`--eval-provider restricted` would run code of the model, held back" in out
    assert "No option has anybody decide" in out


@pytest.mark.parametrize(
    ("option", "means"),
    [
        ("builtin", "runs as plain Python in this process, and may do anything that it may"),
        ("restricted", "runs in a part of Python without a way to files, network and processes"),
        ("none", "nothing runs code that the model writes"),
    ],
)
def test_it_says_what_the_option_for_code_means(manifest, option, means):
    _, out, _ = manifest("script.py:ask", *MODEL, "--eval-provider", option)
    assert means in out
    assert json.loads(manifest("script.py:ask", *MODEL, "--eval-provider", option, "--json")[1])["code"] == option


def test_the_tools_of_all_skills_are_listed_or_of_one(manifest):
    code, out, err = manifest("script.py", *MODEL, "--json")
    assert code == 0
    assert set(rows(out)) == {"send", "look", "note", "ask"}
    assert rows(out)["send"]["risk"] == "HARD_WRITE"
    assert rows(out)["note"]["skills"] == ["Guide.suggest"]
    assert "`Named.tell` is left out: `Named()` cannot be made" in err
    assert "note" not in rows(manifest("script.py:ask", *MODEL, "--json")[1])


def test_nothing_but_json_is_printed_with_that_option(manifest):
    _, out, err = manifest("script.py:ask", *MODEL, "--json")
    assert json.loads(out)["enforcement"] == "nothing decides"
    assert "loaded" in err


def test_it_is_the_manifest_that_the_program_would_see(manifest):
    _, out, _ = manifest("script.py:ask", *MODEL, "--turns", "7", "--json")
    printed = json.loads(out)
    with handler(harness(model=MODEL[1], turns=7)):
        installed = json.loads(composition_manifest().to_json())
    assert printed["handlers"] == installed["handlers"]
    assert {"handler": "AgentLoop", "limit": "turns", "value": 7} in printed["limits"]


def test_a_handler_of_the_script_is_put_inside_and_a_stack_takes_the_place(manifest):
    _, out, _ = manifest("script.py:ask", *MODEL, "--with", "late", "--json")
    names = [row["handler"] for row in json.loads(out)["handlers"]]
    assert (names[0], names[-1]) == ("AgentLoop", "Deadline")
    _, out, _ = manifest("script.py:ask", *MODEL, "--with", "stack", "--with", "late", "--json")
    described = json.loads(out)
    assert described["stages"] == ["tools.routing"]
    assert described["handlers"][-1]["handler"] == "Deadline"
    assert "gpt-5-mini" in json.dumps(described["handlers"])
    assert list(rows(out)) == ["look", "send"]


def test_no_run_is_begun(manifest):
    code, out, _ = manifest("script.py:ask", *MODEL, "--journal", "runs.db", "--run-id", "monday", "--json")
    assert code == 0
    assert json.loads(out)["stages"] == ["run.journal"]
    assert "monday" not in out
    assert "runs.db" not in out
    assert command(["runs", "show", "monday", "--database", "runs.db"]) != 0


def test_the_digest_is_the_same_every_time(manifest):
    digests = {json.loads(manifest("script.py", *MODEL, "--json")[1])["digest"] for _ in range(2)}
    digests.add(manifest("script.py", *MODEL)[1].split("composition ")[1].split()[0])
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["nowhere.py"], "there is no script `nowhere.py`"),
        (["script.py:nothing"], "`nothing` is no skill of the script; the script has `ask`"),
        (["script.py:ask", "--with", "number"], "`number` is no handler of the script"),
        (["script.py:ask", "--with", "Guide"], "`Guide` is no handler of the script"),
        (["script.py:ask", "--with", "absent.part"], "`absent.part` is no handler of the script"),
        (["script.py:ask", "--tool-calling", "code"], "nothing would run it"),
    ],
)
def test_what_has_to_be_written_otherwise_is_said(manifest, words, problem):
    code, _, err = manifest(*words, *MODEL)
    assert code == 2
    assert problem in err


@pytest.mark.parametrize(("source", "exit_code"), [("1 / 0", 1), ("raise SystemExit(3)", 2), ("def (", 1)])
def test_a_script_that_fails_is_shown(manifest, script, source, exit_code):
    script(source, "failing.py")
    assert manifest("failing.py", *MODEL)[0] == exit_code


def test_it_has_a_help_and_stands_in_that_of_the_program(manifest, capsys):
    code, out, _ = manifest("--help")
    assert code == 0
    assert "SCRIPT[:SKILL]" in out
    assert command(["--help"]) == 0
    assert "manifest  say how the stack is put together" in capsys.readouterr().out


def test_both_programs_have_it(launch, script):
    script("from effectful_agents import NotHandled, Skill\n@Skill.define\ndef ask(x: str) -> str:\n    '''{x}'''\n")
    words = ("manifest", "script.py", *MODEL, "--json")
    one, other = launch(*words, program=[str(CONSOLE)]), launch(*words)
    assert (one.returncode, one.stderr) == (0, "")
    assert one.stdout == other.stdout
    assert json.loads(one.stdout)["digest"]


def test_a_script_that_is_called_manifest_is_still_run(launch, script):
    script("print('it ran')", "manifest")
    assert launch("manifest", *MODEL).stdout == "it ran\n"
