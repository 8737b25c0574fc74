"""Writing the system message to a file."""

from __future__ import annotations

import re

import pytest

from effectful_agents import Agent, NotHandled, Skill, fwd, handler, harness
from effectful_agents.errors import OptionError
from effectful_agents.handlers.observability import SystemPromptDumper
from effectful_agents.operations.counting import TokenCount, count_tokens
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.operations.loop import call_system
from effectful_agents.operations.prompt import section
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


def dumped(path, message) -> str:
    with handler({call_system: lambda *_: message}), handler(SystemPromptDumper(path)):
        assert call_system(section("Harness"), section("Task")) is message
    return path.read_bytes().decode()


class Desk(Agent):
    """You answer briefly."""

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def test_the_file_says_so_where_the_model_gets_no_system_message(tmp_path):
    path = tmp_path / "prompt.md"
    with (
        handler(harness(system_prompt="brief")),
        handler(SystemPromptDumper(path)),
        handler(ScriptedModel("ok")) as model,
    ):
        assert ask("?") == "ok"
    assert [message["role"] for message in model.requests[0]["messages"]] == ["user"]
    assert path.read_text(encoding="utf-8") == "--- no system message\n"


@pytest.mark.parametrize("prompt", ["brief", "full"])
def test_the_file_holds_what_the_model_gets(prompt, tmp_path):
    path = tmp_path / "prompt.md"
    with handler(harness(system_prompt=prompt)), handler(SystemPromptDumper(path)):
        with handler(ScriptedModel("ok")) as model:
            assert (ask if prompt == "full" else Desk().ask)("?") == "ok"
    head, _, text = path.read_text(encoding="utf-8").partition("\n\n")
    assert text == model.requests[0]["messages"][0]["content"] + "\n"
    title, *table = head.splitlines()
    assert re.fullmatch(r"--- system message: [\d,]+ tokens, estimated", title)
    sections = ["Harness", "ask(question: str) -> str"] if prompt == "full" else ["(the task)"]
    assert [row[10:] for row in table if row[10] != " "] == sections
    assert all(row.lstrip().startswith("~") for row in table)


def test_all_sections_are_in_the_table_wherever_it_stands(tmp_path):
    class Outer(PromptInjectingInterpretation):
        """Says something."""

    class Inner(PromptInjectingInterpretation):
        """Says something as well."""

    stack = Layers(harness(), Outer(), SystemPromptDumper(tmp_path / "prompt.md"), Inner(), ScriptedModel("ok"))
    with handler(stack):
        ask("?")
    head, _, text = (tmp_path / "prompt.md").read_text().partition("\n\n")
    titles = [row[10:] for row in head.splitlines()[1:]]
    headings = [f"\n# {title}\n" if title[0] != " " else f"\n## {title.strip()}\n" for title in titles]
    assert {"  Outer", "  Inner", "  AgentLoop", "  The effectful-agents framework"} <= set(titles)
    places = [f"\n{text}".index(heading) for heading in headings]
    assert places == sorted(places)


def test_tokens_that_are_counted_are_not_marked_as_estimates(tmp_path):
    asked = []

    def exact(content, model=None):
        asked.append(model)
        return TokenCount(1234, estimated=False)

    with handler(harness(model="m", dump_system_prompt=tmp_path / "p.md")), handler({count_tokens: exact}):
        with handler(ScriptedModel("ok")):
            ask("?")
    title, row, *_ = (tmp_path / "p.md").read_text().splitlines()
    assert title == "--- system message: 1,234 tokens"
    assert row == "   1,234  Harness"
    assert set(asked) == {"m"}


def test_the_path_may_be_a_text(tmp_path):
    with handler({call_system: lambda *_: {"role": "system", "content": "x"}}):
        with handler(SystemPromptDumper(str(tmp_path / "prompt.md"))):
            call_system(section("Harness"), section("Task"))
    assert (tmp_path / "prompt.md").read_text() == "--- system message: 5 tokens, estimated\nx\n"


def test_parts_are_written_below_each_other(tmp_path):
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    message = {"role": "system", "content": [{"type": "text", "text": "a"}, picture, {"type": "text", "text": "b"}]}
    text = dumped(tmp_path / "prompt.md", message)
    assert text.endswith(" tokens, estimated\na\n[image_url]\nb\n")


def test_text_that_no_file_can_hold_is_no_failure(tmp_path):
    assert dumped(tmp_path / "prompt.md", {"role": "system", "content": "half \ud83d smile ☺"}).endswith(
        "half ? smile ☺\n"
    )


def test_each_conversation_writes_the_file_anew(tmp_path):
    path = tmp_path / "prompt.md"
    path.write_text("something that is longer than what follows")
    assert dumped(path, {"role": "system", "content": "short"}).splitlines()[1:] == ["short"]


@pytest.mark.parametrize(
    ("path", "why"), [("absent/x.md", "no folder"), (".", "is a folder"), ("", "no file"), ("\0", "no file")]
)
def test_a_path_that_cannot_be_is_told_when_the_handler_is_made(tmp_path, monkeypatch, path, why):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=why):
        harness(dump_system_prompt=path)


def test_a_file_that_cannot_be_written_is_told_with_the_option(tmp_path):
    dumper = SystemPromptDumper(tmp_path / "prompt.md")
    (tmp_path / "prompt.md").mkdir()
    with handler(harness()), handler(dumper), handler(ScriptedModel("ok")):
        with pytest.raises(OptionError, match="dump_system_prompt"):
            ask("?")


def test_nothing_is_written_where_the_message_fails(tmp_path):
    def fail(*_):
        raise ZeroDivisionError

    with handler({call_system: fail}), handler(SystemPromptDumper(tmp_path / "prompt.md")):
        with pytest.raises(ZeroDivisionError):
            call_system(section("Harness"), section("Task"))
    assert not list(tmp_path.iterdir())


def test_what_handlers_further_in_do_to_the_prompt_is_in_the_file(tmp_path):
    def more(harness_prompt, agent_prompt):
        return fwd(section("Harness", section("More", "text")), agent_prompt)

    with handler(harness(system_prompt="full")), handler(SystemPromptDumper(tmp_path / "prompt.md")):
        with handler({call_system: more}), handler(ScriptedModel("ok")):
            ask("?")
    assert "## More\n\ntext" in (tmp_path / "prompt.md").read_text()
