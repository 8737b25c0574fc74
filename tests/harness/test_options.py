"""The options of `harness`: what each does, and what is said of a value that it cannot have."""

from __future__ import annotations

from typing import Annotated, Any

import pydantic
import pytest
from annotated_types import Ge

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import (
    ConfigurationError,
    LimitExceeded,
    OptionError,
    ProviderError,
    ResultDecodingError,
)
from effectful_agents.handlers.provision import Model
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.operations.world import now, sleep
from effectful_agents.testing import ScriptedModel, calls, says


def make_skill() -> Skill:
    @Tool.define
    def weather(city: str) -> str:
        """The weather in a city."""
        return "sunny"

    @Skill.define
    def pick(least: Annotated[int, Ge(1)] = 1) -> int:
        """Pick a number of at least {least}."""
        raise NotHandled

    pick.tool = weather  # a local that is used
    return pick


def ask(*replies: Any, arguments: tuple[Any, ...] = (), **options: Any) -> tuple[Any, list[Any]]:
    """Call a skill under a harness with these options; the model stands outermost, so it gets all settings."""
    with handler(ScriptedModel(*replies)) as model, handler(harness(**options)):
        return make_skill()(*arguments), model.requests


# What they do


def test_every_option_has_a_default():
    value, (request,) = ask(3)
    assert value == 3
    assert names(request) == ["exec_code", "weather", "write_and_run_body"]
    assert request["messages"][0]["content"].startswith("# Harness")


