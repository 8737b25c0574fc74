"""Writing the system message to a file."""

from __future__ import annotations

import pytest

from effectful_agents import NotHandled, Skill, fwd, handler, harness
from effectful_agents.handlers.observability import SystemPromptDumper
from effectful_agents.operations.loop import call_system
from effectful_agents.operations.prompt import section
from effectful_agents.testing import ScriptedModel


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


def dumped(path, message) -> str:
    with handler({call_system: lambda *_: message}), handler(SystemPromptDumper(path)):
        assert call_system(section("Harness"), section("Task")) is message
    return path.read_bytes().decode()


@pytest.mark.parametrize("prompt", ["brief", "full"])
def test_the_file_holds_what_the_model_gets(prompt, tmp_path):
    path = tmp_path / "prompt.md"
    with handler(harness(system_prompt=prompt)), handler(SystemPromptDumper(path)):
        with handler(ScriptedModel("ok")) as model:
            assert ask("?") == "ok"
    said = [message["content"] for message in model.requests[0]["messages"] if message["role"] == "system"]
    assert len(said) == (prompt == "full")
    assert path.read_text(encoding="utf-8") == "".join(said)


def test_the_path_may_be_a_text(tmp_path):
    with handler({call_system: lambda *_: {"role": "system", "content": "x"}}):
        with handler(SystemPromptDumper(str(tmp_path / "prompt.md"))):
            call_system(section("Harness"), section("Task"))
    assert (tmp_path / "prompt.md").read_text() == "x"


def test_parts_are_written_below_each_other(tmp_path):
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    message = {"role": "system", "content": [{"type": "text", "text": "a"}, picture, {"type": "text", "text": "b"}]}
    text = dumped(tmp_path / "prompt.md", message)
    assert text.startswith("a\n\n")
    assert text.endswith("\n\nb")


def test_text_that_no_file_can_hold_is_no_failure(tmp_path):
    assert dumped(tmp_path / "prompt.md", {"role": "system", "content": "half \ud83d smile ☺"}) == "half ? smile ☺"


def test_each_conversation_writes_the_file_anew(tmp_path):
    path = tmp_path / "prompt.md"
    path.write_text("something that is longer than what follows")
    assert dumped(path, {"role": "system", "content": "short"}) == "short"


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(OSError, match="absent"):
        dumped(tmp_path / "absent" / "prompt.md", {"role": "system", "content": "x"})


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
