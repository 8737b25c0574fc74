"""What the model is told: the framework, the handlers, and the code around the skill."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import SecretStr

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.encoding import signature_text
from effectful_agents.encoding.signatures import sets_in_order
from effectful_agents.handlers.legibility import FrameworkDocumenter
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.operations.loop import call_system
from effectful_agents.operations.prompt import section
from effectful_agents.runtime import implements
from effectful_agents.testing import ScriptedModel

SECRET = "the value of a global"


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


def system_message(*handlers: Any, **options: Any) -> str:
    with contextlib.ExitStack() as stack:
        stack.enter_context(handler(harness(**options)))
        for each in handlers:
            stack.enter_context(handler(each))
        model = stack.enter_context(handler(ScriptedModel("ok")))
        ask("?")
    return model.requests[0]["messages"][0]["content"]


def harness_half(text: str) -> str:
    return text.partition("\n# ask(")[0]


def sections(text: str) -> list[str]:
    return re.findall(r"^## (.*)$", harness_half(text), flags=re.MULTILINE)


# Handlers that describe themselves


class Careful(PromptInjectingInterpretation):
    """Be careful.

    In all that you do.
    """


class Heir(Careful): ...


class Other(Careful):
    """Be otherwise."""


class Silent(PromptInjectingInterpretation): ...


class Wordy(Careful):
    @implements(call_system)
    def call_system(self, harness_prompt, agent_prompt):
        further = section("Furthermore", "More of it.")
        return super().call_system({**harness_prompt, "content": [*harness_prompt["content"], further]}, agent_prompt)


def test_the_docstring_of_a_handler_is_its_section():
    text = harness_half(system_message(Careful()))
    assert "\n\n## Careful\n\nBe careful.\n\nIn all that you do.\n\n" in text


def test_a_class_without_a_docstring_has_that_of_its_base_under_its_own_name():
    text = harness_half(system_message(Heir()))
    assert "\n\n## Heir\n\nBe careful.\n\nIn all that you do.\n\n" in text
    assert "## Careful" not in text


def test_a_docstring_of_its_own_takes_the_place_of_the_bases():
    text = harness_half(system_message(Other()))
    assert "## Other\n\nBe otherwise." in text
    assert "Be careful." not in text


def test_with_no_docstring_at_all_a_handler_is_silent():
    assert system_message(Silent()) == system_message()


def test_a_handler_may_add_sections_of_its_own():
    text = harness_half(system_message(Wordy()))
    assert text.index("## Furthermore\n\nMore of it.") < text.index("## Wordy\n\nBe careful.")


def test_the_innermost_handler_comes_first():
    names = sections(system_message(Careful(), Other()))
    assert names.index("Other") < names.index("Careful")


def test_no_text_for_programmers_is_in_the_message():
    text = harness_half(system_message(Heir(), Silent()))
    assert not any(word in text for word in ("fwd", "Args:", "`HistoryBuilder`", "PromptInjectingInterpretation"))


def test_the_brief_message_has_no_section_of_a_handler():
    text = system_message(Careful(), system_prompt="brief")
    assert text == system_message(system_prompt="brief")
    assert "Be careful" not in text


# The framework


def test_the_framework_comes_first_whatever_stands_inside():
    text = system_message(Careful(), Wordy())
    assert text.startswith("# Harness\n\n## The effectful-agents framework\n\n### Skill\n\n")


def test_the_framework_is_explained_in_the_words_of_the_library():
    text = harness_half(system_message())
    assert [word for word in ("Skill", "Tool", "Agent") if f"\n### {word}\n" in text] == ["Skill", "Tool", "Agent"]
    assert all((noun.__doc__ or "").splitlines()[0] in text for noun in (Skill, Tool, Agent))


def test_the_documenter_alone_adds_its_two_sections():
    def last(harness_prompt, agent_prompt):
        return [part["title"] for part in harness_prompt["content"]]

    with handler({call_system: last}), handler(FrameworkDocumenter()):
        found = call_system(section("Harness", section("Before", "x")), section("Task"))
    assert found == ["The effectful-agents framework", "Before", "FrameworkDocumenter"]


# The tables


def tables(text: str) -> str:
    return text[text.index("\n## Imported modules") :]


def test_the_tables_name_modules_and_types_and_no_values():
    text = tables(system_message())
    assert "| `os` | `os` |" in text
    assert "| `SECRET` | `str` |" in text
    assert "| `ask` | `Skill` |" in text
    assert SECRET not in text


def test_a_name_stands_in_one_of_the_tables_only():
    rows = re.findall(r"^\| `(\w+)` \|", tables(system_message()), flags=re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert not [row for row in rows if row.startswith("__")]


def test_no_value_of_a_local_is_shown():
    password = "hunter" + "2"

    def make():
        token = password + "!"

        @Skill.define
        def local_skill() -> str:
            """Ask."""
            raise NotHandled

        return local_skill, token

    with handler(harness()), handler(ScriptedModel("ok")) as model:
        make()[0]()
    text = tables(model.requests[0]["messages"][0]["content"])
    assert "| `token` | `str` |" in text
    assert "| `password` | `str` |" in text
    assert "hunter2" not in text


# The same bytes everywhere

PROGRAM = '''
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal
from annotated_types import Ge
from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.testing import ScriptedModel, calls

class Colour(Enum):
    RED = "red"
    BLUE = "blue"

@dataclass
class Box:
    """A box."""
    size: Annotated[int, Ge(1)]
    names: frozenset[str] = frozenset({"a", "b", "c", "d", "e"})
    colour: Colour = Colour.RED

@dataclass(frozen=True)
class Plan:
    """A plan."""
    days: frozenset[str] = frozenset({"a", "b", "c", "d", "e"})

class Own:
    def __init__(self):
        self.tags = {"a", "b", "c", "d", "e"}

    def __repr__(self):
        return f"Own({self.tags})"

MARKER, SETS = object(), {"x", "y", "z"}

@dataclass
class Packer(Agent):
    """Packs."""
    limit: int

    @Skill.define
    def pack(self, box: Box, marker: object = MARKER, *, kind: Literal["a", "b"] | None = None) -> list[Box]:
        """Pack {box}, at most {self.limit}."""
        raise NotHandled

    @Skill.define
    def sort(self, tags: frozenset[str] = frozenset({"a", "b", "c", "d", "e"}), by: Callable = len) -> set[str]:
        """Sort {tags}."""
        raise NotHandled

    @Skill.define
    def mix(
        self, plan: Plan = Plan(), tags: set[str | int | None] = {"a", "b", "c", 1, None},
        number: Annotated[int, frozenset({"a", "b", "c", "d"})] = 0, own: object = Own()
    ) -> str:
        """Mix {tags}."""
        raise NotHandled

    @Tool.define
    def weigh(self, box: Box, units: set[Literal["kg", "g", "t"]]) -> dict[str, float]:
        """Weigh."""
        raise ValueError(f"no scales for {box.size}")

helper = Packer(1)

with handler(harness(model=None, system_prompt=sys.argv[1])):
    replies = [calls("weigh", box={"size": 1}, units=["kg"]), "no list", [Box(2)]]
    with handler(ScriptedModel(*replies)) as model:
        print(Packer(3).pack(Box(1)))
import json
print(json.dumps(model.requests, default=str))
'''


@pytest.fixture(scope="module")
def requests_of(tmp_path_factory) -> Any:
    """A function that runs the program in a folder of its own with a hash seed, and gives all that it sent."""

    def run(folder: str, seed: str, prompt: str) -> str:
        path: Path = tmp_path_factory.mktemp(folder) / "program.py"
        path.write_text(textwrap.dedent(PROGRAM))
        done = subprocess.run(
            [sys.executable, "-W", "error", str(path), prompt],
            cwd=path.parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n", 1)[1]

    return run


@pytest.mark.parametrize("prompt", ["brief", "full"])
def test_the_requests_are_the_same_bytes_in_every_process_and_folder(requests_of, prompt):
    one, other = requests_of("here", "1", prompt), requests_of("elsewhere", "2", prompt)
    assert one == other
    assert not re.search(r"0x[0-9a-f]{6,}", one)
    assert "/here" not in one


def test_a_signature_is_written_as_a_programmer_writes_it():
    @Skill.define
    def pick(
        site: Literal["example.org", "a.b.c"], path: pathlib.Path, by: dict[str, list[Local]] | None = None
    ) -> list[tuple[Local, ...]]:
        """Pick one of {site}."""
        raise NotHandled

    class Local:
        """A class of this function."""

    expected = (
        "pick(site: Literal['example.org', 'a.b.c'], path: Path, by: dict[str, list[Local]] | None = None)"
        " -> list[tuple[Local, ...]]"
    )
    assert signature_text(pick) == expected


def test_sets_are_written_in_order_and_what_is_in_quotes_stays():
    written = "f(a: str = '{b, a}', b: set = {2, 10, 1}, c: dict = {'b': 1, 'a': 2}, d: Any = {<C.B: 1>, <C.A: 2>})"
    assert sets_in_order(written) == (
        "f(a: str = '{b, a}', b: set = {1, 2, 10}, c: dict = {'b': 1, 'a': 2}, d: Any = {<C.A: 2>, <C.B: 1>})"
    )


@pytest.mark.parametrize("mode", ["brief", "full"])
def test_a_default_that_is_a_secret_is_not_shown(mode):
    hidden = SecretStr(SECRET)

    @Tool.define
    def fetch(url: str, token: SecretStr = hidden) -> str:
        """Fetch."""
        return ""

    @Skill.define
    def get(url: str, token: SecretStr = hidden) -> str:
        """Get {url}."""
        raise NotHandled

    with handler(harness(system_prompt=mode)), handler(ScriptedModel("ok")) as model:
        get("x")
    request = json.dumps(model.requests[0])
    assert request.count(SECRET) == (mode == "full")  # where this module's source says it
    (tool,) = [one["function"] for one in model.requests[0]["tools"] if one["function"]["name"] == "fetch"]
    assert "default" not in tool["parameters"]["properties"]["token"]
    assert tool["parameters"]["required"] == ["url"]


def test_the_system_message_stays_as_it_is_in_the_course_of_a_conversation():
    with handler(harness()), handler(ScriptedModel("a", "b")) as model:
        ask("1")
        ask("2")
    first, second = model.requests
    assert first["messages"][0] == second["messages"][0]