def names(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", ())]


def test_the_model_and_every_further_option_are_settings_of_the_request():
    _, (request,) = ask(3, model="gpt-5-mini", temperature=0.5, seed=1, api_key="k", base_url="http://x", of_my_own=[1])
    expected = {"model": "gpt-5-mini", "temperature": 0.5, "seed": 1, "api_key": "k", "base_url": "http://x"}
    assert {**request, **expected, "of_my_own": [1]} == request


def test_without_a_model_no_setting_names_one():
    _, (request,) = ask(3)
    assert "model" not in request


def test_a_configurer_further_inside_wins():
    with handler(ScriptedModel(3)) as model, handler(harness(model="outer", seed=1, temperature=0.0)):
        with handler(LiteLLMConfigurer(model="inner", seed=2)):
            make_skill()()
    (request,) = model.requests
    assert (request["model"], request["seed"], request["temperature"]) == ("inner", 2, 0.0)


def test_num_retries_are_attempts_and_reach_the_transport():
    value, requests = ask("a", "b", 3, num_retries=3)
    assert value == 3
    assert [request["num_retries"] for request in requests] == [3, 3, 3]
    with pytest.raises(ResultDecodingError):
        ask("a", "b", 3, num_retries=2)


def test_no_retries_leave_the_first_failure_as_it_is():
    with handler(ScriptedModel("a", 3)) as model, handler(harness(num_retries=0)), pytest.raises(ResultDecodingError):
        make_skill()()
    (request,) = model.requests
    # Left out, LiteLLM's handler would repeat a request twice of its own accord.
    assert request["num_retries"] == 0
    assert "\n## TenacityRetryer\n" not in request["messages"][0]["content"]


def test_a_model_that_fails_gives_way_to_the_next():
    down, others = ProviderError("down", status=503), ["b", Model("c", seed=2)]
    value, requests = ask(down, down, 3, model="a", seed=1, fallback=others)
    assert value == 3
    assert [(request["model"], request["seed"]) for request in requests] == [("a", 1), ("b", 1), ("c", 2)]


def test_requests_wait_until_they_are_within_the_limits():
    waited: list[float] = []
    with handler({now: lambda: 0.0, sleep: waited.append}):
        assert ask(calls("weather", city="Oslo"), 3, requests_per_minute=1)[0] == 3
        assert waited == [60.0]
        assert ask(calls("weather", city="Oslo"), 3, tokens_per_minute=1)[0] == 3
        assert waited == [60.0, 60.0]


def test_turns_limit_a_call():
    replies = [calls("weather", city="Oslo")] * 2
    assert ask(*replies, 3, turns=3)[0] == 3
    with pytest.raises(LimitExceeded, match="`turns` of 2"):
        ask(*replies, 3, turns=2)


@pytest.mark.parametrize(("collection", "offered"), [("explicit", True), ("none", False)])
def test_tool_collection_offers_the_tools_in_scope_or_none(collection, offered):
    _, (request,) = ask(3, tool_collection=collection)
    assert ("weather" in names(request)) is offered
    assert ("\n## LexicalToolExtractor\n" in request["messages"][0]["content"]) is offered


def test_tools_are_sent_in_strict_form_where_that_is_asked_for_and_they_have_one():
    @Tool.define
    def count(names: dict[str, int], times: int = 1) -> int:
        """Count."""
        return times

    @Tool.define
    def wait(seconds: int = 3) -> int:
        """Wait some seconds."""
        return seconds

    @Skill.define
    def total() -> int:
        """Count and wait."""
        raise NotHandled

    used = (count, wait)
    for strict in (False, True):
        with handler(ScriptedModel(calls("wait", seconds=None), 5)) as model, handler(harness(strict_tools=strict)):
            assert total() == 5
        request = model.requests[0]
        functions = {tool["function"]["name"]: tool["function"] for tool in request["tools"]}
        assert "strict" not in functions["count"]  # a mapping has no strict form
        assert functions["wait"].get("strict", False) is strict
        assert functions["wait"]["parameters"].get("required", []) == (["seconds"] if strict else [])
        assert model.requests[1]["messages"][-1]["content"] == str(used[1]())


def test_nothing_is_forgiven_where_decoding_is_strict():
    assert ask('{"value": "3"}')[0] == 3
    with pytest.raises(ResultDecodingError, match="valid integer"):
        ask('{"value": "3"}', strict_decoding=True, num_retries=0)
    value, (_, second) = ask(calls("weather", city="Oslo"), 3, strict_decoding=True)
    assert value == 3
    assert second["messages"][-1]["content"] == "sunny"


def test_contracts_are_checked_unless_that_is_switched_off():
    with pytest.raises(pydantic.ValidationError):
        ask(3, arguments=(0,))
    value, (request,) = ask(3, arguments=(0,), check_contracts=False)
    assert value == 3
    assert "at least 0" in request["messages"][1]["content"]
    assert "\n## PydanticSkillArgValidator\n" not in request["messages"][0]["content"]


def test_the_system_message_can_be_written_to_a_file(tmp_path):
    for path in (tmp_path / "path.md", str(tmp_path / "text.md")):
        _, (request,) = ask(3, dump_system_prompt=path)
        with open(path, encoding="utf-8") as file:
            assert file.read().endswith(f"\n\n{request['messages'][0]['content']}\n")


@pytest.mark.parametrize(("render", "terminal", "shown"), [(True, "1", True), (True, "0", False), (False, "1", False)])
def test_conversations_are_rendered_on_a_terminal_where_that_is_asked_for(render, terminal, shown, monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", terminal)
    assert ask(calls("weather", city="Oslo"), 3, render=render)[0] == 3
    out = capsys.readouterr().out
    assert ("sunny" in out) is shown
    assert bool(out) is shown


# The length of the system message


def system_message(**options: Any) -> str:
    with handler(harness(**options)), handler(ScriptedModel(3)) as model:
        make_skill()()
    return model.requests[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("options", "brief"),
    [
        ({}, False),
        ({"model": "gpt-5-mini"}, False),
        ({"model": "gpt-5-mini", "system_prompt": "brief"}, True),
        ({"model": "local/smollm2"}, True),
        ({"model": "local/model.gguf"}, True),
        ({"model": "local/smollm2", "system_prompt": "full"}, False),
        ({"system_prompt": "full"}, False),
    ],
)
def test_the_system_message_is_brief_for_local_models_unless_it_is_said(options, brief):
    assert ("# Harness" not in system_message(**options)) is brief


@pytest.mark.parametrize("prompt", [None, "brief", "full"])
def test_brief_and_full_go_with_the_same_tools_and_calling(prompt):
    given = {"eval_provider": "none", "tool_calling": "json", "type_checker": "none", "tool_collection": "explicit"}
    assert ask(calls("weather", city="Oslo"), 3, system_prompt=prompt, **given)[0] == 3
    assert ask(calls("weather", city="Oslo"), 3, system_prompt=prompt)[0] == 3


# What they cannot be


@pytest.mark.parametrize("calling", ["auto", "code"])
@pytest.mark.parametrize(
    "without",
    [
        {"eval_provider": "none"},
        {"system_prompt": "brief"},
        {"model": "local/x"},
        {"model": "local/x", "system_prompt": "full"},
    ],
)
def test_calling_tools_in_python_needs_something_that_runs_it(calling, without):
    with pytest.raises(ValueError, match=f"`tool_calling='{calling}'`.*`eval_provider`.*`tool_calling='json'`"):
        harness(tool_calling=calling, **without)


@pytest.mark.parametrize("calling", ["auto", "code"])
@pytest.mark.parametrize("others", [{}, {"system_prompt": "brief"}, {"model": "local/x"}])
def test_with_it_they_are_called_so(calling, others):
    caller = {"auto": "MixedToolCaller", "code": "ExpressionToolCaller"}[calling]
    stack = [type(layer).__name__ for layer in harness(tool_calling=calling, eval_provider="builtin", **others).layers]
    assert stack[:4] == ["AgentLoop", "DeferredTools", caller, "LexicalToolExtractor"]


# Code


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ({}, True),
        ({"model": "gpt-5-mini"}, True),
        ({"system_prompt": "full"}, True),
        ({"system_prompt": "brief"}, False),
        ({"model": "local/smollm2"}, False),
        ({"model": "local/smollm2", "system_prompt": "full"}, False),
        ({"model": "local/smollm2", "eval_provider": "builtin"}, True),
        ({"system_prompt": "brief", "eval_provider": "builtin"}, True),
        ({"eval_provider": "none"}, False),
    ],
)
def test_code_is_run_unless_the_model_is_a_small_one_or_somebody_says_so(options, runs):
    _, (request,) = ask(3, **options)
    expected = ["exec_code", "weather", "write_and_run_body"] if runs else ["weather"]
    assert names(request) == expected


