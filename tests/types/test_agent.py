"""Agents: classes whose instances remember."""

from __future__ import annotations

import copy
import dataclasses
import pickle

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness
from effectful_agents.testing import ScriptedModel, calls


class Bot(Agent):
    """A bot."""

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def texts(history) -> list[str]:
    return [m["content"].rpartition("\n")[2] for m in history if m["role"] != "system"]


def scripted(*replies):
    return handler(ScriptedModel(*replies))


def test_calls_continue_the_history_of_the_instance():
    one, other = Bot(), Bot()
    with handler(harness(eval_provider="none")), scripted("a", "b", "c"):
        one.ask("1"), other.ask("2"), one.ask("3")
    assert texts(one.__history__) == ["1", "a", "3", "c"]
    assert texts(other.__history__) == ["2", "b"]


def test_a_class_with_a_skill_is_an_agent_without_deriving_from_one():
    class Plain:
        @Skill.define
        def ask(self) -> str:
            """Say."""
            raise NotHandled

    plain = Plain()
    assert isinstance(plain, Agent)
    with handler(harness(eval_provider="none")), scripted("a"):
        plain.ask()
    assert texts(plain.__history__) == ["Say.", "a"]
    assert plain.__agent_id__ is None


def test_a_class_with_tools_only_is_no_agent():
    class Holder:
        @Tool.define
        def t(self) -> int:
            """One."""
            return 1

    assert not isinstance(Holder(), Agent)
    assert Holder().t() == 1


def test_slotted_classes_have_skills_and_no_history():
    class Slotted:
        __slots__ = ("x",)

        @Skill.define
        def ask(self) -> str:
            """Say {self.x}."""
            raise NotHandled

    slotted = Slotted()
    slotted.x = 3
    assert not isinstance(slotted, Agent)
    with handler(harness(eval_provider="none")), scripted("a", "b"):
        assert [slotted.ask(), slotted.ask()] == ["a", "b"]


def test_dataclass_agents_of_every_kind():
    for options in ({}, {"frozen": True}, {"slots": True}, {"kw_only": True}):

        @dataclasses.dataclass(**options)
        class Named(Agent):
            name: str

            @Skill.define
            def ask(self) -> str:
                """I am {self.name}."""
                raise NotHandled

        agent = Named(name="Ann")
        with handler(harness(eval_provider="none")), scripted("a"):
            agent.ask()
        assert texts(agent.__history__) == ["I am Ann.", "a"], options
        assert agent == Named(name="Ann")
        assert dataclasses.replace(agent, name="Bob").name == "Bob"


def test_an_agent_that_holds_itself():
    bot = Bot()
    bot.me = bot
    with handler(harness(eval_provider="none")), scripted("a"):
        assert bot.me.ask("1") == "a"


def test_a_copy_goes_on_by_itself():
    bot = Bot()
    with handler(harness(eval_provider="none")), scripted("a", "b", "c", "d"):
        bot.ask("1")
        shallow, deep = copy.copy(bot), copy.deepcopy(bot)
        bot.ask("2")
        shallow.ask("3")
        deep.ask("4")
    assert texts(bot.__history__) == ["1", "a", "2", "b"]
    assert texts(shallow.__history__) == ["1", "a", "3", "c"]
    assert texts(deep.__history__) == ["1", "a", "4", "d"]


def test_pickling_keeps_the_history():
    bot = Bot()
    with handler(harness(eval_provider="none")), scripted("a", "b"):
        bot.ask("1")
        again = pickle.loads(pickle.dumps(bot))
        again.ask("2")
    assert texts(again.__history__) == ["1", "a", "2", "b"]
    assert texts(bot.__history__) == ["1", "a"]


def test_inherited_overridden_and_super_skills():
    class Child(Bot):
        @Skill.define
        def ask(self, question: str) -> str:
            """Child: {question}"""
            raise NotHandled

        def both(self, question: str) -> tuple[str, str]:
            return self.ask(question), super().ask(question)

    child = Child()
    with handler(harness(eval_provider="none")), scripted("a", "b"):
        assert child.both("x") == ("a", "b")
    assert texts(child.__history__) == ["Child: x", "a", "x", "b"]


