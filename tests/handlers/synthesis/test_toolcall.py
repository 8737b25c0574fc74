"""Tools that the model calls by writing Python."""

from __future__ import annotations

import dataclasses
import json
import socket
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler
from effectful_agents.encoding import tool_codec
from effectful_agents.errors import MissingHandlerError
from effectful_agents.handlers.durability import HistoryBuilder
from effectful_agents.handlers.execution import BuiltinExecutor
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.handlers.synthesis import CallExpression, ExpressionToolCaller, MixedToolCaller
from effectful_agents.handlers.synthesis.expression import expression_tool
from effectful_agents.operations.loop import DecodedToolCall, call_assistant, call_tool
from effectful_agents.runtime import fwd
from effectful_agents.testing import ScriptedModel, batch, calls
from effectful_agents.types.walk import ToolSet
from tests.handlers.synthesis.coding import coding, results, runs, tools

made: list[Any] = []
BASKET = ["apple", "pear"]


class Handle:
    """Something that JSON cannot say."""

    def __init__(self, number: int) -> None:
        self.number = number


@Tool.define
def add(x: int, y: int = 1) -> int:
    """Add two numbers."""
    return x + y


@Tool.define
def first[T](items: list[T]) -> T:
    """The first of some."""
    return items[0]


@Tool.define
def total(*numbers: int, **weights: int) -> int:
    """A weighted sum."""
    return sum(numbers) + sum(weights.values())


@Tool.define
def open_up(handle: Handle) -> int:
    """Open a handle."""
    made.append(handle)
    return handle.number


@Tool.define(parameters={"type": "object", "properties": {"rest": {"type": "array"}}})
def by_hand(*rest: Any) -> str:
    """It has a schema that was written by hand."""
    return str(rest)


@Skill.define
def ask(n: int) -> str:
    """Do something with {n}."""
    raise NotHandled


class Shop(Agent):
    """A shop."""

    @Skill.define
    def serve(self, customer: str) -> str:
        """Serve {customer}."""
        raise NotHandled

    @Tool.define
    def price(self, *goods: str) -> int:
        """The price of goods."""
        return 10 * len(goods)

    @Tool.define(name="refund_goods")
    def refund(self, *goods: str) -> int:
        """Take goods back."""
        return -10 * len(goods)


# Which tools


def parameters(request: Any) -> dict[str, list[str]]:
    return {name: list(tool["parameters"]["properties"]) for name, tool in tools(request).items()}


def test_mixed_leaves_to_json_what_json_can_say():
    with coding("done") as model:
        ask(1)
    offered = parameters(model.requests[0])
    assert {name: offered[name] for name in ("add", "by_hand", "first", "open_up", "total")} == {
        "add": ["x", "y"],
        "by_hand": ["rest"],
        "first": ["call"],
        "open_up": ["call"],
        "total": ["call"],
    }


def test_code_has_all_tools_of_the_scope_called_so():
    with coding("done", tool_calling="code") as model:
        ask(1)
    offered = parameters(model.requests[0])
    assert [offered[name] for name in ("add", "by_hand", "first", "open_up", "total")] == [["call"]] * 5


def test_tools_of_other_handlers_are_left_alone():
    with coding("done", tool_calling="code") as model:
        ask(1)
    offered = parameters(model.requests[0])
    assert offered["exec_code"] == ["code", "compact"]
    assert offered["write_and_run_body"] == ["implementation", "compact"]


def test_json_leaves_out_what_json_cannot_say(caplog):
    with coding("done", tool_calling="json") as model:
        ask(1)
    offered = parameters(model.requests[0])
    assert "open_up" not in offered
    assert offered["first"] == ["items"]
    assert "`open_up` is not offered" in caplog.text


@pytest.mark.parametrize("calling", ["auto", "code"])
def test_the_skill_that_is_answered_is_not_offered_to_itself(calling):
    with coding("done", tool_calling=calling) as model:
        ask(1)
    assert "ask" not in tools(model.requests[0])


def test_a_recursive_skill_is_offered_as_it_is():
    @Skill.define(recursive=True)
    def again(n: int) -> str:
        """{n}"""
        raise NotHandled

    with coding("done", tool_calling="code") as model:
        again(1)
    assert parameters(model.requests[0])["again"] == ["n"]


def test_the_description_says_how_to_call_it():
    shop = Shop()
    with coding("done") as model:
        shop.serve("Ann")
    offered = tools(model.requests[0])
    assert "The first of some." in offered["first"]["description"]
    assert "first(items: list[T]) -> T" in offered["first"]["description"]
    assert "self.price(*goods: str) -> int" in offered["price"]["description"]
    assert "self.refund(*goods: str) -> int" in offered["refund_goods"]["description"]