@pytest.mark.parametrize(("checker", "refused"), [(None, True), ("ty", True), ("none", False)])
def test_code_is_checked_before_it_is_run_unless_that_is_switched_off(checker, refused):
    options = {} if checker is None else {"type_checker": checker}
    replies = [calls("exec_code", code="print(least + 'x')"), 3]
    _, requests = ask(*replies, **options)
    told = requests[1]["messages"][-1]["content"]
    assert ("This call was not made" in told) is refused
    assert ("TypeError: unsupported operand" in told) is not refused


def test_a_checker_alone_has_nothing_to_do():
    stack = [type(layer).__name__ for layer in harness(eval_provider="none", type_checker="ty").layers]
    assert "TyTypeChecker" in stack
    assert "BuiltinExecutor" not in stack


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [
        ("eval_provider", "python", ["'builtin'", "'restricted'", "'none'"]),
        ("type_checker", "pyright", ["'mypy'", "'ty'", "'none'"]),
        ("tool_calling", "xml", ["'auto'", "'code'", "'json'"]),
        ("tool_collection", "all", ["'none'", "'explicit'", "'auto'"]),
        ("system_prompt", "short", ["'full'", "'brief'"]),
    ],
)
def test_an_unknown_choice_is_told_with_the_choices(name, value, choices):
    with pytest.raises(OptionError) as caught:
        harness(**{name: value})
    assert f"`{name}` is {value!r}" in str(caught.value)
    assert all(choice in str(caught.value) for choice in choices)


@pytest.mark.parametrize(("name", "value"), [("num_retries", -1), ("turns", 0), ("turns", -3)])
def test_numbers_out_of_their_range_are_told(name, value):
    with pytest.raises(OptionError, match=f"`{name}` is {value}"):
        harness(**{name: value})


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute"])
@pytest.mark.parametrize("value", [0, -1, 0.5, "60", True])
def test_what_a_limit_cannot_be_is_told(name, value):
    with pytest.raises(OptionError, match=f"`{name}` is {value!r}; it is a whole number, at least 1"):
        harness(**{name: value})


@pytest.mark.parametrize(
    ("fallback", "said"),
    [
        ("b", "it is a list of models"),
        (None, "it is a list of models"),
        (5, "it is a list of models"),
        ({"model": "b"}, "it is a list of models"),
        (["b", "a"], "names `a`, the model that it is for"),
        (["b", "b"], "`b` twice"),
        ([5], "`5` is no model"),
        ([""], "no name of a model"),
        ([{}], "answers no requests"),
    ],
)
def test_what_a_fallback_cannot_be_is_told(fallback, said):
    with pytest.raises(ValueError, match=said):
        harness(model="a", fallback=fallback)


@pytest.mark.parametrize("value", [-1, 0.5, "auto", None])
def test_what_deferral_cannot_be_is_told(value):
    with pytest.raises(OptionError, match=f"`defer_tools` is {value!r}; it is True, False"):
        harness(defer_tools=value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_retries", "3"), ("num_retries", None), ("num_retries", 1.5), ("turns", "50"), ("turns", None)],
)
def test_what_is_no_number_is_told(name, value):
    with pytest.raises(OptionError, match=f"`{name}`"):
        harness(**{name: value})


def test_an_error_of_an_option_is_one_of_configuration():
    with pytest.raises(ConfigurationError):
        harness(turns=0)


def test_options_are_given_by_name():
    with pytest.raises(TypeError):
        harness("gpt-5-mini")


def test_a_local_model_does_not_take_a_setting_that_it_does_not_know():
    with pytest.raises(ConfigurationError, match="`temprature`"):
        harness(model="local/smollm2", temprature=0)


def test_a_brief_answer_is_read_as_any_other():
    assert ask(says('{"value": 4}'), system_prompt="brief")[0] == 4
