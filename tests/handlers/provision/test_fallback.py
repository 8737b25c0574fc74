"""`Fallback`: which errors another model mends, how it is asked, and what is seen of it."""

from __future__ import annotations

import contextlib
import logging
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from effectful_agents import NotHandled, ObjectInterpretation, Skill, fwd, handler, harness, implements
from effectful_agents.errors import (
    AgentsError,
    Cancelled,
    ConfigurationError,
    ContextLengthError,
    EncodingError,
    LimitExceeded,
    MissingDependencyError,
    MissingHandlerError,
    ModelAccessError,
    NetworkError,
    OptionError,
    ProviderError,
    RefusalError,
    RequestTimeoutError,
    ResultDecodingError,
    Suspended,
)
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.loop import CallControl, Deadline
from effectful_agents.handlers.provision import Fallback, Model, another_may_answer
from effectful_agents.handlers.provision.http import HttpModel
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.messages import Finish, StreamStart, TextDelta
from effectful_agents.operations.loop import completion, send_request
from effectful_agents.operations.steps import ModelStep, Phase, emit
from effectful_agents.operations.world import now
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, says
from tests.handlers.legibility.compacting import WORDS, Bot, Narrow, roles, stack
from tests.handlers.provision.http.server import Server, chunk, listening, stream, whole

HI: list[Any] = [{"role": "user", "content": "hi"}]
DOWN = ProviderError("down", status=503)


class Service(ObjectInterpretation):
    """Answers requests by the name of the model: with a text, an error, or the next of a list of them."""

    def __init__(self, **models: Any) -> None:
        self.models = models
        self.requests: list[dict[str, Any]] = []

    @property
    def asked(self) -> list[str]:
        return [request["model"] for request in self.requests]

    @implements(send_request)
    def send_request(self, **request: Any) -> Any:
        self.requests.append(request)
        reply = self.models[request["model"]]
        reply = reply.pop(0) if isinstance(reply, list) else reply
        if isinstance(reply, BaseException):
            raise reply
        return says(reply)


def ask(**request: Any) -> Any:
    return completion(messages=HI, **request)


def text(reply: Any) -> str:
    return reply["choices"][0]["message"]["content"]


@contextlib.contextmanager
def clock() -> Iterator[list[float]]:
    """The time, which stands still until somebody changes it."""
    time = [1000.0]
    with handler({now: lambda: time[0]}):
        yield time


# --- which errors ----------------------------------------------------------------------------------------------------

MENDED = [
    ProviderError("no answer"),
    NetworkError("broken"),
    RequestTimeoutError("late"),
    RequestTimeoutError("late", status=408, retryable=True),
    *(ProviderError("x", status=status) for status in (401, 402, 403, 404, 408, 410, 413, 429, 500, 503, 529)),
    ProviderError("the reply is not JSON", status=200),
    ProviderError("come again", status=409, retryable=True),
    ContextLengthError("too long"),
    ModelAccessError("no key"),
]
PASSED = [
    *(ProviderError("x", status=status) for status in (400, 405, 409, 422)),
    RefusalError("no"),
    ConfigurationError("x"),
    MissingDependencyError("x"),
    MissingHandlerError("completion", "x"),
    OptionError("x"),
    EncodingError("x"),
    LimitExceeded("turns", 1),
    ResultDecodingError(ValueError("x"), {"role": "assistant", "content": "x"}),
    ValueError("x"),
    Cancelled("x"),
    Suspended("x"),
    KeyboardInterrupt(),
]


def described(error: BaseException) -> str:
    return f"{type(error).__name__} {getattr(error, 'status', '')}"


@pytest.mark.parametrize("error", MENDED, ids=described)
def test_what_another_model_may_mend_goes_to_the_next(error):
    service = Service(a=error, b="Hello")
    with handler(service), handler(Fallback("a", "b")):
        assert text(ask()) == "Hello"
    assert service.asked == ["a", "b"]
    assert another_may_answer(error)


