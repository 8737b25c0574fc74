"""The standard stack: its handlers, their order, and what the model is told of them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, handler, harness
from effectful_agents.errors import OptionError
from effectful_agents.handlers.routing import ToolRouter
from effectful_agents.testing import ScriptedModel

STACK = [
    "AgentLoop",
    "DeferredTools",
    "MixedToolCaller",
    "ToolRouter",
    "LexicalToolExtractor",
    "RateLimit",
    "LiteLLMConfigurer",
    "LocalModel",
    "Fallback",
    "FrameworkDocumenter",
    "HistoryBuilder",
    "SystemPromptDumper",
    "TyTypeChecker",
    "BuiltinExecutor",
    "StatefulReplSynthesizer",
    "FinalBodySynthesizer",
    "PydanticSkillArgValidator",
    "TenacityRetryer",
    "ToolOutputCap",
    "SQLitePersister",
    "Journal",
    "LangfuseTracer",
]
ROUTER = ToolRouter(lambda context: context.names)
OPTIONAL = {
    *("ToolRouter", "SystemPromptDumper", "SQLitePersister", "RateLimit", "Fallback"),
    *("Journal", "LangfuseTracer"),
}
OF_CODE = {"MixedToolCaller", "TyTypeChecker", "BuiltinExecutor", "StatefulReplSynthesizer", "FinalBodySynthesizer"}


def names(**options: Any) -> list[str]:
    return [type(layer).__name__ for layer in harness(**options).layers]


def system_message(**options: Any) -> str:
    @Skill.define
    def pick(least: int) -> int:
        """Pick a number of at least {least}."""
        raise NotHandled

    with handler(harness(**options)), handler(ScriptedModel(3)) as model:
        pick(1)
    return model.requests[0]["messages"][0]["content"]


def headings(text: str, level: int) -> list[str]:
    outside_of_code = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(rf"^{'#' * level} (.*)$", outside_of_code, flags=re.MULTILINE)


def test_the_handlers_stand_in_this_order(tmp_path):
    options = {"dump_system_prompt": tmp_path / "prompt.md", "persist_db": tmp_path / "agents.db"}
    options |= {"journal": tmp_path / "runs.db", "langfuse": True}
    assert names(**options, fallback=["x"], requests_per_minute=60, tool_router=ROUTER) == STACK


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({}, {*OPTIONAL}),
        ({"num_retries": 0}, {*OPTIONAL, "TenacityRetryer"}),
        ({"check_contracts": False}, {*OPTIONAL, "PydanticSkillArgValidator"}),
        ({"tool_collection": "none"}, {*OPTIONAL, "LexicalToolExtractor"}),
        ({"defer_tools": False}, {*OPTIONAL, "DeferredTools"}),
        ({"defer_tools": 0}, {*OPTIONAL}),
        ({"type_checker": "none"}, {*OPTIONAL, "TyTypeChecker"}),
        ({"tool_calling": "json"}, {*OPTIONAL, "MixedToolCaller"}),
        ({"eval_provider": "none"}, {*OPTIONAL, *OF_CODE}),
        ({"system_prompt": "brief"}, {*OPTIONAL, "FrameworkDocumenter", *OF_CODE}),
        ({"model": "local/smollm2"}, {*OPTIONAL, "FrameworkDocumenter", *OF_CODE}),
    ],
)
def test_what_is_switched_off_is_not_installed(options, missing):
    assert names(**options) == [name for name in STACK if name not in missing]


def test_the_full_message_has_the_harness_and_the_task():
    text = system_message(system_prompt="full")
    harness_half, task = headings(text, 1)
    assert harness_half == "Harness"
    assert task == "pick(least: int) -> int"


def test_the_framework_comes_first_then_the_handlers_from_the_inside_out():
    assert headings(system_message(), 2)[:11] == [
        "The effectful-agents framework",
        "TenacityRetryer",
        "PydanticSkillArgValidator",
        "FinalBodySynthesizer",
        "StatefulReplSynthesizer",
        "BuiltinExecutor",
        "TyTypeChecker",
        "FrameworkDocumenter",
        "LexicalToolExtractor",
        "MixedToolCaller",
        "AgentLoop",
    ]


def test_the_task_goes_from_what_is_constant_to_what_changes():
    sections = headings(system_message(), 2)[11:]
    assert [section.partition(" ")[0] for section in sections] == ["Module", "Skill", "Imported", "Lexical"]


def test_the_specification_keeps_the_fields_of_the_docstring():
    assert "Pick a number of at least {least}." in system_message()


def test_a_brief_conversation_has_nothing_but_what_its_authors_wrote():
    @Skill.define
    def pick(least: int) -> str:
        """Pick a number of at least {least}."""
        raise NotHandled

    with handler(harness(system_prompt="brief")), handler(ScriptedModel("3")) as model:
        pick(1)
    assert model.requests[0]["messages"] == [{"role": "user", "content": "Pick a number of at least 1."}]


def test_the_brief_message_of_an_agent_is_its_docstring():
    class Bot:
        """A bot that counts sheep."""

        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

    with handler(harness(system_prompt="brief")), handler(ScriptedModel("ok")) as model:
        Bot().ask()
    assert model.requests[0]["messages"] == [
        {"role": "system", "content": "A bot that counts sheep."},
        {"role": "user", "content": "Ask."},
    ]


def test_an_agent_without_a_docstring_goes_on_without_a_brief_message():
    class Bot(Agent):
        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

    bot = Bot()
    with handler(harness(system_prompt="brief")), handler(ScriptedModel("one", "two")) as model:
        bot.ask()
        bot.ask()
    assert [message["role"] for message in model.requests[1]["messages"]] == ["user", "assistant", "user"]


def test_a_parameter_that_no_model_could_give_does_not_hinder_the_full_message():
    class Engine:
        pass

    @Skill.define
    def start(engine: Engine, times: int = 1) -> str:
        """Start it {times} times."""
        raise NotHandled

    with handler(harness(system_prompt="full")), handler(ScriptedModel("ok")) as model:
        assert start(Engine()) == "ok"
    assert "start(engine: Engine, times: int = 1) -> str" in model.requests[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("eval_provder", "eval_provider"),
        ("turn", "turns"),
        ("jornal", "journal"),
        ("modle", "model"),
        ("runid", "run_id"),
    ],
)
def test_an_option_that_is_misspelled_is_no_setting_of_requests(option, meant):
    with pytest.raises(OptionError, match=f"`{option}` is no option; was `{meant}` meant"):
        harness(**{option: "none"})


def test_settings_of_requests_are_not_taken_for_options():
    harness(
        temperature=0, top_p=1, max_tokens=5, seed=1, timeout=3, stop=["x"], n=1, user="ann", logit_bias={}, tools=[]
    )
