"""Whatever a model replies: the call ends in a value or a clear error, and what is sent back is valid."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Literal

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness, run
from effectful_agents.errors import (
    EncodingError,
    LimitExceeded,
    ProviderError,
    RefusalError,
    ResultDecodingError,
    ToolCallDecodingError,
)
from effectful_agents.messages.mending import mended
from effectful_agents.testing import ScriptedModel, calls, says


def reply(finish_reason: str = "stop", **message: Any) -> Any:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}]}


def call(name: str, arguments: Any = "{}", *, id: Any = "c1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


ran: list[Any] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@Tool.define
def ping() -> str:
    """Ping."""
    ran.append("ping")
    return "pong"


@Tool.define
def add(a: int, b: int = 1) -> int:
    """Add."""
    ran.append((a, b))
    return a + b


@Tool.define
def fail(why: str) -> str:
    """Fail."""
    raise KeyError(why)


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


@Skill.define
def number() -> int:
    """A number."""
    raise NotHandled


@Skill.define
def maybe() -> str | None:
    """Perhaps."""
    raise NotHandled


def talk(skill: Any, *replies: Any, **options: Any) -> tuple[Any, ScriptedModel]:
    """The result of a call, and the model; every request that was sent is one that a provider accepts."""
    model = ScriptedModel(*replies)
    with handler(harness(**options)), handler(model):
        result = run(skill, *(["?"] if skill is ask else []))
    for request in model.requests:
        assert mended(request["messages"]) == request["messages"]
    assert mended(result.messages) == result.messages
    return result, model


def tool_results(messages: list[Any]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_text_is_the_value_to_the_letter():
    assert talk(ask, says("  Two lines,\n as they are. "))[0].value == "  Two lines,\n as they are. "


@pytest.mark.parametrize("content", ["", None, "  \n "])
def test_nothing_said_is_asked_again_with_the_reason(content):
    result, model = talk(ask, reply(content=content), "ok")
    assert result.value == "ok"
    assert model.requests[1]["messages"][-1]["role"] == "user"
    assert "empty" in model.requests[1]["messages"][-1]["content"]
    assert [m["role"] for m in result.messages] == ["system", "user", "assistant"]


def test_only_reasoning_is_nothing_said():
    result, _ = talk(ask, reply(content=None, reasoning_content="hm"), "ok")
    assert result.value == "ok"


def test_nothing_said_for_ever_is_an_error_after_a_bounded_number_of_attempts():
    with pytest.raises(ResultDecodingError, match="empty"):
        talk(ask, *[reply(content="")] * 3, num_retries=3)


def test_an_optional_answer_may_be_nothing():
    assert talk(maybe, reply(content=""))[0].value is None
    assert talk(maybe, None)[0].value is None


def test_reasoning_goes_back_to_the_byte():
    thinking = [{"type": "thinking", "thinking": "hm ", "signature": "s=="}, {"type": "redacted_thinking", "data": "x"}]
    first = reply(
        "tool_calls", content=None, tool_calls=[call("ping")], reasoning_content=" a\n", thinking_blocks=thinking
    )
    _, model = talk(ask, first, "ok")
    sent = model.requests[1]["messages"][2]
    assert sent["thinking_blocks"] == thinking
    assert sent["reasoning_content"] == " a\n"


@pytest.mark.parametrize("arguments", ["", "null", None, "{}", {}, "  ", '"{}"'])
def test_a_tool_without_parameters_runs_however_its_arguments_are_left_out(arguments):
    result, model = talk(ask, reply(content=None, tool_calls=[call("ping", arguments)]), "ok")
    assert (result.value, ran) == ("ok", ["ping"])
    assert json.loads(model.requests[1]["messages"][2]["tool_calls"][0]["function"]["arguments"]) == {}


@pytest.mark.parametrize("arguments", ['{"a": 2}', {"a": 2}, '"{\\"a\\": 2}"', '{"a": "2"}'])
def test_arguments_are_read_in_every_shape_that_models_write(arguments):
    talk(ask, reply(content=None, tool_calls=[call("add", arguments)]), "ok")
    assert ran == [(2, 1)]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (call("pong"), "there is no tool `pong`"),
        (call(""), "there is no tool"),
        (call("add", "{"), "JSON"),
        (call("add", "[1]"), ""),
        (call("add", "{}"), "`a`"),
        (call("add", '{"a": "x"}'), "a"),
        (call("add", '{"a": 1, "c": 2}'), "`c`"),
        ({"id": "c1"}, "there is no tool"),
        ("nonsense", "there is no tool"),
    ],
)
def test_a_bad_call_is_told_to_the_model_and_leaves_no_trace(bad, told):
    result, model = talk(ask, reply(content=None, tool_calls=[bad]), "ok")
    assert result.value == "ok"
    assert told in tool_results(model.requests[1]["messages"])[0]
    assert [m["role"] for m in result.messages] == ["system", "user", "assistant"]
    assert ran == []


def test_bad_calls_for_ever_end_the_call():
    with pytest.raises(ToolCallDecodingError, match="`pong`"):
        talk(ask, *[calls("pong")] * 3, num_retries=3)


def test_without_a_retrier_a_bad_reply_ends_the_call_at_once():
    with pytest.raises(ToolCallDecodingError):
        talk(ask, calls("pong"), num_retries=0)
    with pytest.raises(ResultDecodingError):
        talk(number, says("many"), num_retries=0)


def test_a_bad_call_among_good_ones_is_answered_and_the_good_ones_run_once():
    batch = reply(
        content=None, tool_calls=[call("add", '{"a": 1}'), call("add", '{"a": "x"}', id="c2"), call("ping", id="c3")]
    )
    result, model = talk(ask, batch, "ok")
    assert ran == [(1, 1), "ping"]
    first, second, third = tool_results(model.requests[1]["messages"])
    assert (first, third) == ("2", "pong")
    assert "could not be decoded" in second
    assert result.value == "ok"


def test_calls_that_are_all_bad_are_each_told_what_was_wrong():
    batch = reply(content=None, tool_calls=[call("add", "{"), call("nope", id="c2")])
    _, model = talk(ask, batch, "ok")
    first, second = tool_results(model.requests[1]["messages"])
    assert "JSON" in first
    assert "`nope`" in second


@pytest.mark.parametrize("ids", [("", ""), ("x", "x"), (None, None), (7, 7), ("call_2_1", "")])
def test_missing_and_repeated_identifiers_are_made_unique_the_same_each_time(ids):
    seen = []
    for _ in range(2):
        batch = reply(content=None, tool_calls=[call("add", '{"a": 1}', id=ids[0]), call("add", '{"a": 2}', id=ids[1])])
        result, _ = talk(ask, batch, "ok")
        seen.append([one["id"] for one in result.messages[2]["tool_calls"]])
        assert tool_results(result.messages) == ["2", "3"]
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 2


def test_identifiers_are_unique_in_the_whole_conversation():
    result, _ = talk(ask, calls("ping"), calls("ping"), calls("ping"), "ok")
    ids = [one["id"] for m in result.messages for one in m.get("tool_calls", ())]
    assert len(set(ids)) == 3
    assert ids[0] == "call-1"


def test_an_answer_beside_tool_calls_is_no_answer():
    result, model = talk(number, reply("tool_calls", content='{"value": 1}', tool_calls=[call("ping")]), 2)
    assert result.value == 2
    assert len(model.requests) == 2


def test_of_several_choices_the_first_counts():
    two = says("first")
    two["choices"].append({**says("second")["choices"][0], "index": 1})
    assert talk(ask, two)[0].value == "first"


def test_a_reply_without_choices_is_the_providers_error():
    with pytest.raises(ProviderError, match="no choice"):
        talk(ask, {"choices": []})


@pytest.mark.parametrize(
    "refusing",
    [reply(content=None, refusal="I cannot help with that."), reply("content_filter", content=None)],
)
def test_a_refusal_is_told_to_the_caller_and_not_repeated(refusing):
    with pytest.raises(RefusalError) as error:
        talk(ask, refusing, "never")
    assert not error.value.retryable


def test_an_answer_that_was_cut_off_is_not_a_value():
    result, model = talk(ask, reply("length", content="Once upon a ti"), "short")
    assert result.value == "short"
    assert "cut off" in model.requests[1]["messages"][-1]["content"]


def test_a_typed_answer_that_is_complete_in_spite_of_the_limit_counts():
    assert talk(number, reply("length", content='{"value": 3}'))[0].value == 3


@pytest.mark.parametrize("arguments", ['{"a": 1, "b": 1', "", None])
def test_a_call_that_was_cut_off_is_not_made(arguments):
    result, model = talk(ask, reply("length", content=None, tool_calls=[call("add", arguments)]), "ok")
    assert (result.value, ran) == ("ok", [])
    assert "cut off" in tool_results(model.requests[1]["messages"])[0]


def test_a_tool_that_raises_is_told_with_the_users_frames_only():
    _, model = talk(ask, calls("fail", why="no such key"), "ok")
    told = tool_results(model.requests[1]["messages"])[0]
    assert "KeyError: 'no such key'" in told
    assert "raise KeyError(why)" in told
    assert "/" not in told


def test_a_tool_error_that_is_not_caught_ends_the_call():
    from effectful_agents.errors import ToolCallExecutionError
    from effectful_agents.handlers.durability import TenacityRetryer

    with handler(harness()), handler(TenacityRetryer(catch_tool_errors=ValueError)):
        with handler(ScriptedModel(calls("fail", why="x"))), pytest.raises(ToolCallExecutionError, match="fail"):
            ask("?")


def test_a_model_that_always_calls_a_tool_is_stopped():
    with pytest.raises(LimitExceeded, match="`turns` of 50") as error:
        talk(ask, *[calls("ping")] * 60)
    assert len(ran) == 50
    assert error.value.messages[-1]["role"] == "tool"
    with pytest.raises(LimitExceeded, match="`turns` of 2"):
        talk(ask, *[calls("ping")] * 9, turns=2)


def test_a_bad_answer_is_mended_and_leaves_no_trace():
    result, model = talk(number, says("many"), says('{"value": "x"}'), 5)
    assert result.value == 5
    assert len(model.requests) == 3
    assert [m["role"] for m in result.messages] == ["system", "user", "assistant"]
    assert "same call" in model.requests[1]["messages"][-1]["content"]


def test_attempts_do_not_multiply_when_retriers_are_nested():
    import tenacity

    from effectful_agents.handlers.durability import TenacityRetryer

    model = ScriptedModel(*[says("many")] * 50)
    with handler(harness(num_retries=5)), handler(TenacityRetryer(stop=tenacity.stop_after_attempt(7))):
        with handler(model), pytest.raises(ResultDecodingError):
            number()
    assert len(model.requests) == 7


def test_the_prefix_of_a_conversation_is_the_same_from_turn_to_turn():
    _, model = talk(ask, calls("ping"), calls("add", a=1), "ok")
    texts = [json.dumps([r["tools"], *r["messages"]]) for r in model.requests]
    assert texts[1].startswith(texts[0][:-1])
    assert texts[2].startswith(texts[1][:-1])


def test_usage_of_all_requests_is_summed_and_unknown_is_not_zero():
    from effectful_agents.messages import Usage

    used = Usage(input=10, output=2)
    result, _ = talk(ask, calls("ping", usage=used), says("ok", usage=used))
    assert (result.usage.input, result.usage.output, result.usage.cache_read) == (20, 4, None)


def test_dataclasses_enums_and_literals_as_answers():
    @dataclasses.dataclass
    class Point:
        x: int
        y: Literal["a", "b"] = "a"

    @Skill.define
    def point() -> Point:
        """A point."""
        raise NotHandled

    assert talk(point, Point(1, "b"))[0].value == Point(1, "b")
    assert talk(point, says('```json\n{"x": 1}\n```'))[0].value == Point(1)


def test_a_nested_call_on_the_same_agent_leaves_a_valid_history():
    class Bot(Agent):
        @Skill.define
        def outer(self) -> str:
            """Outer."""
            raise NotHandled

        @Skill.define
        def inner(self) -> str:
            """Inner."""
            raise NotHandled

    bot = Bot()
    model = ScriptedModel(calls("inner"), "in", "out")
    with handler(harness()), handler(model):
        assert bot.outer() == "out"
    for request in model.requests:
        assert mended(request["messages"]) == request["messages"]
    said = [m["content"] for m in bot.__history__ if m["role"] in ("tool", "assistant")]
    assert said == [None, "in", "out", "in"]
    assert "still running" in model.requests[1]["messages"][-2]["content"]


def test_a_nested_call_on_another_agent_commits_that_agents_own_history():
    class Bot(Agent):
        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

    helper = Bot()

    @Skill.define
    def lead() -> str:
        """Lead."""
        raise NotHandled

    with handler(harness()), handler(ScriptedModel(calls("helper__ask"), "in", RuntimeError("down"))):
        with pytest.raises(RuntimeError, match="down"):
            lead()
    assert [m["role"] for m in helper.__history__] == ["system", "user", "assistant"]


def test_a_return_type_that_no_model_can_write_is_told_before_anything_is_asked():
    class Opaque:
        def __init__(self, handle: int) -> None:
            self.handle = handle

    @Skill.define
    def opaque() -> Opaque:
        """Give one."""
        raise NotHandled

    with pytest.raises(EncodingError, match=r"`opaque`.*Opaque"):
        talk(opaque)
