"""Tools in a catalogue that the model searches."""

from __future__ import annotations

import itertools
import json
import random
from typing import Annotated, Any

import pydantic
import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness, run
from effectful_agents.errors import OptionError, ToolCallDecodingError
from effectful_agents.handlers.legibility import DeferredTools, LexicalToolExtractor, worth_deferring
from effectful_agents.operations.loop import call_assistant, call_tool, tool_result
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, batch, calls
from effectful_agents.types.walk import ToolSet
from tests.handlers.legibility.offers import fleet, names


@Tool.define
def hotels(city: str, stars: int = 3) -> list[str]:
    """The hotels of a city, with their prices."""
    return [f"Ritz {city} {stars}"]


@Tool.define
def book_flight(
    origin: str, destination: Annotated[str, pydantic.Field(description="Airport of arrival.")]
) -> dict[str, str]:
    """Book a seat in an aeroplane."""
    return {"booked": f"{origin}-{destination}"}


@Tool.define
def getHTTPStatus(url: str) -> int:
    """What a server answers with."""
    return 200


@Tool.define
def now_playing() -> str:
    """The song on the radio."""
    return "Volare"


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


@Skill.define
def translate(text: str) -> str:
    """Say in Italian: {text}"""
    raise NotHandled


def stack(*, retries: int = 3, extractor: Any = None, **options: Any) -> Any:
    """The standard stack, and deferral."""
    plain = harness(system_prompt="brief", tool_collection="none", defer_tools=False, num_retries=retries)
    return handler(Layers(plain, DeferredTools(**{"threshold": 0} | options), extractor or LexicalToolExtractor()))


def use(name: Any, id: str = "call-1", **arguments: Any) -> Any:
    return calls("use_tool", id=id, name=name, arguments=arguments)


def asked(*replies: Any, skill: Any = ask, **options: Any) -> tuple[list[Any], ScriptedModel]:
    """The messages of a call under deferral, and its model."""
    with stack(**options), handler(ScriptedModel(*replies)) as model:
        return run(skill, "?").messages, model


