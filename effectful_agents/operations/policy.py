"""Deciding about effects: whether what leaves the loop may happen, who is asked, and what they said.

Whoever is about to have an effect asks `authorize` first: for a request to the model and a tool call of the model where
they become steps, for a tool that code calls where it is called, for an import where the executor makes it, for
memory where it is read or written. `authorize` performs `decide`, in which every policy that is installed has its say.

A policy is a handler of `decide` that answers and forwards: the strictest answer wins, whatever the order. See
`handlers.policy.Policy`, which is how to write one.
"""

from __future__ import annotations

import dataclasses
import enum
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from effectful_agents.errors import AgentsError, Denied, MissingHandlerError, StepDenied
from effectful_agents.messages.text import printable_lines
from effectful_agents.operations.amending import check_amended
from effectful_agents.operations.world import now
from effectful_agents.runtime import Operation, SignalScope, entered_scopes, interpretation, shielded
from effectful_agents.types import Risk, Skill, Tool
from effectful_agents.types.overriding import stands_for

if TYPE_CHECKING:
    from effectful_agents.messages import Request

__all__ = [
    "ALLOW",
    "Answer",
    "Decision",
    "DecisionRecord",
    "Disposition",
    "EffectKind",
    "ProposedEffect",
    "Question",
    "as_decision",
    "callers",
    "decide",
    "decided",
    "ending_calls",
    "enforced",
    "is_decided",
    "judged",
    "request_approval",
    "same_objects",
    "strictest",
    "tell_decided",
]

_log = logging.getLogger(__name__)


class EffectKind(enum.StrEnum):
    """What an effect is: what `GrantEffects` grants, by these names."""

    MODEL_CALL = "model_call"
    TOOL_CALL = "tool_call"
    DELEGATE = "delegate"
    """A skill that is called in a call of another: by the model, or by code."""
    IMPORT = "import"
    """A module that code of the model imports."""
    MEMORY_READ = "memory_read"
    MEMORY_WRITE = "memory_write"
    MEMORY_FLUSH = "memory_flush"
    MEMORY_CONSOLIDATE = "memory_consolidate"


class Disposition(enum.IntEnum):
    """What becomes of an effect, in ascending strictness."""

    ALLOW = 0
    """It happens."""
    REQUIRE_APPROVAL = 1
    """Somebody is asked (`request_approval`), and says so or not."""
    DENY_STEP = 2
    """It does not happen; the model is told why, and goes on."""
    TERMINATE_RUN = 3
    """It does not happen, and the call ends with `Denied`."""


@dataclasses.dataclass(frozen=True)
class Decision:
    """What a policy says about an effect.

    Attributes:
        disposition: What is to become of it; a number is taken for the disposition of that strictness.
        reason_code: Why, as a word for programs.
        message: Why, in a sentence: for the model, and for whoever reads the log.
        rule: The name of the policy that said so.
        arguments: Those that are to change, by name; None leaves all.

    >>> Decision(Disposition.DENY_STEP, "too_late", "No mails after ten.").message
    'No mails after ten.'
    """

    disposition: Disposition = Disposition.ALLOW
    reason_code: str = ""
    message: str = ""
    _: dataclasses.KW_ONLY
    rule: str = ""
    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        # A number would be taken for what it is not.
        object.__setattr__(self, "disposition", Disposition(self.disposition))

    @property
    def allows(self) -> bool:
        """Whether the effect happens without further ado."""
        return self.disposition is Disposition.ALLOW

    def by(self, rule: str) -> Self:
        """The same, said by this rule, unless it says that already, or nothing."""
        says_nothing = self.allows and self.arguments is None
        return self if says_nothing or self.rule else dataclasses.replace(self, rule=rule)


ALLOW = Decision()
"""Nothing speaks against it."""


