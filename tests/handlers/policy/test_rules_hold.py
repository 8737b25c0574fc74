"""What rules must not be: ways in for code, options that guard nothing, answers that are taken for others."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import enum
import functools
import itertools
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import NotHandled, Risk, Skill, Tool, acall, handler, harness
from effectful_agents.errors import ConfigurationError, GovernanceRefused, OptionError
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.policy import DecisionLog, Governance, Policy
from effectful_agents.handlers.policy.rewriting import Unfit, rewritten
from effectful_agents.handlers.policy.rules import (
    ArgumentRule,
    HostRule,
    PathRule,
    Redaction,
    Refuse,
    Rule,
    UntrustedContent,
)
from effectful_agents.operations.policy import Decision, Disposition
from effectful_agents.testing import ScriptedModel, calls, says
from tests.handlers.policy.routes import read_mail

KEY = b"0123456789abcdef"
STACK: dict[str, Any] = {"system_prompt": "brief", "eval_provider": "none", "type_checker": "none"}
CODE = STACK | {"eval_provider": "restricted"}

done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@Tool.define
def file(name: str) -> str:
    """File a ticket under a name."""
    done.append(("file", name))
    return "filed"


@Tool.define
def refund(amount: int) -> str:
    """Refund."""
    done.append(("refund", amount))
    return "done"


@Tool.define(risk=Risk.HARD_WRITE)
def pay(amount: int) -> str:
    """Pay."""
    done.append(amount)
    return "paid"


@Tool.define
def ring(address: str) -> str:
    """Ring somebody."""
    done.append(address)
    return "rang"


@Skill.define
def ask(request: str) -> str:
    """{request}"""
    raise NotHandled


@Skill.define
def compute(request: str) -> str:
    """{request}"""
    raise NotHandled


def mark_in(request: Any) -> str:
    return re.findall(r"\[(?:KEY|NAME|EMAIL|CUSTOMER) [0-9a-f]+\]", str(request["messages"]))[0]


# --- data and code ----------------------------------------------------------------------------------------------------

INJECTED = "-----BEGIN PRIVATE KEY-----'); refund(9999); print('-----END PRIVATE KEY-----"
NAMED = "Name: x'); refund(9999); print('\nBroken."


@pytest.mark.parametrize(("text", "patterns"), [(INJECTED, None), (NAMED, {"NAME": r"(?<=Name: ).*"})])
@pytest.mark.parametrize("by", ["exec_code", "write_and_run_body", "expression"])
def test_data_are_not_put_back_into_code(by, text, patterns):
    def reply(request: Any) -> Any:
        mark = mark_in(request)
        if by == "exec_code":
            return calls("exec_code", code=f"file('{mark}')")
        if by == "expression":
            return calls("file", call=f"file('{mark}')")
        return calls(
            "write_and_run_body",
            implementation={"code": f"def compute(request):\n    file('{mark}')\n    return 'Filed.'"},
        )

    governance = Governance([Redaction(patterns=patterns, restore=True, key=KEY)])
    stack = harness(**CODE, tool_calling="code" if by == "expression" else None, body=by == "write_and_run_body")
    with handler(stack), handler(ScriptedModel(reply, "Filed.")), handler(governance):
        assert compute(f"File this: {text}") == "Filed."
    [(what, name)] = done
    assert what == "file"
    assert name in text  # the tool that code calls with the mark gets the datum
    assert "refund" in name


@Skill.define
def write(text: str) -> Callable[[], str]:
    """Write a function that returns {text}"""
    raise NotHandled


@dataclasses.dataclass
class Job:
    name: str
    work: Callable[[], str]


@Skill.define
def plan(text: str) -> Job:
    """Plan {text}"""
    raise NotHandled


def test_functions_that_a_call_returns_keep_the_marks():
    redaction = Redaction(restore=True, key=KEY)
    text = "-----BEGIN PRIVATE KEY-----' + refund(9999) + '-----END PRIVATE KEY-----"
    mark = redaction.ingress(text)
    code = f"def work() -> str:\n    return '{mark}'\n"
    with handler(harness(**CODE)), handler(Governance([redaction])):
        with handler(ScriptedModel(says({"code": code}))):
            assert write(text)() == mark
        with handler(ScriptedModel(says({"name": mark, "work": {"code": code}}))):
            job = plan(text)
    assert job.name == text
    assert job.work() == mark
    assert done == []


class Place(NamedTuple):
    name: str


class Kind(enum.StrEnum):
    A = "a"


class Login(pydantic.BaseModel):
    who: str
    password: pydantic.SecretStr
    note: str = pydantic.Field(default="-", exclude=True)


class Short(pydantic.BaseModel):
    text: str = pydantic.Field(max_length=3)


def test_texts_in_values_are_changed_and_all_else_stays():
    def up(text: str) -> str:
        return text.replace("a", "b")

    login = rewritten(Login(who="a", password=pydantic.SecretStr("hat"), note="a"), up)
    assert (login.who, login.password.get_secret_value(), login.note) == ("b", "hat", "b")
    assert rewritten([Path("/a"), Place("a"), {"a": ("a", 1)}, collections.OrderedDict(a="a")], up) == [
        *(Path("/b"), Place("b"), {"b": ("b", 1)}, collections.OrderedDict(b="b"))
    ]
    assert rewritten(Kind.A, up) is Kind.A
    function = types.FunctionType((lambda: "a").__code__, {})
    for value in (function, Job, compile("'a'", "<x>", "eval"), iter("a"), file, pydantic.SecretStr("a")):
        assert rewritten(value, up) is value
    job = rewritten(Job("a", function), up)
    assert (job.name, job.work) == ("b", function)
    circle: list[Any] = ["a"]
    circle.append(circle)
    assert rewritten(circle, up)[0] == "b"
    with pytest.raises(Unfit):
        rewritten(Short(text="a"), lambda text: "long text")
    with pytest.raises(GovernanceRefused, match="become one"):
        rewritten({"a": 1, "b": 2}, up)


@given(st.recursive(st.text() | st.integers() | st.none(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)))
def test_what_does_not_change_is_the_same_object(value):
    assert rewritten(value, lambda text: text) is value


@Skill.define
def make(request: str) -> Login:
    """{request}"""
    raise NotHandled


@Tool.define
def login(login: Login) -> str:
    """Log in."""
    done.append((login.who, login.password.get_secret_value(), login.note))
    return "in"


def test_secrets_in_values_are_not_lost():
    redaction = Redaction(restore=True, key=KEY)
    fields = {"who": redaction.ingress("ann@example.org"), "password": "hunter2", "note": "n"}
    model = ScriptedModel(calls("login", login=fields), "done", says(fields))
    with handler(harness(**STACK)), handler(model), handler(Governance([redaction])):
        ask("for ann@example.org")
        value = make("for ann@example.org")
    assert done == [("ann@example.org", "hunter2", "n")]
    assert (value.who, value.password.get_secret_value(), value.note) == done[0]


# --- marks ------------------------------------------------------------------------------------------------------------


def test_patterns_do_not_find_anything_inside_of_marks():
    for pattern in (r"\d+", r"\w", r".+", r"[0-9a-f]{3}"):
        for restore in (False, True):
            rule = Redaction(patterns={"OWN": pattern}, restore=restore, key=KEY)
            for number in range(30):
                text = f"Invite u{number}@example.org, then go."
                once = rule.ingress(text)
                assert rule.egress(once) == once
                assert rule.restored(once) == text


@given(st.text("ab1@. :[]\nNMCE", max_size=60), st.booleans())
def test_what_was_redacted_is_restored_at_once(text, restore):
    rule = Redaction(patterns={"NAME": r"(?<=N: ).*", "CASE": r"C\d+|1+"}, restore=restore, key=KEY)
    once = rule.ingress(text)
    assert rule.egress(once) == once
    assert rule.restored(once) == text


def test_what_overlaps_is_one_datum():
    rule = Redaction(patterns={"LINE": r"Name: .*"}, restore=True, key=KEY)
    text = rule.ingress("Name: Ann, ann@example.org\nok")
    assert re.fullmatch(r"\[LINE [0-9a-f]{8}\]\nok", text)
    # What the model writes around a mark is a datum of its own.
    said = rule.egress(f"Name: Bob {text}")
    assert "Bob" not in said
    assert rule.restored(said) == "Name: Bob Name: Ann, ann@example.org\nok"


@pytest.mark.parametrize(
    "kind", ["Customer [internal]", "a]b", "a\nb", "a\rb", "x" * 61, "", " a", 3, "a'b", 'a"b', "a\\b"]
)
def test_kinds_that_no_mark_can_have(kind):
    with pytest.raises(OptionError, match="no name of a pattern"):
        Redaction(patterns={kind: "x"})


def test_options_of_redaction_that_look_for_nothing_or_for_something_else():
    for options in ({"kinds": []}, {"kinds": "EMAIL"}, {"kinds": 3}, {"patterns": ["x"]}, {"patterns": {"X": 3}}):
        with pytest.raises(OptionError):
            Redaction(**options)
    with pytest.raises(OptionError, match="EMAIL"):
        Redaction(patterns={"EMAIL": "x"})
    assert Redaction(["CARD"], patterns={"EMAIL": "x"}).ingress("x") != "x"


def test_another_run_of_the_same_name_can_be_resumed_elsewhere():
    def program(store: Any, redaction: Redaction, *replies: Any) -> str:
        with handler(harness(**STACK, journal=store, run_id="main")), handler(ScriptedModel(*replies)):
            with handler(Governance([redaction])):
                ask("I am ann@example.org")
                return ask("and bob@example.org")

    def crash(request: Any) -> Any:
        raise KeyboardInterrupt

    redaction, ours, theirs = Redaction(), MemoryCheckpointer(), MemoryCheckpointer()
    program(ours, redaction, "a", "b")
    with pytest.raises(KeyboardInterrupt):
        program(theirs, redaction, "a", crash)
    assert program(theirs, Redaction(), "b") == "b"


def test_the_same_datum_has_the_same_mark_in_a_run():
    model = ScriptedModel("a", "b")
    with handler(harness(**STACK, journal=MemoryCheckpointer(), run_id="main")), handler(model):
        with handler(Governance([Redaction()])):
            ask("I am ann@example.org")
            ask("I am ann@example.org")
    assert mark_in(model.requests[0]) == mark_in(model.requests[1])


# --- yes and no -------------------------------------------------------------------------------------------------------


def paid(rule: Rule | Policy, amount: int = 5) -> tuple[list[Any], list[str]]:
    """What was paid, and what the model was told."""
    log = DecisionLog()
    model = ScriptedModel(calls("pay", amount=amount), "done")
    policy = rule if isinstance(rule, Policy) else Governance([rule])
    with handler(harness(**STACK)), handler(model), handler(policy), handler(log):
        ask("?")
    return done, [str(model.requests[-1]["messages"][-1]["content"])]


@pytest.mark.parametrize(
    "said",
    [
        *(None, 1, "yes", "", 0, [1], re.match("a", "a"), object(), Refuse, Disposition, (True, "no")),
        *(Disposition.DENY_STEP, Decision(Disposition.DENY_STEP), Refuse(), Refuse("too much"), False),
    ],
    ids=lambda said: re.sub(r" at 0x\w+", "", repr(said))[:30],
)
def test_only_yes_is_yes(said, caplog):
    happened, [told] = paid(ArgumentRule(pay, lambda arguments: said, name="sums"))
    assert happened == []
    if said is False or isinstance(said, Refuse | Decision | Disposition):
        assert "failed" not in caplog.text
        assert getattr(said, "message", "") in told
    else:
        assert "`allow` of the rule `sums` returned" in caplog.text


@pytest.mark.parametrize("said", [True, Disposition.ALLOW, Decision(), Decision(arguments={"amount": 1})], ids=repr)
def test_yes_is_yes(said):
    assert paid(ArgumentRule(pay, lambda arguments: said))[0] == [1 if getattr(said, "arguments", None) else 5]


def test_a_decision_of_an_argument_rule_may_end_the_call():
    with pytest.raises(Exception, match="enough"):
        paid(ArgumentRule(pay, lambda arguments: Decision(Disposition.TERMINATE_RUN, message="enough")))
    assert done == []


async def later(*_: Any) -> Any:
    return None


class Later:
    """An object whose call is to be awaited."""

    async def __call__(self, *_: Any) -> Any:
        return None


@Skill.define(tools=False)
async def later_skill(text: str) -> str:
    """{text}"""
    raise NotHandled


class LaterRule(Rule):
    """A rule with an asynchronous method."""

    async def egress(self, text: str, /) -> Any:
        return Refuse("no")


class LaterPolicy(Policy):
    """A policy with an asynchronous method."""

    async def judge(self, effect: Any, /) -> Any:
        return Disposition.DENY_STEP


@pytest.mark.parametrize(
    "function", [later, Later(), functools.partial(later), later_skill, 3, "x"], ids=lambda one: type(one).__name__
)
def test_functions_that_nobody_awaits_are_refused_at_making(function):
    for stage in ("ingress", "tool_call", "tool_result", "egress"):
        with pytest.raises(OptionError, match=stage):
            Rule("r", **{stage: function})
    for wrong in (
        lambda: ArgumentRule(pay, function),
        lambda: Governance(decisions=function),
        lambda: DecisionLog(function),
        lambda: Policy(function),
    ):
        with pytest.raises(OptionError):
            wrong()


def test_asynchronous_methods_are_refused_at_making():
    with pytest.raises(OptionError, match="egress"):
        LaterRule()
    with pytest.raises(OptionError, match="judge"):
        LaterPolicy()
    with pytest.raises(OptionError, match="reflector"):
        Governance(reflector="x")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stage", ["ingress", "tool_call", "egress", "allow"])
def test_a_coroutine_is_no_answer(stage):
    rule = ArgumentRule(pay, lambda one: later()) if stage == "allow" else Rule("r", **{stage: lambda one: later()})
    if stage in ("ingress", "egress"):
        with pytest.raises(ConfigurationError, match="returned coroutine"):
            paid(rule)
    else:
        paid(rule)
    assert done == []


# --- the reflector ----------------------------------------------------------------------------------------------------


async def refusing(value: Any) -> Any:
    return Refuse("no")


async def better(value: Any) -> Any:
    await asyncio.sleep(0)
    return value.upper()


async def failing(value: Any) -> Any:
    raise ValueError("x")


def reflected(reflector: Any, *replies: Any, asynchronous: bool) -> Any:
    with handler(harness(**STACK)), handler(ScriptedModel("draft", *replies)), handler(Governance(reflector=reflector)):
        return asyncio.run(acall(ask, "?")) if asynchronous else ask("?")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_reflector_may_be_asynchronous(asynchronous):
    assert reflected(better, asynchronous=asynchronous) == "DRAFT"
    assert reflected(failing, asynchronous=asynchronous) == "draft"
    assert reflected(later_skill, "clean", asynchronous=asynchronous) == "clean"
    for function in (refusing, lambda value: Disposition.DENY_STEP, lambda value: Decision(Disposition.TERMINATE_RUN)):
        with pytest.raises(GovernanceRefused, match="reflector"):
            reflected(function, asynchronous=asynchronous)
    assert reflected(lambda value: Disposition.ALLOW, asynchronous=asynchronous) == "draft"


@pytest.mark.parametrize("said", [True, False, Refuse])
def test_what_is_no_answer_of_a_reflector(said):
    with pytest.raises(Exception, match="the reflector returned"):
        reflected(lambda value: said, asynchronous=False)


# --- options that guard nothing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: PathRule("/srv", arguments="filename"),
        lambda: PathRule("/srv", arguments=["filename", 3]),
        lambda: PathRule("/srv", tools=ring, arguments=["adress"]),
        lambda: PathRule("/srv", tools=[]),
        lambda: HostRule("a.example", arguments="address"),
        lambda: HostRule("a.example", tools=ring, arguments=["adress"]),
        lambda: HostRule("a.example", schemes="https"),
        lambda: HostRule(["a.example"]),
        lambda: ArgumentRule([], bool),
        lambda: ArgumentRule(3, bool),
        lambda: ArgumentRule(pay, schema={}),
        lambda: ArgumentRule(pay, schema={"type": "object", "properties": {}, "required": []}),
        lambda: ArgumentRule(pay, schema={"amount": {"maximum": 100}}),
        lambda: ArgumentRule(pay, schema={"properties": {"amout": {"maximum": 100}}}),
        lambda: ArgumentRule([pay, ring], schema={"required": ["amout"]}),
        lambda: ArgumentRule(pay, schema={"properties": {"amount": {"maxmum": 100}}}),
        lambda: ArgumentRule(pay, schema={"anyOf": [{"properties": {"amout": {"maximum": 100}}}]}),
    ],
)
def test_what_would_guard_nothing_is_told(make):
    with pytest.raises(OptionError):
        make()


@Tool.define
def take_any(request: Any, **others: Any) -> str:
    """Take anything."""
    return "taken"


def test_what_guards_something_is_taken():
    ArgumentRule(pay, schema={"properties": {"amount": {"title": "Amount", "maximum": 100}}})
    ArgumentRule([pay, ring], schema={"properties": {"amount": {"maximum": 100}}})
    ArgumentRule(pay, schema={"maxProperties": 0})
    ArgumentRule(pay, schema={"not": {"required": ["amount"]}})
    ArgumentRule(schema={"properties": {"amount": {"maximum": 100}}})
    ArgumentRule(take_any, schema={"properties": {"whatever": {"maximum": 100}}})
    HostRule("a.example", tools=take_any, arguments=["address"])
    HostRule("a.example", tools=ring)
    PathRule("/srv", tools=[ring], arguments=["address"])


# --- code that is no tool call ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["builtin", "restricted"])
def test_rules_are_asked_about_code_that_is_no_tool_call(provider, tmp_path):
    asked: list[Any] = []
    rule = Rule("watch", tool_call=lambda effect: asked.append((effect.name, effect.tool)))
    stack = harness(**(STACK | {"eval_provider": provider}), tool_calling="code")
    written = f"[open({str(tmp_path / 'x')!r}, 'w').write('x'), 'a'][1]" if provider == "builtin" else "'a'"
    replies = (calls("read_mail", call="read_mail()"), calls("file", call=f"file({written})"), "ok")
    with handler(stack), handler(ScriptedModel(*replies)) as model:
        with handler(Governance([rule, UntrustedContent(read_mail), ArgumentRule(allow=lambda arguments: True)])):
            assert ask("?") == "ok"
    names = [name for name, _ in itertools.groupby(name for name, _ in asked)]
    assert names == ["code", "read_mail", "code", *(["file"] if provider == "restricted" else [])]
    assert asked[0][1] is None
    assert not (tmp_path / "x").exists()
    assert ("untrusted content" in str(model.requests[-1])) == (provider == "builtin")
