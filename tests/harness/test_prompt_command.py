"""`effectful-agents prompt`: what a skill sends, shown without a model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from effectful_agents.harness.commands import main as command

CONSOLE = Path(sys.executable).with_name("effectful-agents")
MODEL = ("--model", "local/absent.gguf")  # brief, and its tokens are estimated wherever the tests run

SCRIPT = '''
import dataclasses, json, os
from typing import Annotated
from annotated_types import Le

@dataclasses.dataclass
class Box:
    """A box."""
    size: int
    names: list[str] = dataclasses.field(default_factory=list)

@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    raise AssertionError("no tool is called")

@Skill.define
def ask(city: str, days: int = 3) -> list[int]:
    """How warm is it in {city} for {days} days?"""
    raise NotHandled

@Skill.define
async def ask_later(city: str) -> str:
    """And later in {city}?"""
    raise NotHandled

@Skill.define
def pack(box: Box, *others: Box, note: str = "none", **more: int) -> str:
    """Pack {box} and {others} with {note}, {more}."""
    raise NotHandled

@Skill.define
def look(box: Box) -> str:
    """Look at {box.size:03d} and {box.names[0]!r} of {box}."""
    raise NotHandled

@Skill.define
def few(number: Annotated[int, Le(3)]) -> str:
    """Write {number} words."""
    raise NotHandled

@Skill.define
def same[T](value: T) -> T:
    """Like {value}."""
    raise NotHandled

class Guide(Agent):
    """Somebody who knows the country."""
    def __init__(self, name="Ann"):
        self.name = name

    @Skill.define
    def suggest(self, wish: str) -> str:
        """{self.name}, suggest something for {wish}."""
        raise NotHandled

class Named(Guide):
    """A guide with a name."""
    def __init__(self, name):
        super().__init__(name)

bob = Named("Bob")

def main():
    with handler(ScriptedModel([1])) as model:
        ask("Oslo")
    print(json.dumps(model.requests[0]))

if __name__ == "__main__":
    main()
'''


@pytest.fixture
def prompt(script, here, capsys, monkeypatch, tmp_path):
    """A function that runs the command in this process, and gives what it printed; it must end well."""
    monkeypatch.chdir(tmp_path)
    script(SCRIPT, model=True)

    def run(skill: str, *words: str) -> str:
        assert command(["prompt", f"script.py:{skill}", *words, *MODEL]) == 0
        shown = capsys.readouterr()
        assert shown.err == ""
        return shown.out

    return run


@pytest.fixture
def refused(script, here, capsys, monkeypatch, tmp_path):
    """A function that runs the command, and gives the one line that says what is wrong."""
    monkeypatch.chdir(tmp_path)
    script(SCRIPT, model=True)

    def run(target: str, *words: str) -> str:
        assert command(["prompt", target, *words, *MODEL]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        (line,) = shown.err.splitlines()
        return line

    return run


def asked(prompt: Any, skill: str, *words: str) -> str:
    """The user message of a call."""
    return json.loads(prompt(skill, *words, "--json"))["messages"][-1]["content"]


# What is shown


@pytest.mark.parametrize("how", ["brief", "full"])
def test_the_json_is_the_request_of_a_run_to_the_letter(how, script, launch):
    name = script(SCRIPT, model=True)
    options = ("--model", "gpt-5-mini", "--system-prompt", how)
    ran = launch(name, *options)
    assert (ran.returncode, ran.stderr) == (0, "")
    shown = launch("prompt", f"{name}:ask", 'city="Oslo"', "--json", *options, program=[str(CONSOLE)])
    assert (shown.returncode, shown.stderr) == (0, "")
    assert json.loads(shown.stdout) == json.loads(ran.stdout)


def test_what_a_script_prints_is_no_part_of_the_json(script, launch):
    name = script('print("loading")\n' + SCRIPT, model=True)
    shown = launch("prompt", f"{name}:ask", "--json", *MODEL, program=[str(CONSOLE)])
    assert json.loads(shown.stdout)["messages"]
    assert shown.stderr == "loading\n"


@pytest.mark.parametrize("words", [("--json",), ()])
def test_an_output_without_a_form_for_a_character_gets_another(words, script, launch, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    name = script(SCRIPT, model=True)
    shown = launch("prompt", f"{name}:ask", 'city="Tromsø"', *words, *MODEL, program=[str(CONSOLE)])
    assert (shown.returncode, shown.stderr) == (0, "")
    if words:
        assert "Tromsø" in json.loads(shown.stdout)["messages"][-1]["content"]
    else:
        assert "Troms?" in shown.stdout


def test_an_argument_that_is_given_twice_is_refused(script, launch):
    name = script(SCRIPT, model=True)
    shown = launch("prompt", f"{name}:ask", "city=Oslo", "city=Rome", *MODEL, program=[str(CONSOLE)])
    assert shown.returncode == 2
    assert "`city` is given twice" in shown.stderr


def test_the_report_has_every_part_with_its_tokens(prompt):
    text = prompt("ask", "city=Oslo", "--system-prompt", "full")
    titles = re.findall(r"^--- (.*): ([\d,]+) tokens, estimated$", text, flags=re.MULTILINE)
    names = [name for name, _ in titles]
    assert names[:2] == ["system message", "user message"]
    assert {"tool weather", "tool ask_later", "response format"} <= set(names)
    assert "tool ask" not in names
    assert "How warm is it in Oslo for 3 days?" in text
    total = sum(int(tokens.replace(",", "")) for _, tokens in titles)
    assert text.endswith(f"\n{total:,} tokens, estimated\n")


def test_the_sections_of_the_system_message_are_listed_in_their_order(prompt):
    text = prompt("Guide.suggest", "--system-prompt", "full")
    table = text.partition("\n\n")[0].splitlines()[1:]
    rows = [re.fullmatch(r" *~([\d,]+)  ( *)(.*)", line).groups() for line in table]  # type: ignore[union-attr]
    assert [title for _, depth, title in rows if not depth] == ["Harness", "suggest(wish: str) -> str"]
    assert [title for _, depth, title in rows if depth][-4:] == [
        "Module __main__",
        "Agent Guide",
        "Imported modules",
        "Lexical scope",
    ]
    assert all(f"# {title}" in text for _, _, title in rows)
    assert all(int(tokens.replace(",", "")) > 0 for tokens, _, _ in rows)


def test_a_brief_prompt_has_no_framework(prompt):
    text = prompt("Guide.suggest")
    assert "(the task)" in text
    assert "Harness" not in text
    assert "system message" not in prompt("ask")


@pytest.mark.parametrize("how", ["full", "brief"])
def test_the_file_of_the_system_message_has_the_lines_that_are_printed_of_it(how, prompt, tmp_path):
    text = prompt("ask", "--system-prompt", how, "--dump-system-prompt", "dump.md")
    written = (tmp_path / "dump.md").read_text(encoding="utf-8")
    if how == "brief":  # there is none
        assert written == "--- no system message\n"
        written = ""
    assert text.startswith(f"{written}--- user message: ")


def test_tools_are_those_of_the_options(prompt):
    assert "tools" not in json.loads(prompt("ask", "--tool-collection", "none", "--json"))


@pytest.mark.parametrize("guard", ['__name__ == "__main__"', "'__main__' == __name__ and True"])
def test_nothing_under_the_guard_is_run(guard, script, prompt):
    script(f"{SCRIPT}\nif {guard}:\n    raise AssertionError", model=True)
    assert "| `Guide` |" in prompt("ask", "--system-prompt", "full")


def test_two_folders_and_hash_seeds_give_the_same_text(script, launch, tmp_path):
    texts = []
    for folder, seed in (("one", "1"), ("other", "2")):
        script(SCRIPT, f"{folder}/script.py", model=True)
        line = ("prompt", "script.py:Guide.suggest", "--model", "gpt-5-mini")
        done = launch(*line, program=[str(CONSOLE)], cwd=tmp_path / folder, PYTHONHASHSEED=seed)
        assert (done.returncode, done.stderr) == (0, "")
        texts.append(done.stdout)
    assert texts[0] == texts[1]
    assert not re.search(r"0x[0-9a-f]{6,}", texts[0])
    assert str(tmp_path) not in texts[0]


def test_the_page_shows_what_the_command_prints(launch):
    root = Path(__file__).parents[2]
    page = (root / "docs/launcher.md").read_text()
    example = page.partition("    $ effectful-agents prompt ")[2].partition("\n\nAfter the messages")[0]
    words, *shown = (line.removeprefix("    ") for line in example.splitlines())
    done = launch("prompt", *words.split(), program=[str(CONSOLE)], cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    printed = iter(done.stdout.splitlines())
    assert len(shown) > 10
    assert [line for line in shown if line != "…" and line not in printed] == []  # each behind the one before


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("plain", [False, True])
def test_colours_only_on_a_terminal_that_wants_them(plain, script, launch, tmp_path):
    import pty

    name = script(SCRIPT, model=True)
    command = [str(CONSOLE), "prompt", f"{name}:ask", *MODEL]
    assert "\x1b" not in launch(*command[1:], program=command[:1]).stdout
    ours, its = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment |= {"NO_COLOR": "1"} if plain else {}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=its, stderr=subprocess.STDOUT):
        os.close(its)
        shown = os.read(ours, 4096)
        try:
            while os.read(ours, 4096):
                pass
        except OSError:  # Linux's way to say that the other end is closed
            pass
        os.close(ours)
    assert (b"\x1b[1m--- user message" in shown) is not plain


# Which skill


def test_an_agent_is_made_without_arguments_or_found_in_the_script(prompt):
    assert "Ann, suggest something for peace." in asked(prompt, "Guide.suggest", "wish=peace")
    assert "Bob, suggest something for peace." in asked(prompt, "bob.suggest", "wish=peace")


def test_an_asynchronous_skill_is_shown_too(prompt):
    assert "And later in Oslo?" in asked(prompt, "ask_later", "city=Oslo")


def test_an_agent_that_needs_arguments_says_what_to_write(refused):
    line = refused("script.py:Named.suggest")
    assert "missing 1 required positional argument: 'name'" in line
    assert "`named = Named(…)`" in line
    assert "`named.suggest`" in line


@pytest.mark.parametrize("skill", ["", ":", ":x", ":weather", ":Guide"])
def test_what_is_no_skill_is_answered_with_those_that_are(skill, refused):
    line = refused(f"script.py{skill}")
    assert "`ask`, `ask_later`, `pack`, `look`, `few`, `same`, `Guide.suggest`" in line


def test_a_script_without_skills_says_how_one_is_made(script, refused):
    script("x = 1", "empty.py")
    assert "`@Skill.define`" in refused("empty.py:x")


def test_no_such_script_is_told(refused):
    assert "there is no script `absent.py`" in refused("absent.py:ask")


# Arguments


def test_an_argument_is_json_or_else_text(prompt):
    assert "in Oslo for 5 days" in asked(prompt, "ask", "city=Oslo", "days=5")
    assert "in Oslo for 3 days" in asked(prompt, "ask", 'city="Oslo"')
    assert "in 12 for 3 days" in asked(prompt, "ask", "city=12")


def test_arguments_of_every_kind_are_bound(prompt):
    words = ['box={"size": 1}', 'others=[{"size": 2}]', "note=care", "extra=4"]
    expected = 'Pack {"size": 1, "names": []} and [{"size": 2, "names": []}] with care, {"extra": 4}.'
    assert expected in asked(prompt, "pack", *words)


def test_what_is_left_out_is_shown_by_its_name(prompt):
    assert "in <city> for 3 days" in asked(prompt, "ask")
    assert "Look at <box.size> and <box.names[0]> of <box>." in asked(prompt, "look")
    assert "Pack <box> and [] with none, {}." in asked(prompt, "pack")


@pytest.mark.parametrize(
    ("skill", "words", "said"),
    [
        ("ask", ["days=many"], "`days=many` does not fit `days` of `ask`"),
        ("ask", ["country=Norway"], "`ask` has no parameter `country`; it has `city`, `days`."),
        ("few", [], "Give `number=JSON`."),
        ("few", ["number=4"], "`number=4` does not fit"),
        ("same", [], "give it as `value=JSON`"),
    ],
)
def test_arguments_that_cannot_be_shown_are_told(skill, words, said, refused):
    assert said in refused(f"script.py:{skill}", *words)


def test_a_word_that_is_no_argument_is_refused(here, capsys):
    with pytest.raises(SystemExit) as caught:
        command(["prompt", "script.py:ask", "Oslo"])
    assert caught.value.code == 2
    assert "'Oslo' is not NAME=VALUE" in capsys.readouterr().err


# Scripts that do something while they are loaded


@pytest.mark.parametrize(
    ("source", "said"),
    [("ask()", "the script asks a model while it is loaded"), ("raise SystemExit(0)", "ends while it is loaded")],
)
def test_a_script_that_works_while_it_is_loaded_is_told_where_to_put_that(source, said, script, refused):
    body = "@Skill.define\ndef ask() -> str:\n    'Ask.'\n    raise NotHandled\n"
    line = refused(script(body + source, "busy.py", model=True) + ":ask")
    assert said in line
    assert 'if __name__ == "__main__":' in line


def test_a_script_that_fails_shows_its_own_traceback(script, launch):
    name = script("def broken():\n    raise ValueError('no')\nbroken()")
    done = launch("prompt", f"{name}:ask", *MODEL, program=[str(CONSOLE)])
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert "ValueError: no" in done.stderr
    assert "effectful_agents" not in done.stderr


def test_a_script_that_is_no_python_is_shown(script, launch):
    done = launch("prompt", script("def ask(:") + ":ask", *MODEL, program=[str(CONSOLE)])
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr


def test_names_that_only_a_run_binds_may_be_used_in_prompts(script, prompt):
    script(
        """
        @Skill.define
        def ask() -> str:
            '''Ask.'''
            raise NotHandled

        @Skill.define
        def other() -> str:
            '''About {subject}.'''
            raise NotHandled

        if __name__ == "__main__":
            subject = "weather"
        """,
        model=True,
    )
    assert "Ask." in prompt("ask")


# Help


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_the_help_explains_the_words(word, capsys):
    with pytest.raises(SystemExit) as caught:
        command(["prompt", word])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert all(each in text for each in ("SCRIPT:SKILL", "NAME=JSON", "--json", "--system-prompt", "<NAME>"))
    assert "effectful-agents prompt llm_examples/limerick.py:limerick" in text