def as_decision(said: Any) -> Decision:
    """What a policy returned, as a decision: None allows.

    Raises:
        TypeError: It is something else, such as True, of which nobody knows what was meant.
    """
    if said is None:
        return ALLOW
    if isinstance(said, Decision):
        return said
    if isinstance(said, Disposition):
        return Decision(said)
    raise TypeError(f"a policy returns a `Decision`, a `Disposition` or None, and not {type(said).__name__}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProposedEffect:
    """Something that is about to happen, if it may.

    Attributes:
        kind: What it is.
        name: The tool, skill or module by name; for a request, the model where it names one.
        arguments: The decoded arguments, by the names of the parameters, defaults included; read only.
        tool: The tool or skill that is called.
        receiver: Whose method it is, in words, where it is one: the class, and the identifier of an agent or the name
            that it has in the scope.
        request: The request, of a model call.
        risk: What it can do to the world: as its tool declares; of a skill, the highest of what it could call.
        callers: The skills in whose calls it happens, the outermost first.
        by_code: Whether code calls the tool, of the program or of a model, and not the model in a reply.
        step_id: Its place in the run or call; empty outside of calls.
        run_id: The run; empty where there is none.
        replayed: Whether it has happened before this run was resumed, and will only be told again: then the decision
            changes nothing, and a policy that counts can count it.
        again: Whether it was asked about before, with other arguments, which a policy or a person amended.
    """

    kind: EffectKind
    name: str = ""
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    tool: Tool[..., Any] | None = None
    receiver: str = ""
    request: Request | None = None
    risk: Risk = Risk.READ
    callers: tuple[Skill[..., Any], ...] = ()
    by_code: bool = False
    step_id: str = ""
    run_id: str = ""
    replayed: bool = False
    again: bool = False

    def __post_init__(self) -> None:
        # A policy that wants others says so in its decision, so that all are asked about them.
        object.__setattr__(self, "arguments", MappingProxyType(dict(self.arguments)))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "arguments": dict(self.arguments)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def calls(self, *tools: Tool[..., Any]) -> bool:
        """Whether it is a call of one of these tools or skills, by whatever name it is offered.

        A method that is named by its class, `Clerk.post`, stands for that of each instance, and for those that override
        it. A call of a delegate is one of its skill too. Of what a run did before it was resumed only names are known.
        """
        if self.kind not in (EffectKind.TOOL_CALL, EffectKind.DELEGATE):
            return False
        if self.tool is None:
            return self.replayed and any(self.name == tool.own_name for tool in tools)
        return stands_for(self.tool, tools) or (self.tool.skill is not None and stands_for(self.tool.skill, tools))

    def with_arguments(self, arguments: Mapping[str, Any] | None) -> Self:
        """The same with some arguments changed; None leaves all of them."""
        return self if arguments is None else dataclasses.replace(self, arguments={**self.arguments, **arguments})


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecisionRecord:
    """One row of the decision log.

    Attributes:
        stage: What it was about: an "effect", or a text on its way: "ingress", "tool_result", "egress", "reflector".
        effect: The effect that was asked about, as it was after all amendments; None for a text.
        decision: What was decided; `rule` says who.
        answer: What a person said, where one was asked.
        callers: The skills in whose calls it was, the outermost first.
        at: When, in seconds since 1970-01-01 UTC.
    """

    decision: Decision
    effect: ProposedEffect | None = None
    stage: str = "effect"
    answer: Answer | None = None
    callers: tuple[Skill[..., Any], ...] = ()
    at: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """What a person is asked.

    Attributes:
        effect: What is to be approved; None where the model wants to know something.
        text: What is asked, for people.
        reason_code: Why the person is asked, as a word for programs.
        step_id: The step of the run that waits for the answer.
        run_id: The run; empty where there is none.
        number: Which question about this step it is, from 1: what a policy makes of an answer may be asked about again.
        returns: The JSON schema of a result that is wanted, of a call of an `external` tool; else None. The answer has
            the result as JSON in its `text`.
    """

    text: str
    effect: ProposedEffect | None = None
    reason_code: str = ""
    step_id: str = ""
    run_id: str = ""
    number: int = 1
    returns: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """What a person said.

    Attributes:
        approved: Whether the effect may happen.
        reason: Why not, or whatever they said; the model is told it when they refuse.
        arguments: Arguments that take the place of those that were asked about, decoded; None leaves them.
        text: The answer to a question of the model; or the result of a tool, as JSON.
        by: Who said it.
        from_nobody: Whether there was nobody to say anything, and `reason` says why; it is no approval.
    """

    approved: bool = True
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    text: str = ""
    by: str = ""
    from_nobody: bool = False


@Operation.define
def decide(effect: ProposedEffect) -> Decision:
    """Say whether an effect may happen; by default it may.

    A handler says what it thinks and forwards, with the effect as it amended it, so that all others are asked as well:
    `return strictest(mine, fwd(effect.with_arguments(mine.arguments)))`. `handlers.policy.Policy` does that.
    """
    return ALLOW


@Operation.define
def decided(record: DecisionRecord) -> None:
    """Tell what was decided about an effect, before it happens or not; by default nobody listens.

    A handler forwards, and does not raise.
    """


@Operation.define
def request_approval(question: Question) -> Answer:
    """Ask a person whether an effect may happen, or what the model wants to know.

    A handler answers in place, or raises `Suspended`: then the run ends here, and is asked the same again when it is
    resumed. A function that is `async def` is awaited. Whatever else is raised says nothing about the effect: the calls
    end with it, and a run asks again when it is resumed.

    Raises:
        MissingHandlerError: Nobody is there to be asked.
    """
    raise MissingHandlerError(
        "request_approval",
        f"A person has to be asked ({printable_lines(question.text)}). Install a handler: "
        "`handler({request_approval: function})`, `AskInTerminal()` or `HumanInteraction(…)` of "
        "`effectful_agents.handlers.policy`.",
    )


def is_decided() -> bool:
    """Whether anybody decides about effects here."""
    return decide in interpretation()


def callers() -> tuple[Skill[..., Any], ...]:
    """The skills in whose calls the code is, the outermost first."""
    owners = (scope.owner for scope in reversed(entered_scopes()) if isinstance(scope, SignalScope))
    return tuple(owner for owner in owners if isinstance(owner, Skill))


def strictest(*decisions: Decision) -> Decision:
    """The strictest of several decisions, the first of those equally strict; with all amendments, the last first.

    >>> deny = Decision(Disposition.DENY_STEP, rule="quiet hours")
    >>> strictest(ALLOW, deny, Decision(Disposition.REQUIRE_APPROVAL)).rule
    'quiet hours'
    """
    chosen = max(decisions, key=lambda decision: decision.disposition)
    amended = [decision.arguments for decision in decisions if decision.arguments is not None]
    if not amended or (len(amended) == 1 and chosen.arguments is amended[0]):
        return chosen
    return dataclasses.replace(chosen, arguments={name: value for one in amended for name, value in one.items()})


def judged(effect: ProposedEffect) -> tuple[ProposedEffect, Decision]:
    """Perform `decide` until nobody amends the arguments any more; gives the effect as it may happen.

    A policy that raises denies: the effect does not happen, and the error is logged.
    """
    for _ in range(_ROUNDS):
        try:
            decision = as_decision(decide(effect))
            check_amended(effect, decision.arguments or {}, "a policy")
            amended = effect.with_arguments(decision.arguments)
        except Exception as error:
            if isinstance(error, AgentsError) and error.ends_call:
                raise
            _log.exception("a policy failed when it was asked about `%s`; so it is denied", effect.name or effect.kind)
            return effect, _FAILED
        if decision.disposition > Disposition.REQUIRE_APPROVAL:
            return effect, decision
        if _same(amended.arguments, effect.arguments):
            return amended, decision
        effect = dataclasses.replace(amended, again=True)
    _log.error("the policies went on amending the arguments of `%s`; so it is denied", effect.name)
    return effect, _ENDLESS


_ROUNDS = 8
_FAILED = Decision(Disposition.DENY_STEP, "policy_error", "A rule failed on it; the log says how.", rule="policy_error")
_ENDLESS = Decision(Disposition.DENY_STEP, "policy_error", "Rules contradict each other.", rule="policy_error")


def same_objects(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether arguments are the very same, so that none was amended."""
    return one.keys() == other.keys() and all(one[name] is other[name] for name in one)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)


def _equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # an array, say; then it counts as another
        return False


def tell_decided(record: DecisionRecord) -> None:
    """Perform `decided`; a listener that raises changes nothing about what was decided."""
    try:
        with shielded():
            decided(record)
    except Exception:
        _log.exception("a listener of `decided` failed")


def ending_calls[E: Exception](error: E) -> E:
    """Have the calls in which the code is end with an error, though something inside should eat it."""
    for scope in entered_scopes():
        if isinstance(scope, SignalScope):
            scope.stop(lambda: error)
    return error


def enforced(effect: ProposedEffect, decision: Decision, answer: Answer | None = None) -> None:
    """Tell what was decided about an effect, and raise unless it may happen.

    Raises:
        StepDenied: It may not, and whoever asked goes on.
        Denied: It may not, and the call ends.
    """
    at = now()  # before the calls end, and no operation can be performed any more
    error: Exception | None = None
    if decision.disposition is Disposition.TERMINATE_RUN:
        error = ending_calls(Denied(decision))
    elif not decision.allows:
        error = StepDenied(decision)
    tell_decided(DecisionRecord(effect=effect, decision=decision, answer=answer, callers=effect.callers, at=at))
    if error is not None:
        raise error
