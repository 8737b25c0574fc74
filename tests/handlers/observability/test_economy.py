"""What is told of the prompts of a run: of programs that were called, under a journal or not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness, steps
from effectful_agents.errors import NetworkError, ResultDecodingError
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.legibility.compaction import HistoryCompactor
from effectful_agents.handlers.observability import ContextEconomy, economy
from effectful_agents.handlers.observability.context_economy import Section, TurnOutcome
from effectful_agents.handlers.routing import ToolRouter
from effectful_agents.messages import Usage
from effectful_agents.operations.counting import TokenCount, count_tokens
from effectful_agents.operations.legibility import with_section
from effectful_agents.operations.loop import call_system
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.prompt import section
from effectful_agents.operations.records import Phase
from effectful_agents.runtime import fwd
from effectful_agents.testing import ScriptedModel, calls, says


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    return f"It is sunny in {city}."


@Tool.define
def hotels(city: str) -> list[str]:
    """The hotels of a city."""
    return ["Grand", "Station"]


@Skill.define
def trip(month: str) -> int:
    """Suggest the number of a city for {month}."""
    raise NotHandled


class Guide(Agent):
    """You know the north."""

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def reported(reply: Any, read: int, cached: int | None = None, model: str = "") -> Any:
    """A reply with tokens that a provider reports."""
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    told = {**(says(reply) if isinstance(reply, str) else reply)}
    told["usage"] = {"prompt_tokens": read, "completion_tokens": 10, **details}
    return told | ({"model": model} if model else {})


def journalled(program: Callable[[], Any], *replies: Any, inside: Any = None, **options: Any) -> ContextEconomy:
    """The economy of a program that is a run."""
    store = MemoryCheckpointer()
    given = {"system_prompt": "brief", "eval_provider": "none", "model": "gpt-5-mini"} | options
    with handler(harness(**given)), handler(ScriptedModel(*replies)), handler(Journal("run", store)):
        with handler(inside or {}):
            program()
    return economy(store.load("run"))


# --- parts ------------------------------------------------------------------------------------------------------------


def test_a_prompt_is_counted_by_its_parts() -> None:
    seen = journalled(lambda: trip("May"), calls("weather", city="Oslo"), "3")
    first, second = seen.turns
    assert list(first.sections) == [Section.TOOLS, Section.FORM, Section.USER]
    assert list(second.sections) == [Section.TOOLS, Section.FORM, Section.USER, Section.REPLIES, Section.RESULTS]
    assert {name: tool.calls for name, tool in first.tools.items()} == {"hotels": 0, "weather": 1}
    assert second.tools["weather"].results == count_tokens("It is sunny in Oslo.").tokens + 4
    assert second.tools["hotels"].results == 0 < second.tools["hotels"].definition
    assert (first.agreed, second.agreed, second.broken) == (0, first.tokens, None)
    assert [turn.skill for turn in seen.turns] == ["trip", "trip"]


def test_the_system_message_is_counted_by_its_sections() -> None:
    seen = journalled(lambda: trip("May"), "3", system_prompt="full")
    (turn,) = seen.turns
    assert "Harness / AgentLoop" in turn.system
    assert "trip(month: str) -> int / Lexical scope" in turn.system
    assert sum(turn.system.values()) == turn.sections[Section.SYSTEM]


def test_a_brief_system_message_has_one_section() -> None:
    seen = journalled(lambda: Guide().ask("Where?"), "North.")
    assert seen.turns[0].system == {"(the task)": count_tokens("You know the north.").tokens + 4}


def test_what_earlier_calls_left_is_told_apart() -> None:
    guide = Guide()
    seen = journalled(
        lambda: [guide.ask("Where?"), guide.ask("When?")], calls("weather", city="Oslo"), "North.", "Now."
    )
    last = seen.turns[-1]
    assert last.sections[Section.EARLIER] > 0
    assert last.sections[Section.USER] == seen.turns[0].sections[Section.USER]
    assert Section.REPLIES not in last.sections
    assert last.tools["weather"].results == seen.turns[1].tools["weather"].results  # they stay, and are paid again
    assert not seen.breaks


def test_a_handler_that_counts_is_asked() -> None:
    store = MemoryCheckpointer()
    stack = harness(system_prompt="brief", eval_provider="none", tool_collection="none", model="local/a")
    with handler(stack), handler(ScriptedModel("North.", "Now.")), handler(Journal("run", store)):
        guide = Guide()
        guide.ask("Where is it cold?")
        guide.ask("When?")

    def words(content: Any, model: str | None = None) -> TokenCount:
        """A tokenizer of words, for a chat that begins with one of its own and in which each message has two more."""
        assert model == "local/a"
        if isinstance(content, str):
            return TokenCount(len(content.split()), estimated=False)
        return TokenCount(1 + sum(2 + len(message["content"].split()) for message in content), estimated=False)

    with handler({count_tokens: words}):
        first, second = economy(store.load("run")).turns
    assert not first.estimated
    assert first.sections == {Section.SYSTEM: 1 + 2 + 4, Section.USER: 2 + 4}
    assert second.sections == {Section.SYSTEM: 7, Section.EARLIER: 6 + 3, Section.USER: 3}
    assert economy(store.load("run")).estimated


# --- what was reported ------------------------------------------------------------------------------------------------


def test_what_the_provider_reported_is_summed_by_model() -> None:
    replies = [reported(calls("weather", city="Oslo"), 100, 0), reported("3", 200, 150, model="nobody/knows-this")]
    seen = journalled(lambda: trip("May"), *replies)
    assert seen.usage == Usage(input=300, output=20, cache_read=150)
    assert (seen.turns[1].cached, seen.cached) == (0.75, 0.5)
    assert {model: known.turns for model, known in seen.models.items()} == {"gpt-5-mini": 1, "nobody/knows-this": 1}
    assert seen.models["gpt-5-mini"].cost == cost_of("gpt-5-mini", Usage(input=100, output=10, cache_read=0))
    assert seen.models["nobody/knows-this"].cost is None
    assert seen.cost is None


def test_a_share_that_nobody_reported_is_not_zero() -> None:
    seen = journalled(lambda: trip("May"), reported("3", 100))
    assert seen.cached is None
    assert seen.turns[0].cached is None


def test_a_sum_of_what_is_not_known_of_one_turn_is_not_known() -> None:
    replies = [says("no number", usage=Usage()), reported("3", 100, 50)]
    seen = journalled(lambda: trip("May"), *replies)
    assert seen.usage == seen.models["gpt-5-mini"].usage == Usage()
    assert (seen.cost, seen.retries.usage, seen.cached) == (None, Usage(), 0.5)
    lines = seen.text().splitlines()
    assert lines[0] == "run  2 turns  tokens not known  50% from a cache in the 1 turn that reported it  cost not known"
    assert lines[1] == "1 turn has no number of tokens; the others have 100 in, 10 out."
    assert lines[2] == "1 of the replies was refused, and asked for again: tokens not known."
    assert json.loads(seen.to_json())["whole"]["usage"]["input"] is None
    assert any(line.split()[2:] == ["-", "50%", "-", "-"] for line in lines if line.split()[:1] == ["all"])


# --- retries ----------------------------------------------------------------------------------------------------------


def test_refused_replies_are_told_with_what_they_cost() -> None:
    bad_arguments = reported(calls("weather", town="Oslo"), 100)
    seen = journalled(lambda: trip("May"), bad_arguments, calls("weather", city="Oslo"), reported("no number", 70), "3")
    outcomes = [turn.outcome for turn in seen.turns]
    assert outcomes == [TurnOutcome.REFUSED, TurnOutcome.REPLIED, TurnOutcome.REFUSED, TurnOutcome.REPLIED]
    assert (seen.retries.refused, seen.retries.usage.input) == (2, 170)
    assert seen.usage.input == 370  # they are in the sum as well
    (third, broken), *others = seen.breaks
    assert third is seen.turns[2]
    assert not others
    assert broken.where == "message 2 (a reply)"
    assert broken.by == "TenacityRetryer"
    assert broken.lost == seen.turns[1].tokens - seen.turns[0].tokens


def test_a_last_reply_that_was_refused_is_told_by_the_error_of_the_run() -> None:
    store = MemoryCheckpointer()
    with handler(harness(system_prompt="brief", num_retries=1)), handler(ScriptedModel("one", "two")):
        with pytest.raises(ResultDecodingError), handler(Journal("run", store)):
            trip("May")
    seen = economy(store.load("run"))
    assert {turn.outcome for turn in seen.turns} == {TurnOutcome.REFUSED}


def test_a_turn_without_a_reply_is_listed_and_not_counted() -> None:
    store = MemoryCheckpointer()

    class PowerCutError(BaseException):
        """Stands for the end of the process."""

    def run(*replies: Any) -> Any:
        with handler(harness(system_prompt="brief")), handler(ScriptedModel(*replies)), handler(Journal("run", store)):
            return trip("May")

    with pytest.raises(PowerCutError):
        run(calls("weather", city="Oslo"), PowerCutError)
    seen = economy(store.load("run"))
    assert [turn.outcome for turn in seen.attempted] == [TurnOutcome.UNKNOWN]
    assert seen.tokens == seen.turns[0].tokens
    assert seen.turns[1].cost is None
    assert run("3") == 3
    seen = economy(store.load("run"))
    assert [(turn.attempt, turn.outcome.value) for turn in seen.turns] == [
        (1, "replied"),
        (1, "unknown"),
        (2, "replied"),
    ]
    assert (seen.retries.unknown, seen.retries.refused) == (1, 0)
    assert not seen.breaks


def test_calls_of_tools_that_were_made_again_are_counted() -> None:
    store = MemoryCheckpointer()
    ends = [KeyboardInterrupt, None]

    @Tool.define(idempotent=True)
    def look(city: str) -> str:
        """Look at a city."""
        if (end := ends.pop(0)) is not None:
            raise end
        return "There it is."

    @Skill.define
    def find() -> str:
        """Find a city."""
        raise NotHandled

    def run(*replies: Any) -> Any:
        with handler(harness(system_prompt="brief")), handler(ScriptedModel(*replies)), handler(Journal("run", store)):
            return find()

    with pytest.raises(KeyboardInterrupt):
        run(calls("look", city="Oslo"))
    assert run("Oslo.") == "Oslo."
    seen = economy(store.load("run"))
    assert seen.repeated == {"look": 1}
    assert seen.tools["look"].calls == 1
    assert "Calls of tools that were made again: look 1." in seen.text()
    assert [turn.outcome.value for turn in seen.turns] == ["replied", "replied"]


def test_a_turn_that_failed_is_listed_with_its_error() -> None:
    store = MemoryCheckpointer()
    with handler(harness(system_prompt="brief")), handler(ScriptedModel(NetworkError("no line"))):
        with pytest.raises(NetworkError), handler(Journal("run", store)):
            trip("May")
    seen = economy(store.load("run"))
    assert [turn.outcome for turn in seen.turns] == [TurnOutcome.FAILED]
    assert "no line" in seen.turns[0].error
    assert (seen.retries.failed, seen.cost, seen.tokens) == (1, None, 0)


# --- the prefix -------------------------------------------------------------------------------------------------------


def test_the_whole_stack_keeps_the_prefix() -> None:
    guide = Guide()
    replies = [
        calls("weather", city="Oslo"),
        calls("exec_code", code="1 + 1"),
        "North.",
        calls("hotels", city="Bodø"),
        "G.",
    ]
    seen = journalled(
        lambda: [guide.ask("Where?"), guide.ask("When?")], *replies, system_prompt="full", eval_provider="builtin"
    )
    assert not seen.breaks
    assert [turn.agreed for turn in seen.turns[1:]] == [turn.tokens for turn in seen.turns[:-1]]


def test_deferred_tools_keep_the_prefix() -> None:
    used = calls("use_tool", name="weather", arguments={"city": "Oslo"})
    seen = journalled(lambda: trip("May"), calls("search_tools", query="weather"), used, "3", defer_tools=0)
    assert not seen.breaks
    assert set(seen.tools) == {"search_tools", "use_tool", "weather"}
    assert (seen.tools["weather"].calls, seen.tools["weather"].definition) == (1, 0)
    assert seen.tools["weather"].results > 0 == seen.tools["use_tool"].results


def test_a_router_that_changes_the_tools_is_named() -> None:
    router = ToolRouter(lambda context: ["weather"] if context.turn == 1 else ["hotels"], per="turn")
    seen = journalled(lambda: trip("May"), calls("weather", city="Oslo"), "3", tool_router=router)
    ((turn, broken),) = seen.breaks
    assert str(broken) == (
        "the tools: `weather` is not offered any more and `hotels` is offered now (`ToolRouter` may do this)"
    )
    assert (turn.agreed, broken.lost) == (0, seen.turns[0].tokens)


def test_a_compaction_is_named() -> None:
    guide = Guide()
    summaries = ["The user heard a story.", "The user heard two stories."]
    replies = ["Long ago. " * 130, "Far away. " * 130, *summaries, "You are welcome."]
    seen = journalled(
        lambda: [guide.ask("A story!"), guide.ask("Another!"), guide.ask("Thank you!")],
        *replies,
        inside=HistoryCompactor(limit=1000),
    )
    ((turn, broken),) = seen.breaks
    assert turn is seen.turns[-1]
    assert broken.by == "HistoryCompactor"
    assert broken.where == "message 2 (what the user said)"


def test_a_tool_that_had_messages_dropped_is_named() -> None:
    @Skill.define
    def work() -> str:
        """Work."""
        raise NotHandled

    first, second = calls("exec_code", code="1 + 1"), calls("exec_code", code="2 + 2", compact="turn")
    seen = journalled(work, first, second, "done", eval_provider="builtin")
    ((turn, broken),) = seen.breaks
    assert turn is seen.turns[-1]
    assert broken.by == "exec_code"


def test_a_system_message_that_changes_is_told_by_its_section() -> None:
    count = iter(range(10))

    def timed(harness_prompt: Any, agent_prompt: Any) -> Any:
        return fwd(with_section(harness_prompt, section("Clock", f"It is {next(count)} o'clock.")), agent_prompt)

    seen = journalled(lambda: [trip("May"), trip("June")], "3", "4", inside={call_system: timed}, system_prompt="full")
    ((turn, broken),) = seen.breaks
    assert turn is seen.turns[1]
    assert broken.where == "the section `Harness / Clock` of the system message"
    assert "It is 0 o'clock" in broken.how
    assert "It is 1 o'clock" in broken.how
    assert turn.agreed + broken.lost == seen.turns[0].tokens


def test_another_model_is_told() -> None:
    replies = [reported(calls("weather", city="Oslo"), 100, model="a"), reported("3", 200, model="b")]
    ((turn, broken),) = journalled(lambda: trip("May"), *replies).breaks
    assert str(broken) == "the model: was 'a', and is 'b' now (`Fallback` may do this)"
    assert turn.agreed == 0


def test_a_tool_that_only_code_calls_has_been_called() -> None:
    code = "for city in ('Oslo', 'Bergen'): weather(city)"
    seen = journalled(lambda: trip("May"), calls("exec_code", code=code), "3", eval_provider="builtin")
    assert seen.turns[0].tools["weather"].calls == seen.tools["weather"].calls == 2
    assert seen.tools["exec_code"].calls == 1
    assert seen.tools["weather"].results == 0


def test_calls_that_are_nested_or_new_break_nothing() -> None:
    @Skill.define
    def plan(wish: str) -> str:
        """Plan {wish}."""
        raise NotHandled

    seen = journalled(
        lambda: [plan("a trip"), plan("a party")],
        calls("trip", month="May"),
        "3",
        "Bodø.",
        calls("trip", month="June"),
        "4",
        "No.",
    )
    assert [turn.skill for turn in seen.turns] == ["plan", "trip", "plan"] * 2
    assert not seen.breaks


# --- where it is read from --------------------------------------------------------------------------------------------


def test_events_tell_the_same_as_a_journal() -> None:
    def replies() -> list[Any]:
        return [calls("weather", city="Oslo"), "none", "3", calls("weather", city="Rom"), "4"]

    with handler(harness(system_prompt="brief", eval_provider="none", model="gpt-5-mini")):
        with handler(ScriptedModel(*replies())):
            events = [event for month in ("May", "June") for event in steps(trip, month)]
    told = economy(events).as_data()
    recorded = journalled(lambda: [trip("May"), trip("June")], *replies()).as_data()
    assert recorded.pop("run_id") == "run"
    assert told.pop("run_id") == ""
    for turn in [*told["turns"], *recorded["turns"]]:
        del turn["model"], turn["cost"]  # an event has the request as it was before settings were filled in
    assert told["turns"] == recorded["turns"]


def test_an_empty_run_has_no_turns() -> None:
    seen = economy([])
    assert (seen.turns, seen.tokens, seen.cost, seen.cached) == ((), 0, None, None)
    assert "0 turns" in seen.text()


def test_events_of_other_kinds_are_passed_over() -> None:
    with handler(harness(system_prompt="brief")), handler(ScriptedModel("3")):
        events = list(steps(trip, "May"))
    assert economy(event for event in events if event.phase is Phase.ATTEMPTED).turns[0].outcome is TurnOutcome.UNKNOWN


# --- as text and JSON -------------------------------------------------------------------------------------------------


def test_text_has_turns_parts_and_breaks() -> None:
    text = journalled(lambda: trip("May"), "none", reported("3", 1200, 600)).text()
    lines = text.splitlines()
    assert lines[0].startswith("run  2 turns  1,300 tokens in  30 out")
    assert lines[1].startswith("1 of the replies was refused, and asked for again: 100 tokens in, 20 out")
    assert "refused" in next(line for line in lines if "000001-call/000001-model" in line)
    assert "Prompts by part" in lines
    assert any(line.split()[:1] == ["weather"] for line in lines)


def test_json_has_the_turns_and_the_whole() -> None:
    seen = journalled(lambda: trip("May"), "none", reported("3", 1200, 600))
    data = json.loads(seen.to_json())
    assert data["run_id"] == "run"
    assert [turn["outcome"] for turn in data["turns"]] == ["refused", "replied"]
    assert data["whole"]["sections"]["user"] == sum(turn["sections"]["user"] for turn in data["turns"])
    assert data["whole"]["retries"]["refused"] == 1


@pytest.mark.slow
@pytest.mark.local_model
def test_with_the_tokenizer_of_the_model_the_parts_are_what_it_reports() -> None:
    store = MemoryCheckpointer()
    stack = harness(model="local/smollm2", tool_collection="none", max_tokens=200, temperature=0)
    with handler(stack):
        guide = Guide()
        with handler(Journal("run", store)):
            guide.ask("Say yes, and nothing else.")
            guide.ask("Say no, and nothing else.")
        seen = economy(store.load("run"))
    assert [turn.tokens for turn in seen.turns] == [turn.usage.input for turn in seen.turns]
    assert not seen.estimated
    first, second = seen.turns
    assert first.usage.input is not None
    assert second.usage.cache_read is not None
    assert second.usage.cache_read >= first.usage.input  # what was agreed on was not read again
    assert second.agreed == first.tokens
