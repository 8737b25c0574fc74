"""The battery of the profile "stateless chat": docs/profiles/stateless-chat.md."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, Tool, handler, run
from effectful_agents.errors import LimitExceeded, ToolCallDecodingError
from effectful_agents.handlers.durability import HistoryBuilder, Journal, MemoryCheckpointer, TenacityRetryer
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.handlers.policy import CompositionManifest, composition_manifest
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls
from tests.profiles.ways import WAYS

LOOKED_UP: list[int] = []


@Tool.define
def order(number: int) -> str:
    """What was ordered under a number."""
    LOOKED_UP.append(number)
    return "two teapots"


@Skill.define
def chat(text: str) -> str:
    """Help a customer, precisely.

    {text}
    """
    raise NotHandled


@Skill.define(tools=False)
def chat_without_tools(text: str) -> str:
    """Help a customer, precisely.

    {text}
    """
    raise NotHandled


@pytest.fixture(autouse=True)
def _nothing_looked_up() -> None:
    LOOKED_UP.clear()


def profile(*, turns: int = 4) -> Layers:
    return Layers(
        AgentLoop(turns=turns, system_prompt="brief"),
        LexicalToolExtractor(),
        LiteLLMConfigurer("gpt-5-mini"),
        HistoryBuilder(),
        TenacityRetryer(),
    )


def attested(stack: Any = None, *skills: Any) -> CompositionManifest:
    """The manifest, with what every stack of this profile has and has not."""
    manifest = composition_manifest(*(skills or (chat,)), stack=profile() if stack is None else stack)
    assert manifest.stages == manifest.grants == manifest.policies == manifest.preconditions == ()
    assert manifest.code == "none"
    names = [row["handler"] for row in manifest.handlers]
    assert not {"SQLitePersister", "Journal", "ToolRouter", "DeferredTools"} & {*names}
    return manifest


TWO_TURNS = (calls("order", number=7), "Two teapots.")


# 1 and 2. Put together directly; the manifest comes first


def test_the_manifest_has_what_was_declared_and_no_stage():
    manifest = attested()
    assert [row["tool"] for row in manifest.tools] == ["chat_without_tools", "order"]
    assert {"handler": "AgentLoop", "limit": "turns", "value": 4} in manifest.limits
    assert manifest.enforcement == "nothing decides"
    assert manifest.digest == attested().digest
    with handler(profile()):
        assert composition_manifest(chat).digest == manifest.digest


def test_another_composition_is_another_digest():
    other = profile(turns=9)
    more = Layers(profile(), Journal("run", MemoryCheckpointer()))
    digests = [attested().digest, attested(other).digest, composition_manifest(chat, stack=more).digest]
    digests.append(attested(None, chat_without_tools).digest)
    assert len({*digests}) == 4
    assert composition_manifest(chat, stack=more).stages == ("run.journal",)


# 3. What is asked of the provider, and what happens in the end, in every way to make the call


@pytest.mark.parametrize("way", WAYS)
def test_the_provider_gets_instructions_input_and_tools_and_the_tool_runs(way):
    attested()
    with handler(ScriptedModel(*TWO_TURNS)) as model, handler(profile()):
        assert WAYS[way](chat, "What is in order 7?") == "Two teapots."
    first, second = model.requests
    assert first["model"] == "gpt-5-mini"
    [message] = first["messages"]
    assert message["content"].strip() == "Help a customer, precisely.\n\nWhat is in order 7?"
    assert "order" in [tool["function"]["name"] for tool in first["tools"]]
    assert second["messages"][-1]["content"] == "two teapots"
    assert LOOKED_UP == [7]


def test_what_goes_on_is_the_callers_business():
    with handler(ScriptedModel("In May.", "In June.")) as model, handler(profile()):
        first = run(chat, "When does it open?")
        second = run(chat, "And close?", history=first.messages)
    assert (first.value, second.value) == ("In May.", "In June.")
    assert model.requests[1]["messages"][: len(first.messages)] == first.messages
    assert len(second.messages) == 4


# 4. Negative controls: each fails for the reason that is given


def test_without_the_history_nothing_of_an_earlier_call_is_sent():
    with handler(ScriptedModel("In May.", "Which do you mean?")) as model, handler(profile()):
        run(chat, "When does it open?")
        run(chat, "And close?")
    assert len(model.requests[1]["messages"]) == 1
    assert "open" not in str(model.requests[1]["messages"])


@pytest.mark.parametrize("way", WAYS)
def test_without_the_tool_its_effect_does_not_happen(way):
    attested(None, chat_without_tools)
    assert composition_manifest(chat_without_tools, stack=profile()).tools == ()
    with handler(ScriptedModel(*[TWO_TURNS[0]] * 4)) as model, handler(profile()):
        with pytest.raises(ToolCallDecodingError, match=r"there is no tool `order`. The tools are: none"):
            WAYS[way](chat_without_tools, "What is in order 7?")
    assert "tools" not in model.requests[0]
    assert LOOKED_UP == []


@pytest.mark.parametrize("way", WAYS)
def test_a_lower_limit_of_turns_ends_the_call(way):
    attested(profile(turns=1))
    with handler(ScriptedModel(*TWO_TURNS)), handler(profile(turns=1)):
        with pytest.raises(LimitExceeded) as raised:
            WAYS[way](chat, "What is in order 7?")
    assert (raised.value.limit, raised.value.value) == ("turns", 1)
