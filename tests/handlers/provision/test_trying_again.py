"""How often a request is made when several handlers would make it again: their budgets add up, and do not multiply."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import tenacity

from effectful_agents import NotHandled, Skill, fwd, handler, harness
from effectful_agents.errors import ProviderError, ResultDecodingError
from effectful_agents.handlers.durability import TenacityRetryer
from effectful_agents.handlers.provision import Fallback, Model, RateLimit
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.handlers.provision.retries import Conditions, Spent, retried, under
from effectful_agents.operations.loop import completion
from effectful_agents.operations.world import now
from tests.handlers.provision.http.server import HI, Server, says, whole


def failing(status: int, **headers: str) -> Any:
    return whole({"error": {"message": "oops"}}, status, **headers)


def asked(server: Server) -> Counter[str]:
    return Counter(body["model"] for body in server.bodies)


def ask(**request: Any) -> Any:
    return completion(messages=HI, **request)


@Skill.define
def count() -> int:
    """How many?"""
    raise NotHandled


THREE = ("a", "b", "c")


@pytest.mark.parametrize(
    ("retries", "expected"),
    [
        (0, {"a": 1, "b": 1, "c": 1}),
        (1, {"a": 2, "b": 1, "c": 1}),
        (2, {"a": 3, "b": 1, "c": 1}),
        (5, {"a": 4, "b": 3, "c": 1}),  # no pause of more than two seconds while another is left
        (9, {"a": 4, "b": 4, "c": 4}),
    ],
)
def test_models_and_retries_add_up(server: Server, pauses, retries, expected):
    server.will(failing(503))
    with handler(server.model(model=None)), handler(LiteLLMConfigurer(num_retries=retries)):
        with handler(server.model(model=None)), handler(Fallback(*THREE)), pytest.raises(ProviderError):
            ask()
    assert asked(server) == expected
    assert len(server.bodies) == 3 + retries
    assert len(pauses) == retries


def test_so_they_do_where_nothing_is_said_of_them(server: Server, pauses):
    server.will(failing(503))
    with handler(Fallback(*(server.model(model=name, num_retries=2) for name in THREE))), pytest.raises(ProviderError):
        ask()
    assert asked(server) == {"a": 3, "b": 1, "c": 1}


def test_so_they_do_through_litellm(server: Server, pauses):
    server.will(failing(503))
    with handler(LiteLLMConfigurer("openai/a", base_url=server.url, api_key="k", num_retries=2)):
        others = [Model(f"openai/{name}", base_url=server.url, api_key="k") for name in "bc"]
        with handler(Fallback(None, *others)), pytest.raises(ProviderError):
            ask()
    assert asked(server) == {"a": 3, "b": 1, "c": 1}


def test_a_setting_that_a_model_does_not_take_is_switched_off_with_none(server: Server, pauses):
    server.will(failing(404), says("hi"))
    service = {"base_url": server.url, "api_key": "k"}
    with handler(LiteLLMConfigurer("openai/a", seed=1, temperature=0, **service)):
        with handler(Fallback(None, Model("openai/b", seed=None, **service))):
            ask()
    first, second = server.bodies
    assert first["seed"] == 1
    assert second == {name: value for name, value in first.items() if name != "seed"} | {"model": "b"}


def test_what_is_not_worth_repeating_leaves_the_retries_to_the_next(server: Server, pauses):
    server.will(failing(404), failing(503), failing(503), failing(503), failing(402))
    with handler(server.model(model=None, num_retries=2)), handler(Fallback(*THREE)), pytest.raises(ProviderError):
        ask()
    assert asked(server) == {"a": 1, "b": 3, "c": 1}


def test_a_service_that_wants_to_be_left_alone_is_not_waited_for_while_another_is_left(server: Server, pauses):
    busy = failing(429, retry_after="20")
    server.will(busy, busy, busy, says("hi"))
    with handler(server.model(model=None, num_retries=2)), handler(Fallback("a", "b")):
        reply = ask()
    assert asked(server) == {"a": 1, "b": 3}
    assert pauses == [20, 20]
    assert reply["model"] == "test-1"


def test_a_fallback_in_a_fallback_has_no_retries_of_its_own(server: Server, pauses):
    server.will(failing(503))
    with handler(server.model(model=None, num_retries=2)), handler(Fallback(Fallback("a", "b"), "c")):
        with pytest.raises(ProviderError):
            ask()
    assert asked(server) == {"a": 3, "b": 1, "c": 1}


def test_the_next_request_has_its_retries_again(server: Server, pauses):
    server.will(failing(503))
    for _ in range(2):
        with handler(server.model(model=None, num_retries=2)), handler(Fallback("a", "b", rest_seconds=0)):
            with pytest.raises(ProviderError):
                ask()
    assert asked(server) == {"a": 6, "b": 2}


def test_a_failure_on_the_way_is_nothing_for_those_who_mend_replies(server: Server, pauses):
    server.will(failing(503))
    stack = harness(model="a", fallback=["b", "c"], num_retries=2, requests_per_minute=100)
    with handler(stack), handler(server.model(model=None)), pytest.raises(ProviderError) as raised:
        count()
    assert asked(server) == {"a": 3, "b": 1, "c": 1}
    assert len(raised.value.__notes__) == 2


def test_replies_that_never_fit_are_no_failure_on_the_way(server: Server, pauses):
    server.will(says("many"))
    stack = harness(model="a", fallback=["b", "c"], num_retries=3)
    with handler(stack), handler(server.model(model=None)), pytest.raises(ResultDecodingError):
        count()
    assert asked(server) == {"a": 3}


def test_the_attempts_of_one_turn_fail_on_their_way_once(server: Server, pauses):
    """What failed in the first of them rests in the others."""

    def answer(request: Any) -> None:
        (failing(503) if server.bodies[-1]["model"] == "a" else whole(says("many")))(request)

    server.will(answer)
    with handler({now: lambda: 0.0}), handler(harness(model="a", fallback=["b"], num_retries=0)):
        with handler(server.model(model=None, num_retries=2)):
            with handler(TenacityRetryer(stop=tenacity.stop_after_attempt(4))):
                with handler({completion: lambda **request: fwd(**request | {"num_retries": 2})}):
                    with pytest.raises(ResultDecodingError):
                        count()
    assert asked(server) == {"a": 3, "b": 4}


def test_each_attempt_counts_for_the_limit_and_makes_none_more(server: Server, pauses):
    server.will(failing(503))
    with handler(RateLimit(requests_per_minute=2)), handler(server.model(model=None, num_retries=2)):
        with handler(Fallback(*THREE)), pytest.raises(ProviderError):
            ask()
    assert asked(server) == {"a": 3, "b": 1, "c": 1}
    assert [pause for pause in pauses if pause > 30] == pytest.approx([60], abs=1)


# --- the conditions of a repetition -----------------------------------------------------------------------------------


def test_repetitions_are_shared_and_limited_by_the_conditions(pauses):
    attempts: list[str] = []

    def fail() -> None:
        attempts.append("asked")
        raise ProviderError("x", status=503)

    spent = Spent()
    for expected in (3, 4):
        with under(Conditions(spent=spent)), pytest.raises(ProviderError):
            retried(fail, 2)
        assert len(attempts) == expected
    with under(Conditions(longest_pause=0.7)), pytest.raises(ProviderError):
        retried(fail, 9)
    assert len(attempts) == 6
    assert pauses == [0.5, 1.0, 0.5]


def test_each_attempt_is_made_by_those_around_it():
    order: list[str] = []

    def around(name: str) -> Any:
        def wrap(ask: Any) -> Any:
            order.append(name)
            return ask()

        return wrap

    with under(Conditions(around={1: around("inner"), 2: around("outer")})):
        assert retried(lambda: "done", 0) == "done"
    assert order == ["outer", "inner"]
    assert retried(lambda: "again", 0) == "again"
    assert order == ["outer", "inner"]