def results(messages: list[Any]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


def found(query: str, **options: Any) -> list[str]:
    messages, _ = asked(calls("search_tools", query=query), "ok", **options)
    return [one["name"] for one in json.loads(results(messages)[0])]


class Agency(Agent):
    """An agency, whose tools are set on it."""

    def __init__(self, *tools: Tool) -> None:
        for tool in tools:
            setattr(self, tool.__name__, tool)

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


# Offering


def test_two_tools_stand_in_the_place_of_all():
    _, model = asked("ok")
    assert names(model.requests[0]) == ["search_tools", "use_tool"]


def test_what_is_always_needed_is_offered_as_it_is_and_is_not_found():
    messages, model = asked(
        calls("now_playing"), calls("search_tools", id="b", query="song radio hotels"), "ok", always=["now_playing"]
    )
    assert names(model.requests[0]) == ["now_playing", "search_tools", "use_tool"]
    song, search = results(messages)
    assert song == "Volare"
    assert [one["name"] for one in json.loads(search)] == ["hotels"]


def test_tools_of_other_handlers_are_deferred_too():
    @Tool.define
    def note(text: str) -> str:
        """Write something down."""
        return f"noted {text}"

    def offering(messages: Any, response_type: Any, env: Any, tools: Any = frozenset()) -> Any:
        return fwd(messages, response_type, env, tools | {note})

    model = ScriptedModel(use("note", text="this"), "ok")
    with stack(), handler(model), handler({call_assistant: offering}):
        messages = run(ask, "?").messages
    assert names(model.requests[0]) == ["search_tools", "use_tool"]
    assert results(messages) == ["noted this"]


def test_below_the_threshold_everything_is_as_without():
    _, model = asked(calls("hotels", city="Rome"), "ok", threshold=None)
    assert set(names(model.requests[0])) > {"hotels", "book_flight"}
    assert "use_tool" not in names(model.requests[0])


def test_the_threshold_is_in_tokens_of_what_would_be_deferred():
    def is_deferred(**options: Any) -> bool:
        return "use_tool" in names(asked("ok", **options)[1].requests[0])

    all_names = [tool.__name__ for tool in (hotels, book_flight, getHTTPStatus, now_playing, translate)]
    limits = range(0, 1000, 10)
    deferred = [is_deferred(threshold=limit) for limit in limits]
    assert deferred == sorted(deferred, reverse=True)
    assert deferred[10]
    assert not deferred[-1]
    assert not is_deferred(threshold=0, always=all_names)


def test_a_large_catalogue_is_deferred_by_itself():
    agency = Agency(*fleet(60))
    messages, model = asked(use("harbour_59", city="Rome"), "ok", skill=agency.ask, threshold=None)
    assert names(model.requests[0]) == ["search_tools", "use_tool"]
    assert results(messages) == ["harbour_59 of Rome"]


def test_a_turn_outside_of_a_call_is_left_alone():
    messages: Any = [{"role": "user", "content": "?"}]
    with stack(extractor={}, retries=0), handler(ScriptedModel("ok")) as model:
        call_assistant(messages, str, {}, ToolSet([hotels, now_playing]))
    assert names(model.requests[0]) == ["hotels", "now_playing"]


def test_two_of_them_are_as_one():
    both = Layers(DeferredTools(threshold=0, always=["now_playing"]), LexicalToolExtractor())
    messages, model = asked(use("hotels", city="Rome"), "ok", extractor=both)
    assert names(model.requests[0]) == ["now_playing", "search_tools", "use_tool"]
    assert results(messages) == ['["Ritz Rome 3"]']


def test_the_two_tell_the_model_what_to_do_and_the_system_message_does_not():
    def first(**options: Any) -> Any:
        with handler(harness(eval_provider="none", **options)), handler(ScriptedModel("ok")) as model:
            ask("?")
        return model.requests[0]

    deferred, plain = first(defer_tools=0), first(defer_tools=False)
    assert deferred["messages"] == plain["messages"]
    search, use_tool = [tool["function"]["description"] for tool in deferred["tools"]]
    assert "catalogue" in search
    assert "search_tools" in use_tool


# Searching


def test_a_search_gives_names_descriptions_and_parameters():
    messages, _ = asked(calls("search_tools", query="hotels"), "ok")
    assert json.loads(results(messages)[0]) == [
        {
            "name": "hotels",
            "description": "The hotels of a city, with their prices.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "stars": {"type": "integer", "default": 3}},
                "required": ["city"],
                "additionalProperties": False,
            },
        }
    ]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("hotel", "hotels"),
        ("HOTELS in Rome", "hotels"),
        ("booking flights", "book_flight"),
        ("arrivals", "book_flight"),
        ("http", "getHTTPStatus"),
        ("status", "getHTTPStatus"),
        ("getHTTPStatus", "getHTTPStatus"),
        ("book-flight", "book_flight"),
        ("Italian", "translate"),
        ('"song" AND (* NEAR', "now_playing"),
    ],
)
def test_what_fits_best_comes_first(query, first):
    assert found(query)[0] == first


@pytest.mark.parametrize("query", ["", "zebra", "!?", "²", "\x00\ud800", "天气", " OR " * 400])
def test_a_search_without_results_names_all_tools(query):
    messages, _ = asked(calls("search_tools", query=query), "ok")
    told = results(messages)[0]
    assert told.startswith("Nothing fits these words. The tools are: `book_flight`, `getHTTPStatus`, `hotels`")


def test_equals_come_in_the_order_of_their_names_and_no_more_than_were_asked_for():
    for seed in range(3):
        tools = fleet(9)
        random.Random(seed).shuffle(tools)
        in_order = [f"harbour_{number}" for number in range(4)]
        assert found("harbour", skill=Agency(*tools).ask, max_results=4) == in_order


def test_of_tools_with_one_name_each_can_be_called():
    @Tool.define(name="hotels")
    def competition(city: str) -> str:
        """Hotels of the competition."""
        return "another"

    turn = batch(use("hotels", "a", city="Rome"), use("hotels_2", "b", city="Rome"))
    messages, _ = asked(turn, "ok", skill=Agency(competition).ask)
    assert sorted(results(messages)) == ['["Ritz Rome 3"]', "another"]


# Using


def test_tools_that_are_alike_are_numbered_in_the_same_order_in_every_process():
    def counting(number: int) -> Tool:
        @Tool.define
        def count() -> int:
            """Count."""
            return number

        return count

    agency, many = Agency(), [counting(number) for number in range(12)]
    for number, tool in enumerate(many):
        setattr(agency, f"count_{number}", tool)
    replies = [use(f"count_{number}" if number > 1 else "count", f"u{number}") for number in (1, 2, 7, 12)]
    messages, _ = asked(*replies, "ok", skill=agency.ask)
    assert results(messages) == ["0", "1", "6", "11"]


