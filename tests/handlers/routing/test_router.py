"""Which tools a turn offers."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, acall, fwd, handler, harness, propagate, steps
from effectful_agents.errors import ConfigurationError, LimitExceeded, OptionError
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.handlers.routing import RoutingContext, ToolRouter, keyword_router
from effectful_agents.operations.loop import call_assistant
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.routing.desk import DONE, TOOLS, Clerk, ask, asked, names, read_mail, report, weather

WORDS = keyword_router({"mail": ["read_mail", "send_mail"], "weather": ["weather"]})


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


def seen_by(*palette: str) -> tuple[list[RoutingContext], Any]:
    seen: list[RoutingContext] = []

    def route(context: RoutingContext) -> Any:
        seen.append(context)
        return palette

    return seen, route


def test_two_cues_give_two_palettes():
    model = asked(ToolRouter(WORDS), "a", "b", call=lambda: [ask("Any MAIL?"), ask("Weather!")])
    assert list(map(names, model.requests)) == [["read_mail", "send_mail"], ["weather"]]


def test_without_a_router_all_of_them_are_offered():
    model = asked(None, "a", call=lambda: ask("Any mail?"), eval_provider="none")
    assert names(model.requests[0]) == ["best", "read_mail", "report", "send_mail", "weather"]


def test_nothing_is_offered_where_no_cue_is_found_and_nothing_else_is_said():
    model = asked(ToolRouter(WORDS), "a")
    assert "tools" not in model.requests[0]
    model = asked(ToolRouter(keyword_router({"mail": TOOLS}, default=[weather])), "a")
    assert names(model.requests[0]) == ["weather"]


def test_what_is_always_in_view_is_there_beside_the_palette():
    model = asked(ToolRouter(WORDS, always=[weather, "nobody"]), "a", call=lambda: ask("mail"))
    assert names(model.requests[0]) == ["read_mail", "send_mail", "weather"]


def test_an_offered_tool_is_called():
    model = asked(ToolRouter(WORDS), calls("weather", city="Oslo"), "Sunny.", call=lambda: ask("Weather?"))
    assert DONE == [("weather", "Oslo")]
    assert names(model.requests[1]) == ["weather"]


def test_the_order_of_the_tools_does_not_depend_on_that_of_the_names():
    offers = []
    for palette in (["weather", "read_mail"], ["read_mail", "weather"], {"read_mail", "weather"}, [weather, read_mail]):
        _, route = seen_by(*palette)
        offers.append(asked(ToolRouter(route), "a").requests[0])
    assert all(one == offers[0] for one in offers)


def test_a_function_is_told_what_is_known():
    seen, route = seen_by("weather")
    asked(ToolRouter(route), "a", call=lambda: ask("Is it warm?"), eval_provider="none")
    assert seen == [RoutingContext("Is it warm?", ask, seen[0].tools, 1, {"question": "Is it warm?"})]
    assert seen[0].names == ("read_mail", "send_mail", "weather", "best", "report")


def test_a_call_without_arguments_says_its_prompt():
    seen, route = seen_by()
    model = asked(ToolRouter(WORDS), "a", call=report)
    assert names(model.requests[0]) == ["weather"]
    asked(ToolRouter(route), "a", call=report)
    assert seen[0].text == "Report on the weather of today."


def test_the_agent_is_no_argument_and_its_methods_are_tools():
    seen, route = seen_by("file")
    clerk = Clerk()
    model = asked(ToolRouter(route), "a", call=lambda: clerk.serve("Keep this"))
    assert (seen[0].text, seen[0].arguments) == ("Keep this", {"wish": "Keep this"})
    assert {"file", "shred", "weather"} <= {*seen[0].names}
    assert names(model.requests[0]) == ["file"]


def test_it_is_chosen_once_in_a_call_or_before_each_turn():
    replies = (calls("weather", city="Oslo"), calls("weather", city="Rome"), "Both.")
    for per, turns in (("call", [1]), ("turn", [1, 2, 3])):
        seen, route = seen_by("weather")
        asked(ToolRouter(route, per=per), *replies)
        assert [context.turn for context in seen] == turns


def test_a_palette_may_change_from_turn_to_turn():
    def route(context: RoutingContext) -> list[str]:
        return ["weather"] if context.turn == 1 else ["read_mail"]

    replies = (calls("weather", city="Oslo"), calls("weather", city="Rome"), calls("read_mail"), "Done.")
    model = asked(ToolRouter(route, per="turn"), *replies)
    # The call that is answered with an error is another attempt at the same turn, which is asked again.
    assert list(map(names, model.requests)) == [["weather"], *[["read_mail"]] * 3]
    assert DONE == [("weather", "Oslo"), ("read", "inbox")]


def test_an_attempt_that_is_repeated_is_the_same_turn():
    @Skill.define
    def count(question: str) -> int:
        """{question}"""
        raise NotHandled

    seen, route = seen_by("weather")
    replies = ("many", "several", calls("weather", city="Oslo"), "few", 3)
    model = asked(ToolRouter(route, per="turn"), *replies, call=lambda: count("How many?"))
    assert [context.turn for context in seen] == [1, 2]
    assert all(names(request) == ["weather"] for request in model.requests)


def test_a_turn_that_a_handler_takes_twice_is_one_turn():
    """A handler further inside may ask for two replies and choose."""
    seen, route = seen_by("weather")

    def better_of_two(*_: Any, **__: Any) -> Any:
        return max(fwd(), fwd(), key=lambda reply: len(reply[0].get("content") or ""))

    stack = harness(system_prompt="brief", tool_router=ToolRouter(route, per="turn"))
    replies = (calls("weather", city="Oslo"), calls("weather", city="Rome"), "Sunny.", "Sunny and warm.")
    with handler(stack), handler({call_assistant: better_of_two}), handler(ScriptedModel(*replies)):
        assert ask("x") == "Sunny and warm."
    assert [context.turn for context in seen] == [1, 2]


def test_every_call_of_a_conversation_has_its_own_palette():
    clerk = Clerk()
    router = ToolRouter(keyword_router({"keep": ["file"], "destroy": ["shred"]}))
    replies = (calls("file", paper="a"), "kept", calls("shred", paper="b"), "gone")
    model = asked(router, *replies, call=lambda: [clerk.serve("keep it"), clerk.serve("destroy it")])
    assert list(map(names, model.requests)) == [["file"], ["file"], ["shred"], ["shred"]]
    assert DONE == [("file", "a"), ("shred", "b")]


def test_a_nested_call_is_routed_by_what_it_says_itself():
    @Skill.define
    def outer(wish: str) -> str:
        """{wish}"""
        raise NotHandled

    router = ToolRouter(keyword_router({"delegate": [ask, "outer"], "weather": ["weather"]}))
    replies = (calls("ask", question="The weather?"), calls("weather", city="Oslo"), "Sunny.", "It is sunny.")

    @Skill.define
    def chief(wish: str) -> str:
        """{wish}"""
        raise NotHandled

    model = asked(router, *replies, call=lambda: chief("delegate"))
    assert list(map(names, model.requests)) == [["ask", "outer"], ["weather"], ["weather"], ["ask", "outer"]]
    assert DONE == [("weather", "Oslo")]


def test_a_skill_that_sees_no_tools_asks_no_router():
    seen, route = seen_by("nobody")

    @Skill.define(tools=False)
    def bare(text: str) -> str:
        """{text}"""
        raise NotHandled

    asked(ToolRouter(route), "a", call=lambda: bare("x"), eval_provider="none")
    assert not seen


def test_nothing_is_added_that_was_not_in_the_catalogue():
    """Routing grants nothing: a name, or a tool, that the skill does not see is not offered for being named."""
    _, route = seen_by("weather", "file")
    model = asked(ToolRouter(route, registered=[*TOOLS, "file"]), "a")
    assert names(model.requests[0]) == ["weather"]
    model = asked(ToolRouter(lambda context: [weather], registered=[weather]), "a", tool_collection="none")
    assert "tools" not in model.requests[0]


def test_of_two_routers_the_palette_is_what_both_have():
    _, first = seen_by("weather", "read_mail")
    _, second = seen_by("weather", "send_mail")
    for one, other in ((first, second), (second, first)):
        stack = harness(system_prompt="brief", tool_collection="none", defer_tools=False)
        routers = ToolRouter(one, registered=TOOLS), ToolRouter(other, registered=TOOLS)
        with handler(stack), handler(routers[0]), handler(routers[1]), handler(LexicalToolExtractor()):
            with handler(ScriptedModel("a")) as model:
                ask("x")
        assert names(model.requests[0]) == ["weather"]


def test_the_tools_of_other_handlers_are_in_a_palette_that_names_them():
    _, code_only = seen_by("exec_code")
    model = asked(ToolRouter(code_only), calls("exec_code", code="print(6 * 7)"), "42", eval_provider="builtin")
    assert names(model.requests[0]) == ["exec_code"]
    assert model.requests[1]["messages"][-1]["content"] == "42\n"
    model = asked(ToolRouter(WORDS), "a", call=lambda: ask("mail"), eval_provider="builtin")
    assert names(model.requests[0]) == ["read_mail", "send_mail"]
    model = asked(ToolRouter(WORDS, always=["exec_code"]), "a", call=lambda: ask("mail"), eval_provider="builtin")
    assert names(model.requests[0]) == ["exec_code", "read_mail", "send_mail"]


def test_a_search_finds_what_is_in_the_palette():
    replies = (calls("search_tools", query="mail weather"), "Found.")
    model = asked(ToolRouter(WORDS), *replies, call=lambda: ask("mail"), defer_tools=0, eval_provider="none")
    assert names(model.requests[0]) == ["search_tools", "use_tool"]
    found = model.requests[1]["messages"][-1]["content"]
    assert "read_mail" in found
    assert "The weather" not in found


def test_a_program_that_awaits_or_follows_a_call_sees_the_same():
    stack = harness(system_prompt="brief", tool_router=ToolRouter(WORDS))
    replies = (calls("weather", city="Oslo"), "Sunny.")
    requests = []
    with handler(stack), handler(ScriptedModel(*replies)) as model:
        assert asyncio.run(acall(ask, "Weather?")) == "Sunny."
        requests.append(model.requests)
    with handler(stack), handler(ScriptedModel(*replies)) as model:
        assert [event.step_id for event in steps(ask, "Weather?")]
        requests.append(model.requests)
    assert requests[0] == requests[1]
    assert DONE == [("weather", "Oslo")] * 2


def test_a_router_may_be_asynchronous():
    async def route(context: RoutingContext) -> list[str]:
        await asyncio.sleep(0)
        return ["weather"]

    with handler(harness(system_prompt="brief", tool_router=ToolRouter(route))), handler(ScriptedModel("a")) as model:
        asyncio.run(acall(ask, "x"))
    assert names(model.requests[0]) == ["weather"]


def test_calls_at_the_same_time_have_their_own_palettes():
    """Many calls of one router, in one event loop and in threads."""
    told: list[tuple[str, list[str]]] = []

    def reply(request: Any) -> Any:
        text = next(message["content"] for message in request["messages"] if message["role"] == "user")
        told.append((text, names(request)))
        return calls("weather", city="Oslo") if "weather" in text and len(request["messages"]) == 1 else "done"

    texts = [f"{'weather' if number % 3 else 'mail'} {number}" for number in range(60)]
    stack = harness(system_prompt="brief", eval_provider="none", tool_router=ToolRouter(WORDS, per="turn"))
    with handler(stack), handler(ScriptedModel(*[reply] * 200)):

        async def all_of_them() -> None:
            await asyncio.gather(*(acall(ask, text) for text in texts))

        asyncio.run(all_of_them())
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(propagate(ask), texts))
    assert len(told) == 2 * (60 + 40)
    for text, offered in told:
        assert offered == (["weather"] if "weather" in text else ["read_mail", "send_mail"])


def test_a_turn_that_belongs_to_no_skill_goes_past_it():
    seen, route = seen_by()
    with handler(AgentLoop()), handler(ToolRouter(route)), handler(ScriptedModel("a")) as model:
        call_assistant([{"role": "user", "content": "?"}], str, {}, frozenset({weather}))
    assert not seen
    assert names(model.requests[0]) == ["weather"]


def test_the_same_palette_is_the_same_set_of_tools():
    """By that the loop knows that the definitions are made already."""
    sets = []

    def note(messages: Any, response_type: Any, env: Any, tools: Any = frozenset()) -> Any:
        sets.append(tools)
        return fwd()

    stack = harness(system_prompt="brief", tool_collection="none", defer_tools=False)
    _, route = seen_by("weather")
    with handler(stack), handler({call_assistant: note}), handler(ToolRouter(route, per="turn")):
        with handler(LexicalToolExtractor()), handler(ScriptedModel(calls("weather", city="Oslo"), "a", "b")):
            ask("x"), ask("y")
    assert len(sets) == 3
    assert all(one is sets[0] for one in sets)


# What is wrong is told


def test_a_name_that_nobody_knows_is_told():
    _, route = seen_by("weather", "wether")
    with pytest.raises(ConfigurationError, match=r"the router `.*route` names 'wether'.*Was 'weather' meant\?"):
        asked(ToolRouter(route), "a")
    with pytest.raises(ConfigurationError, match=r"names 'nobody'.*The tools of `ask` are.*`read_mail`"):
        asked(ToolRouter(keyword_router({"hello": ["nobody"]})), "a")


def test_a_table_with_a_name_that_is_not_registered_is_refused_when_it_is_made():
    with pytest.raises(ConfigurationError, match=r"`keyword_router` names 'read_mial'.*Was 'read_mail' meant"):
        keyword_router({"mail": ["read_mial"]}, registered=TOOLS)
    with pytest.raises(ConfigurationError, match="names 'read_mial'"):
        ToolRouter(keyword_router({"mail": ["read_mial"]}), registered=TOOLS)
    with pytest.raises(ConfigurationError, match="names 'nothing'"):
        keyword_router({"mail": ["read_mail"]}, registered=TOOLS, default=["nothing"])


def test_a_router_that_raises_ends_the_call_before_a_model_is_asked():
    def route(context: RoutingContext) -> list[str]:
        raise KeyError("topic")

    with handler(harness(tool_router=ToolRouter(route))), handler(ScriptedModel("a")) as model:
        with pytest.raises(ConfigurationError, match=r"route` raised KeyError: 'topic'.*`ask`") as raised:
            ask("x")
    assert isinstance(raised.value.__cause__, KeyError)
    assert model.requests == []


def test_an_error_of_the_package_passes_as_it_is():
    def route(context: RoutingContext) -> list[str]:
        raise LimitExceeded("searches", 3)

    with pytest.raises(LimitExceeded):
        asked(ToolRouter(route), "a")


@pytest.mark.parametrize(
    "given", ["weather", 3, None, [weather, 3], {"weather": 1}], ids=lambda value: type(value).__name__
)
def test_a_router_that_gives_no_names_is_told_so(given):
    with pytest.raises(OptionError, match=r"gave is .*it is a collection of tools, or of their names"):
        asked(ToolRouter(lambda context: given), "a")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: ToolRouter("weather"), "`entries_for` is 'weather'"),
        (lambda: ToolRouter(RoutingContext), "`entries_for` is"),
        (lambda: ToolRouter(WORDS, per="run"), "`per` is 'run'"),
        (lambda: ToolRouter(WORDS, always="weather"), "`always` is 'weather'"),
        (lambda: ToolRouter(WORDS, registered="weather"), "`registered` is 'weather'"),
        (lambda: keyword_router([("mail", ["read_mail"])]), "takes a dictionary"),
        (lambda: keyword_router({"?!": ["read_mail"]}), "is no cue"),
        (lambda: keyword_router({3: ["read_mail"]}), "is no cue"),
        (lambda: keyword_router({"mail": "read_mail"}), "what `keyword_router` has for 'mail' is 'read_mail'"),
        (lambda: harness(tool_router=WORDS), "`tool_router` is"),
    ],
)
def test_options_are_checked(make, problem):
    with pytest.raises(OptionError, match=problem):
        make()


def test_a_router_inside_of_what_adds_the_tools_is_told_where_it_belongs():
    """It sees nothing there, and would narrow nothing."""
    with handler(harness(system_prompt="brief")), handler(ToolRouter(WORDS)), handler(ScriptedModel("a")) as model:
        with pytest.raises(ConfigurationError, match=r"offers `best`.*outside of `ToolRouter` adds tools.*harness"):
            ask("The weather?")
    assert model.requests == []


def test_a_tool_that_has_to_be_called_is_in_the_palette():
    choice = {"type": "function", "function": {"name": "send_mail"}}
    stack = harness(tool_router=ToolRouter(WORDS), model="gpt-5-mini", tool_choice=choice)
    with handler(ScriptedModel("a")) as model, handler(stack):
        with pytest.raises(ConfigurationError, match=r"`tool_choice` names `send_mail`.*always=\['send_mail'\]"):
            ask("Weather?")
    assert model.requests == []
    with handler(ScriptedModel(calls("send_mail", to="a", text="b"))), handler(stack):
        with pytest.raises(ConfigurationError, match="been asked once more"):  # in its palette it is called
            ask("Any mail?")
    assert DONE == [("send", "a", "b")]
