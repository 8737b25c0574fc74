"""Code and replies that try to get round a policy, each a way that once led past one."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Risk, Skill, Tool, handler, harness, propagate
from effectful_agents.errors import AgentsError, ConfigurationError, Denied, StepDenied
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.policy import DecisionLog, Governance, GrantEffects, Limits, Policy, RiskPolicy
from effectful_agents.handlers.policy.rules import ArgumentRule, PathRule, Redaction, Refuse, Rule, UntrustedContent
from effectful_agents.operations.policy import Answer, Decision, Disposition, ProposedEffect, decided, request_approval
from effectful_agents.testing import ScriptedModel, batch, calls
from tests.handlers.policy.routes import Clerk, assistant, got, in_body, in_repl, read_mail, send, sent, take

RESTRICTED = {"eval_provider": "restricted", "type_checker": "none"}
NONE = {"eval_provider": "none", "type_checker": "none"}
DENY = Policy(lambda effect: Disposition.DENY_STEP if effect.calls(send) else None, "deny")


@pytest.fixture(autouse=True)
def _nothing_happened() -> None:
    sent.clear()
    got.clear()


def attempted(skill: Any, *replies: Any, policies: tuple[Any, ...], **settings: Any) -> ScriptedModel:
    model = ScriptedModel(*replies, "done", "done", "done")
    with handler(harness(**settings)), handler(model), contextlib.ExitStack() as stack:
        for policy in policies:
            stack.enter_context(handler(policy))
        with contextlib.suppress(AgentsError):
            skill("?")
    return model


# --- what the code may write ------------------------------------------------------------------------------------------


class Never(Policy):
    """Lets nothing be sent."""

    def judge(self, effect: ProposedEffect, /) -> Disposition | None:
        return Disposition.DENY_STEP if effect.calls(send) else None


never = Never()
no_mail = Rule("no mail", tool_call=lambda effect: Disposition.DENY_STEP if effect.calls(send) else None)


@Skill.define
def worker(request: str) -> str:
    """{request}"""
    raise NotHandled


@pytest.mark.parametrize(
    "code",
    [
        "send.before_call = None",
        "setattr(send, 'before_call', None)",
        "def put(o, n, v): setattr(o, n, v)\nput(send, 'risk', 0)",
        "send.risk = 0",
        "for t in [send]:\n    t.risk = 0",
        "Clerk.post.risk = 0",
        "del send.risk",
    ],
)
def test_code_cannot_change_a_tool(code):
    attempted(worker, in_repl(f"{code}\nsend('eve')"), in_repl("send('eve')"), policies=(RiskPolicy(),), **RESTRICTED)
    assert sent == []
    assert "before_call" not in send.__dict__
    assert send.risk is Risk.HARD_WRITE
    assert Clerk.post.risk is Risk.HARD_WRITE


@pytest.mark.parametrize(
    "code",
    [
        "never.judge = lambda e: None",
        "no_mail.tool_call = lambda e: None",
        "setattr(never, 'judge', lambda e: None)",
        "x = [never][0]\nx.judge = lambda e: None",
        "never.__dict__['judge'] = lambda e: None",
        "Never.judge = lambda s, e: None",
    ],
)
def test_code_cannot_change_a_policy_of_the_program(code):
    policies = (never, Governance([no_mail]))
    attempted(worker, in_repl(f"{code}\nsend('eve')"), in_repl("send('eve')"), policies=policies, **RESTRICTED)
    assert sent == []
    assert "judge" not in vars(never)


# --- what the code hands over -----------------------------------------------------------------------------------------


@Tool.define
def read_many(paths: list[str]) -> str:
    """Read files."""
    got.append(paths)
    return "text"


@Tool.define
def pay(amount: int) -> str:
    """Pay."""
    got.append(amount)
    return "paid"


@Tool.define
async def read_later(paths: list[str]) -> str:
    """Read files."""
    got.append(paths)
    return "text"


@Skill.define
def reader(request: str) -> str:
    """{request}"""
    raise NotHandled


P = "/etc/passwd"


@pytest.mark.parametrize(
    "code",
    [
        f"read_many(p for p in ['{P}'])",
        f"read_many(map(str, ['{P}']))",
        f"class L(list): pass\nread_many(L(['{P}']))",
        f"read_many({{'{P}': 1}})",
        f"read_many({{'{P}': 1}}.keys())",
        f"import collections\nread_many(collections.deque(['{P}']))",
        f"read(b'{P}')",
        "read(0)",
        f"class S(str):\n    def __str__(self): return '/srv/x'\nread(S('{P}'))",
    ],
)
def test_paths_in_other_clothes(code):
    rule = PathRule("/srv/data", arguments=["path", "paths"])
    attempted(reader, in_repl(code), policies=(Governance([rule]),), **RESTRICTED)
    assert P not in str(got)
    assert 0 not in got


@pytest.mark.parametrize(
    "code",
    [
        "class I(int):\n    def __le__(self, o): return True\npay(I(5000))",
        "class I(int):\n    def __gt__(self, o): return False\npay(I(5000))",
        "pay(True + 4999)",
        "pay('5000')",
        "class F:\n    def __call__(self): return 1\n    def __le__(self, o): return True\npay(F())",
        "class L(list):\n    def __call__(self): return 1\n    def __iter__(self): return iter([1])\npay(L([5000]))",
        "pay(type('x'))",
        "pay(5e3)",
    ],
)
def test_numbers_in_other_clothes(code):
    rule = ArgumentRule(pay, lambda arguments: arguments["amount"] <= 100)
    attempted(reader, in_repl(code), policies=(Governance([rule]),), **RESTRICTED)
    assert got == []


def test_what_fits_is_handed_over_and_nothing_of_the_code_s_own_classes():
    attempted(
        reader,
        in_repl("class S(str): pass\nread_many([S('/srv/data/x')])\npay(7)"),
        policies=(Policy(lambda effect: None),),
        **RESTRICTED,
    )
    assert got == [["/srv/data/x"], 7]
    assert type(got[0][0]) is str


def test_what_was_decided_about_does_not_change_afterwards():
    body = (
        "async def later(request: str) -> str:\n    l = ['/srv/data/x']\n    c = read_later(l)\n"
        f"    l[0] = '{P}'\n    return await c\n"
    )

    @Skill.define
    async def later(request: str) -> str:
        """{request}"""
        raise NotHandled

    import asyncio

    model = ScriptedModel(in_body(body), "done", "done", "done")
    with (
        handler(harness(**RESTRICTED)),
        handler(model),
        handler(Governance([PathRule("/srv/data", arguments=["paths"])])),
    ):
        with contextlib.suppress(AgentsError):
            asyncio.run(later("?"))
    assert P not in str(got)


@Skill.define
def remote(request: str) -> str:
    """{request}"""
    raise NotHandled


@pytest.mark.parametrize("reply", [calls("take", path=P), in_repl(f"take(path='{P}')")], ids=["json", "code"])
@pytest.mark.parametrize(
    "rule",
    [PathRule("/srv/data"), ArgumentRule(take, schema={"properties": {"path": {"enum": ["a"]}}})],
    ids=["path", "schema"],
)
def test_arguments_of_a_tool_with_a_schema_by_hand_go_by_their_names(reply, rule):
    attempted(remote, reply, policies=(Governance([rule]),), **RESTRICTED)
    assert got == []
    amend = Policy(lambda effect: Decision(arguments={"path": "b"}) if effect.calls(take) else None)
    attempted(remote, calls("take", path="a"), policies=(amend,), **NONE)
    assert got == [{"path": "b"}]


# --- code that runs before a tool is called ---------------------------------------------------------------------------


@Tool.define
def apply(f: Callable[[int], int]) -> int:
    """Apply a function."""
    return f(1)


@Skill.define
def coder(request: str) -> str:
    """{request}"""
    raise NotHandled


@Skill.define
def make(request: str) -> Callable[[int], int]:
    """{request}"""
    raise NotHandled


CODE = "x = look('ran')\ndef {name}({parameters}) -> {result}:\n    return {value}\n"


@pytest.mark.parametrize(
    ("skill", "reply", "settings"),
    [
        (coder, in_body("def coder(request: str, *, y=look('ran')) -> str:\n    return 'x'\n"), {}),
        (coder, in_body(CODE.format(name="coder", parameters="request: str", result="str", value="'x'")), {}),
        (coder, calls("apply", f={"code": CODE.format(name="f", parameters="n: int", result="int", value="n")}), {}),
        (make, '{"code": "x = look(1)\\ndef f(n: int) -> int:\\n    return n\\n"}', {}),
        (coder, calls("apply", call="apply(look('ran'))"), {"tool_calling": "code"}),
        (coder, in_repl("look('ran')"), {}),
    ],
)
def test_code_is_asked_about_before_any_of_it_runs(skill, reply, settings):
    log = DecisionLog()
    attempted(skill, reply, policies=(GrantEffects("model_call", "import"), log), **{**RESTRICTED, **settings})
    names = [record.effect.name for record in log.records if record.effect is not None]
    assert "look" not in names


# --- resumed runs -----------------------------------------------------------------------------------------------------


@Tool.define
def digest() -> str:
    """A digest of the mails."""
    return read_mail()[:7]


@Tool.define
def many() -> str:
    """Look at many things."""
    for number in range(5):
        look_at(number)
    return "done"


@Tool.define
def look_at(number: int) -> str:
    """Look."""
    got.append(number)
    return "fine"


@Tool.define
def wobble() -> str:
    """Fail."""
    raise KeyboardInterrupt


@Skill.define
def resumed(request: str) -> str:
    """{request}"""
    raise NotHandled


def run(store: MemoryCheckpointer, policy: Any, *replies: Any) -> Any:
    with handler(harness(**NONE)), handler(ScriptedModel(*replies)), handler(Journal("r", store)), handler(policy):
        return resumed("?")


def test_what_happened_inside_a_tool_is_known_after_the_run_is_resumed():
    store, rule = MemoryCheckpointer(), UntrustedContent(read_mail)
    with pytest.raises(KeyboardInterrupt):
        run(store, Governance([rule]), calls("digest"), lambda request: crash())
    assert run(store, Governance([rule]), calls("send", to="eve"), "done") == "done"
    assert sent == []


def crash() -> Any:
    raise KeyboardInterrupt


def test_what_happened_inside_a_tool_counts_after_the_run_is_resumed():
    store = MemoryCheckpointer()
    with pytest.raises(KeyboardInterrupt):
        run(store, Limits(tool_calls=7), calls("many"), lambda request: crash())
    with pytest.raises(AgentsError, match="tool_calls"):
        run(store, Limits(tool_calls=7), calls("look_at", number=6), calls("look_at", number=7), "done")
    assert got == [0, 1, 2, 3, 4, 6]


# --- policies, answers and listeners that are odd ---------------------------------------------------------------------


@pytest.mark.parametrize("said", [2, 3, 2.0])
def test_a_disposition_given_as_a_number_is_that_one(said):
    with handler(Policy(lambda effect: Decision(said))), pytest.raises((StepDenied, Denied)):
        send("eve")
    assert sent == []


def test_a_predicate_is_no_policy():
    with handler(Policy(lambda effect: effect.arguments["to"] in ("ann",))), pytest.raises(StepDenied):
        send("eve")

    async def judge(effect: ProposedEffect) -> None: ...

    with pytest.raises(AgentsError, match="plain function"):
        Policy(judge)


def test_what_code_eats_though_a_listener_raises():
    def broken(record: Any) -> None:
        raise RuntimeError("disk full")

    stop = Policy(lambda effect: Disposition.TERMINATE_RUN if effect.calls(send) else None)
    code = "try:\n    send('eve')\nexcept Exception:\n    pass\nprint('went on')"
    for listener in ({decided: broken}, Governance(decisions=broken)):
        with handler(harness(**RESTRICTED)), handler(ScriptedModel(in_repl(code), "done")):
            with handler(stop), handler(listener), pytest.raises(Denied):
                assistant("?")


@dataclasses.dataclass
class Mail:
    to: str
    body: str = dataclasses.field(default="", compare=False)


@Tool.define
def mail(mail: Mail) -> str:
    """Send."""
    got.append(mail.body)
    return "sent"


def test_an_amendment_that_seems_equal_is_one():
    with handler(Policy(lambda effect: Decision(arguments={"mail": Mail("ann", "***")}))):
        mail(Mail("ann", "secret"))
    assert got == ["***"]


def test_a_policy_cannot_change_an_effect_in_place():
    def clamp(effect: Any) -> None:
        effect.arguments["amount"] = 7

    with handler(Policy(clamp)), pytest.raises(StepDenied):
        pay(5000)
    assert got == []


@pytest.mark.parametrize("answer", [None, "yes", Answer(arguments={"other": 1})])
def test_what_is_no_answer_to_a_question_is_an_error(answer):
    with (
        handler(Policy(lambda effect: Disposition.REQUIRE_APPROVAL)),
        handler({request_approval: lambda question: answer}),
    ):
        with pytest.raises(ConfigurationError):
            pay(1)
    assert got == []


def test_a_person_is_asked_again_when_a_policy_changes_what_they_said():
    asked: list[Any] = []

    def ask(question: Any) -> Answer:
        asked.append(dict(question.effect.arguments))
        return Answer(arguments={"amount": 50}) if len(asked) == 1 else Answer(approved=False)

    def judge(effect: ProposedEffect) -> Decision:
        return Decision(Disposition.REQUIRE_APPROVAL, arguments={"amount": min(effect.arguments["amount"], 20)})

    with handler(Policy(judge)), handler({request_approval: ask}), pytest.raises(StepDenied):
        pay(100)
    assert asked == [{"amount": 20}, {"amount": 20}]
    assert got == []


class Head(Clerk):
    """You are the head."""

    @Tool.define(risk=Risk.HARD_WRITE)
    def post(self, to: str) -> str:
        """Post a letter."""
        sent.append(to)
        return "posted"


@Skill.define
def office(request: str) -> str:
    """{request}"""
    raise NotHandled


def test_a_tool_is_known_by_any_name():
    seen: list[tuple[str, bool, bool]] = []

    def judge(effect: ProposedEffect) -> None:
        if effect.tool is not None:
            seen.append((effect.name, effect.calls(Clerk.post), effect.calls(send)))

    with handler(Policy(judge)):
        Clerk().post("a")
        Head().post("b")
        send.named("x")("c")
    clerk = Clerk()

    @Skill.define
    def inside(request: str) -> str:
        """{request}"""
        raise NotHandled

    assert clerk is not None
    with handler(harness(**NONE)), handler(ScriptedModel(calls("clerk__post", to="d"), "done")), handler(Policy(judge)):
        inside("?")
    assert seen == [("post", True, False), ("post", True, False), ("send", False, True), ("post", True, False)]


def test_a_rule_may_refuse_a_call_as_it_refuses_a_text():
    with handler(Governance([Rule("private", tool_call=lambda effect: Refuse("A private matter."))])):
        with pytest.raises(StepDenied, match="A private matter"):
            send("eve")


def test_a_module_taken_from_its_package_is_that_module():
    allowed = in_repl("from collections import deque\nprint(1)")
    model = ScriptedModel(in_repl("from collections import abc"), allowed, "done")
    deny = Policy(lambda effect: Disposition.DENY_STEP if effect.name == "collections.abc" else None)
    with handler(harness(**RESTRICTED)), handler(model), handler(deny):
        assistant("?")
    assert "not done" in model.requests[1]["messages"][-1]["content"]
    assert model.requests[2]["messages"][-1]["content"] == "1\n"


# --- redaction --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Card 4111 1111 1111 1111 12/27 CVV 123",
        "4111111111111111 123",
        "No.4111111111111111",
        "4111  1111\n1111-1111",
        "IBAN DE89370400440532013000 EUR",
        "DE89 3704 0044 0532 0130 00 BIC COBADEFF",
        "DE89370400440532013000 2026",
        "de89370400440532013000",
    ],
)
def test_numbers_beside_other_words_are_found(text):
    redacted = Redaction().ingress(text)
    assert "1111" not in redacted
    assert "0532" not in redacted


def test_marks_in_typed_arguments_are_restored():
    rule = Redaction(restore=True)
    mark = rule.ingress("ann@example.org")
    with handler(Governance([rule])):
        rule.ingress("ann@example.org")
        mail(Mail(mark, f"Dear {mark}"))
    assert got == ["Dear ann@example.org"]


def test_paths_of_any_type():
    @Tool.define
    def move(source: Path) -> str:
        """Move."""
        got.append(source)
        return "moved"

    with handler(Governance([PathRule("/srv/data")])), pytest.raises(StepDenied):
        move(Path(P))
    assert got == []


def test_agents_may_still_be_written_to_by_code():
    class Bot(Agent):
        """You count."""

        @Skill.define
        def count(self, request: str) -> str:
            """{request}"""
            raise NotHandled

    bot = Bot()
    with handler(harness(**RESTRICTED)), handler(ScriptedModel(in_repl("self.total = 3"), "done")):
        with handler(Policy(lambda effect: None)):
            bot.count("?")
    assert vars(bot)["total"] == 3


def test_calls_of_one_turn_that_amend_each_their_own():
    def judge(effect: ProposedEffect) -> Decision | None:
        to = effect.arguments.get("to", "!")
        return None if "!" in to else Decision(arguments={"to": f"{to}!"})

    reply = batch(calls("send", id="a", to="x"), calls("send", id="b", to="y"))
    with handler(harness(**NONE)), handler(ScriptedModel(reply, "done")), handler(Policy(judge)):
        assistant("?")
    assert sent == ["x!", "y!"]


@pytest.mark.parametrize("executor", ["restricted", "builtin"])
@pytest.mark.parametrize(
    "code", ["def never():\n    from boom import x", "def never():\n    from boom.inner import y\n"]
)
def test_what_is_imported_is_found_out_without_importing_it(tmp_path, monkeypatch, executor, code):
    package = tmp_path / "boom"
    (package / "inner").mkdir(parents=True)
    for folder in (package, package / "inner"):
        (folder / "__init__.py").write_text(
            "from tests.handlers.policy import test_attacks\ntest_attacks.got.append(1)\n"
        )
        (folder / "x.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    log, model = DecisionLog(), ScriptedModel(in_repl(code), "done")
    settings = {"eval_provider": executor, "type_checker": "none"}
    with handler(harness(**settings)), handler(model), handler(Policy(lambda effect: None)), handler(log):
        assistant("?")
    assert got == []
    assert "boom" not in sys.modules
    assert any(record.effect is not None and record.effect.name.startswith("boom") for record in log.records)


def test_a_person_is_told_whose_tool_it_is():
    asked: list[str] = []

    def ask(question: Any) -> Answer:
        asked.append(question.text)
        return Answer(approved=False)

    alice = Clerk(__agent_id__="alice")
    bob = Clerk()

    @Skill.define
    def choose(request: str) -> str:
        """{request}"""
        raise NotHandled

    assert alice is not bob
    model = ScriptedModel(calls("alice__post", to="x"), calls("bob__post", to="x"), "done")
    with handler(harness(**NONE)), handler(model), handler(RiskPolicy()), handler({request_approval: ask}):
        choose("?")
    assert [text.rpartition("(")[2] for text in asked] == ["of Clerk alice)", "of Clerk bob)"]


# --- threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["plain", "propagated", "of the program"])
def test_a_thread_that_a_tool_starts_is_told_of(how, caplog):
    """It has left the policies behind, which nobody can know; what is carried into it holds."""

    @Tool.define
    def post(to: str) -> str:
        """Post a letter."""
        got.append(to)
        return "posted"

    @Tool.define
    def broadcast(people: list[str]) -> str:
        """Send to several people."""
        with ThreadPoolExecutor(1) as pool, contextlib.suppress(StepDenied):
            list(pool.map(propagate(post) if how == "propagated" else post, people))
        return "done"

    @Skill.define
    def inform(request: str) -> str:
        """{request}"""
        raise NotHandled

    deny = Policy(lambda effect: Disposition.DENY_STEP if effect.calls(post) else None)
    if how == "of the program":
        broadcast(["ann", "bob"])
    else:
        attempted(inform, calls("broadcast", people=["ann", "bob"]), policies=(deny,), **NONE)
    assert got == ([] if how == "propagated" else ["ann", "bob"])
    assert caplog.text.count("which has no handlers") == (how == "plain")
    assert ("propagate" in caplog.text) == (how == "plain")
