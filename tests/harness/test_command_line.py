"""Which words of a command line are for the stack, and which for the script."""

from __future__ import annotations

import contextlib
import inspect
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from effectful_agents import handler, harness
from effectful_agents.harness.commands import main as command
from effectful_agents.harness.launcher import main
from effectful_agents.harness.options import parse
from effectful_agents.testing import ScriptedModel

CONSOLE = Path(sys.executable).with_name("effectful-agents")
ASK = """
@Skill.define
def ask() -> str:
    '''Ask.'''
    raise NotHandled

print(ask())
"""

SHOW_WORDS = "import json, sys; print(json.dumps(sys.argv[1:]))"


def words(line: str) -> list[str]:
    return parse(line.split(), "launcher").arguments


def options(line: str) -> dict[str, object]:
    launch = parse(line.split(), "launcher")
    assert (launch.script, launch.arguments) == ("script.py", [])
    return launch.options


# The words of the script


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("script.py", []),
        ("script.py a b", ["a", "b"]),
        ("script.py a --verbose b -v --depth=3 c", ["a", "--verbose", "b", "-v", "--depth=3", "c"]),
        ("--verbose script.py a", ["--verbose", "a"]),
        ("script.py a --model gpt-5-mini b", ["a", "b"]),
        ("script.py a --model=gpt-5-mini --turns 3 --other b", ["a", "--other", "b"]),
        ("--model gpt-5-mini script.py a --other", ["a", "--other"]),
        ("script.py -1 --level -2", ["-1", "--level", "-2"]),
        ("script.py --mod gpt-5-mini", ["--mod", "gpt-5-mini"]),
        ("script.py --models a", ["--models", "a"]),
        ("script.py -host here", ["-host", "here"]),
        ("script.py -", ["-"]),
    ],
)
def test_other_words_reach_the_script_in_their_order(line, expected):
    assert parse(line.split(), "launcher").script == "script.py"
    assert words(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("script.py -- --model x", ["--model", "x"]),
        ("script.py a -- --help", ["a", "--help"]),
        ("script.py --turns 3 a -- b -- --turns 4", ["a", "b", "--", "--turns", "4"]),
        ("script.py --", []),
        ("script.py --other -- --set x", ["--other", "--set", "x"]),
    ],
)
def test_everything_behind_two_dashes_is_for_the_script(line, expected):
    launch = parse(line.split(), "launcher")
    assert launch.arguments == expected
    assert not set(launch.options) & {"model", "help"}
    assert launch.options.get("turns") in (None, 3)


def test_words_with_spaces_and_empty_words_stay_what_they_are():
    launch = parse(["script.py", "two words", "", "--name=two words", "-- ", "--model", "a b"], "launcher")
    assert launch.arguments == ["two words", "", "--name=two words", "-- "]
    assert launch.options["model"] == "a b"


# The words of the stack