def test_a_tool_that_was_found_is_called_with_its_own_arguments():
    messages, model = asked(
        calls("search_tools", query="flight"), use("book_flight", "b", origin="OSL", destination="FCO"), "Booked."
    )
    assert results(messages)[1] == '{"booked":"OSL-FCO"}'
    assert messages[-3]["tool_calls"][0]["function"]["name"] == "use_tool"
    assert len(model.requests) == 3


@pytest.mark.parametrize("arguments", [{}, "{}"])
def test_a_tool_without_parameters_takes_no_arguments_in_any_form(arguments):
    messages, _ = asked(calls("use_tool", name="now_playing", arguments=arguments), "ok")
    assert results(messages) == ["Volare"]


def test_arguments_that_are_no_object_go_back_to_the_model():
    _, model = asked(calls("use_tool", name="hotels", arguments=7), "ok")
    assert "arguments: Input should be an object; it is 7" in model.requests[1]["messages"][-1]["content"]


def test_arguments_may_be_json_text():
    with stack(retries=0), handler(ScriptedModel(calls("use_tool", name="hotels", arguments='{"city": "Bari"}'), "ok")):
        assert results(run(ask, "?").messages) == ['["Ritz Bari 3"]']


def test_what_is_offered_as_it_is_may_be_called_that_way_too():
    assert results(asked(use("now_playing"), "ok", always=["now_playing"])[0]) == ["Volare"]


def test_handlers_and_policies_see_the_real_tool():
    seen: list[Any] = []

    def deny(tool_call: Any) -> Any:
        seen.append(tool_call)
        return tool_result(tool_call, "No flights.") if tool_call.tool == book_flight else fwd()

    model = ScriptedModel(
        batch(use("book_flight", "a", origin="OSL", destination="FCO"), use("hotels", "b", city="Rome")), "ok"
    )
    with stack(), handler({call_tool: deny}), handler(model):
        messages = run(ask, "?").messages
    assert [call.tool for call in seen] == [book_flight, hotels]
    assert [(call.name, call.id) for call in seen] == [("book_flight", "a"), ("hotels", "b")]
    assert seen[1].bound_args.arguments == {"city": "Rome", "stars": 3}
    assert results(messages) == ["No flights.", '["Ritz Rome 3"]']


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("hotel", ["there is no tool 'hotel'", "`hotels`"]),
        ("zebra", ["there is no tool 'zebra'", "`search_tools`"]),
        ("use_tool", ["there is no tool 'use_tool'"]),
        (["hotels"], ["name: Input should be a valid string"]),
        (None, ["name: Input should be a valid string"]),
    ],
)
def test_a_wrong_name_goes_back_to_the_model(name, told):
    messages, model = asked(use(name), use("hotels", "b", city="Rome"), "ok")
    feedback = model.requests[1]["messages"][-1]["content"]
    assert all(part in feedback for part in told)
    assert results(messages) == ['["Ritz Rome 3"]']  # the failed attempt is not kept


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"stars": 4}, "`city` is missing"),
        ({"city": "Rome", "stars": "many"}, "stars"),
        ({"city": "Rome", "pool": True}, "`pool` is not a parameter; the parameters are `city`, `stars`"),
        ({str(number): 0 for number in range(9)}, "`city` is missing"),
    ],
)
def test_wrong_arguments_go_back_to_the_model(arguments, told):
    _, model = asked(calls("use_tool", name="hotels", arguments=arguments), "ok")
    feedback = model.requests[1]["messages"][-1]
    assert feedback["role"] == "tool"
    assert "`hotels`" in feedback["content"]
    assert told in feedback["content"]


def test_of_several_calls_at_once_only_the_wrong_ones_are_not_made():
    messages, model = asked(
        batch(
            use("hotels", "a", city="Rome"),
            use("hotel", "b", city="Rome"),
            calls("search_tools", id="c", query="radio"),
            calls("hotels", id="d", city="Rome"),
        ),
        "ok",
    )
    good, wrong_name, search, not_offered = results(messages)
    assert good == '["Ritz Rome 3"]'
    assert "there is no tool 'hotel'" in wrong_name
    assert json.loads(search)[0]["name"] == "now_playing"
    assert "The tools are: `search_tools`, `use_tool`" in not_offered
    assert len(model.requests) == 2