def test_tools_of_another_agent_are_called_through_it():
    corner = Shop()

    @Skill.define
    def buy(n: int) -> str:
        """Buy {n}."""
        raise NotHandled

    with coding(calls("corner__price", call="corner.price('a', 'b')"), "done") as model:
        buy(1)
    assert results(model) == ["20"]
    assert isinstance(corner, Shop)


def test_functions_that_are_offered_without_being_declared_are_called_too():
    def join(*words: str) -> str:
        """Join words."""
        return "-".join(words)

    @Skill.define
    def local(n: int) -> str:
        """{n}"""
        raise NotHandled

    with coding(calls("join", call="join('a', *BASKET)"), "done", tool_collection="auto") as model:
        local(1)
    assert parameters(model.requests[0])["join"] == ["call"]
    assert results(model) == ["a-apple-pear"]


def test_a_stack_without_an_extractor_has_nothing_to_wrap():
    with coding("done", tool_calling="code", tool_collection="none") as model:
        ask(1)
    assert set(tools(model.requests[0])) == {"exec_code", "write_and_run_body"}


def test_the_tools_are_the_same_from_turn_to_turn():
    with coding(runs("x = 1"), calls("first", call="first(BASKET)"), "done", tool_calling="code") as model:
        ask(1)
    assert model.requests[0]["tools"] == model.requests[1]["tools"] == model.requests[2]["tools"]


# Calls


def test_arguments_are_any_expressions_over_scope_and_session():
    replies = [
        runs("more = [5, 6]"),
        calls("first", call="first(more)"),
        calls("first", call="first([word.upper() for word in BASKET])"),
        calls("total", call="total(n, *more, **{'a': n}, b=add(1))"),
        "done",
    ]
    with coding(*replies) as model:
        ask(4)
    assert results(model) == ["", "5", "APPLE", "21"]


def test_values_without_a_form_in_json_are_handed_over_as_they_are():
    made.clear()
    with coding(runs("handle = Handle(7)"), calls("open_up", call="open_up(handle)"), "done") as model:
        ask(1)
    assert made[0].number == 7
    assert results(model)[-1] == "7"


def test_handlers_of_call_tool_see_the_call_of_the_tool_itself():
    seen: list[DecodedToolCall] = []

    def look(tool_call: DecodedToolCall) -> Any:
        seen.append(tool_call)
        return fwd()

    with coding(calls("first", call=" first(BASKET) ", id="c7"), "done"), handler({call_tool: look}):
        ask(1)
    [call] = seen
    assert isinstance(call, CallExpression)
    assert (call.tool, call.id, call.name, call.source) == (first, "c7", "first", "first(BASKET)")
    assert call.bound_args.arguments == {"items": BASKET}


def test_a_call_expression_has_a_source():
    assert dataclasses.fields(CallExpression)[-1].default is dataclasses.MISSING


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("first(BASKET) + 1", "not a single call"),
        ("x = first(BASKET)", "not a single call"),
        ("first(BASKET); first(BASKET)", "not a single call"),
        ("first", "not a single call"),
        ("", "not a single call"),
        ("await first(BASKET)", "not a single call"),
        ("first((x := BASKET))", "binds a name"),
        ("add(1)", "`add` is not the tool that is called here, which is `first`"),
        ("len(BASKET)", "`len` is not the tool"),
        ("first(", "SyntaxError"),
        ("first(NOTHING)", "NameError: name 'NOTHING' is not defined"),
        ("first(1 / 0)", "ZeroDivisionError"),
        ("first()", "missing a required argument: 'items'"),
        ("first(BASKET, more=1)", "unexpected keyword argument 'more'"),
    ],
)
def test_an_expression_that_is_no_call_of_the_tool_is_fed_back(expression, problem):
    with coding(calls("first", call=expression), calls("first", call="first(BASKET)"), "done") as model:
        assert ask(1) == "done"
    assert problem in model.requests[1]["messages"][-1]["content"]
    assert "was not made" in model.requests[1]["messages"][-1]["content"]
    assert results(model) == ["apple"]


def test_arguments_of_the_wrong_callee_are_not_evaluated():
    with coding(calls("first", call="add(open_up(Handle(1)))"), "done") as model:
        made.clear()
        ask(1)
    assert made == []
    assert "is not the tool" in model.requests[1]["messages"][-1]["content"]


def test_another_name_of_the_same_tool_will_do():
    with coding(runs("other = first"), calls("first", call="other(BASKET)"), "done") as model:
        ask(1)
    assert results(model)[-1] == "apple"


def test_a_method_is_called_on_its_agent_and_on_no_other():
    shop = Shop()
    with coding(calls("price", call="self.price('a', 'b')"), calls("price", call="Shop().price('a')"), "done") as model:
        shop.serve("Ann")
    assert results(model)[0] == "20"
    assert "is not the tool" in model.requests[2]["messages"][-1]["content"]