@pytest.mark.parametrize("place", ["{} script.py", "script.py {}"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("--model gpt-5-mini", {"model": "gpt-5-mini"}),
        ("--num-retries 0", {"num_retries": 0}),
        ("--fallback a --fallback b/c", {"fallback": ["a", "b/c"]}),
        ("--requests-per-minute 60", {"requests_per_minute": 60}),
        ("--tokens-per-minute=9000", {"tokens_per_minute": 9000}),
        ("--turns=7", {"turns": 7}),
        ("--system-prompt brief", {"system_prompt": "brief"}),
        ("--dump-system-prompt p.md", {"dump_system_prompt": "p.md"}),
        ("--tool-collection none", {"tool_collection": "none"}),
        ("--defer-tools no", {"defer_tools": False}),
        ("--defer-tools=yes", {"defer_tools": True}),
        ("--defer-tools 0", {"defer_tools": 0}),
        ("--tool-calling json", {"tool_calling": "json"}),
        ("--eval-provider none", {"eval_provider": "none"}),
        ("--type-checker ty", {"type_checker": "ty"}),
        ("--no-check-contracts", {"check_contracts": False}),
        ("--strict-tools", {"strict_tools": True}),
        ("--strict-decoding", {"strict_decoding": True}),
        ("--persist-db a.db", {"persist_db": "a.db"}),
        ("--journal a.db --run-id monday", {"journal": "a.db", "run_id": "monday"}),
        ("--render", {"render": True}),
        ("--langfuse", {"langfuse": True}),
        ("--temperature 0.5", {"temperature": 0.5}),
        ("--max-tokens 9", {"max_tokens": 9}),
        ("--seed 3", {"seed": 3}),
        ("--tool-choice required", {"tool_choice": "required"}),
        ("--base-url http://x", {"base_url": "http://x"}),
        ("", {}),
    ],
)
def test_each_option_of_the_stack_is_taken_before_and_after_the_script(place, given, expected):
    assert options(place.format(given)) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("--set top_k=5", {"top_k": 5}),
        ("--set top_p=0.5 --set user=ann", {"top_p": 0.5, "user": "ann"}),
        ('--set stop=["a","b"]', {"stop": ["a", "b"]}),
        ("--set flag=true --set none=null", {"flag": True, "none": None}),
        ("--set text=a=b", {"text": "a=b"}),
        ("--set empty=", {"empty": ""}),
        ("--set seed=1 --set seed=2", {"seed": 2}),
    ],
)
def test_any_other_setting_is_json_or_text(given, expected):
    assert options(f"script.py {given}") == expected


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "SCRIPT"),
        ("--model gpt-5-mini", "SCRIPT"),
        ("script.py --model", "--model"),
        ("script.py --turns many", "--turns"),
        ("script.py --temperature warm", "--temperature"),
        ("script.py --system-prompt short", "--system-prompt"),
        ("script.py --defer-tools many", "yes, no, or a number"),
        ("script.py --defer-tools -1", "--defer-tools"),
        ("script.py --set top_k", "NAME=VALUE"),
        ("script.py --set =3", "NAME=VALUE"),
        ("script.py --set a-b=3", "NAME=VALUE"),
    ],
)
def test_a_wrong_command_line_is_told_in_words(line, said, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(line.split(), "launcher")
    assert caught.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_the_settings_reach_the_request(script, tmp_path, here, capsys):
    path = str(tmp_path / script(ASK, model=True))
    settings = ["--temperature", "0.5", "--seed=3", "--max-tokens", "9", "--set", "user=ann", "--set", "top_k=5"]
    with handler(ScriptedModel("Hello!")) as model:
        assert main([path, "--model", "gpt-5-mini", "--tool-collection", "none", *settings]) == 0
    expected = {"model": "gpt-5-mini", "temperature": 0.5, "seed": 3, "max_tokens": 9, "user": "ann", "top_k": 5}
    (request,) = model.requests
    assert {**request, **expected} == request
    assert capsys.readouterr().out == "Hello!\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--turns 0", "`turns` is 0"),
        ("--num-retries -1", "`num_retries` is -1"),
        ("--requests-per-minute 0", "`requests_per_minute` is 0"),
        ("--tokens-per-minute -5", "`tokens_per_minute` is -5"),
        ("--fallback gpt-5-mini", "`fallback` names `gpt-5-mini`"),
        ("--fallback a --fallback a", "`a` twice"),
        ("--persist-db .", "cannot be written"),
        ("--eval-provider none --tool-calling auto", "`tool_calling='auto'`"),
        ("--set turns=many", "`turns`"),
        ("--model local/smollm2 --set temprature=0", "`temprature`"),
    ],
)
def test_an_option_with_a_wrong_value_is_one_line_and_the_script_does_not_run(
    given, said, script, tmp_path, here, capsys
):
    path = str(tmp_path / script("print('ran')"))
    assert main([path, "--model", "gpt-5-mini", *given.split()]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith("error: ")
    assert said in line


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("options", "rendered"), [((), False), (("--render",), True)])
def test_a_terminal_shows_the_conversation_or_else_the_progress(options, rendered, script, tmp_path):
    import pty

    program = f"""
from effectful_agents import handler
from effectful_agents.harness.launcher import main
from effectful_agents.testing import ScriptedModel

with handler(ScriptedModel("Hello!")):
    main({[script(ASK, model=True), "--model", "gpt-5-mini", *options]!r})
"""
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=its, stderr=its):
        os.close(its)
        shown = b""
        with contextlib.suppress(OSError):  # Linux's way to say that the other end is closed
            while piece := os.read(ours, 4096):
                shown += piece
        os.close(ours)
    text = shown.decode()
    assert text.endswith("Hello!\r\n")
    assert ("\x1b[32m⠋" in text) is not rendered
    assert (" user " in text) is rendered


