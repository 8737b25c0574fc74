"""A program under a registry sends what the same program sends that was written with those docstrings."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from effectful_agents import handler, harness
from effectful_agents.handlers.legibility import InMemoryPrompts, PromptRegistry
from effectful_agents.testing import ScriptedModel

SOURCE = '''
"""A help desk."""

from effectful_agents import Agent, NotHandled, Skill, Tool


@Tool.define
def look(number: int) -> str:
    """Look at {number}."""
    return ""


@Skill.define(
    concurrent=True,
)
def triage(ticket: str, hint: str = "") -> str:
    @triage@
    raise NotHandled


class Desk(Agent):
    """A desk."""

    @Skill.define
    def ask(self, question: str) -> str:
        @Desk.ask@
        raise NotHandled

    @Skill.define
    async def tell(self, text: str) -> str:
        @Desk.tell@
        raise NotHandled


class FrontDesk(Desk):
    """A desk at the front."""


def make():
    @Skill.define
    def thank(name: str) -> str:
        @thank@; raise NotHandled

    return thank


thank = make()
'''

BEFORE = {
    "triage": "Sort {ticket}.",
    "Desk.ask": "{question}",
    "Desk.tell": "Tell {text}.\n\nArgs:\n    text: What to tell.",
    "thank": "Thank {name}.",
}
AFTER = {
    "triage": "Which queue?\n\n  - äöü\n\n{ticket}\n\nArgs:\n    ticket: What was written.",
    "Desk.ask": '{question}\n\nSay "why".',
    "Desk.tell": "Tell {text} {{at}} once.",
    "thank": "Danke, {name}.",
}


def as_written(text: str, margin: str) -> str:
    lines = text.split("\n")
    end = f"\n{margin}" if len(lines) > 1 else ""
    return '"""' + "\n".join([lines[0], *(margin + line if line else "" for line in lines[1:])]) + end + '"""'


def written_with(docstrings: Mapping[str, str], write: Callable[[str, str], str] = as_written) -> str:
    return re.sub(
        r"^( +)@([\w.]+)@", lambda found: found[1] + write(docstrings[found[2]], found[1]), SOURCE, flags=re.MULTILINE
    )


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """A function that loads a source as the module `program`."""
    folder = tmp_path_factory.mktemp("programs")
    numbers = itertools.count()

    def loaded(source: str) -> Any:
        path: Path = folder / f"program{next(numbers)}.py"
        path.write_text(source, encoding="utf-8")
        spec: Any = importlib.util.spec_from_file_location("program", path)
        module = sys.modules["program"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield loaded
    sys.modules.pop("program", None)


CALLS: dict[str, Callable[[Any], Any]] = {
    "a function": lambda program: program.triage("no mail"),
    "a method": lambda program: program.Desk().ask("why"),
    "an inherited method": lambda program: program.FrontDesk().ask("why"),
    "a skill made by a function": lambda program: program.thank("Ann"),
}


def request(load: Any, source: str, call: str, prompts: Mapping[str, str] | None = None, **options: Any) -> Any:
    program = load(source)
    with handler(harness(**options)), handler(ScriptedModel("ok")) as model:
        with handler(PromptRegistry(InMemoryPrompts(prompts))):
            CALLS[call](program)
    return model.requests[0]


@pytest.mark.parametrize("system_prompt", ["full", "brief"])
@pytest.mark.parametrize("call", CALLS)
def test_a_registry_is_as_if_its_texts_stood_in_the_program(load, call, system_prompt):
    before, after = written_with(BEFORE), written_with(AFTER)
    options = {"system_prompt": system_prompt}
    expected = request(load, after, call, **options)
    assert request(load, before, call, AFTER, **options) == expected
    assert request(load, after, call, BEFORE, **options) == request(load, before, call, **options) != expected


@pytest.mark.parametrize("call", CALLS)
def test_what_the_registry_does_not_have_stays(load, call):
    some = {"triage": AFTER["triage"], "Desk.tell": AFTER["Desk.tell"]}
    expected = request(load, written_with({**BEFORE, **some}), call)
    assert request(load, written_with(BEFORE), call, some) == expected


@pytest.mark.parametrize("source", ["def (", "changed = True\n"])
def test_a_source_that_is_not_what_was_loaded_is_shown_as_it_is(load, source):
    program = load(written_with(BEFORE))
    Path(program.__file__).write_text(source)
    with handler(harness()), handler(PromptRegistry(InMemoryPrompts(AFTER))), handler(ScriptedModel("ok")) as model:
        program.triage("no mail")
    system, user = (message["content"] for message in model.requests[0]["messages"])
    assert f"## Module program\n\n```python\n{source.strip()}\n```\n" in system
    assert AFTER["triage"].replace("{ticket}", "no mail") in user


def test_a_text_that_is_the_docstring_already_leaves_the_source_as_it_is_written(load):
    program = written_with(BEFORE, lambda docstring, margin: repr(docstring))
    assert request(load, program, "a function", BEFORE) == request(load, program, "a function")


def test_the_source_shows_what_an_heir_is_asked_with(load):
    prompts = {"Desk.ask": "Base: {question}", "FrontDesk.ask": "Heir: {question}"}
    got = request(load, written_with(BEFORE), "an inherited method", prompts)
    assert docstrings(got)["ask"] == "Heir: {question}"
    got = request(load, written_with(BEFORE), "a method", prompts)
    assert docstrings(got)["ask"] == "Base: {question}"


def docstrings(shown: Any) -> dict[str, str | None]:
    """The docstrings in the source that a system message shows."""
    source = re.search(r"\n## Module program\n\n(`{3,})python\n(.*?)\n\1\n", shown["messages"][0]["content"], re.DOTALL)
    assert source is not None
    nodes = ast.walk(ast.parse(source[2]))
    return {one.name: ast.get_docstring(one) for one in nodes if isinstance(one, ast.FunctionDef)}


def without_module(shown: Any) -> Any:
    system = shown["messages"][0]["content"]
    head, tail = system.partition("\n## Module program\n")[0], system[system.rindex("\n## Skill\n") :]
    return {**shown, "messages": [head + tail, *shown["messages"][1:]]}


TEXTS = st.text(st.sampled_from([*"ab \n\\\"'äß🌍{}`#\t"]), min_size=1, max_size=20)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
def test_any_text_is_as_if_it_stood_in_the_program(load, raw):
    text = inspect.cleandoc(f"{{ticket}} {raw.replace('{', '{{').replace('}', '}}')}.")
    assume(inspect.cleandoc(text) == text)
    program = written_with({**BEFORE, "triage": text}, lambda docstring, margin: repr(docstring))
    expected = request(load, program, "a function")
    got = request(load, written_with(BEFORE), "a function", {"triage": text})
    assert without_module(got) == without_module(expected)
    assert docstrings(got)["triage"] == docstrings(expected)["triage"]
