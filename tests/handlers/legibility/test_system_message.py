"""The system message: its sections and their order, and the same bytes wherever and whenever it is written."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.testing import ScriptedModel, calls

PASSWORD = "swordfish"


@dataclasses.dataclass
class Account:
    """Shows its contents to whoever prints it."""

    token: str = "open " + "sesame"


MARKER, ACCOUNT, HIDDEN = object(), Account(), {"key": "abra" + "cadabra"}


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    raise ValueError(f"no weather in {city}")


@Skill.define
def ask(question: str, times: int = 1) -> str:
    """{question}"""
    raise NotHandled


class Guide(Agent):
    """Somebody who knows the country."""

    def __init__(self, place: str = "Norway") -> None:
        self.place = place

    @Skill.define
    def suggest(self, wish: str, stars: int = 3) -> str:
        """Suggest a city of {self.place} to somebody who wants {wish}."""
        raise NotHandled

    @Skill.define
    def warn(self) -> list[str]:
        """Name dangers of {self.place}."""
        raise NotHandled


class Outer(PromptInjectingInterpretation):
    """Further out."""


class Inner(PromptInjectingInterpretation):
    """Further in."""


def told(skill: Any, *arguments: Any, answer: Any = "ok", **options: Any) -> str:
    """The system message of a call."""
    with handler(harness(**options)), handler(ScriptedModel(answer)) as model:
        skill(*arguments)
    return model.requests[0]["messages"][0]["content"]


def headings(text: str, level: int) -> list[str]:
    """The headings of a level, but for what stands in code."""
    text = re.sub(r"^(`{3,})python\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(rf"^{'#' * level} (.*)$", text, flags=re.MULTILINE)


def part(text: str, title: str) -> str:
    """A section of the second level; those of the task come last, and hold no other of that level."""
    return text[text.rindex(f"\n## {title}\n") :].removeprefix(f"\n## {title}\n").partition("\n## ")[0].strip()


# The sections


def test_the_two_halves_are_ordered_from_constant_to_varying():
    text = told(Guide().suggest, "peace")
    assert headings(text, 1) == ["Harness", "suggest(wish: str, stars: int = 3) -> str"]
    task = text[text.index("\n# suggest(") :]
    assert headings(task, 2) == [f"Module {__name__}", "Agent Guide", "Imported modules", "Lexical scope"]


def test_handlers_speak_in_their_order_and_before_the_task():
    with handler(harness()), handler(Outer()), handler(Inner()), handler(ScriptedModel("ok")) as model:
        ask("?")
    text = model.requests[0]["messages"][0]["content"]
    names = headings(text[: text.index("\n# ask(")], 2)
    assert names[0] == "The effectful-agents framework"
    assert names[1:3] == ["Inner", "Outer"]
    assert names[-1] == "AgentLoop"


def test_the_module_is_shown_by_its_source():
    source = part(told(ask, "?"), f"Module {__name__}")
    assert source.startswith("````python\n")  # there are fences of three in this file
    assert source.endswith("\n````")
    assert '\ndef ask(question: str, times: int = 1) -> str:\n    """{question}"""\n' in source


def of_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, *, keep: bool) -> str:
    """The system message of the skill `ask` of a module, whose file is kept or not."""
    path = tmp_path / "module_of_a_test.py"
    path.write_text(source)
    module = types.ModuleType("module_of_a_test")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    if not keep:
        path.unlink()
    return told(module.__dict__["ask"])


SOURCE = '''
from effectful_agents import NotHandled, Skill
FENCED = """
```
"""
@Skill.define
def ask() -> str:
    """Ask."""
    raise NotHandled
'''


def test_a_module_without_source_is_shown_by_its_docstring(monkeypatch, tmp_path):
    text = of_module(monkeypatch, tmp_path, f'"""What it does."""{SOURCE}', keep=False)
    assert part(text, "Module module_of_a_test") == "What it does."


def test_a_section_with_nothing_in_it_is_left_out(monkeypatch, tmp_path):
    text = of_module(monkeypatch, tmp_path, SOURCE, keep=False)
    assert headings(text[text.index("\n# ask(") :], 2) == ["Skill", "Lexical scope"]


def test_a_fence_in_the_source_does_not_end_it(monkeypatch, tmp_path):
    text = of_module(monkeypatch, tmp_path, SOURCE, keep=True)
    assert f"## Module module_of_a_test\n\n````python\n{SOURCE.strip()}\n````\n\n## Skill\n" in text


def test_each_skill_of_the_agent_is_specified_with_its_holes_and_its_arguments():
    agent = part(told(Guide().suggest, "peace"), "Agent Guide")
    assert agent.startswith("Somebody who knows the country.\n\n### suggest(")
    assert headings(agent, 3) == ["suggest(wish: str, stars: int = 3) -> str", "warn() -> list[str]"]
    first, _, second = agent.partition("\n### warn")
    assert "Suggest a city of {self.place} to somebody who wants {wish}." in first
    schema = json.loads(first.partition("```json\n")[2].partition("```")[0])
    assert schema == {"wish": {"type": "string"}, "stars": {"type": "integer", "default": 3}}
    assert second.endswith("\n\nName dangers of {self.place}.")


def test_a_skill_of_no_agent_is_specified_alone():
    spec = part(told(ask, "?"), "Skill")
    assert headings(spec, 3) == ["ask(question: str, times: int = 1) -> str"]
    assert "\n\n{question}\n\nArguments:\n```json\n" in spec


def test_only_the_task_differs_between_the_skills_of_an_agent():
    one, other = (told(Guide("Chile").warn, answer=["x"]), told(Guide().suggest, "peace"))
    assert one.replace("\n# warn() -> list[str]\n", "\n# suggest(wish: str, stars: int = 3) -> str\n") == other