@pytest.mark.parametrize(("level", "lines"), [("debug", 2), ("info", 2), ("warning", 0)])
def test_steps_are_logged_on_standard_error(level, lines, script, tmp_path, capsys, monkeypatch):
    log = logging.getLogger("effectful_agents.steps")
    for name, value in (("handlers", []), ("level", log.level), ("propagate", True)):
        monkeypatch.setattr(log, name, value)
    with handler(ScriptedModel("Hello!")):
        assert main([str(tmp_path / script(ASK, model=True)), "--log", level, "--model", "gpt-5-mini"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "Hello!\n"
    assert len(shown.err.splitlines()) == lines
    assert ("INFO model 000001-model of ask: gpt-5-mini, stop, 100 + 20 tokens" in shown.err) is (lines > 0)


# Help


@pytest.mark.parametrize("line", [["--help"], ["-h"], ["script.py", "--help"], ["--help", "script.py"]])
def test_the_help_explains_both_kinds_of_words(line, capsys):
    with pytest.raises(SystemExit) as caught:
        main(line, program="launcher")
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("SCRIPT", "--model", "--set", "--", "EFFECTFUL_AGENTS_MODEL", "local/smollm2"))
    assert "launcher script.py notes.txt --model gpt-5-mini --verbose" in text
    assert max(map(len, text.splitlines())) <= 120


def test_every_option_of_the_harness_is_on_the_command_line(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    names = [p.name for p in inspect.signature(harness).parameters.values() if p.kind is p.KEYWORD_ONLY]
    # A router is an object of the program.
    assert [name for name in names if f"-{name.replace('_', '-')}" not in text] == ["tool_router"]


# The console command


@pytest.mark.parametrize("line", [["-h"], ["--help"]])
def test_the_command_explains_itself(line, capsys):
    assert command(line) == 0
    assert "effectful-agents run SCRIPT" in capsys.readouterr().out


@pytest.mark.parametrize(("line", "said"), [([], "usage"), (["fly"], "no command `fly`")])
def test_another_command_is_told(line, said, capsys):
    assert command(line) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


def test_the_command_runs_a_script_as_the_module_does(script, launch):
    name = script(SHOW_WORDS + "; print(__name__, sys.path[0]); sys.exit(4)")
    line = ["run", name, "a", "--model", "gpt-5-mini", "--b", "--", "--model"]
    done = launch(*line, program=[str(CONSOLE)])
    other = launch(*line[1:])
    assert (done.returncode, done.stdout, done.stderr) == (other.returncode, other.stdout, other.stderr)
    assert done.returncode == 4
    assert json.loads(done.stdout.splitlines()[0]) == ["a", "--b", "--model"]


def test_the_help_of_the_command_names_the_command(launch):
    done = launch("run", "--help", program=[str(CONSOLE)])
    assert done.returncode == 0
    assert done.stdout.startswith("usage: effectful-agents run")


# The model


def test_without_a_model_one_line_on_stderr_says_which_is_used(script, launch):
    done = launch(script("print('ran')"))
    assert (done.returncode, done.stdout) == (0, "ran\n")
    (line,) = done.stderr.splitlines()
    assert "local/smollm2" in line
    assert "EFFECTFUL_AGENTS_MODEL" in line


@pytest.mark.parametrize("words", [["--model", "gpt-5-mini"], ["--model=local/smollm2"]])
def test_with_a_model_nothing_is_said(words, script, launch):
    done = launch(script("print('ran')"), *words)
    assert (done.stdout, done.stderr) == ("ran\n", "")


def test_the_model_of_the_environment_is_used_and_the_option_goes_before_it(script, launch):
    name = script(ASK, model=True)
    absent = os.path.join("nowhere", "absent.gguf")
    done = launch(name, EFFECTFUL_AGENTS_MODEL=f"local/{absent}")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"local/{absent}" in done.stderr
    done = launch(name, "--model", "local/other.gguf", EFFECTFUL_AGENTS_MODEL=f"local/{absent}")
    assert "local/other.gguf" in done.stderr
    assert absent not in done.stderr
