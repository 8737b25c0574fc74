"""Running durable programs for people who answer later: from verified claims, and once for each answer."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from effectful_agents.errors import (
    ConfigurationError,
    JournalError,
    OptionError,
    RunInUse,
    Suspended,
    TokenScopeMismatch,
)
from effectful_agents.handlers.policy.human import HumanInteraction, in_scope
from effectful_agents.handlers.policy.tokens import is_scope
from effectful_agents.operations.approvals import PendingQuestion
from effectful_agents.operations.journal import record
from effectful_agents.operations.policy import Answer
from effectful_agents.operations.records import Checkpointer, Phase, RunState
from effectful_agents.operations.world import fresh_id
from effectful_agents.runtime import Interpretation, handler, wait

__all__ = ["AgentHost", "CallOutcome"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CallOutcome[T]:
    """What has become of a run for now.

    Attributes:
        run_id: The run.
        suspended: Whether it waits for somebody; otherwise it has come to its end.
        value: What the program returned.
        question: What is asked, where it waits.
        token: With it the question is answered, by `AgentHost.redeem`.
    """

    run_id: str
    suspended: bool = False
    value: T | None = None
    question: PendingQuestion | None = None
    token: str = dataclasses.field(default="", repr=False)


class AgentHost[C, T]:
    """Run programs that ask people, and go on with them when those have answered, in this or in another process.

    A program belongs to a scope, which is derived from claims that the caller has verified: who is logged in, say.
    Only whoever is of the same scope answers its questions. What a program is given is kept in its journal, so that
    whatever host goes on with it has it.

    `start`, `redeem` and `resume` return when the program has ended, or waits for somebody; its errors are raised. In
    an event loop write `await acall(host.start, …)`. A program may be asynchronous; it is awaited in its run.

    Args:
        composer: Gets a scope and the resources, and makes the program: a function that is called with what `start` was
            given. In all processes it has to make the same one.
        interaction: The `HumanInteraction`, with a ledger that all processes share; without a `binding`, so that the
            scope of the program counts.
        scope_for_claims: Makes the scope of claims, a text; None or an empty one for nobody.
        journal: Makes the handler that keeps a run of this name, as `lambda run_id: Journal(run_id, "runs.db")`.
        stack: Handlers that the programs run in, outside of the journal, as `harness(model=…)`. None: those that are
            installed around the calls of the host.
        resources: Whatever the composer needs.

    Raises:
        OptionError: The interaction has a `binding` of its own.

    >>> from effectful_agents import NotHandled, Risk, Skill, Tool, handler, harness
    >>> from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
    >>> from effectful_agents.handlers.policy import HumanInteraction, MemoryLedger, RiskPolicy
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define(risk=Risk.HARD_WRITE)
    ... def send(to: str) -> str:
    ...     '''Send a mail.'''
    ...     return f"sent to {to}"
    >>> @Skill.define
    ... def inform(name: str) -> str:
    ...     '''Inform {name}.'''
    ...     raise NotHandled
    >>> runs = MemoryCheckpointer()
    >>> host = AgentHost(
    ...     lambda scope, resources: handler(RiskPolicy(allow=Risk.READ))(inform),
    ...     HumanInteraction(b"32 random bytes, kept as a secret", consumption=MemoryLedger()),
    ...     scope_for_claims=lambda claims: claims.get("sub"),
    ...     journal=lambda run_id: Journal(run_id, runs),
    ... )
    >>> with handler(harness(system_prompt="brief")), handler(ScriptedModel(calls("send", to="Bob"), "He knows.")):
    ...     waits = host.start({"sub": "ann"}, "Bob")
    ...     ended = host.redeem(waits.token, {"sub": "ann"}, Answer(approved=True))
    >>> waits.suspended, waits.question.name, ended.suspended, ended.value
    (True, 'send', False, 'He knows.')
    """

    def __init__(
        self,
        composer: Callable[[str, Any], Callable[..., T]],
        interaction: HumanInteraction,
        *,
        scope_for_claims: Callable[[C], str | None],
        journal: Callable[[str], Interpretation],
        stack: Interpretation | None = None,
        resources: Any = None,
    ) -> None:
        if interaction.has_binding:
            raise OptionError(
                "`interaction` has a `binding`; in a host it is the scope of a program that may answer. Leave it out."
            )
        self._composer = composer
        self._interaction = interaction
        self._scope_for_claims = scope_for_claims
        self._journal = journal
        self._stack = stack
        self._resources = resources

    def start(self, claims: C, /, *args: Any, run_id: str | None = None, **kwargs: Any) -> CallOutcome[T]:
        """Run the program of a scope.

        Args:
            claims: The verified claims of whoever it is for.
            args: What the program is called with, as plain JSON.
            run_id: The name of the run; None for a new one. A run of this name that there is goes on.
            kwargs: More of it.

        Raises:
            ConfigurationError: The arguments are more than plain JSON.
            TokenScopeMismatch: The claims are those of nobody, or the run is of another scope.
            JournalError: The run was begun with other arguments, or its journal cannot be used.
            RunInUse: Somebody has the run now.
        """
        scope = self._scope_of(claims)
        begun = {"scope": scope, "args": list(args), "kwargs": kwargs}
        if not _is_plain(begun):
            raise ConfigurationError(
                "what a run is begun with is kept in its journal, so it is plain JSON: texts, numbers, booleans, None, "
                "lists, and dictionaries with texts as keys."
            )
        run_id = run_id or fresh_id()
        self._look_at(run_id, scope, begun)
        return self._go_on(run_id, scope, begun)

    def redeem(self, token: str, claims: C, answer: Answer) -> CallOutcome[T]:
        """Answer the question of a token, once, and go on with its run.

        Args:
            token: The token.
            claims: The verified claims of whoever answers.
            answer: What they say; amended arguments as JSON.

        Raises:
            TokenError: One of its kinds says why nothing was done with the token; see `HumanInteraction.redeem`.
            AnswerError: The answer does not fit; it was not kept.
            JournalError: The run was begun by no host; the answer was not kept.
            RunInUse: The answer was kept, and somebody has the run now; `resume` it later.
        """
        scope = self._scope_of(claims)
        # An answer counts once: it is kept when nothing stands in the way of going on with it.
        self._look_at(self._interaction.question_of(token, scope).run_id, scope)
        question = self._interaction.redeem(token, scope, answer)
        try:
            return self._go_on(question.run_id, scope)
        except RunInUse as error:
            raise RunInUse(
                f"the answer is kept, and cannot be answered again. {error} Go on with `resume({question.run_id!r})`."
            ) from error

    def resume(self, run_id: str) -> CallOutcome[T]:
        """Go on with a run, after a crash say: with the answers that there are, or to ask the same again.

        Whoever may call this needs no claims: it answers nothing.

        Raises:
            JournalError: There is no such run.
            RunInUse: Somebody has it.
        """
        self._look_at(run_id)
        return self._go_on(run_id)

    def questions(self, claims: C) -> Sequence[PendingQuestion]:
        """What waits for an answer of whoever the claims are of; `HumanInteraction.token_of` makes the tokens."""
        scope = self._scope_of(claims)
        return [one for one in self._interaction.open_questions() if one.scope == scope]

    def _scope_of(self, claims: C) -> str:
        scope = self._scope_for_claims(claims)
        if scope is None or scope == "":
            raise TokenScopeMismatch("these claims are of nobody who has anything here.")
        if not isinstance(scope, str):
            raise ConfigurationError(f"`scope_for_claims` makes a text, and not {type(scope).__name__}.")
        if not is_scope(scope):
            raise TokenScopeMismatch("the claims are those of nobody: half a character is in their scope.")
        return scope

    def _look_at(self, run_id: str, scope: str | None = None, begun: Mapping[str, Any] | None = None) -> None:
        """Raise what stands in the way of going on with a run, before anything is written about it."""
        checkpointer = getattr(self._journal(run_id), "checkpointer", None)
        if not isinstance(checkpointer, Checkpointer):
            return  # then it is found out in the run
        kept = _begun_with(checkpointer.load(run_id))
        if kept is not None:
            self._check(run_id, kept, scope, begun)
        elif begun is None:
            raise _no_run(run_id)

    def _go_on(self, run_id: str, scope: str | None = None, begun: Mapping[str, Any] | None = None) -> CallOutcome[T]:
        def begin() -> dict[str, Any]:
            if begun is None:
                raise _no_run(run_id)
            return dict(begun)

        try:
            with contextlib.ExitStack() as installed:
                if self._stack is not None:
                    installed.enter_context(handler(self._stack))
                installed.enter_context(handler(self._journal(run_id)))
                installed.enter_context(handler(self._interaction))
                kept = record(begin, dict)
                self._check(run_id, kept, scope, begun)
                installed.enter_context(in_scope(kept["scope"]))
                program = self._composer(kept["scope"], self._resources)
                value = _awaited(program(*kept["args"], **kept["kwargs"]))
                return CallOutcome(run_id=run_id, value=value)
        except Suspended as signal:
            return CallOutcome(run_id=run_id, suspended=True, question=signal.question, token=signal.token)

    def _check(self, run_id: str, kept: Mapping[str, Any], scope: str | None, begun: Mapping[str, Any] | None) -> None:
        if scope is not None and kept["scope"] != scope:
            raise TokenScopeMismatch(f"the run `{run_id}` is of another scope.")
        if begun is not None and kept != begun:
            raise JournalError(
                f"the run `{run_id}` was begun with other arguments. Give it these, or another name; to go on with it, "
                "`resume` needs none."
            )


def _begun_with(state: RunState) -> Mapping[str, Any] | None:
    """What a host has begun a run with; None where none has."""
    first = next((one for one in state.records if one.kind == "record" and one.phase is Phase.COMPLETED), None)
    kept = None if first is None or first.name != _BEGIN else first.body.get("value")
    return kept if isinstance(kept, Mapping) and {"scope", "args", "kwargs"} <= kept.keys() else None


_BEGIN = "begin"
"""The function whose value is recorded first in a run of a host."""


def _no_run(run_id: str) -> JournalError:
    return JournalError(f"there is no run `{run_id}` that a host has begun; `start` begins one.")


def _awaited(value: Any) -> Any:
    """What a program comes to, which may be asynchronous: in its run, where it is decided about what it does.

    Raises:
        ConfigurationError: It comes to something that would go on after the run has ended.
    """
    if inspect.isawaitable(value):
        value = wait(value)
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        raise ConfigurationError("a program of a host returns its value; this one gave a generator.")
    return value


def _is_plain(data: Any) -> bool:
    try:
        return json.loads(json.dumps(data, allow_nan=False)) == data
    except (TypeError, ValueError, RecursionError):
        return False