def test_calls_of_which_none_is_right_are_one_error_that_holds_them_all():
    replies = batch(use("zebra", "a"), calls("hotels", id="b", city="Rome"), use("hotels", "c"))
    with stack(retries=0), handler(ScriptedModel(replies)), pytest.raises(ToolCallDecodingError) as raised:
        ask("?")
    wrong = [raised.value, *raised.value.others]
    assert [error.raw_tool_call["id"] for error in wrong] == ["a", "b", "c"]


# Skills


def test_a_skill_may_be_deferred_and_has_a_catalogue_of_its_own():
    model = ScriptedModel(use("translate", text="sun"), use("hotels", "b", city="Rome"), "sole", "It is `sole`.")
    with stack(), handler(model):
        messages = run(ask, "?").messages
    assert messages[-1]["content"] == "It is `sole`."
    assert results(messages) == ["sole"]
    assert {tuple(names(request)) for request in model.requests} == {("search_tools", "use_tool")}


def test_a_skill_is_in_no_catalogue_of_its_own_unless_it_is_recursive():
    class Counter(Agent):
        @Skill.define
        def plain(self, question: str) -> str:
            """Count down from {question}."""
            raise NotHandled

        @Skill.define(recursive=True)
        def deep(self, question: str) -> str:
            """Count down from {question}."""
            raise NotHandled

    assert found("count down", skill=Counter().plain) == ["deep"]
    assert found("count down", skill=Counter().deep) == ["deep", "plain"]


# The prefix


def test_the_prefix_stays_the_same_while_the_conversation_and_the_catalogue_grow():
    class Learner(Agent):
        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

        @Tool.define
        def learn(self) -> str:
            """Learn."""

            @Tool.define
            def learned() -> str:
                """Learned."""
                return "it works"

            self.learned = learned
            return "done"

    turns = [use("learn", "a"), use("learned", "b"), use("nobody", "x"), calls("search_tools", id="c", query="hotel")]
    turns += [use("hotels", f"d{number}", city="Rome") for number in range(16)]
    messages, model = asked(*turns, "ok", skill=Learner().ask)
    assert results(messages)[1] == "it works"
    assert len({json.dumps(request["tools"]) for request in model.requests}) == 1
    kept = [request for request in model.requests if "was not made" not in str(request["messages"][-1]["content"])]
    for before, after in itertools.pairwise(kept):
        assert after["messages"][: len(before["messages"])] == before["messages"]


def test_the_order_of_a_set_makes_no_difference():
    @Tool.define
    def note(text: str) -> str:
        """Write something down."""
        return text

    def as_a_plain_set(messages: Any, response_type: Any, env: Any, tools: Any = frozenset()) -> Any:
        return fwd(messages, response_type, env, frozenset({*tools, note}))

    requests = []
    for _ in range(2):
        with stack(), handler({call_assistant: as_a_plain_set}):
            with handler(ScriptedModel(calls("search_tools", query=""), "ok")) as model:
                run(ask, "?")
        requests.append(model.requests)
    assert requests[0] == requests[1]


# Whether it pays


def test_it_pays_for_many_tools_and_not_for_few():
    tools = fleet(100)
    verdicts = [worth_deferring(tools[:count]) for count in range(101)]
    assert verdicts == sorted(verdicts)
    assert not verdicts[10]
    assert verdicts[40]


def test_the_more_a_search_finds_the_later_it_pays():
    tools = fleet(200)
    first = [next(n for n in range(200) if worth_deferring(tools[:n], max_results=most)) for most in (1, 5, 20)]
    assert first == sorted(set(first))


def test_the_cheaper_a_further_request_is_the_sooner_it_pays():
    tools = fleet(200)
    first = [next(n for n in range(200) if worth_deferring(tools[:n], further_request=cost)) for cost in (0, 250, 4000)]
    assert first == sorted(set(first))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_results": 0}, "max_results"),
        ({"max_results": True}, "max_results"),
        ({"further_request": -1}, "further_request"),
        ({"threshold": -1}, "threshold"),
        ({"threshold": 2.5}, "threshold"),
        ({"always": "hotels"}, "always"),
        ({"always": [hotels]}, "always"),
    ],
)
def test_options_that_cannot_be_are_refused(options, named):
    with pytest.raises(OptionError, match=named):
        DeferredTools(**options)