def test_a_skill_taken_from_the_class_is_that_of_the_instance():
    bot = Bot()
    with handler(harness(eval_provider="none")), scripted("a"):
        assert Bot.ask(bot, "1") == "a"
    assert texts(bot.__history__) == ["1", "a"]


def test_stubbing_one_instance_and_all_instances():
    one, other = Bot(), Bot()
    with handler(harness(eval_provider="none")), scripted():
        with handler({one.ask: lambda question: "one"}), handler({Bot.ask: lambda self, question: "all"}):
            assert (one.ask("?"), other.ask("?")) == ("one", "all")


def test_class_methods_in_both_orders_and_static_methods():
    class Helper:
        @classmethod
        @Skill.define
        def outside(cls, x: int) -> str:
            """Outside {x}."""
            raise NotHandled

        @Skill.define
        @classmethod
        def inside(cls, x: int) -> str:
            """Inside {x}."""
            raise NotHandled

        @staticmethod
        @Skill.define
        def static(x: int) -> str:
            """Static {x}."""
            raise NotHandled

    with handler(harness(eval_provider="none")), scripted("a", "b", "c") as model:
        assert [Helper.outside(1), Helper.inside(2), Helper().static(3)] == ["a", "b", "c"]
    assert [r["messages"][-1]["content"].rpartition("\n")[2] for r in model.requests] == [
        "Outside 1.",
        "Inside 2.",
        "Static 3.",
    ]


def test_an_agent_offers_its_own_tools_and_those_set_on_it_later():
    class Worker(Agent):
        @Skill.define
        def work(self) -> str:
            """Work."""
            raise NotHandled

        @Tool.define
        def helper(self, x: int) -> int:
            """Help."""
            return x + 1

        @staticmethod
        @Tool.define
        def fixed() -> str:
            """Fixed."""
            return "fixed"

        @classmethod
        @Tool.define
        def of_class(cls) -> str:
            """Of the class."""
            return cls.__name__

    @Tool.define
    def added() -> str:
        """Added."""
        return "added"

    worker = Worker()
    worker.extra = added
    with handler(harness(eval_provider="none")), scripted(calls("helper", x=1), calls("of_class"), "done") as model:
        assert worker.work() == "done"
    offered = {tool["function"]["name"] for tool in model.requests[0]["tools"]}
    assert {"helper", "fixed", "of_class", "added"} <= offered
    assert "work" not in offered
    results = [m["content"] for m in worker.__history__ if m["role"] == "tool"]
    assert results == ["2", "Worker"]


def test_tools_of_an_agent_in_scope_go_by_its_name():
    bot = Bot()

    @Skill.define
    def discuss() -> str:
        """Discuss."""
        raise NotHandled

    with handler(harness(eval_provider="none")), scripted(calls("bot__ask", question="?"), "inner", "done") as model:
        assert discuss() == "done"
    assert "bot__ask" in {tool["function"]["name"] for tool in model.requests[0]["tools"]}
    assert texts(bot.__history__) == ["?", "inner"]


def test_a_handler_of_one_skill_forwards_to_the_loop():
    @Skill.define
    def shout(text: str) -> str:
        """Shout {text}."""
        raise NotHandled

    bot = Bot()
    with handler(harness(eval_provider="none")), scripted("a", "b", "c") as model:
        with handler({shout: lambda text: fwd(text.upper())}):
            assert shout("hi") == "a"
        with handler({Bot.ask: lambda self, question: fwd(self, question + "?")}):
            assert bot.ask("who") == "b"
            with handler({bot.ask: lambda question: fwd(question.title())}):
                assert Bot.ask(bot, "who") == "c"
    assert model.requests[0]["messages"][-1]["content"].endswith("Shout HI.")
    assert texts(bot.__history__) == ["who?", "b", "Who?", "c"]


def test_agents_tools_and_skills_in_a_prompt_are_shown_by_name():
    class Chatty:
        @Skill.define
        def respond(self) -> str:
            """Respond."""
            raise NotHandled

    @Skill.define
    def simulate(chatty: Chatty) -> str:
        """Use {chatty} and {chatty.respond}."""
        raise NotHandled

    with handler(harness(eval_provider="none")), scripted("done") as model:
        simulate(Chatty())
    assert model.requests[0]["messages"][-1]["content"].endswith("Use Chatty and respond.")
    assert "chatty__respond" in {tool["function"]["name"] for tool in model.requests[0]["tools"]}