# What is said about an agent


class Undocumented(Agent):
    @Skill.define
    def ask(self) -> str:
        """Ask."""
        raise NotHandled


class Heir(Guide): ...


@dataclasses.dataclass
class Keeper(Agent):
    marker: object = MARKER
    password: str = PASSWORD

    @Skill.define
    def ask(self) -> str:
        """Ask."""
        raise NotHandled


@dataclasses.dataclass
class KeepingGuide(Guide):
    place: str = PASSWORD


@pytest.mark.parametrize("how", ["brief", "full"])
@pytest.mark.parametrize("agent", [Undocumented, Keeper])
def test_nothing_is_said_about_an_agent_without_a_docstring(agent, how):
    text = told(agent().ask, system_prompt=how)
    if how == "brief":
        assert text == "Ask."  # that is the user message: there is no other
    else:
        assert part(text, f"Agent {agent.__name__}") == "### ask() -> str\n\nAsk."


@pytest.mark.parametrize("how", ["brief", "full"])
@pytest.mark.parametrize("agent", [Heir, KeepingGuide])
def test_an_agent_without_a_docstring_has_that_of_its_base(agent, how):
    text = told(agent().suggest, "peace", system_prompt=how)
    about = text if how == "brief" else part(text, f"Agent {agent.__name__}")
    assert "Somebody who knows the country." in about
    assert PASSWORD not in about


# Values


def test_tables_have_types_and_never_contents():
    account = Account("of a local")
    numbers = [271828]

    @Skill.define
    def local() -> str:
        """Ask."""
        raise NotHandled

    text = told(local)
    scope = part(text, "Lexical scope")
    for name, kind in {"account": "Account", "numbers": "list", "ACCOUNT": "Account", "HIDDEN": "dict"}.items():
        assert f"| `{name}` | `{kind}` |" in scope
    tables = part(text, "Imported modules") + scope
    assert not any(each in tables for each in (account.token, str(numbers[0]), PASSWORD, ACCOUNT.token, HIDDEN["key"]))
    assert ACCOUNT.token not in text
    assert HIDDEN["key"] not in text


def test_imported_modules_are_in_their_own_table():
    text = told(ask, "?")
    assert {"| `json` | `json` |", "| `os` | `os` |"} <= set(part(text, "Imported modules").splitlines())
    assert "| `json` |" not in part(text, "Lexical scope")


def test_whatever_stands_in_a_scope_has_its_row():
    class Meta(type):
        @property
        def __name__(cls) -> str:  # ty: ignore[invalid-method-override]
            raise RuntimeError("no name")

    odd = Meta("Odd", (), {})()
    table = type("a|b`c\nd", (), {})()
    nameless = types.ModuleType("nameless")
    del nameless.__name__

    @Skill.define
    def local() -> str:
        """Ask."""
        raise NotHandled

    text = told(local)
    assert odd is not table
    assert "| `odd` | `Odd` |" in part(text, "Lexical scope").splitlines()
    assert "| `table` | `a b c d` |" in part(text, "Lexical scope").splitlines()
    assert "| `nameless` | `?` |" in part(text, "Imported modules").splitlines()


# The same bytes


@pytest.mark.parametrize("how", ["brief", "full"])
def test_each_request_begins_with_the_bytes_of_the_one_before(how):
    guide = Guide()
    replies: list[Any] = []
    for number in range(10):
        replies += [calls("weather", city=f"city {number}"), f"answer {number}"]
    with handler(harness(system_prompt=how)), handler(ScriptedModel(*replies)) as model:
        for number in range(10):
            guide.place = f"place {number}"
            globals()["BOUND_LATER"] = number
            guide.suggest(f"wish {number}")
    del globals()["BOUND_LATER"]
    sent = [json.dumps(request["messages"])[:-1] for request in model.requests]
    assert len(sent) == 20
    assert all(after.startswith(before) for before, after in itertools.pairwise(sent))
    assert len({json.dumps(request["tools"]) for request in model.requests}) == 1


PROGRAM = '''
import dataclasses, os, sys, threading
from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.testing import ScriptedModel

LOCK, WORDS, HERE = threading.Lock(), {"x", "y", "z", "w"}, os.getcwd()

@dataclasses.dataclass
class Keeper(Agent):
    lock: object = LOCK
    words: frozenset = frozenset(WORDS)
    folder: str = HERE

    @Skill.define
    def ask(self, words: frozenset[str] = frozenset(WORDS), lock: object = LOCK) -> str:
        """Ask for {words}."""
        raise NotHandled

def first():
    secret = object()

    @Skill.define
    def inner(one: str) -> str:
        """Ask {one}."""
        raise NotHandled

    return inner

with handler(harness(system_prompt=sys.argv[1], tool_collection=sys.argv[2])):
    with handler(ScriptedModel("a", "b", "c")) as model:
        keeper = Keeper()
        keeper.ask(), keeper.ask(), first()("x")
for request in model.requests:
    print(request)
'''


@pytest.mark.parametrize(("how", "tools"), [("brief", "explicit"), ("full", "explicit"), ("full", "auto")])
def test_two_processes_in_two_folders_write_the_same(how, tools, tmp_path):
    texts = []
    for folder, seed in (("first-place", "1"), ("other-place", "2")):
        path = tmp_path / folder / "program.py"
        path.parent.mkdir()
        path.write_text(textwrap.dedent(PROGRAM))
        done = subprocess.run(
            [sys.executable, "-W", "error", str(path), how, tools],
            cwd=path.parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    assert texts[0] == texts[1]
    assert not re.search(r"0x[0-9a-f]{6,}", texts[0])
    assert "first-place" not in texts[0]