@pytest.mark.parametrize("error", PASSED, ids=described)
def test_what_no_other_model_mends_passes_at_once(error):
    service = Service(a=error, b="Hello")
    with handler(service), handler(Fallback("a", "b")), pytest.raises(type(error)) as raised:
        ask()
    assert raised.value is error
    assert service.asked == ["a"]
    assert not hasattr(error, "__notes__")


def test_the_user_may_say_what_counts_as_a_failure():
    service = Service(a=RefusalError("no"), b="Hello")
    declined = Fallback("a", "b", on=lambda error: another_may_answer(error) or isinstance(error, RefusalError))
    with handler(service), handler(declined):
        assert text(ask()) == "Hello"
    with handler(Service(a=DOWN, b="Hello")), handler(Fallback("a", "b", on=lambda error: False)):
        with pytest.raises(ProviderError):
            ask()


def test_a_missing_key_is_no_reason_to_fail_where_another_model_answers(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with handler(harness(model="gpt-5-mini")), handler(Fallback(None, ScriptedModel("Hello"))):
        assert text(ask()) == "Hello"


# --- how the models are asked ----------------------------------------------------------------------------------------


def test_the_first_is_asked_alone_while_it_answers():
    service = Service(a="Hello", b=DOWN)
    with handler(service), handler(Fallback("a", "b")):
        reply = ask(temperature=0, tools=[], seed=3)
    assert service.requests == [{"messages": HI, "temperature": 0, "tools": [], "seed": 3, "model": "a"}]
    assert reply == {**says("Hello"), "model": "a"}


def test_all_get_the_same_request_but_for_the_model():
    service = Service(a=DOWN, b=NetworkError("x"), c="Hello")
    given: dict[str, Any] = {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}
    given |= {"response_format": {"type": "json_object"}, "tool_choice": "auto", "temperature": 0.5, "n": 1}
    with handler(service), handler(Fallback("a", "b", "c")):
        ask(**given)
    assert service.requests == [{"messages": HI, **given, "model": name} for name in ("a", "b", "c")]


def test_settings_of_a_model_are_its_own_and_yield_to_those_of_the_request():
    service = Service(a=DOWN, b="Hello", c="")
    fallback = Fallback(Model("a", seed=1), Model("b", temperature=0, seed=2), "c")
    with handler(service), handler(LiteLLMConfigurer(temperature=1, top_p=0.5)), handler(service), handler(fallback):
        ask(seed=3)
    shared = {"messages": HI, "seed": 3, "top_p": 0.5}
    assert service.requests == [{**shared, "model": "a", "temperature": 1}, {**shared, "model": "b", "temperature": 0}]


def test_none_is_the_model_that_is_configured_further_out():
    service = Service(a=DOWN, b="Hello")
    with handler(LiteLLMConfigurer("a", seed=1)), handler(service), handler(Fallback(None, "b")):
        reply = ask()
    assert service.asked == ["a", "b"]
    assert reply["provider_metadata"]["fallback"]["instead_of"][0]["model"] == "the configured model"


KEYS = {"api_key": "sk-a", "base_url": "http://a", "aws_region_name": "eu", "provider_options": {"x": 1}}


def test_what_a_service_is_reached_with_goes_to_the_first_model_alone():
    service = Service(a=DOWN, b=DOWN, c="Hello")
    own = {"api_key": "sk-c", "provider_options": {"y": 2}}
    with (
        handler(LiteLLMConfigurer("a", seed=1, **KEYS)),
        handler(service),
        handler(Fallback(None, "b", Model("c", **own))),
    ):
        ask()
    first, second, third = service.requests
    assert first == {"messages": HI, "model": "a", "seed": 1, **KEYS}
    assert second == {"messages": HI, "model": "b", "seed": 1}
    assert third == {"messages": HI, "model": "c", "seed": 1, **own}


def test_a_key_of_the_request_goes_to_no_other_model_either():
    service = Service(a=DOWN, b="Hello")
    with handler(service), handler(Fallback("a", "b")):
        ask(**KEYS)
    assert service.requests == [{"messages": HI, "model": "a", **KEYS}, {"messages": HI, "model": "b"}]


def test_the_key_stays_with_the_first_model_while_it_rests():
    service = Service(a=DOWN, b="Hello")
    with clock(), handler(LiteLLMConfigurer("a", api_key="sk-a")), handler(service), handler(Fallback(None, "b")):
        ask()
        ask()
    assert [request.get("api_key") for request in service.requests] == ["sk-a", None, None]


def test_a_request_that_names_a_model_is_meant_for_that_one():
    """A handler further inside has chosen it."""
    service = Service(a=DOWN, b=DOWN, c=DOWN, special=DOWN)
    for named, order in (
        ("b", ["b", "a", "c"]),
        ("a", ["a", "b", "c"]),
        ("special", ["special", "a", "b", "c"]),
    ):
        service.requests.clear()
        with handler(service), handler(Fallback("a", Model("b", seed=2), "c")), pytest.raises(ProviderError):
            ask(model=named, api_key="k")
        assert service.asked == order
        assert [request.get("api_key") for request in service.requests] == ["k", *[None] * (len(order) - 1)]
        assert all(("seed" in request) is (request["model"] == "b") for request in service.requests)


@pytest.mark.parametrize(
    ("models", "named", "order"),
    [
        ((None, "b"), "special", ["special", "b"]),
        (("b", None), "special", ["special", "b"]),
        ((None, "b"), "b", ["b"]),
        (("a", "b", None), "b", ["b", "a"]),
        (("b", None), None, ["b", "a"]),
    ],
)
def test_where_one_of_them_is_the_configured_model_a_request_that_names_another_goes_there(models, named, order):
    service = Service(a=DOWN, b=DOWN, special=DOWN)
    with handler(LiteLLMConfigurer("a", api_key="k")), handler(service), handler(Fallback(*models)):
        with pytest.raises(ProviderError):
            ask(**({} if named is None else {"model": named}))
    assert service.asked == order
    meant = named or "a"
    assert [request["model"] for request in service.requests if "api_key" in request] == [meant]


# --- handlers as models ----------------------------------------------------------------------------------------------


def test_a_model_may_be_a_handler_of_completion():
    first, second = ScriptedModel(DOWN), ScriptedModel("Hello")
    with handler(Fallback(first, second)):
        assert text(ask(seed=1)) == "Hello"
    assert first.requests == second.requests == [{"messages": HI, "seed": 1}]


def test_an_address_may_stand_in_for_the_model_of_a_stack(server: Server):
    service = Service(a=DOWN)
    with handler(LiteLLMConfigurer("a", seed=1, api_key="sk-a")), handler(service):
        with handler(Fallback(None, server.model(model="served"))):
            assert text(ask()) == "hi"
        with handler(Fallback(None, server.model(model=None))):
            assert text(ask()) == "hi"
    assert server.bodies == [{"messages": HI, "seed": 1, "model": "served"}, {"messages": HI, "seed": 1}]
    assert service.asked == ["a", "a"]


def test_an_address_may_be_the_first_and_a_name_the_last(server: Server):
    server.will(whole({"error": {"message": "busy"}}, 503))
    service = Service(b="Hello")
    with handler(service), handler(Fallback(server.model(model="served"), "b")):
        reply = ask()
    assert text(reply) == "Hello"
    assert reply["provider_metadata"]["fallback"]["instead_of"][0]["model"] == "served"
    assert server.bodies[0]["model"] == "served"


def test_a_configurer_as_a_model_puts_its_settings_under_those_of_the_request():
    service = Service(a=DOWN, b="Hello")
    entry = Layers(LiteLLMConfigurer("b", seed=5, temperature=0, api_key="sk-b"), service)
    with handler(LiteLLMConfigurer("a", temperature=1, top_p=1, api_key="sk-a")), handler(service):
        with handler(Fallback(None, entry)):
            ask(seed=3)
    assert service.requests[1] == {
        "messages": HI,
        "model": "b",
        "seed": 3,
        "temperature": 0,
        "top_p": 1,
        "api_key": "sk-b",
    }


def test_the_same_model_may_be_asked_with_another_key():
    service = Service(a=[ModelAccessError("the key was refused"), "Hello"])
    with handler(LiteLLMConfigurer("a", api_key="old")), handler(service):
        with handler(Fallback(None, Model("a", api_key="new"))):
            assert text(ask()) == "Hello"
    assert [request["api_key"] for request in service.requests] == ["old", "new"]


def test_a_handler_is_installed_only_while_its_model_is_asked():
    asked: list[str] = []

    class Second(ObjectInterpretation):
        @implements(send_request)
        def send_request(self, **request: Any) -> Any:
            asked.append("second")
            return says("Hello")

    service = Service(a=[DOWN, "Hi"], b="")
    with handler(service), handler(Fallback("a", Second(), rest_seconds=0)):
        ask()
        ask()
        send_request(model="b", messages=HI)
    assert asked == ["second"]
    assert service.asked == ["a", "a", "b"]


def test_a_request_that_a_handler_makes_meanwhile_is_one_of_its_own():
    """Such as that of one further out which has the answer judged: it is not sent through a model twice."""

    def judged(**request: Any) -> Any:
        reply = fwd()
        return reply if "seed" in request else ask(seed=1)

    model = ScriptedModel("Hello", "Good.")
    louder = {completion: lambda **request: fwd(**request, top_p=1.0)}
    with handler(model), handler({completion: judged}), handler(Fallback(louder)):
        assert text(ask()) == "Good."
    assert model.requests == [{"messages": HI, "top_p": 1.0}, {"messages": HI, "seed": 1, "top_p": 1.0}]


def test_a_fallback_may_be_part_of_another():
    service = Service(a=DOWN, b=NetworkError("x"), c="Hello")
    with handler(service), handler(Fallback(Fallback("a", "b"), "c")):
        assert text(ask()) == "Hello"
    assert service.asked == ["a", "b", "c"]


def test_handlers_further_out_see_each_attempt():
    seen: list[str] = []

    def see(**request: Any) -> Any:
        seen.append(request["model"])
        return fwd()

    with handler(Service(a=DOWN, b="Hello")), handler({completion: see}), handler(Fallback("a", "b")):
        ask()
    assert seen == ["a", "b"]


# --- resting ---------------------------------------------------------------------------------------------------------


def test_a_model_that_failed_is_passed_over_for_a_while():
    service = Service(a=[DOWN, "back"], b="Hello")
    with clock() as time, handler(service), handler(Fallback("a", "b", rest_seconds=30)):
        assert [text(ask()), text(ask())] == ["Hello", "Hello"]
        time[0] += 29.9
        assert text(ask()) == "Hello"
        time[0] += 0.1
        assert text(ask()) == "back"
    assert service.asked == ["a", "b", "b", "b", "a"]


def test_it_rests_for_as_long_as_it_said():
    service = Service(a=[ProviderError("slow down", status=429, retry_after=120), "back"], b="Hello")
    with clock() as time, handler(service), handler(Fallback("a", "b", rest_seconds=0)):
        ask()
        time[0] += 119
        ask()
        time[0] += 1
        assert text(ask()) == "back"


def test_a_clock_that_is_set_back_has_nobody_rest_for_longer():
    service = Service(a=[DOWN, "back"], b="Hello")
    with clock() as time, handler(service), handler(Fallback("a", "b")):
        ask()
        time[0] -= 500
        assert text(ask()) == "back"


def test_without_a_rest_each_request_begins_with_the_first():
    service = Service(a=[DOWN, "back"], b="Hello")
    with clock(), handler(service), handler(Fallback("a", "b", rest_seconds=0)):
        assert [text(ask()), text(ask())] == ["Hello", "back"]


def test_who_rests_is_asked_when_all_others_have_failed():
    service = Service(a=[DOWN, "back"], b=["Hello", NetworkError("x")])
    with clock(), handler(service), handler(Fallback("a", "b")):
        ask()
        assert text(ask()) == "back"
    assert service.asked == ["a", "b", "b", "a"]


def test_where_all_rest_they_are_asked_in_their_order():
    service = Service(a=[DOWN, "back"], b=DOWN)
    with clock(), handler(service), handler(Fallback("a", "b")):
        with pytest.raises(ProviderError):
            ask()
        assert text(ask()) == "back"
    assert service.asked == ["a", "b", "a"]


@pytest.mark.parametrize("error", [ContextLengthError("too long"), ProviderError("too large", status=413)])
def test_a_prompt_that_is_too_long_is_no_reason_to_rest(error):
    service = Service(a=[error, "Hi"], b="Hello")
    with clock(), handler(service), handler(Fallback("a", "b")):
        assert [text(ask()), text(ask())] == ["Hello", "Hi"]


def test_calls_that_share_it_share_the_rest():
    @Skill.define
    def greet() -> str:
        """Greet."""
        raise NotHandled

    service = Service(a=DOWN, b="Hello")
    shared = Fallback("a", "b")
    for _ in range(3):
        with clock(), handler(harness()), handler(service), handler(shared):
            assert greet() == "Hello"
    assert service.asked == ["a", "b", "b", "b"]


# --- what is raised --------------------------------------------------------------------------------------------------


def raised(*errors: Exception) -> Any:
    models = dict(zip("abc", errors, strict=False))
    with handler(Service(**models)), handler(Fallback(*models)), pytest.raises(AgentsError) as caught:
        ask()
    return caught.value


def test_when_all_fail_the_first_is_raised_and_shows_the_others():
    errors = [
        ProviderError("overloaded", status=529, retry_after=7),
        NetworkError("the way is broken"),
        ModelAccessError("no key"),
    ]
    error = raised(*errors)
    assert error is errors[0]
    assert (error.retryable, error.retry_after) == (True, 7)
    assert error.__notes__ == [
        "`b` was asked too: NetworkError: the way is broken",
        "`c` was asked too: ModelAccessError: no key",
    ]


def test_an_error_that_passes_by_itself_counts_more_than_one_that_does_not():
    errors = [ModelAccessError("no key"), ProviderError("no credit", status=402), NetworkError("x")]
    assert raised(*errors) is errors[2]
    assert errors[2].__notes__ == [
        "`a` was asked too: ModelAccessError: no key",
        "`b` was asked too: ProviderError: no credit",
    ]
    assert raised(*errors[:2]) is errors[0]


def test_a_prompt_that_is_too_long_for_the_first_is_said_so():
    """Who compacts the conversation can do something about it; of a small last resort it need not know."""
    errors = [ContextLengthError("too long"), ProviderError("down", status=503)]
    assert raised(*errors) is errors[0]
    errors = [ProviderError("down", status=503), ContextLengthError("too long")]
    assert raised(*errors) is errors[0]


def test_a_wrong_request_to_a_later_model_does_not_hide_the_failure_of_the_first():
    errors = [ProviderError("down", status=503), ProviderError("unknown field", status=400), NetworkError("x")]
    assert raised(*errors) is errors[0]
    assert errors[0].__notes__ == ["`b` was asked too: ProviderError: unknown field"]


def test_an_error_that_is_none_of_the_service_passes_as_it_is():
    first, second = ProviderError("down", status=503), LimitExceeded("cost", 1)
    assert raised(first, second) is second


def test_the_notes_go_with_the_error_into_another_process():
    error = raised(ProviderError("down", status=503), NetworkError("x"))
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["`b` was asked too: NetworkError: x"]


def test_each_failure_is_in_the_log(caplog):
    with caplog.at_level(logging.WARNING), handler(Service(a=ModelAccessError("no key"), b="Hello")):
        with handler(Fallback("a", "b")):
            ask()
    assert [record.getMessage() for record in caplog.records] == ["`a` did not answer: ModelAccessError: no key"]


def test_a_conversation_that_is_too_long_for_all_is_compacted():
    bot, model = Bot(), Narrow(1000, *(f"{number}. " + WORDS * 20 for number in range(6)))
    with stack(model), handler(Fallback("a", "b")):
        for question in "abcdef":
            assert bot.ask(f"Question {question}")
    assert [request["model"] for request in model.refused] == ["a", "b"]
    assert roles(bot.__history__).count("summary") == 1


# --- what is seen ----------------------------------------------------------------------------------------------------


def test_the_reply_says_who_answered_and_why():
    with clock(), handler(Service(a=DOWN, b=[NetworkError("x"), "Hi"], c="Hello")), handler(Fallback("a", "b", "c")):
        reply = ask()
        assert reply["model"] == "c"
        assert reply["provider_metadata"] == {
            "fallback": {
                "model": "c",
                "instead_of": [
                    {"model": "a", "error": "ProviderError: down"},
                    {"model": "b", "error": "NetworkError: x"},
                ],
            }
        }
        rests = [{"model": name, "error": "it rests"} for name in ("a", "b")]
        assert ask()["provider_metadata"]["fallback"] == {"model": "c", "instead_of": rests}


def test_the_name_that_a_service_gives_its_model_is_kept():
    class Dated(ObjectInterpretation):
        @implements(send_request)
        def send_request(self, **request: Any) -> Any:
            return {**says("Hello"), "model": f"{request['model']}-2026-01-01", "provider_metadata": {"x": 1}}

    with handler(Dated()), handler(Fallback("a", "b")):
        assert ask()["model"] == "a-2026-01-01"
        assert ask()["provider_metadata"] == {"x": 1}


def test_the_step_says_who_answered():
    @Skill.define
    def greet() -> str:
        """Greet."""
        raise NotHandled

    steps: list[ModelStep] = []

    def listen(event: Any) -> None:
        if isinstance(event, ModelStep):
            steps.append(event)
        fwd()

    with handler(harness(fallback=["b"])), handler(Service(a=DOWN, b="Hello")), handler({emit: listen}):
        with handler(Fallback("a", "b")):
            assert greet() == "Hello"
    assert [step.phase for step in steps] == [Phase.ATTEMPTED, Phase.COMPLETED]
    response: Any = steps[1].response
    assert response["model"] == "b"
    assert response["provider_metadata"]["fallback"]["model"] == "b"
    assert steps[1].error is None


def test_a_run_that_is_made_again_asks_no_model_and_says_the_same():
    checkpointer, service, steps = MemoryCheckpointer(), Service(a=DOWN, b=["Hello"]), []

    def listen(event: Any) -> None:
        if isinstance(event, ModelStep) and event.response is not None:
            steps.append(event.response)
        fwd()

    for _ in range(2):
        stack = harness(model="a", fallback=["b"], requests_per_minute=1, journal=checkpointer, run_id="monday")
        with handler(stack), handler(service), handler({emit: listen}):
            assert greet() == "Hello"
    assert service.asked == ["a", "b"]
    assert steps[0]["provider_metadata"]["fallback"]["model"] == "b"
    assert all(step["provider_metadata"] == steps[0]["provider_metadata"] for step in steps)


def test_what_is_no_reply_is_left_as_it_is():
    with handler({send_request: lambda **request: None}), handler(Fallback("a", "b")):
        assert ask() is None


# --- streams ---------------------------------------------------------------------------------------------------------


def told(heard: list[Any]) -> list[str]:
    return [event.text for event in heard if isinstance(event, TextDelta)]


def test_a_failure_before_the_first_piece_leaves_the_next_model_to_stream(server: Server):
    server.will(whole({"error": {"message": "busy"}}, 503), stream(chunk("Hel"), chunk("lo", "stop")))
    with listening() as heard, handler(Fallback(server.model(model="a"), server.model(model="b"))):
        reply = ask()
    assert told(heard) == ["Hel", "lo"]
    assert [body.get("stream") for body in server.bodies] == [True, True]
    assert heard[-1] == Finish(reply)
    assert reply["provider_metadata"]["fallback"]["model"] == "b"


def test_a_stream_that_breaks_off_is_asked_of_the_next_model_in_one_piece(server: Server):
    server.will(stream(chunk("Hel"), broken=True), whole({**says("Hi"), "model": "b-1"}))
    with listening() as heard, handler(Fallback(server.model(model="a"), server.model(model="b"))):
        reply = ask()
    assert text(reply) == "Hi"
    assert told(heard) == ["Hel", "Hi"]
    assert [body.get("stream") for body in server.bodies] == [True, None]
    assert [event for event in heard if isinstance(event, StreamStart)] == [StreamStart("test-1"), StreamStart("b-1")]
    assert heard[-1] == Finish(reply)
    assert reply["provider_metadata"]["streamed"] is False


def test_a_broken_stream_of_the_last_model_is_an_error(server: Server):
    server.will(stream(chunk("Hel"), broken=True))
    with listening() as heard, handler(Fallback(server.model(model="a"))), pytest.raises(NetworkError):
        ask()
    assert not any(isinstance(event, Finish) for event in heard)


# --- ending ----------------------------------------------------------------------------------------------------------


@Skill.define
def greet() -> str:
    """Greet."""
    raise NotHandled


def test_a_call_that_was_cancelled_asks_no_other_model():
    control = CallControl()

    def give_up(request: Any) -> Any:
        control.cancel("enough")
        raise NetworkError("closed")

    second = ScriptedModel("Hello")
    with handler(harness()), handler(Fallback(ScriptedModel(give_up), second)), handler(control):
        with pytest.raises(Cancelled, match="enough"):
            greet()
    assert second.requests == []


def test_a_call_whose_time_is_over_asks_no_other_model():
    def take_too_long(request: Any) -> Any:
        while True:
            now()  # raises when the time is over

    def be_late(request: Any) -> Any:
        with contextlib.suppress(LimitExceeded):
            take_too_long(request)
        raise RequestTimeoutError("nothing came for 0.05 s")

    second = ScriptedModel("Hello")
    with handler(harness()), handler(Fallback(ScriptedModel(be_late), second)), handler(Deadline(0.05)):
        with pytest.raises(LimitExceeded, match="deadline"):
            greet()
    assert second.requests == []


# --- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "options", "said"),
    [
        ((), {}, "has no models"),
        (("a", "a"), {}, "`a` twice"),
        (("a", Model("a", seed=1)), {}, "`a` twice"),
        ((None, None), {}, "twice"),
        ((3,), {}, "`3` is no model"),
        ((HttpModel,), {}, "make an instance of it"),
        (("",), {}, "no name of a model"),
        (({emit: print},), {}, "answers no requests"),
        (("a",), {"rest_seconds": -1}, "`rest_seconds` is -1"),
        (("a",), {"rest_seconds": float("nan")}, "`rest_seconds` is nan"),
        (("a",), {"rest_seconds": "10"}, "`rest_seconds` is '10'"),
    ],
)
def test_what_it_cannot_be_is_told(models, options, said):
    with pytest.raises(OptionError, match=said):
        Fallback(*models, **options)


def test_a_model_does_not_show_its_key():
    assert repr(Model("a", api_key="sk-1", temperature=0)) == "Model('a', api_key=…, temperature=0)"
    with pytest.raises(OptionError):
        Model("")
