"""Rules for what is said, asked of tools, and answered."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Literal, Unpack, cast

from effectful_agents.encoding import encode
from effectful_agents.errors import ConfigurationError, EncodingError, GovernanceRefused, OptionError, StepDenied
from effectful_agents.handlers.policy.attachments import with_attachments
from effectful_agents.handlers.policy.drafts import governed, mapped, with_texts
from effectful_agents.handlers.policy.policies import Policy
from effectful_agents.handlers.policy.rewriting import Unfit, rewritten
from effectful_agents.handlers.policy.rules.options import forget_coroutine, plain_function
from effectful_agents.handlers.policy.rules.rule import Refuse, Rule
from effectful_agents.handlers.policy.rules.settings import named, settings_digest
from effectful_agents.messages import Message, Request, Response, StreamEvent, SystemMessage
from effectful_agents.operations.amending import check_amended, fits
from effectful_agents.operations.history import admit_message
from effectful_agents.operations.loop import (
    AssistantResult,
    call_agent,
    call_assistant,
    completion,
    deliver,
    write_system,
)
from effectful_agents.operations.policy import (
    ALLOW,
    Decision,
    DecisionRecord,
    Disposition,
    EffectKind,
    ProposedEffect,
    as_decision,
    callers,
    decided,
    strictest,
    tell_decided,
)
from effectful_agents.operations.prompt import PromptSection
from effectful_agents.operations.steps import StepEvent, emit
from effectful_agents.operations.world import now
from effectful_agents.runtime import fwd, handler, implements, wait
from effectful_agents.types import Skill

__all__ = ["Governance"]

_log = logging.getLogger(__name__)

type Stage = Literal["ingress", "tool_result", "egress", "leaving"]
type Reflector = Callable[[Any], Any]


class Governance(Policy):
    """Hold what is said, asked of tools, and answered to rules, which amend or refuse.

    *Ingress*: what enters a conversation from the program, the system message included. A refusal ends the call. *Tool
    calls*, by whatever way: the tool is called with the amended arguments, or the model is told that it was refused.
    *Results of tools*, before the model reads them. *Egress*: what the model writes, before a conversation, a stream or
    the program gets it, and the texts in the value that leaves the outermost call. Where there is a rule for that,
    replies are not streamed while they are written, but told when they have passed. A refusal raises
    `GovernanceRefused`, which names the rule; the call then leaves no trace in any history.

    Install it inside of the stack, so that no other handler sees what it would have amended.

    Args:
        preconditions: The rules, in the order in which they are asked.
        reflector: Looks at the value of each call that the program makes, in the end: a function or skill of one
            argument, `async` or not, which returns None, `Refuse(…)`, a `Disposition` or `Decision`, or another value.
            One that raises is recorded and passed over. What a policy denies it, or a limit, comes out of the call:
            nobody has looked at the answer then. A skill needs the grant of `delegate` where there is `GrantEffects`.
        decisions: Gets every record of the decision log, as `DecisionLog().add` does.

    Raises:
        OptionError: One of `preconditions` is no rule, `reflector` is no function, or `decisions` is none or an
            `async def`.
        GovernanceRefused: From a call: see above.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def answer(question: str) -> str:
    ...     '''{question}'''
    ...     raise NotHandled
    >>> no_prices = Rule("no prices", egress=lambda text: Refuse("Prices are confidential.") if "€" in text else None)
    >>> with handler(harness()), handler(ScriptedModel("It costs 900 €.")), handler(Governance([no_prices])):
    ...     answer("What does it cost?")
    Traceback (most recent call last):
    effectful_agents.errors.GovernanceRefused: Prices are confidential. (rule: no prices)
    """

    def __init__(
        self,
        preconditions: Iterable[Rule] = (),
        *,
        reflector: Reflector | None = None,
        decisions: Callable[[DecisionRecord], None] | None = None,
    ) -> None:
        super().__init__(name="governance")
        if isinstance(preconditions, Rule):
            raise OptionError(
                f"`preconditions` is one rule, `{preconditions.name}`; give a list: `Governance([rule])`."
            )
        self.rules = tuple(preconditions)
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise OptionError(f"`preconditions` are rules; this is {type(rule).__name__}: use `Rule(…)`.")
        if reflector is not None and not callable(reflector):
            raise OptionError(f"`reflector` is {reflector!r}; it is a function or a skill of one argument.")
        if decisions is not None:
            plain_function(decisions, "`decisions` of a `Governance`")
        self._reflector = reflector
        self._decisions = decisions
        self._installed = 0

    @contextlib.contextmanager
    def while_installed(self) -> Generator[None]:
        if not self._installed:
            for rule in self.rules:
                rule.begin()
        self._installed += 1
        try:
            yield
        finally:
            self._installed -= 1

    def manifest(self) -> Mapping[str, object]:
        stages = sorted({f"governance.{stage}" for rule in self.rules for stage in rule.stages})
        if self._reflector is not None:
            stages.append("governance.reflector")
        said: dict[str, object] = {"stages": stages, "preconditions": [rule.name for rule in self.rules]}
        said["rules"] = [{"rule": rule.name, "settings": settings_digest(rule.settings())} for rule in self.rules]
        return said if self._reflector is None else {**said, "reflector": named(self._reflector)}

    # --- what enters a conversation -----------------------------------------------------------------------------------

    @implements(admit_message)
    def admit_message(self, message: Message) -> Message:
        stage: Stage | None = _STAGES.get(message["role"])
        return fwd() if stage is None else fwd(self._message(stage, message))

    @implements(write_system)
    def write_system(self, document: PromptSection) -> SystemMessage:
        return cast(SystemMessage, self._message("ingress", fwd()))

    def _message(self, stage: Stage, message: Any) -> Any:
        message = with_texts(message, "content", lambda text: self._passed(stage, text))
        message = with_attachments(message, lambda text: self._passed(stage, text, "attachment"))
        parts = message.get("content")
        if not isinstance(parts, list) or all(part.get("type") == "text" for part in parts):
            return message
        for rule in self.rules:
            parts = rule.parts(stage, parts)
        return message if parts is message["content"] else {**message, "content": parts}

    # --- what is asked of tools ---------------------------------------------------------------------------------------

    def judge(self, effect: ProposedEffect, /) -> Decision:
        said = ALLOW
        for rule in self.rules:
            if "tool_call" in rule.stages and (effect.replayed or effect.kind in _CALLS):
                decision = _of_rule(rule, effect)
                effect = effect.with_arguments(decision.arguments)
                said = strictest(said, decision)
        return said

    @implements(decided)
    def decided(self, record: DecisionRecord) -> None:
        if self._decisions is not None:
            self._decisions(record)
        fwd()

    # --- what leaves --------------------------------------------------------------------------------------------------

    @implements(completion)
    def completion(self, **request: Unpack[Request]) -> Response:
        if not self._has_egress:
            return fwd()
        # What is told in pieces could not be taken back: who makes the request tells the whole reply, when it is here.
        with handler({emit: _only_steps}):
            response: Response = fwd()
        return governed(response, lambda text: self._passed("egress", text), self._check_arguments)

    @implements(call_assistant)
    def call_assistant(self, messages: Sequence[Message], *_: Any) -> AssistantResult[Any]:
        for rule in self.rules:
            rule.shown(messages)
        return fwd()

    @implements(deliver)
    def deliver(self, value: Any, response_type: Any) -> Any:
        if len(callers()) > 1:
            return fwd()
        if self._has_egress:
            value = self._leaving(value, response_type)
        if self._reflector is not None:
            value = self._reflected(value, self._reflector)
        return fwd(value, response_type)

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        if callers():
            return fwd()
        with contextlib.ExitStack() as stack:
            for rule in self.rules:
                stack.enter_context(rule.call())
            return fwd()

    @property
    def _has_egress(self) -> bool:
        return any("egress" in rule.stages for rule in self.rules)

    def _leaving(self, value: Any, tp: Any) -> Any:
        """The value with its texts as the rules amend them, but for code, and for what cannot be made again."""
        if isinstance(value, str):
            return self._passed("leaving", value)
        passed = functools.cache(lambda text: self._passed("leaving", text))
        with contextlib.suppress(EncodingError):  # without texts that could be read
            mapped(encode(value, tp), passed, names=True)  # a rule may refuse a text that would stay as it is
        try:
            made = rewritten(value, passed)
            if made is not value and fits(value, tp) and not fits(made, tp):
                raise Unfit(value)
        except Unfit as error:
            raise self._refused("governance", "leaving", Refuse("What rules made of it is no answer.")) from error
        return made

    def _check_arguments(self, text: str) -> None:
        """Hold a text in the arguments of a tool call to the rules that refuse; what amends them sees the call."""
        for rule in self.rules:
            if "egress" in rule.stages:
                said = _said(rule, rule.egress, text)
                if isinstance(said, Refuse):
                    raise self._refused(rule.name, "egress", said)

    def _reflected(self, value: Any, reflector: Reflector) -> Any:
        try:
            said = reflector(value)
            said = wait(said) if inspect.isawaitable(said) else said
            decision = as_decision(said) if isinstance(said, Decision | Disposition) else None
        except Exception as error:
            if isinstance(error, StepDenied) or getattr(error, "ends_call", False):
                raise  # it was not to look at it, or not to the end: not what a reflector makes of an answer
            _log.exception("the reflector failed; what it was to look at passes")
            self._record("reflector", Decision(reason_code="reflector_error", message=type(error).__name__))
            return value
        if decision is not None:
            if not decision.allows:  # nobody can be asked here
                raise self._refused("reflector", "reflector", Refuse(decision.message))
            return value
        if isinstance(said, Refuse):
            raise self._refused("reflector", "reflector", said)
        if said is None:
            return value
        if said is Refuse or (isinstance(said, bool) and not isinstance(value, bool)):
            raise ConfigurationError(
                f"the reflector returned {said!r}; it returns None, `Refuse(…)`, or the value that is the answer."
            )
        self._record("reflector", Decision(reason_code="amended", rule="reflector"))
        return said

    # --- rules about texts --------------------------------------------------------------------------------------------

    def _passed(self, stage: Stage, text: str, what: str = "") -> str:
        """A text as all rules leave it.

        Args:
            stage: Where it is.
            text: The text.
            what: `attachment` for what stands beside texts.

        Raises:
            GovernanceRefused: One does not let it pass; a result of a tool then reads so instead.
        """
        for rule in self.rules:
            if ("egress" if stage == "leaving" else stage) not in rule.stages:
                continue
            function = functools.partial(rule.attachment, stage) if what else getattr(rule, stage)
            said = _said(rule, function, text)
            if isinstance(said, Refuse):
                error = self._refused(rule.name, stage, said)
                if stage == "tool_result":
                    return f"(Withheld: {error})"
                raise error
            if said is not None and said != text:
                self._record(stage, Decision(reason_code="amended", rule=rule.name))
                text = said
        return text

    def _refused(self, rule: str, stage: str, refusal: Refuse) -> GovernanceRefused:
        error = GovernanceRefused(rule, f"{refusal.message} (rule: {rule})" if refusal.message else "")
        self._record(stage, Decision(Disposition.DENY_STEP, "refused", refusal.message, rule=rule))
        return error

    def _record(self, stage: str, decision: Decision) -> None:
        tell_decided(DecisionRecord(stage=stage, decision=decision, callers=callers(), at=now()))


_CALLS = frozenset({EffectKind.TOOL_CALL, EffectKind.DELEGATE})

_STAGES: Mapping[str, Stage] = {"user": "ingress", "system": "ingress", "tool": "tool_result"}


def _of_rule(rule: Rule, effect: ProposedEffect) -> Decision:
    try:
        said: Any = rule.tool_call(effect)
        if isinstance(said, Refuse):
            said = Decision(Disposition.DENY_STEP, "refused", said.message)
        forget_coroutine(said)
        decision = as_decision(said)
        check_amended(effect, decision.arguments or {}, f"the rule `{rule.name}`")
    except Exception:
        _log.exception("the rule `%s` failed when it was asked about `%s`; so it refuses", rule.name, effect.name)
        decision = Decision(Disposition.DENY_STEP, "policy_error", "A rule failed on it; the log says how.")
    return decision.by(rule.name)


def _said(rule: Rule, function: Callable[[str], Any], text: str) -> str | Refuse | None:
    try:
        said = function(text)
    except Exception:
        _log.exception("the rule `%s` failed; so it refuses", rule.name)
        return Refuse("A rule failed on it; the log says how.")
    if said is None or isinstance(said, str | Refuse):
        return said
    forget_coroutine(said)
    raise ConfigurationError(
        f"the rule `{rule.name}` returned {type(said).__name__}; it returns the text amended, `Refuse(…)` or None."
    )


def _only_steps(event: StreamEvent | StepEvent) -> None:
    if isinstance(event, StepEvent):
        fwd()
