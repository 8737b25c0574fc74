"""Agents that are kept: what the next process has of them, and which calls save."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, fwd, handler, harness, run
from effectful_agents.errors import EncodingError, StateError
from effectful_agents.handlers.durability import HistoryBuilder, SQLitePersister
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.operations.history import conversation, load_state, save_state
from effectful_agents.operations.loop import call_agent
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.durability.keeping import STEPS, Bot, printed, process, restored, roles, said, stack, talk


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "agents.db"


SECTION = str(SQLitePersister.__doc__).splitlines()[0]


class Plain:
    """An agent that is no dataclass, and not derived from `Agent`."""

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


# From process to process


def test_the_next_process_goes_on_with_the_conversation_and_the_fields(path):
    first = process("talk(sys.argv[1], Bot().ask, calls('note', text='tea'), 'Noted.'); print(0)", path)
    assert printed(first) == 0
    second = process(
        """
bot = Bot()
model = talk(sys.argv[1], bot.ask, "You like tea.")
print(json.dumps([bot.notes, model.requests[0]["messages"][1:], said(bot.__history__)]))
""",
        path,
    )
    notes, sent, history = printed(second)
    assert notes == ["tea"]
    assert roles(sent) == ["user", "assistant", "tool", "assistant", "user"]
    assert history == [None, "null", "Noted.", "You like tea."]


def test_what_is_kept_comes_before_what_a_constructor_was_given(path):
    talk(path, Bot(mood="gay").ask, "one")
    bot = Bot(mood="sad")
    talk(path, bot.ask, "two")
    assert bot.mood == "gay"


def test_what_the_program_sets_between_two_calls_is_kept(path):
    bot = Bot()
    talk(path, bot.ask, "one")
    bot.mood = "gay"
    talk(path, bot.ask, "two")
    assert restored(path).mood == "gay"


def test_the_history_is_there_as_soon_as_it_is_read(path):
    talk(path, Bot().ask, "one")
    with handler(SQLitePersister(path)):
        assert said(Bot().__history__) == ["one"]
    assert said(Bot().__history__) == []


def test_an_agent_that_was_called_before_it_was_kept_brings_its_history_along(path):
    bot = Bot()
    with handler(harness(system_prompt="brief")), handler(ScriptedModel("zero")):
        bot.ask("?")
    talk(path, bot.ask, "one")
    assert said(restored(path).__history__) == ["zero", "one"]
    other = Bot()
    with handler(harness(system_prompt="brief")), handler(ScriptedModel("aside")):
        other.ask("?")
    talk(path, other.ask, "two")
    assert said(restored(path).__history__) == ["zero", "one", "aside", "two"]


def test_two_files_keep_two_agents(path, tmp_path):
    bot = Bot()
    talk(path, bot.ask, "one")
    talk(tmp_path / "other.db", bot.ask, "two")
    talk(path, bot.ask, "three")
    assert said(restored(path).__history__) == ["one", "two", "three"]
    assert said(restored(tmp_path / "other.db").__history__) == ["one", "two"]


def test_of_two_persisters_the_inner_one_decides(path, tmp_path):
    with handler(ScriptedModel("one")), handler(stack(tmp_path / "outer.db")), handler(SQLitePersister(path)):
        Bot().ask("?")
    assert said(restored(path).__history__) == ["one"]
    assert SQLitePersister(tmp_path / "outer.db").agents() == []


def test_every_way_to_make_an_agent_is_kept(path):
    class Named(Agent):
        def __init__(self) -> None:
            self.__agent_id__ = "named"

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    class OfClass:
        __agent_id__ = "of class"

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    @dataclasses.dataclass(frozen=True, slots=True)
    class Frozen(Agent):
        __agent_id__: str
        names: tuple[str, ...] = ()

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    late: Any = Plain()
    late.__agent_id__ = "late"
    for agent in (Named(), OfClass(), late, Frozen("frozen", ("Ann",))):
        talk(path, agent.ask, agent.__agent_id__)
    assert SQLitePersister(path).agents() == ["named", "of class", "late", "frozen"]
    assert said(restored(path, Named()).__history__) == ["named"]
    assert restored(path, Frozen("frozen")).names == ("Ann",)


def test_a_skill_that_is_awaited_is_kept(path):
    import asyncio

    from effectful_agents import acall

    async def main() -> None:
        with handler(ScriptedModel("one")), handler(stack(path)):
            await acall(Bot().ask, "?")

    asyncio.run(main())
    assert said(restored(path).__history__) == ["one"]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda bot: pickle.loads(pickle.dumps(bot))])
def test_a_copy_goes_on_with_the_same_conversation(path, again):
    bot = Bot()
    talk(path, bot.ask, "one")
    other = again(bot)
    talk(path, bot.ask, "two")
    talk(path, other.ask, "three")
    talk(path, bot.ask, "four")
    assert said(other.__history__) == ["one", "two", "three"]
    assert said(bot.__history__) == said(restored(path).__history__) == ["one", "two", "three", "four"]


def test_a_history_that_the_program_sets_is_kept_as_it_is(path):
    bot = Bot()
    talk(path, bot.ask, "one", "two")
    bot.__history__ = bot.__history__[:3]
    talk(path, bot.ask, "three")
    assert said(restored(path).__history__) == ["one", "three"]
    bot.__history__ = []
    talk(path, bot.ask, "four")
    assert said(restored(path).__history__) == ["four"]


def test_a_call_with_a_history_of_its_own_leaves_that_of_the_agent(path):
    bot = Bot()
    talk(path, bot.ask, "one")
    given = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    with handler(ScriptedModel(calls("note", text="tea"), "two")), handler(stack(path)):
        run(bot.ask, "?", history=given)
    assert said(restored(path).__history__) == ["one"]
    assert restored(path).notes == ["tea"]


def test_a_handler_that_keeps_conversations_elsewhere_is_respected(path):
    elsewhere: list[Any] = []
    with handler(ScriptedModel("one")), handler(stack(path)), handler({conversation: lambda skill: elsewhere}):
        Bot().ask("?")
    assert said(elsewhere) == ["one"]
    assert said(restored(path).__history__) == []


def test_without_anything_that_builds_histories_fields_are_kept(path):
    with handler({call_agent: lambda skill, *args: skill.agent.notes.append("tea")}), handler(SQLitePersister(path)):
        Bot().ask("?")
    assert restored(path).notes == ["tea"]


def test_saving_and_loading_can_be_asked_for(path):
    with handler(SQLitePersister(path)):
        save_state(Bot(notes=["tea"]))
        bot = Bot()
        load_state(bot)
    assert bot.notes == ["tea"]


def test_an_agent_without_an_identifier_stays_as_it_is(path):
    bot = Bot(None, ["tea"])
    with handler(SQLitePersister(path)):
        save_state(bot)
        load_state(bot)
    assert (bot.notes, SQLitePersister(path).agents()) == (["tea"], [])


def test_messages_may_hold_any_text(path):
    text = "half \ud83d of \x00 it \u2028 😀"
    bot = Bot()
    bot.__history__ = [{"role": "user", "content": text}, {"role": "assistant", "content": text}]
    talk(path, bot.ask, "one")
    assert said(restored(path).__history__) == [text, "one"]


def test_a_message_that_is_no_json_is_told(path):
    bot: Any = Bot()
    bot.__history__ = [{"role": "user", "content": "Hello", "sent": object()}]
    with pytest.raises(EncodingError, match="a message of the role `user` cannot be kept"):
        talk(path, bot.ask, "one")
    assert SQLitePersister(path).agents() == []


# The system message


def test_a_restored_history_begins_with_the_present_system_message(path):
    talk(path, Bot().ask, "one")

    @dataclasses.dataclass
    class Bot2(Bot):
        """Answers in verse."""

    bot = Bot2()
    model = talk(path, bot.ask, "two")
    sent = model.requests[0]["messages"]
    assert roles(sent) == ["system", "user", "assistant", "user"]
    assert "Answers in verse." in sent[0]["content"]
    assert bot.__history__[0] is sent[0]


def test_within_a_process_the_system_message_stays(path):
    bot, other = Bot(), Bot()
    first = talk(path, bot.ask, "one").requests[0]["messages"][0]
    talk(path, other.ask, "two")
    assert talk(path, bot.ask, "three").requests[0]["messages"][0] is first


def test_only_an_agent_that_is_kept_is_told_that_it_remembers(path):
    def told(skill: Any) -> bool:
        return SECTION in talk(path, skill, "one").requests[0]["messages"][0]["content"]

    @Skill.define
    def ask(question: str) -> str:
        """{question}"""
        raise NotHandled

    assert told(Bot().ask)
    assert not told(Bot(None).ask)
    assert not told(ask)


def test_inside_a_call_of_a_kept_agent_others_are_not_told(path):
    other = Bot(None)
    STEPS["other"] = lambda: other.ask("inner")
    model = talk(path, Bot().ask, calls("run", step="other"), "inner", "outer")
    outer, inner, again = (SECTION in one["messages"][0]["content"] for one in model.requests)
    assert (outer, inner, again) == (True, False, True)


# Who is kept


def test_an_agent_without_an_identifier_is_never_written(path):
    transient, kept = Bot(None, ["secret"]), Bot()
    talk(path, transient.ask, "one")
    STEPS["transient"] = lambda: transient.ask("?")
    talk(path, kept.ask, calls("run", step="transient"), "two", "three")
    assert said(transient.__history__) == ["one", "two"]
    assert SQLitePersister(path).agents() == ["bot"]
    assert b"secret" not in b"".join(one.read_bytes() for one in path.parent.iterdir())


def test_a_class_can_say_itself_whether_it_is_kept(path):
    class Unkept(Bot):
        @property
        def __persistent__(self) -> bool:
            return False

    talk(path, Unkept().ask, "one")
    assert SQLitePersister(path).agents() == []


@pytest.mark.parametrize("id", ["a/b", "../x", "'; DROP TABLE agents; --", "ü\0\n", "\ud800", " ", "%_", "x" * 5000])
def test_an_identifier_is_any_text(path, id):
    talk(path, Bot(id).ask, "one")
    talk(path, Bot(id + "2").ask, "other")
    assert len(said(restored(path, Bot(id)).__history__)) == 1
    assert SQLitePersister(path).agents() == [id, id + "2"]


@pytest.mark.parametrize("id", ["", 7, b"bot"])
def test_an_identifier_that_is_no_text_is_told_before_anything_is_asked(path, id):
    with pytest.raises(StateError, match="`__agent_id__` of a `Bot` is"):
        talk(path, Bot(id).ask, "one")


def test_an_object_cannot_become_another_agent(path):
    bot = Bot("ann")
    talk(path, bot.ask, "one")
    bot.__agent_id__ = "bob"
    with pytest.raises(StateError, match="kept as `ann` cannot become `bob`"):
        talk(path, bot.ask, "two")
    assert SQLitePersister(path).agents() == ["ann"]


def test_agents_of_two_classes_cannot_share_an_identifier(path):
    @dataclasses.dataclass
    class Critic(Agent):
        __agent_id__: str = "bot"

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    talk(path, Bot().ask, "one")
    with pytest.raises(StateError, match=r"`bot` of the database .* is a `Bot`, and this is a `Critic`"):
        talk(path, Critic().ask, "two")
    assert SQLitePersister(path).adopt("bot", Critic)
    assert said(restored(path, Critic()).__history__) == ["one"]
    assert not SQLitePersister(path).adopt("nobody", Critic)


def test_what_is_forgotten_is_gone_for_objects_that_knew_it_too(path):
    bot = Bot()
    talk(path, bot.ask, calls("note", text="tea"), "one", "two")
    assert SQLitePersister(path).forget("bot")
    assert not SQLitePersister(path).forget("bot")
    talk(path, bot.ask, "three")
    assert said(bot.__history__) == said(restored(path).__history__) == ["three"]
    assert restored(path).notes == ["tea"]


def test_a_file_that_was_removed_is_as_one_in_which_all_is_forgotten(path):
    bot = Bot()
    talk(path, bot.ask, "one")
    for one in path.parent.iterdir():
        one.unlink()
    talk(path, bot.ask, "two")
    assert said(restored(path).__history__) == ["two"]


# Calls inside calls


def test_a_call_inside_a_call_of_the_same_agent_is_saved_with_it(path):
    bot = Bot()
    seen = []
    STEPS["look"] = lambda: seen.append(said(restored(path).__history__))
    talk(path, bot.ask, calls("consult", question="?"), "inner", calls("run", step="look"), "outer")
    assert seen == [[]]
    assert said(restored(path).__history__)[-2:] == ["outer", "inner"]


def test_a_call_of_another_agent_is_saved_when_it_ends_whatever_becomes_of_the_outer_one(path):
    other = Bot("other")
    STEPS["other"] = lambda: other.ask("?")
    with pytest.raises(KeyError):
        talk(path, Bot().ask, calls("run", step="other"), "inner", KeyError("down"))
    assert said(restored(path, Bot("other")).__history__) == ["inner"]
    assert SQLitePersister(path).agents() == ["other"]


def test_an_agent_inside_another_one_inside_itself_is_saved_once(path):
    bot, other = Bot(), Bot("other")
    STEPS.update(other=lambda: other.ask("?"), bot=lambda: bot.consult("?"))
    replies = [calls("run", step="other"), calls("run", step="bot"), "innermost", "inner", KeyError("down")]
    with pytest.raises(KeyError):
        talk(path, bot.ask, *replies)
    assert SQLitePersister(path).agents() == ["other"]
    assert said(bot.__history__) == []
    talk(path, bot.ask, *replies[:-1], "outer")
    assert said(restored(path).__history__)[-2:] == ["outer", "innermost"]


# Calls that raise


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
@pytest.mark.parametrize("turns", [0, 1, 2])
def test_a_call_that_raises_saves_nothing(path, error, turns):
    talk(path, Bot().ask, calls("note", text="tea"), "one")
    bot = Bot()
    with pytest.raises(type(error)):
        talk(path, bot.ask, *[calls("note", text="coffee")] * turns, error)
    assert said(bot.__history__) == [None, "null", "one"]
    assert restored(path).notes == ["tea"]
    assert bot.notes == ["tea", *["coffee"] * turns]  # what was done to an object stays done


def test_a_handler_that_raises_when_the_call_is_done_has_nothing_saved(path):
    def failing(*_: Any, **__: Any) -> Any:
        fwd()
        raise LookupError("late")

    outer = (AgentLoop(), HistoryBuilder())
    with handler(ScriptedModel("one")), handler(Layers(*outer)), handler({call_agent: failing}):
        with handler(SQLitePersister(path)), pytest.raises(LookupError):
            Bot().ask("?")
    assert SQLitePersister(path).agents() == []


def test_a_call_that_cannot_be_saved_raises_and_leaves_the_history(path):
    bot = Bot()
    talk(path, bot.ask, "one")
    STEPS["spoil"] = lambda: setattr(bot, "mood", object())
    with pytest.raises(StateError, match="the field `mood` of `Bot`"):
        talk(path, bot.ask, calls("run", step="spoil"), "two")
    assert said(bot.__history__) == ["one"]
    bot.mood = "calm"
    talk(path, bot.ask, "three")
    assert said(bot.__history__) == said(restored(path).__history__) == ["one", "three"]


def test_a_reply_that_was_refused_is_not_kept(path):
    @dataclasses.dataclass
    class Counter(Agent):
        __agent_id__: str = "counter"

        @Skill.define
        def count(self) -> int:
            """Count."""
            raise NotHandled

    with handler(harness(system_prompt="brief", persist_db=path)), handler(ScriptedModel("many", "7")):
        assert Counter().count() == 7
    assert said(restored(path, Counter()).__history__) == ["7"]
    json.dumps(restored(path, Counter()).__history__)