def test_a_tool_that_raises_is_told_as_any_other():
    with coding(calls("first", call="first([])"), "done") as model:
        ask(1)
    assert "IndexError" in results(model)[0]


def test_several_calls_of_a_turn_are_answered_in_order():
    turn = batch(
        calls("first", call="first(BASKET)", id="a"), calls("add", x=1, id="b"), calls("first", call="nope", id="c")
    )
    with coding(turn, "done") as model:
        ask(1)
    assert results(model)[:2] == ["apple", "2"]
    assert "not a single call" in results(model)[2]


# Stacks by hand


def test_a_caller_outside_of_an_extractor_wraps_what_that_finds():
    model = ScriptedModel(calls("first", call="first(BASKET)"), "done")
    stack = AgentLoop(), ExpressionToolCaller(), LexicalToolExtractor(json_only=False), HistoryBuilder()
    loop, caller, extractor, history = stack
    with handler(model), handler(loop), handler(caller), handler(extractor), handler(history):
        with handler(BuiltinExecutor()):
            assert ask(1) == "done"
    assert results(model) == ["apple"]


@pytest.mark.parametrize("tools_given", [ToolSet((add,)), frozenset({add})])
def test_a_request_outside_of_a_skill_is_left_alone(tools_given):
    model = ScriptedModel("hi")
    with handler(model), handler(AgentLoop()), handler(MixedToolCaller()):
        _, tool_calls, answer = call_assistant([{"role": "user", "content": "?"}], str, {}, tools_given)
    assert (answer, list(tool_calls)) == ("hi", [])
    assert parameters(model.requests[0]) == {"add": ["x", "y"]}


def test_a_type_without_a_form_is_not_refused_for_the_rest(caplog):
    @Tool.define
    def send(connection: socket.socket, text: str) -> None:
        """Send a text."""

    @Skill.define
    def local(n: int) -> str:
        """{n}"""
        raise NotHandled

    with coding("done") as model:
        local(1)
    assert parameters(model.requests[0])["send"] == ["call"]
    assert caplog.text == ""


def test_a_tool_that_stands_for_another_does_nothing_by_itself():
    tool = expression_tool(first, "first")
    assert (tool.risk, tool.effect) == (first.risk, first.effect)
    with pytest.raises(MissingHandlerError, match="ExpressionToolCaller"):
        tool("first([1])")


def test_no_name_of_the_scope_is_in_the_way():
    with coding(runs("arguments_of_call = 3"), calls("first", call="first([arguments_of_call])"), "done") as model:
        ask(1)
    assert results(model)[-1] == "3"


def test_a_bare_function_that_is_no_tool_is_not_the_one():
    def join(*words: str) -> str:
        """Join words."""
        return "-".join(words)

    @Skill.define
    def local(n: int) -> str:
        """{n}"""
        raise NotHandled

    replies = calls("join", call="(5).bit_length()"), calls("join", call="LIMIT()"), "done"
    with coding(*replies, tool_collection="auto") as model:
        local(1)
    assert "is not the tool" in model.requests[1]["messages"][-1]["content"]
    assert "NameError" in model.requests[2]["messages"][-1]["content"]
    assert join("a") == "a"


def test_a_tool_that_an_argument_hides_is_called_by_no_expression():
    @Skill.define
    def local(total: int) -> str:
        """{total}"""
        raise NotHandled

    with coding("done", tool_calling="code") as model:
        local(1)
    assert "total" not in tools(model.requests[0])


def test_with_a_checker_an_expression_is_checked_where_the_skill_is_written():
    wrong, right = calls("first", call="first(n)"), calls("first", call="first(more + [len(BASKET)])")
    with coding(runs("more = [n]"), wrong, right, "done", type_checker="ty") as model:
        ask(4)
    assert "does not pass the type check" in model.requests[2]["messages"][-1]["content"]
    assert results(model) == ["", "4"]


@pytest.mark.parametrize("raises", ["", " or 1 / 0"], ids=["good", "failing"])
@pytest.mark.parametrize("beside", [{}, {"other": 1}], ids=["alone", "beside what is not known"])
def test_the_arguments_of_an_expression_are_computed_once(raises, beside):
    marks: list[int] = []
    codec = tool_codec(expression_tool(add, "add"))
    sent = json.dumps({"call": f"add(marks.append(1){raises} or 2)", **beside})
    names = {"add": add, "marks": marks}
    with handler(BuiltinExecutor()):
        if raises or beside:
            with pytest.raises(ValueError, match="ZeroDivisionError" if raises else "other"):
                codec.decode(sent, context=names)
        else:
            assert codec.decode(sent, context=names).arguments["call"].bound_args.args == (2,)
    assert marks == [1]
